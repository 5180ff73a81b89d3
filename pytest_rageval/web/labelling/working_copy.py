"""Working copies of datasets, `data/labelling/NAME/v3.jsonl`, which are labelled and saved as versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.case_text import CaseText, edited_json
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, case_with_marks
from pytest_rageval.cases.note_folder import NOTE_HASHES
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import write_bytes, write_lines
from pytest_rageval.io.strict_json import parse
from pytest_rageval.label.label_store import aside_file
from pytest_rageval.model import EvalCase
from pytest_rageval.web.site import UnknownPageError
from pytest_rageval.web.versions.dataset_store import DatasetStore, DatasetVersion
from pytest_rageval.web.versions.value_changes import DatasetChanges, dataset_changes
from pytest_rageval.web.versions.version_folder import NewerVersion, checked_slug, is_slug, locked_folder

_NAME = re.compile(r"v([1-9][0-9]{0,8})\.jsonl")


class WorkingCopy(NamedTuple):
    """A case file for labelling the dataset `slug`, named after the version that it began from."""

    slug: str
    based_on: int
    path: Path


class WorkingCopies:
    """The working copies of a data folder, at most one per dataset. They never change a version."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "labelling"
        self._datasets = DatasetStore(data)

    def folder(self, slug: str) -> Path:
        """Return the folder of a dataset's copy, which may be missing; raise SettingsError if it is a link."""
        folder = self._folder / checked_slug(slug)
        for place in (folder, *(folder.glob("v*.jsonl"))):
            if place.is_symlink():
                raise SettingsError(f"{place}: is a link, and links are not followed here; remove it")
        return folder

    def all_open(self) -> list[WorkingCopy]:
        """Return all existing working copies, by slug."""
        copies = map(self.get, self._datasets.files.slugs() if self._folder.is_dir() else [])
        return [copy for copy in copies if copy is not None]

    def get(self, slug: str) -> WorkingCopy | None:
        """Return the working copy of a dataset, or None if there is none."""
        try:
            files = list(self.folder(slug).glob("v*.jsonl")) if is_slug(slug) else []
        except SettingsError:
            return None
        numbers = {int(match[1]): file for file in files if (match := _NAME.fullmatch(file.name))}
        return WorkingCopy(slug, max(numbers), numbers[max(numbers)]) if numbers else None

    def opened(self, slug: str) -> WorkingCopy:
        """Return the working copy, or raise UnknownPageError if there is none."""
        copy = self.get(slug)
        if copy is None:
            raise _missing_copy(slug)
        return copy

    def cases(self, copy: WorkingCopy) -> Sequence[EvalCase]:
        """Return the labelled cases; CaseError if the file is not fully readable, UnknownPageError if it is gone."""
        loaded = load_file(copy.path, copy.path.parent)
        if loaded.problems:
            raise CaseError(*loaded.problems) if copy.path.is_file() else _missing_copy(copy.slug)
        return loaded.cases

    def transfer(self, copy: WorkingCopy, number: int) -> LabelTransfer:
        """Return the labels of the copy over its own version or a newer one."""
        original = self._datasets.cases(copy.slug, copy.based_on)
        return label_transfer(original, self.cases(copy), self._datasets.cases(copy.slug, number))

    # ── begun, saved, discarded ───────────────────────────────────────────────────────────────────────────────

    def begin(self, slug: str, number: int) -> None:
        """Make a working copy of the newest version unless one is open; NewerVersion if `number` is not the newest.

        Cases without an id get their derived one: without it, a label would turn them into other cases.
        """
        with self._locked(slug) as folder:
            if self.get(slug) is None:
                newest = self._datasets.files.newest(slug)
                if number != newest:
                    raise NewerVersion(slug, newest)
                content = self._datasets.files.content(slug, number)
                write_bytes(folder / f"v{number}.jsonl", _with_ids(content, self._datasets.cases(slug, number)))

    def save(self, slug: str, note: str, based_on: int) -> DatasetVersion:
        """Save the copy as the version after `based_on`, and remove it; NewerVersion if that is not the newest.

        If the copy began from an older version, apply its labels to `based_on`.
        """
        with self._locked(slug):
            copy = self.opened(slug)
            newest = self._datasets.files.newest(slug)
            if newest != based_on:
                raise NewerVersion(slug, newest)
            transfer = self.transfer(copy, based_on)
            path = copy.path if copy.based_on == based_on else self._moved(copy, transfer, based_on)
            words = note.strip() or f"labelled: {transfer.changes}"
            about = self._datasets.version(slug, based_on).about
            version = self._datasets.save_file(slug, about, path, words, based_on)
            self._remove(path.parent)
            return version

    def discard(self, slug: str) -> None:
        """Remove the copy with all its labels, if there is one."""
        with self._locked(slug) as folder:
            self._remove(folder)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _locked(self, slug: str) -> Iterator[Path]:
        """Lock the copy's folder against other writers, and yield it."""
        folder = self.folder(slug)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with locked_folder(folder):
                yield folder
        except OSError as error:
            raise SettingsError(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from None

    def _moved(self, copy: WorkingCopy, transfer: LabelTransfer, number: int) -> Path:
        """Copy a newer version with these labels. Save labels of missing cases in a separate file."""
        if transfer.unmatched:
            text = CaseText(copy.path.read_bytes())
            lines = (text.text_of(case.source.line).rstrip("\r") for case in transfer.unmatched)
            write_lines(aside_file(copy.path), lines)
        newer = transfer.content(self._datasets.files.content(copy.slug, number))
        path = copy.path.with_name(f"v{number}.jsonl")
        write_bytes(path, _with_ids(newer, transfer.newer))
        return path

    @staticmethod
    def _remove(folder: Path) -> None:
        for path in (*folder.glob("v*.jsonl"), *folder.glob("v*.jsonl.bak")):
            if _NAME.fullmatch(path.name.removesuffix(".bak")):
                path.unlink(missing_ok=True)


def _missing_copy(slug: str) -> UnknownPageError:
    return UnknownPageError(f"there is no working copy of {slug}: it was saved as a version, or discarded")


def _with_ids(content: bytes, cases: Sequence[EvalCase]) -> bytes:
    """Add the id of its case to each line of a case file."""
    text = CaseText(content)
    lines = {case.source.line: text.text_of(case.source.line) for case in cases}
    nameless = {case.source.line: case.id for case in cases if parse(lines[case.source.line]).get("id") is None}
    return text.composed({line: edited_json(lines[line], {("id",): name}) for line, name in nameless.items()})


@dataclass(frozen=True, slots=True)
class LabelTransfer:
    """The labels of a copy over the cases of a newer version.

    labelled   cases of the copy with labels that differ from the version it began from, by id
    newer      the cases of the newer version
    disputed   ids of labelled cases to which the newer version gave other labels
    unmatched  labelled cases that the newer version does not have
    """

    labelled: Mapping[str, EvalCase]
    newer: Sequence[EvalCase]
    disputed: list[str]
    unmatched: list[EvalCase]

    @property
    def changes(self) -> DatasetChanges:
        """Return the changes that the labels make in the newer version."""
        after = [
            case_with_marks(case, Marks.of(self.labelled[case.id])) if case.id in self.labelled else case
            for case in self.newer
        ]
        return dataset_changes(self.newer, after)

    def content(self, newer_content: bytes) -> bytes:
        """Return the newer version's file with the labels; all other bytes stay the same."""
        text = CaseText(newer_content)
        changed = {
            case.source.line: text.line_with(case, Marks.of(self.labelled[case.id]), _hashes(self.labelled[case.id]))
            for case in self.newer
            if case.id in self.labelled
        }
        return text.composed(changed)


def label_transfer(
    original: Sequence[EvalCase], labelled: Sequence[EvalCase], newer: Sequence[EvalCase]
) -> LabelTransfer:
    """Compare a copy with the version that it began from, and that version with the newer one."""
    original_marks = {case.id: Marks.of(case) for case in original}
    newer_marks = {case.id: Marks.of(case) for case in newer}
    changed = {case.id: case for case in labelled if Marks.of(case) != original_marks.get(case.id)}
    disputed = [
        case_id
        for case_id, case in changed.items()
        if case_id in newer_marks and newer_marks[case_id] not in (original_marks.get(case_id), Marks.of(case))
    ]
    unmatched = [case for case_id, case in changed.items() if case_id not in newer_marks]
    return LabelTransfer(changed, newer, disputed, unmatched)


def _hashes(case: EvalCase) -> Mapping[str, str]:
    """Return the hashes of the notes that the labels were made from."""
    hashes = case.metadata.get(NOTE_HASHES)
    return {path: str(digits) for path, digits in hashes.items()} if isinstance(hashes, Mapping) else {}
