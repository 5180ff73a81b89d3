"""Datasets on disk: `data/datasets/NAME/v2.jsonl`, an ordinary case file, with a sealed `v2.json`.

A version that is made by labelling stays open: labels go into its file until a run uses it or another is saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_rageval.cases.case_text import CaseText
from pytest_rageval.cases.conversations import records_of_file
from pytest_rageval.cases.json_edit import edited_json
from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.errors import CaseError
from pytest_rageval.io.atomic import write_bytes
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import EvalCase
from pytest_rageval.web.versions.value_changes import dataset_changes
from pytest_rageval.web.versions.version_folder import (
    ABOUT,
    CHANGED,
    NO_SEAL,
    StoredVersion,
    VersionStore,
    locked,
    saved_now,
    text_hash,
)

OPEN = ".open"
"""Suffix of the mark of a version that takes labels."""
LABELS = "labels"


class DatasetAbout(BaseModel):
    """The description of a dataset.

    origin  names of the files that its cases were read from
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    origin: str = ""


class DatasetVersion(StoredVersion):
    """A stored version of a dataset, without the cases of its file.

    cases    number of cases; None if unknown
    is_open  labels still go into it
    """

    about: DatasetAbout
    cases: int | None = None
    is_open: bool = False

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def texts(self) -> tuple[str, ...]:
        return self.slug, self.about.name, self.about.description, *self.about.tags


