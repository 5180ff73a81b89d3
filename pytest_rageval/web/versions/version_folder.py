"""Versions on disk: their slugs, names, seals and files, each written once under a lock."""

from __future__ import annotations

import hashlib
import os
import re
import time
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from pytest_rageval.config.files import AGENT
from pytest_rageval.errors import Problems, RagevalError, SettingsError
from pytest_rageval.io.atomic import write_new
from pytest_rageval.io.lock import LockHeld, take_lock
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.web.site import UnknownPageError

ABOUT = ".json"
"""Suffix of the file that describes a dataset version."""
LONGEST_SLUG = 60
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")
_RESERVED = re.compile(r"con|prn|aux|nul|new|uploads|(?:com|lpt)[0-9]")
"""Device names of Windows, and words of our own addresses."""


def slug_of(name: str) -> str:
    """Return the slug of a name: `Shop Bot (EU)` → `shop-bot-eu`.

    A name in another script keeps its ASCII characters and gets a hash, so that two names are two slugs.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[: LONGEST_SLUG - 9].strip("-")
    # Two names in Han or Hangul have no ASCII of their own: the hash tells them apart.
    lost = any(character.isalnum() and not character.isascii() for character in unicodedata.normalize("NFKC", name))
    if slug and not lost and not _RESERVED.fullmatch(slug):
        return slug
    digest = hashlib.sha256(unicodedata.normalize("NFC", name).encode()).hexdigest()[:8]
    return f"{slug}-{digest}" if slug else f"n-{digest}"


def is_slug(text: str) -> bool:
    """Return True if a text is a slug, safe as a folder name and in an address."""
    return _SLUG.fullmatch(text) is not None and _RESERVED.fullmatch(text) is None


def checked_slug(text: str) -> str:
    """Return the text if it is a slug, or raise SettingsError so that it never becomes a path."""
    if not is_slug(text):
        raise SettingsError(f"{shown_value(text)} is not a name here; names are lower-case letters, digits and hyphens")
    return text


class StoredVersion(BaseModel):
    """A stored version.

    slug     the name in addresses and on disk
    note     what changed, in the author's words
    created  UTC, ISO 8601; empty if unknown
    author   who saved it, as typed
    problem  why the file is doubtful; None if it is unchanged
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str
    number: int
    note: str = ""
    created: str = ""
    author: str = ""
    problem: str | None = None

    @property
    def name(self) -> str:
        """Return the display name."""
        return self.slug

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts that a list is searched by."""
        return (self.slug,)

    def check_sound(self) -> None:
        """Raise SettingsError if the files were changed after they were saved: the origin of a run would be wrong."""
        if self.problem is not None and self.problem.endswith(CHANGED):
            raise SettingsError(self.problem)

    @property
    def title(self) -> str:
        """Return the name with the number: `Shop bot v3`."""
        return f"{self.name} v{self.number}"


def mentions(q: str, texts: Iterable[str]) -> bool:
    """Return True if each word of a search stands in one of these texts."""
    lowered = [text.lower() for text in texts]
    return all(any(word in text for text in lowered) for word in q.lower().split())


def saved_now() -> str:
    """Return the current time for a saved version: UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


LOCK_PATIENCE_S = 5.0
MOST_VERSIONS = 99_999
_SEAL = re.compile(rb"# rageval version, sha256 ([0-9a-f]{64})\b[^\r\n]*\r?\n")
_REMARK = "do not edit: save a new version in its place"
NO_SEAL = "was not saved by rageval web: it has no seal, so nobody can tell whether it was changed"
CHANGED = "was changed after it was saved: restore it from git or a backup, or save it as a new version"


class UnknownVersion(UnknownPageError):
    """A name or a version of it does not exist."""


class NewerVersion(RagevalError):
    """Another window saved a version first, with the number `newest`; nothing was written."""

    def __init__(self, slug: str, newest: int) -> None:
        super().__init__(f"{slug}: version {newest} was saved meanwhile by another window; nothing was overwritten")
        self.slug = slug
        self.newest = newest


V = TypeVar("V", bound=StoredVersion)
Kind = Literal["agents", "datasets"]


