"""Working copies of datasets, `data/labelling/NAME/NAME.jsonl`: labelled like case files, then saved as a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_rageval.cases.case_text import CaseText, edited_json
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, case_with_marks
from pytest_rageval.cases.note_folder import NOTE_HASHES
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import read_json, write_bytes, write_json, write_lines
from pytest_rageval.io.strict_json import parse
from pytest_rageval.label.label_store import aside_file
from pytest_rageval.model import EvalCase
from pytest_rageval.web.site import UnknownPageError
from pytest_rageval.web.versions.dataset_store import DatasetStore, DatasetVersion
from pytest_rageval.web.versions.value_changes import DatasetChanges, dataset_changes
from pytest_rageval.web.versions.version_folder import NewerVersion, checked_slug, is_slug, locked_folder, saved_now

BEGUN = "begun.json"
"""The file beside a working copy that says what it began from."""


class WorkingCopy(BaseModel):
    """What a working copy says of itself; the cases stand in its file.

    slug      of the dataset
    based_on  the version that it began from
    begun     UTC, ISO 8601
    systems   who gives chunks, as `SystemOption.value`
    problem   why it can be neither labelled nor saved, if it cannot
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str
    based_on: int = Field(ge=1)
    begun: str = ""
    systems: tuple[str, ...] = ()
    problem: str | None = None


class WorkingCopies:
    """The working copies of a data folder, at most one a dataset. Versions are never touched by them."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "labelling"
        self._datasets = DatasetStore(data)

    # ── what there is ─────────────────────────────────────────────────────────────────────────────────────────

    def path(self, slug: str) -> Path:
        """The case file of a working copy, whether it is there or not; SettingsError of one that a link leads to."""
        path = self._folder / checked_slug(slug) / f"{slug}.jsonl"
        for place in (path.parent, path):
            if place.is_symlink():
                raise SettingsError(f"{place}: is a link, and links are not followed here; remove it")
        return path

    def all_open(self) -> list[WorkingCopy]:
        """Every working copy of a dataset that is there, by slug."""
        slugs = self._datasets.files.slugs() if self._folder.is_dir() else []
        copies = map(self.get, slugs)
        return [copy for copy in copies if copy is not None]

    def get(self, slug: str) -> WorkingCopy | None:
        """The working copy of a dataset; None where there is none."""
        try:
            if not is_slug(slug) or not self.path(slug).is_file():
                return None
        except SettingsError as error:
            return WorkingCopy(slug=slug, based_on=1, problem=str(error))
        place = self.path(slug).with_name(BEGUN)
        try:
            copy = WorkingCopy.model_validate({**read_json(place, "working copy"), "slug": slug})
            self._datasets.files.checked_path(slug, copy.based_on)
        except (SettingsError, ValidationError):
            if not self.path(slug).is_file():  # saved or discarded meanwhile by another window
                return None
            problem = f"{place}: does not say from which version {self.path(slug).name} began: restore it, or discard"
            return WorkingCopy(slug=slug, based_on=1, problem=problem)
        return None if self._is_saved(copy) else copy

    def sound(self, slug: str) -> WorkingCopy:
        """The working copy, to be labelled or saved; UnknownPageError where there is none, SettingsError where its
        files are not in order."""
        copy = self.get(slug)
        if copy is None:
            raise _gone(slug)
        if copy.problem is not None:
            raise SettingsError(copy.problem)
        return copy

    def cases(self, copy: WorkingCopy) -> Sequence[EvalCase]:
        """The cases as they are labelled by now; CaseError where the file cannot be read whole, UnknownPageError where
        another window has saved or discarded it meanwhile."""
        path = self.path(copy.slug)
        loaded = load_file(path, path.parent)
        if loaded.problems:
            raise CaseError(*loaded.problems) if path.is_file() else _gone(copy.slug)
        return loaded.cases

    def transfer(self, copy: WorkingCopy, number: int) -> LabelTransfer:
        """What was labelled, over the version that the copy began from, or a newer one."""
        begun = self._datasets.cases(copy.slug, copy.based_on)
        return label_transfer(begun, self.cases(copy), self._datasets.cases(copy.slug, number))

    # ── begun, saved, discarded ───────────────────────────────────────────────────────────────────────────────

    def begin(self, slug: str, number: int, systems: Sequence[str]) -> WorkingCopy:
        """Make a working copy of the newest version, or give back the one that is open.

        NewerVersion where `number` is not the newest. Cases without an id get the one that they are known by: without
        it, a label would make another case of them.
        """
        with self._locked(slug) as path:
            if (copy := self.get(slug)) is not None:
                return copy
            newest = self._datasets.files.newest(slug)
            if number != newest:
                raise NewerVersion(slug, newest)
            cases = self._datasets.cases(slug, number)
            content = _with_ids(self._datasets.files.content(slug, number), cases)
            copy = WorkingCopy(slug=slug, based_on=number, begun=saved_now(), systems=tuple(systems))
            self._write_begun(copy)
            write_bytes(path, content)
            return copy

    def choose(self, slug: str, systems: Sequence[str]) -> None:
        """Let these systems give the chunks from now on."""
        with self._locked(slug):
            self._write_begun(self.sound(slug).model_copy(update={"systems": tuple(systems)}))

    def save(self, slug: str, note: str, based_on: int) -> DatasetVersion:
        """Save the copy as the version after `based_on`, and remove it; NewerVersion where that is not the newest.

        Where the copy began from an older one, what was labelled is put into `based_on`.
        """
        with self._locked(slug) as path:
            copy = self.sound(slug)
            newest = self._datasets.files.newest(slug)
            if newest != based_on:
                raise NewerVersion(slug, newest)
            if copy.based_on != based_on:
                copy = self._take_in(copy, based_on)
            words = note.strip() or f"labelled: {self.transfer(copy, based_on).changes}"
            about = self._datasets.version(slug, based_on).about
            version = self._datasets.save_file(slug, about, path, words, based_on)
            self._remove(path)
            return version

    def discard(self, slug: str) -> None:
        """Remove the copy, with all that was labelled in it; nothing happens where there is none."""
        with self._locked(slug) as path:
            self._remove(path)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _locked(self, slug: str) -> Iterator[Path]:
        """The copy's path, while nobody else writes beside it."""
        path = self.path(slug)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with locked_folder(path.parent):
                yield path
        except OSError as error:
            raise SettingsError(f"{error.filename or path}: cannot be written: {error.strerror or error}") from None

    def _write_begun(self, copy: WorkingCopy) -> None:
        write_json(self.path(copy.slug).with_name(BEGUN), copy.model_dump(mode="json", exclude={"slug", "problem"}))

    def _is_saved(self, copy: WorkingCopy) -> bool:
        """Is the copy the version after the one that it began from? Then we were stopped before it was removed, which
        whoever begins the next one does."""
        number = copy.based_on + 1
        if number not in self._datasets.files.numbers(copy.slug):
            return False
        path = self.path(copy.slug)
        try:
            return self._datasets.files.content(copy.slug, number) == path.read_bytes()
        except OSError:
            return True  # removed by who saved it

    def _take_in(self, copy: WorkingCopy, number: int) -> WorkingCopy:
        """Put what was labelled into a newer version. What has no place in it is kept in a file beside the copy."""
        path = self.path(copy.slug)
        transfer = self.transfer(copy, number)
        if transfer.homeless:
            text = CaseText(path.read_bytes())
            write_lines(aside_file(path), (text.text_of(case.source.line).rstrip("\r") for case in transfer.homeless))
        newer = self._datasets.files.content(copy.slug, number)
        content = _with_ids(transfer.content(newer), transfer.newer)
        taken = copy.model_copy(update={"based_on": number})
        write_bytes(path, content)  # first: stopped here, the same labels are put into the same version once more
        self._write_begun(taken)
        return taken

    @staticmethod
    def _remove(path: Path) -> None:
        """The copy first: without it the other files are none."""
        for name in (path.name, BEGUN, f"{path.name}.bak"):
            path.with_name(name).unlink(missing_ok=True)


