"""Waiting uploads: `data/uploads/ID/` with the files under our names, removed when confirmed or after a day."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import read_json, write_json
from pytest_rageval.matching.passages import contexts
from pytest_rageval.model import EvalCase, Source
from pytest_rageval.targets.answer_files import AnswersTarget, load_answers
from pytest_rageval.text import cut, printable
from pytest_rageval.web.site import UnknownPageError, WebLimits
from pytest_rageval.web.uploads.table_dialect import TableDialect, guess_dialect, write_as_utf8

KEPT_S = 24 * 3600
"""Seconds that an upload waits to be confirmed."""
KEPT_AT_LEAST_S = 3600
"""Minimum seconds before an upload may be removed to make room for another."""
_ID = re.compile(r"[0-9a-f]{32}")
_ABOUT = "upload.json"
_ORIGINAL = ".original"
_PIECE = 1 << 16
SUFFIXES = (".csv", ".jsonl", ".json")


class UnknownUpload(UnknownPageError):
    """An upload does not exist, or not any more."""


class UploadedFile(NamedTuple):
    """A file of a form: its name and content."""

    name: str
    content: BinaryIO


class Upload(NamedTuple):
    """Files that wait for a decision, with their original `names` and table `dialects` by part."""

    id: str
    folder: Path
    names: Mapping[str, str]
    about: Mapping[str, Any]
    dialects: Mapping[str, TableDialect] = {}

    def path(self, part: str) -> Path:
        """Return the file of a part; a table is rewritten as UTF-8 with commas."""
        if part not in self.names:
            raise UnknownUpload(f"this upload holds no {part}")
        return self.folder / f"{part}{_suffix(self.names[part])}"

    def original(self, part: str) -> Path:
        """Return the file of a part as it was uploaded."""
        path = self.path(part)
        return path.with_suffix(_ORIGINAL) if path.suffix == ".csv" else path


class UploadFolder:
    """The uploads of a data folder."""

    def __init__(self, data: Path, limits: WebLimits) -> None:
        self.folder = data / "uploads"
        self.limits = limits

    def begin(self, files: Mapping[str, UploadedFile], about: Mapping[str, Any]) -> Upload:
        """Keep files until they are confirmed, or raise CaseError if one is too large or of an unknown type.

        files  by part, a plain word of ours
        about  the other fields of the form
        """
        self.remove_old()
        self._make_room()
        names = {part: _shown_name(file.name) for part, file in files.items()}
        for name in names.values():
            if _suffix(name) is None:
                raise CaseError(f"{name}: is none of {', '.join(SUFFIXES)}; save it as CSV or JSONL")
        upload_id = secrets.token_hex(16)
        upload = Upload(upload_id, self.folder / upload_id, names, about)
        with ExitStack() as undone:
            undone.callback(shutil.rmtree, upload.folder, ignore_errors=True)
            try:
                upload.folder.mkdir(parents=True)
                for part, file in files.items():
                    self._keep(file.content, upload.original(part), names[part])
                    upload = _rewrite_as_guessed(upload, part)
                _write_about(upload)
            except OSError as error:
                raise SettingsError(f"{self.folder}: cannot be written: {error.strerror or error}") from None
            undone.pop_all()
        return upload

    def _make_room(self) -> None:
        """Remove the oldest uploads if too many wait, or raise CaseError if all are too recent."""
        waiting = sorted((folder for folder in self._folders()), key=_age)  # the youngest first
        size = 0
        for number, folder in enumerate(waiting, start=1):
            size += _size(folder)
            if number < self.limits.waiting and size + self.limits.upload_bytes <= self.limits.waiting_bytes:
                continue
            if _age(folder) < KEPT_AT_LEAST_S:
                raise CaseError(
                    f"{len(waiting)} uploads of the last hour wait to be confirmed, and no more are taken; confirm or "
                    f"discard yours, or remove them from {self.folder}"
                )
            shutil.rmtree(folder, ignore_errors=True)

    def _folders(self) -> list[Path]:
        folders = self.folder.iterdir() if self.folder.is_dir() else ()
        return [folder for folder in folders if _ID.fullmatch(folder.name) and not folder.is_symlink()]

    def _keep(self, content: BinaryIO, path: Path, name: str) -> None:
        size = 0
        with path.open("xb") as file:
            while piece := content.read(_PIECE):
                size += len(piece)
                if size > self.limits.upload_bytes:
                    raise CaseError(f"{name}: is larger than {self.limits.upload_bytes:,} bytes; split it")
                file.write(piece)
        if not size:
            raise CaseError(f"{name}: is empty")

    def get(self, upload_id: str) -> Upload:
        """Return a waiting upload, or raise UnknownUpload if there is none."""
        folder = self.folder / upload_id
        is_one = _ID.fullmatch(upload_id) is not None and not folder.is_symlink() and (folder / _ABOUT).is_file()
        if not is_one or _age(folder) > KEPT_S or any(file.is_symlink() for file in folder.iterdir()):
            raise UnknownUpload("this upload is gone: it was confirmed, or is older than a day; begin again")
        record = read_json(folder / _ABOUT, "upload")
        dialects = {part: TableDialect(*written) for part, written in record["dialects"].items()}
        return Upload(upload_id, folder, record["names"], record["about"], dialects)

    def change_dialects(self, upload: Upload, dialects: Mapping[str, TableDialect]) -> Upload:
        """Read the same files in the chosen dialects, or raise CaseError if one does not fit."""
        for part, dialect in dialects.items():
            if part in upload.dialects and dialect != upload.dialects[part]:
                upload = _rewrite_table(upload, part, dialect)
        _write_about(upload)
        return upload

    def remove(self, upload: Upload) -> None:
        """Remove an upload that was confirmed or discarded."""
        shutil.rmtree(upload.folder, ignore_errors=True)

    def remove_old(self) -> None:
        """Remove the uploads that were not confirmed within a day."""
        for folder in self._folders():
            if _age(folder) > KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)


def _rewrite_table(upload: Upload, part: str, dialect: TableDialect) -> Upload:
    """Rewrite a table of the upload from this dialect, or raise CaseError if it does not fit."""
    write_as_utf8(upload.original(part), upload.path(part), dialect, upload.names[part])
    return upload._replace(dialects={**upload.dialects, part: dialect})


def _rewrite_as_guessed(upload: Upload, part: str) -> Upload:
    """Rewrite a table of the upload from its most likely dialect, or unchanged if that does not fit."""
    if upload.path(part).suffix != ".csv":
        return upload
    try:
        return _rewrite_table(upload, part, guess_dialect(upload.original(part)))
    except CaseError:  # the preview then reports bad bytes by line, and another encoding can be chosen
        return _rewrite_table(upload, part, TableDialect())


def _write_about(upload: Upload) -> None:
    record = {"names": dict(upload.names), "about": dict(upload.about), "dialects": dict(upload.dialects)}
    write_json(upload.folder / _ABOUT, record)


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError:  # removed by another request
        return 0


def _suffix(name: str) -> str | None:
    """Return the file type by suffix, also for a name that is only a suffix, or None if it is unknown."""
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


def _shown_name(name: str) -> str:
    """Return the last part of an uploaded file's name, only for display."""
    last = re.split(r"[/\\]", name)[-1].strip()
    return printable(last if len(last) <= 100 else f"{cut(last, 80)}{PurePosixPath(last).suffix[:10]}") or "upload"


