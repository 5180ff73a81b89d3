"""Datasets on disk: `data/datasets/NAME/v2.jsonl`, an ordinary case file, with a sealed `v2.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import EvalCase
from pytest_rageval.web.versions.version_folder import (
    ABOUT,
    CHANGED,
    NO_SEAL,
    StoredVersion,
    VersionFolder,
    saved_now,
    text_hash,
)


class DatasetStore:
    """The datasets of a data folder."""

    def __init__(self, data: Path) -> None:
        self.files = VersionFolder(data / "datasets", ".jsonl")

    def newest_versions(self) -> list[DatasetVersion]:
        """Return the newest version of each dataset, by slug."""
        return [self.newest(slug) for slug in self.files.slugs()]

    def newest(self, slug: str) -> DatasetVersion:
        """Return the newest version, or raise UnknownVersion if there is none."""
        return self.version(slug, self.files.newest(slug))

    def versions(self, slug: str) -> list[DatasetVersion]:
        """Return all versions, the newest first."""
        return [self.version(slug, number) for number in reversed(self.files.numbers(slug))]

    def version(self, slug: str, number: int) -> DatasetVersion:
        """Return the description of a version, with its `problem` if a file was changed."""
        place = self.files.checked_path(slug, number)
        bare = DatasetVersion(slug=slug, number=number, about=DatasetAbout(name=slug))
        about = self.files.companion(slug, number, ABOUT)
        try:
            written = b"" if about.is_symlink() else about.read_bytes()
        except OSError:
            return bare.model_copy(update={"problem": f"{place} {NO_SEAL}"})
        try:
            record = parse(written)
            seal = record.pop("sha256")
            version = DatasetVersion.model_validate({**record, "slug": slug, "number": number})
        except (StrictJsonError, ValidationError, KeyError, AttributeError, TypeError):
            return bare.model_copy(update={"problem": f"{self.files.companion(slug, number, ABOUT)} {CHANGED}"})
        status = place.stat()
        if seal != _seal(record, _content_hash(place, status.st_mtime_ns, status.st_size)):
            return version.model_copy(update={"problem": f"{place} {CHANGED}"})
        return version

    def cases(self, slug: str, number: int) -> Sequence[EvalCase]:
        """Return the cases of a version; raise UnknownVersion if missing, CaseError if not fully readable."""
        path = self.files.checked_path(slug, number)
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
        content = "".join(f"{case_line(case)}\n" for case in cases).encode()
        return self._save(slug, about, content, len(cases), note, based_on)

    def save_file(self, slug: str, about: DatasetAbout, path: Path, note: str, based_on: int) -> DatasetVersion:
        """Write a JSONL case file as the next version, byte for byte; CaseError if it is not fully readable."""
        content = path.read_bytes()
        loaded = load_file(path, path.parent)
        if loaded.problems:
            raise CaseError(*loaded.problems)
        return self._save(slug, about, content, len(loaded.cases), note, based_on)

    def _save(
        self, slug: str, about: DatasetAbout, content: bytes, cases: int, note: str, based_on: int
    ) -> DatasetVersion:
        record: dict[str, Any] = {
            "about": about.model_dump(mode="json"),
            "note": note,
            "created": saved_now(),
            "cases": cases,
        }
        sealed = json_text({**record, "sha256": _seal(record, text_hash(content))}, 1) + "\n"
        number = self.files.save(slug, based_on, lambda _: {".jsonl": content, ABOUT: sealed.encode()})
        return DatasetVersion(slug=slug, number=number, **record)

    def checked_path(self, slug: str, number: int) -> Path:
        """Return the case file of a version for a run, or raise SettingsError if it was changed."""
        _content_hash.cache_clear()
        version = self.version(slug, number)
        if version.problem is not None and version.problem.endswith(CHANGED):
            raise SettingsError(version.problem)
        return self.files.path(slug, number)


def case_line(case: EvalCase) -> str:
    """Return the line of a case file that reads back as this case."""
    mapping = case_to_mapping(case)
    del mapping["source"]
    return json.dumps(mapping, ensure_ascii=False)


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

    cases  number of cases; None if unknown
    """

    about: DatasetAbout
    cases: int | None = None

    @property
    def name(self) -> str:
        return self.about.name