class DatasetStore(VersionStore[DatasetVersion]):
    """The datasets of a data folder."""

    def __init__(self, data: Path) -> None:
        super().__init__(data / "datasets", ".jsonl")

    def read(self, slug: str, number: int) -> DatasetVersion:
        place = self.checked_path(slug, number)
        bare = DatasetVersion(slug=slug, number=number, about=DatasetAbout(name=slug))
        about = self.companion(slug, number, ABOUT)
        is_open = self.is_open(slug, number)
        try:
            written = b"" if about.is_symlink() else about.read_bytes()
        except OSError:
            return bare.model_copy(update={"problem": f"{place} {NO_SEAL}"})
        try:
            record = parse(written)
            seal = record.pop("sha256")
            version = DatasetVersion.model_validate({**record, "slug": slug, "number": number, "is_open": is_open})
        except (StrictJsonError, ValidationError, KeyError, AttributeError, TypeError):
            return bare.model_copy(update={"problem": f"{self.companion(slug, number, ABOUT)} {CHANGED}"})
        status = place.stat()
        # Labels change the file of an open version with each mark; it is sealed at its end.
        if not is_open and seal != _seal(record, _content_hash(place, status.st_mtime_ns, status.st_size)):
            return version.model_copy(update={"problem": f"{place} {CHANGED}"})
        return version

    def cases(self, slug: str, number: int) -> Sequence[EvalCase]:
        """Return the cases of a version; raise UnknownVersion if missing, CaseError if not fully readable."""
        path = self.checked_path(slug, number)
        status = path.stat()
        loaded = _loaded(path, status.st_mtime_ns, status.st_size)
        if loaded.problems:
            raise CaseError(*loaded.problems)
        return loaded.cases

    def save(
        self, slug: str, about: DatasetAbout, cases: Sequence[EvalCase], note: str, based_on: int
    ) -> DatasetVersion:
        """Write the next version, or raise NewerVersion if `based_on` (0: none) is not the newest any more."""
        if not cases:
            raise CaseError("a dataset needs a case; nothing was saved")
        lines = [json.dumps(record, ensure_ascii=False) for record in records_of_file(cases)]
        content = "".join(f"{line}\n" for line in lines).encode()
        return self._save(slug, about, content, len(cases), note, based_on)

    def _save(
        self,
        slug: str,
        about: DatasetAbout,
        content: bytes,
        cases: int,
        note: str,
        based_on: int,
        *,
        is_open: bool = False,
    ) -> DatasetVersion:
        if self.is_open(slug, based_on):
            self.close(slug)
        record: dict[str, Any] = {
            "about": about.model_dump(mode="json"),
            "note": note,
            "created": saved_now(),
            "cases": cases,
        }
        sealed = _sealed(record, content)
        mark = {OPEN: b""} if is_open else {}
        number = self.write_next(slug, based_on, lambda _: {".jsonl": content, ABOUT: sealed, **mark})
        return DatasetVersion(slug=slug, number=number, **record)

    # ── open for labels ───────────────────────────────────────────────────────────────────────────────────────

    def is_open(self, slug: str, number: int) -> bool:
        """Return True if labels go into this version: it is the newest, and marked as open."""
        return self.companion(slug, number, OPEN).is_file() and self.numbers(slug)[-1:] == [number]

    def open_next(self, slug: str, number: int) -> DatasetVersion:
        """Return the open version, made from the newest one if there is none; NewerVersion if `number` is not that.

        Cases without an id get their derived one: without it, a label would turn them into other cases.
        """
        newest = self.newest(slug)
        if newest.is_open:
            return newest
        cases = self.cases(slug, number)
        content = _with_ids(self.content(slug, number), cases)
        opened = self._save(slug, newest.about, content, len(cases), LABELS, number, is_open=True)
        return opened.model_copy(update={"is_open": True})

    @contextmanager
    def unsealed(self, slug: str, number: int) -> Iterator[None]:
        """Keep an open version from being sealed while a label is written; raise CaseError if it is sealed already."""
        sealed = CaseError(f"v{number} takes no labels any more: it was finished, or a run uses it")
        if not self.is_open(slug, number):
            raise sealed
        with locked(self.companion(slug, number, OPEN)):
            if not self.is_open(slug, number):
                raise sealed
            yield

    def close(self, slug: str) -> None:
        """Seal the open version with a note of what was labelled, if there is one."""
        newest = max(self.numbers(slug), default=0)
        if not newest or not self.is_open(slug, newest):
            return
        with locked(self.companion(slug, newest, OPEN)):
            if self.is_open(slug, newest):
                self._close(slug, newest)

    def _close(self, slug: str, newest: int) -> None:
        version = self.read(slug, newest)
        content = self.content(slug, newest)
        changes = dataset_changes(self.cases(slug, newest - 1), self.cases(slug, newest))
        record = version.model_dump(mode="json", include={"about", "created", "cases"})
        sealed = _sealed({**record, "note": f"labelled: {changes}"}, content)
        # The seal first: killed in between, the version is still open and can be closed again.
        write_bytes(self.companion(slug, newest, ABOUT), sealed, 0o444)
        self.companion(slug, newest, OPEN).unlink(missing_ok=True)

    def discard_open(self, slug: str) -> None:
        """Remove the open version with all its labels, if there is one."""
        newest = self.last(slug)
        if self.is_open(slug, newest):
            for suffix in (".jsonl", ".jsonl.bak", ABOUT, OPEN):
                self.companion(slug, newest, suffix).unlink(missing_ok=True)

    def run_path(self, slug: str, number: int) -> Path:
        """Return the case file of a version for a run, closed for labels; SettingsError if it was changed."""
        if self.is_open(slug, number):
            self.close(slug)
        # A file changed within the resolution of its clock keeps time and size: a run must not trust the cache.
        _content_hash.cache_clear()
        self.read(slug, number).check_sound()
        return self.path(slug, number)


def _with_ids(content: bytes, cases: Sequence[EvalCase]) -> bytes:
    """Add the id of its case to each line of a case file."""
    text = CaseText(content)
    lines = {case.source.line: text.text_of(case.source.line) for case in cases}
    nameless: dict[int, str] = {}
    for case in cases:
        if parse(lines[case.source.line]).get("id") is None:
            nameless[case.source.line] = case.conversation or case.id
    return text.composed({line: edited_json(lines[line], {("id",): name}) for line, name in nameless.items()})


def _sealed(record: dict[str, Any], content: bytes) -> bytes:
    """Return the description of a version with its seal."""
    seal = _seal(record, text_hash(content))
    return (json_text({**record, "sha256": seal}, 1) + "\n").encode()


def _seal(record: dict[str, Any], content_hash: str) -> str:
    """Return the hash of a version's description and cases."""
    return text_hash(json.dumps(record, sort_keys=True).encode() + content_hash.encode())


@lru_cache(maxsize=1_000)
def _content_hash(path: Path, _mtime_ns: int, _size: int) -> str:
    """Return the hash of a case file, cached for lists."""
    return text_hash(path.read_bytes())


@lru_cache(maxsize=3)
def _loaded(path: Path, _mtime_ns: int, _size: int) -> CaseFile:
    """Return a fully read case file, cached for the next pages."""
    return load_file(path, path.parent)