def _gone(slug: str) -> UnknownPageError:
    return UnknownPageError(f"there is no working copy of {slug}: it was saved as a version, or discarded")


def _with_ids(content: bytes, cases: Sequence[EvalCase]) -> bytes:
    """The lines of a case file, each with the id of its case."""
    text = CaseText(content)
    lines = {case.source.line: text.text_of(case.source.line) for case in cases}
    nameless = {case.source.line: case.id for case in cases if parse(lines[case.source.line]).get("id") is None}
    return text.composed({line: edited_json(lines[line], {("id",): name}) for line, name in nameless.items()})


@dataclass(frozen=True, slots=True)
class LabelTransfer:
    """What was labelled in a copy, over the cases of a newer version.

    labelled  cases of the copy whose labels differ from those of the version that it began from, by id
    newer     the cases of the newer version
    disputed  ids of labelled cases whose labels the newer version changed too, to others
    homeless  labelled cases that the newer version does not have
    """

    labelled: Mapping[str, EvalCase]
    newer: Sequence[EvalCase]
    disputed: list[str]
    homeless: list[EvalCase]

    @property
    def changes(self) -> DatasetChanges:
        """What the labels change in the newer version."""
        after = [
            case_with_marks(case, Marks.of(self.labelled[case.id])) if case.id in self.labelled else case
            for case in self.newer
        ]
        return dataset_changes(self.newer, after)

    def content(self, newer_content: bytes) -> bytes:
        """The file of the newer version with the labels; all else stays as it is there, byte for byte."""
        text = CaseText(newer_content)
        changed = {
            case.source.line: text.line_with(case, Marks.of(self.labelled[case.id]), _hashes(self.labelled[case.id]))
            for case in self.newer
            if case.id in self.labelled
        }
        return text.composed(changed)


def label_transfer(
    begun: Sequence[EvalCase], labelled: Sequence[EvalCase], newer: Sequence[EvalCase]
) -> LabelTransfer:  # fmt: skip
    """Hold a copy against the version that it began from, and that against the newer one."""
    marks_begun = {case.id: Marks.of(case) for case in begun}
    marks_newer = {case.id: Marks.of(case) for case in newer}
    changed = {case.id: case for case in labelled if Marks.of(case) != marks_begun.get(case.id)}
    disputed = [
        case_id for case_id, case in changed.items()
        if case_id in marks_newer and marks_newer[case_id] not in (marks_begun.get(case_id), Marks.of(case))
    ]  # fmt: skip
    homeless = [case for case_id, case in changed.items() if case_id not in marks_newer]
    return LabelTransfer(changed, newer, disputed, homeless)


def _hashes(case: EvalCase) -> Mapping[str, str]:
    """Hashes of the notes that the labels were made from."""
    hashes = case.metadata.get(NOTE_HASHES)
    return {path: str(digits) for path, digits in hashes.items()} if isinstance(hashes, Mapping) else {}