class VersionStore(Generic[V]):
    """The versions of agents or of datasets: one folder per slug, with one file `vN` plus suffix per version.

    A version may have files with other suffixes (`companion`). It exists once its own file does.
    """

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder = folder
        self.suffix = suffix
        self._name = re.compile(rf"v([1-9][0-9]{{0,4}}){re.escape(suffix)}")

    def read(self, slug: str, number: int) -> V:
        """Return one version, with its `problem` if a file was changed; SettingsError if its file is invalid."""
        raise NotImplementedError

    def newest(self, slug: str) -> V:
        """Return the newest version; raise UnknownVersion if there is none, SettingsError if its file is invalid."""
        return self.read(slug, self.last(slug))

    def newest_versions(self) -> tuple[list[V], list[str]]:
        """Return the newest version of each name by slug, and the problems of invalid files."""
        return self._readable((slug, self.last(slug)) for slug in self.slugs())

    def versions(self, slug: str) -> tuple[list[V], list[str]]:
        """Return all versions, the newest first, and the problems of invalid files."""
        return self._readable((slug, number) for number in reversed(self.numbers(slug)))

    def _readable(self, places: Iterable[tuple[str, int]]) -> tuple[list[V], list[str]]:
        problems = Problems()
        versions = [problems.attempt(self.read, slug, number) for slug, number in places]
        return [version for version in versions if version is not None], [*problems]

    def slugs(self) -> list[str]:
        """Return the slugs that have a version, in order."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir() if is_slug(entry.name) and _is_folder(entry))
        except OSError:
            return []
        return [name for name in names if self.numbers(name)]

    def numbers(self, slug: str) -> list[int]:
        """Return the numbers of all existing versions, the oldest first."""
        home = self.folder / checked_slug(slug)
        if not _is_folder(home):
            return []
        try:
            with os.scandir(home) as entries:
                # A link would show a file from elsewhere as a version.
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(int(match[1]) for name in names if (match := self._name.fullmatch(name)))

    def last(self, slug: str) -> int:
        """Return the number of the newest version, or raise UnknownVersion if there is none."""
        numbers = self.numbers(slug) if is_slug(slug) else []
        if not numbers:
            raise UnknownVersion(f"there is no {self.folder.name.removesuffix('s')} of this name")
        return numbers[-1]

    def compared(self, slug: str, before: int | None, after: int | None) -> tuple[list[int], int, int]:
        """Return the numbers of all versions, and the two to compare: by default the last two."""
        numbers = self.numbers(slug)
        later = after or self.last(slug)
        earlier = before or max((number for number in numbers if number < later), default=later)
        return numbers, earlier, later

    def path(self, slug: str, number: int) -> Path:
        """Return the path of a version, which may be missing."""
        return self.companion(slug, number, self.suffix)

    def companion(self, slug: str, number: int, suffix: str) -> Path:
        """Return the path of a file that belongs to a version."""
        return self.folder / checked_slug(slug) / f"v{number:d}{suffix}"

    def checked_path(self, slug: str, number: int) -> Path:
        """Return the path of a version, or raise UnknownVersion if there is none."""
        if not is_slug(slug) or number not in self.numbers(slug):
            raise UnknownVersion(f"there is no version {number} of this {self.folder.name.removesuffix('s')}")
        return self.path(slug, number)

    def content(self, slug: str, number: int) -> bytes:
        """Return the bytes of a version, or raise UnknownVersion if there is none."""
        path = self.checked_path(slug, number)
        try:
            return path.read_bytes()
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from None

    def write_next(self, slug: str, based_on: int, files_of: Callable[[int], Mapping[str, bytes]]) -> int:
        """Write the next version and return its number.

        based_on  the version that was changed, 0 for something new; NewerVersion if another one is the newest now
        files_of  the files of a version by suffix; its own file, which makes the version exist, is written last
        """
        home = self.folder / checked_slug(slug)
        if home.is_symlink():
            raise SettingsError(f"{home}: is a link, and links are not followed here; put the folder itself there")
        try:
            home.mkdir(parents=True, exist_ok=True)
            with locked(home):
                newest = max(self.numbers(slug), default=0)
                # Looked at under the lock: two windows may save at once.
                if newest != based_on:
                    raise NewerVersion(slug, newest)
                if newest >= MOST_VERSIONS:
                    raise SettingsError(f"{home}: holds {newest} versions, which is all that fit; begin another name")
                self._write(slug, newest + 1, files_of(newest + 1))
        # A program without this lock, or a file system that has none, was faster.
        except FileExistsError as error:
            raise NewerVersion(slug, max(self.numbers(slug), default=based_on)) from error
        except OSError as error:
            raise SettingsError(f"{error.filename or home}: cannot be written: {error.strerror or error}") from None
        return newest + 1

    def _write(self, slug: str, number: int, files: Mapping[str, bytes]) -> None:
        # The version's own file comes last: with it, the version exists.
        for suffix in sorted(files, key=lambda suffix: suffix == self.suffix):
            path = self.companion(slug, number, suffix)
            if suffix != self.suffix:
                path.unlink(missing_ok=True)  # left by a save that was interrupted
            write_new(path, files[suffix])


def _is_folder(path: Path) -> bool:
    """Return True for a real folder. Links are not followed: another person's project may link outside of itself."""
    return path.is_dir() and not path.is_symlink()


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Lock a folder or a file against other writers, or raise SettingsError if another one keeps it too long."""
    try:
        descriptor = wait_for_lock(home, LOCK_PATIENCE_S)
    except LockHeld:
        raise SettingsError(f"{home}: another program keeps it locked; try again when it has ended") from None
    try:
        yield
    finally:
        os.close(descriptor)


def wait_for_lock(path: Path, seconds: float) -> int:
    """Return the descriptor of a lock, or raise LockHeld if another process keeps it that long."""
    until = time.monotonic() + seconds
    while True:
        try:
            return take_lock(path)
        except LockHeld:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def sealed_text(text: str) -> str:
    """Return the text of a TOML file with its seal as the first line."""
    return f"# rageval version, sha256 {text_hash(text.encode())}; {_REMARK}\n{text}"


def seal_problem(content: bytes) -> str | None:
    """Return the problem of a sealed text as the end of a sentence, or None if it is unchanged."""
    # Some editors put a byte order mark before a file they only looked at.
    content = content.removeprefix(b"\xef\xbb\xbf")
    seal = _SEAL.match(content)
    if seal is None:
        return NO_SEAL
    is_unchanged = text_hash(content[seal.end() :]) == seal[1].decode()
    return None if is_unchanged else CHANGED


def text_hash(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal, with line ends read as LF because git may convert them."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


class VersionChoice(NamedTuple):
    """A version that forms name as `shop-bot/3`."""

    slug: str
    number: int

    def __str__(self) -> str:
        return f"{self.slug}/{self.number}"


def version_choice(written: str) -> VersionChoice | None:
    """Return the named version, or None if the text names none."""
    slug, _, number = written.partition("/")
    # ASCII: `int` reads figures of other scripts, too.
    if not is_slug(slug) or not (number.isascii() and number.isdecimal()) or len(number) > 5:
        return None
    return VersionChoice(slug, int(number))


def versions_title(data: Path, agent: tuple[str | None, object], dataset: tuple[str | None, object]) -> str:
    """Return `Shop bot v4 × Products v2`, without what a run does not name."""
    kinds: tuple[tuple[Kind, str | None, object], ...] = (("agents", *agent), ("datasets", *dataset))
    titles = []
    for kind, slug, version in kinds:
        if slug:
            name = version_name(data, kind, slug)
            titles.append(f"{name} v{version}" if version else name)
    return " × ".join(titles)


def version_name(data: Path, kind: Kind, slug: str) -> str:
    """Return the name in the newest version, or the slug if it has none."""
    if not is_slug(slug):
        return slug
    store = VersionStore[StoredVersion](data / kind, ".toml" if kind == "agents" else ".jsonl")
    try:
        path = store.companion(slug, store.last(slug), ".toml" if kind == "agents" else ABOUT)
        # By the time of its file: lists name every run's agent, and names change seldom.
        return _name_in(path, path.stat().st_mtime_ns) or slug
    except (SettingsError, OSError):
        return slug


@lru_cache(maxsize=2_000)
def _name_in(path: Path, _mtime_ns: int) -> str | None:
    try:
        about: Any = _about(path)
        name = about["name"]
    except (ValueError, RecursionError, StrictJsonError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name.strip() else None


def _about(path: Path) -> Any:
    """Return the descriptive part of a version's file."""
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text("utf-8-sig"))[AGENT]
    return parse(path.read_bytes())["about"]
