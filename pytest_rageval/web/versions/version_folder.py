"""Version files on disk: `NAME/v3.toml`, written once under a lock, never changed, and seen however they came there."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.atomic import write_new
from pytest_rageval.io.lock import LockHeld, take_lock
from pytest_rageval.web.site import UnknownPageError
from pytest_rageval.web.versions.slugs import checked_slug, is_slug

LOCK_PATIENCE_S = 5.0
MOST_VERSIONS = 99_999
_SEAL = re.compile(rb"# rageval version, sha256 ([0-9a-f]{64})\b[^\r\n]*\r?\n")
_REMARK = "do not edit: save a new version in its place"
NO_SEAL = "was not saved by rageval web: it has no seal, so nobody can tell whether it was changed"
CHANGED = "was changed after it was saved: restore it from git or a backup, or save it as a new version"


class UnknownVersion(UnknownPageError):
    """There is no such name, or no such version of it."""


class NewerVersion(RagevalError):
    """Somebody else saved a version meanwhile; nothing was written. `newest` is the number of theirs."""

    def __init__(self, slug: str, newest: int) -> None:
        super().__init__(f"{slug}: version {newest} was saved meanwhile by another window; nothing was overwritten")
        self.slug = slug
        self.newest = newest


class VersionFolder:
    """The versions of one kind of thing: a folder a slug, in it a file a version, `vN` and the suffix.

    Other suffixes may stand beside (`beside`): they belong to the version, which is there once its own file is.
    """

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder = folder
        self.suffix = suffix
        self._name = re.compile(rf"v([1-9][0-9]{{0,4}}){re.escape(suffix)}")

    def slugs(self) -> list[str]:
        """Everything that has a version, by name."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir() if is_slug(entry.name) and _is_folder(entry))
        except OSError:
            return []
        return [name for name in names if self.numbers(name)]

    def numbers(self, slug: str) -> list[int]:
        """The numbers of all versions that are there, the oldest first."""
        home = self.folder / checked_slug(slug)
        if not _is_folder(home):
            return []
        try:
            with os.scandir(home) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(int(match[1]) for name in names if (match := self._name.fullmatch(name)))

    def newest(self, slug: str) -> int:
        """The number of the newest version; UnknownVersion where there is none."""
        numbers = self.numbers(slug) if is_slug(slug) else []
        if not numbers:
            raise UnknownVersion(f"there is no {self.folder.name.removesuffix('s')} of this name")
        return numbers[-1]

    def compared(self, slug: str, before: int | None, after: int | None) -> tuple[list[int], int, int]:
        """The numbers of all versions, and of the two to compare: without numbers, the last two."""
        numbers = self.numbers(slug)
        later = after or self.newest(slug)
        return numbers, before or max((number for number in numbers if number < later), default=later), later

    def path(self, slug: str, number: int) -> Path:
        """Where a version is, or will be."""
        return self.beside(slug, number, self.suffix)

    def beside(self, slug: str, number: int, suffix: str) -> Path:
        """A file that belongs to a version."""
        return self.folder / checked_slug(slug) / f"v{number:d}{suffix}"

    def checked_path(self, slug: str, number: int) -> Path:
        """Where a version is; UnknownVersion where there is none."""
        if not is_slug(slug) or number not in self.numbers(slug):
            raise UnknownVersion(f"there is no version {number} of this {self.folder.name.removesuffix('s')}")
        return self.path(slug, number)

    def content(self, slug: str, number: int) -> bytes:
        """The bytes of a version; UnknownVersion where there is none."""
        path = self.checked_path(slug, number)
        try:
            return path.read_bytes()
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from None

    def save(self, slug: str, based_on: int, files_of: Callable[[int], Mapping[str, bytes]]) -> int:
        """Write the next version and return its number.

        based_on  the version that was changed, 0 for something new; NewerVersion where another one is the newest now
        files_of  the files of a version by suffix; its own file, which makes the version exist, is written last
        """
        home = self.folder / checked_slug(slug)
        if home.is_symlink():
            raise SettingsError(f"{home}: is a link, and links are not followed here; put the folder itself there")
        try:
            home.mkdir(parents=True, exist_ok=True)
            with locked_folder(home):
                newest = max(self.numbers(slug), default=0)
                if newest != based_on:
                    raise NewerVersion(slug, newest)
                if newest >= MOST_VERSIONS:
                    raise SettingsError(f"{home}: holds {newest} versions, which is all that fit; begin another name")
                self._write(slug, newest + 1, files_of(newest + 1))
        except FileExistsError as error:
            raise NewerVersion(slug, max(self.numbers(slug), default=based_on)) from error
        except OSError as error:
            raise SettingsError(f"{error.filename or home}: cannot be written: {error.strerror or error}") from None
        return newest + 1

    def _write(self, slug: str, number: int, files: Mapping[str, bytes]) -> None:
        for suffix in sorted(files, key=lambda suffix: suffix == self.suffix):
            path = self.beside(slug, number, suffix)
            if suffix != self.suffix:
                path.unlink(missing_ok=True)  # of a save that was cut off before the version was there
            write_new(path, files[suffix])


def _is_folder(path: Path) -> bool:
    """Links are not followed: a project of somebody else may bring one that leads out of it."""
    return path.is_dir() and not path.is_symlink()


@contextmanager
def locked_folder(home: Path) -> Iterator[None]:
    """Nobody else writes into a folder meanwhile; SettingsError where another program keeps it too long."""
    until = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            descriptor = take_lock(home)
            break
        except LockHeld:
            if time.monotonic() > until:
                raise SettingsError(f"{home}: another program keeps it locked; try again when it has ended") from None
            time.sleep(0.01)
    try:
        yield
    finally:
        os.close(descriptor)


def sealed_text(text: str) -> str:
    """The text of a TOML file with its seal as the first line."""
    return f"# rageval version, sha256 {text_hash(text.encode())}; {_REMARK}\n{text}"


def seal_problem(content: bytes) -> str | None:
    """What is wrong with a sealed text, as the end of a sentence; None where it is as it was written."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    seal = _SEAL.match(content)
    if seal is None:
        return NO_SEAL
    return None if text_hash(content[seal.end() :]) == seal[1].decode() else CHANGED


def text_hash(content: bytes) -> str:
    """SHA-256 in hex digits. A line end is LF however git checked the file out."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