ANSWER_SUFFIXES = (".csv", ".jsonl")
ALL = 10_000
"""Number of chunks of an answer to consider: more than any cut-off."""


@dataclass(frozen=True, slots=True)
class AnswersUpload:
    """Answers that cover every case.

    model_names       models that wrote the answers, according to the file
    without_contexts  number of answers without contexts, to which groundedness and the like do not apply
    """

    answers: int
    model_names: tuple[str, ...]
    without_contexts: int


def read_answers_upload(path: Path, shown_as: str, cases: Sequence[EvalCase], most_rows: int) -> AnswersUpload:
    """Read the answers in a file, or raise CaseError with every problem, missing and unknown ids among them.

    shown_as  the name of the person's file
    cases     all cases of the dataset
    """
    if path.suffix not in ANSWER_SUFFIXES:
        raise CaseError(f"{shown_as}: answers are a file that ends with {' or '.join(ANSWER_SUFFIXES)}")
    file = load_answers(path, shown_as=shown_as, most_rows=most_rows)
    target = AnswersTarget(file)
    cases = [replace(case, source=Source("", 0)) for case in cases]  # so that problems name cases by their ids
    if problems := target.check_coverage(cases):
        raise CaseError(*problems)
    answers = [answer for case in cases if (answer := target.of(case)) is not None]
    names = sorted({name for answer in answers if isinstance(name := answer.extra.get("model_name"), str) and name})
    bare = sum(not contexts(case, answer, ALL) for case, answer in zip(cases, answers, strict=True))
    return AnswersUpload(len(answers), tuple(names), bare)
