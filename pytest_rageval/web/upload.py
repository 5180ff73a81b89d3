"""The uploaded file of a browser's session: `data/uploads/ID/`, replaced by its next one, removed when confirmed."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from starlette.datastructures import FormData, UploadFile

from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import read_json, write_json, write_text
from pytest_rageval.text import cut, printable
from pytest_rageval.web.sessions import Session
from pytest_rageval.web.site import UnknownPageError, WebLimits
from pytest_rageval.web.tables import SUFFIXES, Part, TableFormat, guess_table

KEPT_S = 24 * 3600
"""Seconds that an upload waits to be confirmed."""
MOST_KEPT = 20
"""Maximum number of waiting uploads; the oldest goes for a new one."""
UPLOAD = "upload"
"""The key of the session for the id of its upload."""
_ID = re.compile(r"[0-9a-f]{32}")
_ABOUT = "upload.json"
_PIECE = 1 << 16


class UnknownUpload(UnknownPageError):
    """An upload does not exist, or not any more."""


def file_of(submitted: FormData, part: str) -> UploadFile | None:
    """Return the file of a field, or None if none was chosen."""
    file = submitted.get(part)
    return file if isinstance(file, UploadFile) and file.filename else None


class Upload(NamedTuple):
    """Files that wait for a decision, as they were uploaded, with their original `names` by part."""

    id: str
    folder: Path
    names: Mapping[str, str]
    about: Mapping[str, Any]
    limits: WebLimits

    def part(self, name: str, table: TableFormat | None = None) -> Part:
        """Return a file, read as a table of this format; by default as one of the most likely format."""
        if name not in self.names:
            raise UnknownUpload(f"this upload holds no {name}")
        suffix = _suffix(self.names[name])
        # By its part, never by the name that the browser sent: that may be a path.
        path = self.folder / f"{name}{suffix}"
        if suffix in (".csv", ".tsv"):
            table = table or guess_table(path.read_bytes())
        limits = self.limits
        return Part(path, self.names[name], str(suffix), table, limits.upload_bytes, limits.upload_rows)

    def plain(self, name: str) -> Path:
        """Return a file as every program reads it: a table as UTF-8, a workbook as CSV."""
        part = self.part(name)
        is_plain_csv = part.suffix == ".csv" and part.table is not None and part.table.encoding == "utf-8"
        if not part.is_table or is_plain_csv:
            return part.path
        path = self.folder / f"{name}.plain.csv"
        if not path.exists():
            write_text(path, part.text())
        return path


class Uploads:
    """The uploads of a data folder."""

    def __init__(self, data: Path, limits: WebLimits) -> None:
        self.folder = data / "uploads"
        self.limits = limits

    def begin(self, session: Session, files: Mapping[str, UploadFile], about: Mapping[str, Any]) -> Upload:
        """Keep files in place of the session's earlier ones, or raise CaseError for a wrong size or type.

        files  by part, a plain word of ours
        about  the other fields of the form
        """
        # First, so that there are never more than `MOST_KEPT`.
        self._make_room(session)
        names = {part: _shown_name(file.filename or part) for part, file in files.items()}
        for name in names.values():
            if _suffix(name) is None:
                raise CaseError(f"{name}: is none of {', '.join(SUFFIXES)}; save it as CSV, XLSX or JSONL")
        # Not to be guessed: whoever knows it can see the file.
        upload_id = secrets.token_hex(16)
        upload = Upload(upload_id, self.folder / upload_id, names, about, self.limits)
        with ExitStack() as undone:
            # A file that is too large, or broken off, leaves nothing behind.
            undone.callback(shutil.rmtree, upload.folder, ignore_errors=True)
            try:
                upload.folder.mkdir(parents=True)
                for part, file in files.items():
                    self._keep(file.file, upload.folder / f"{part}{_suffix(names[part])}", names[part])
                write_json(upload.folder / _ABOUT, {"names": names, "about": dict(about)})
            except OSError as error:
                raise SettingsError(f"{self.folder}: cannot be written: {error.strerror or error}") from None
            undone.pop_all()
        session[UPLOAD] = upload_id
        return upload

    def _make_room(self, session: Session) -> None:
        """Remove the session's earlier upload, those older than a day, and the oldest of too many."""
        earlier = session.pop(UPLOAD, None)
        folders = self.folder.iterdir() if self.folder.is_dir() else ()
        waiting = [folder for folder in folders if _ID.fullmatch(folder.name) and not folder.is_symlink()]
        waiting.sort(key=_age)
        for number, folder in enumerate(waiting, start=1):
            if folder.name == earlier or number >= MOST_KEPT or _age(folder) > KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)

    def _keep(self, content: BinaryIO, path: Path, name: str) -> None:
        size = 0
        with path.open("xb") as file:
            while piece := content.read(_PIECE):
                size += len(piece)
                # Counted while it is read: the length that a browser states may be wrong.
                if size > self.limits.upload_bytes:
                    raise CaseError(f"{name}: is larger than {self.limits.upload_bytes:,} bytes; split it")
                file.write(piece)
        if not size:
            raise CaseError(f"{name}: is empty")

    def get(self, upload_id: str) -> Upload:
        """Return a waiting upload, or raise UnknownUpload if there is none."""
        folder = self.folder / upload_id
        is_there = _ID.fullmatch(upload_id) is not None and not folder.is_symlink() and (folder / _ABOUT).is_file()
        # A link in the folder could make the app read another file of the machine.
        if not is_there or _age(folder) > KEPT_S or any(file.is_symlink() for file in folder.iterdir()):
            raise UnknownUpload("this upload is gone: it was confirmed, replaced, or is older than a day; begin again")
        record = read_json(folder / _ABOUT, "upload")
        return Upload(upload_id, folder, record["names"], record["about"], self.limits)

    def remove(self, upload: Upload) -> None:
        """Remove an upload that was confirmed or discarded."""
        shutil.rmtree(upload.folder, ignore_errors=True)


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def _suffix(name: str) -> str | None:
    """Return the file type by suffix, also for a name that is only a suffix, or None if it is unknown."""
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


def _shown_name(name: str) -> str:
    """Return the last part of an uploaded file's name, only for display."""
    last = re.split(r"[/\\]", name)[-1].strip()
    if len(last) > 100:
        last = f"{cut(last, 80)}{PurePosixPath(last).suffix[:10]}"
    return printable(last) or "upload"
