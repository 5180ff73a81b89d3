"""The stores of labels: the case file, a file of second opinions, or a new one if the case file was changed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.case_text import CaseText, case_text
from pytest_rageval.cases.case_writer import CaseWriter, ChangedMeanwhile
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, Place, case_with_marks
from pytest_rageval.cases.note_folder import note_hashes
from pytest_rageval.errors import CaseError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.model import Anchor, EvalCase, Json

POOL = "pool"
"""The key in the metadata of a second opinion: the places that were judged."""


class LabelStore(Protocol):
    """A store of the marks of cases."""

    @property
    def file_name(self) -> str: ...

    def marks_of(self, case: EvalCase) -> Marks:
        """Return the marks that a case begins with."""

    def save(self, case: EvalCase, marks: Marks, pool: Sequence[Place]) -> str:
        """Write the marks of a case, with the `pool` of places looked at; return a message, or an empty text.

        Raises CaseError if they cannot be written.
        """


class CaseFileStore:
    """The case file itself. Once another program has changed it, all further labels go into a file next to it."""

    def __init__(self, path: Path, notes: Path | None) -> None:
        self._writer = CaseWriter(path)
        self.text: CaseText = case_text(self._writer.content, path.name)
        self._notes = notes
        self._changed: dict[int, str] = {}
        self._aside = AsideFile(path)

    @property
    def file_name(self) -> str:
        return (self._aside.path or self._writer.path).name

    def marks_of(self, case: EvalCase) -> Marks:
        return Marks.of(case)

    def save(self, case: EvalCase, marks: Marks, pool: Sequence[Place]) -> str:  # noqa: ARG002 because others need it
        line, hashes = case.source.line, hashes_of(marks, self._notes)
        changed = {**self._changed, line: self.text.line_with(case, marks, hashes)}
        if self._aside.path is None:
            try:
                self._writer.write(self.text.composed(changed))
            except ChangedMeanwhile as error:
                name = self._aside.put(line, self._record(case, marks, hashes))
                return f"{error}; this label and all that follow are in {name}"
            self._changed = changed
            return ""
        return f"saved in {self._aside.put(line, self._record(case, marks, hashes))}"

    def _record(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> str:
        return json.dumps(self.text.record_with(case, marks, hashes), ensure_ascii=False)


class AsideFile:
    """A file for the lines that have no place in a file that another program changed, next to it."""

    def __init__(self, beside: Path) -> None:
        self.path: Path | None = None
        self._beside = beside
        self._lines: dict[int, str] = {}

    def put(self, line: int, text: str) -> str:
        """Store the text of this line; return the name of the file."""
        self.path = self.path or aside_file(self._beside)
        self._lines[line] = text
        write_lines(self.path, self._lines.values())
        return self.path.name


def hashes_of(marks: Marks, notes: Path | None) -> dict[str, str]:
    """Return the hashes of the notes that contain the marked places; none without a folder of notes."""
    places = [place.rel_path for place in (*marks.golds, *marks.irrelevant) if isinstance(place, Anchor)]
    return note_hashes(notes, places) if notes is not None else {}


def aside_file(path: Path) -> Path:
    """Return a new name for labels that have no place in the file: `X.labels-20261122_101500.jsonl`."""
    stem = f"{path.name.removesuffix(path.suffix)}.labels-{time.strftime('%Y%m%d_%H%M%S')}"
    names = (f"{stem}{f'-{number}' if number else ''}.jsonl" for number in range(1000))
    return next(place for place in map(path.with_name, names) if not place.exists())


class OpinionStore:
    """A second opinion of one person, a case file of its own; the labels of the case file are hidden from them."""

    def __init__(self, path: Path, root: Path) -> None:
        self._writer = CaseWriter(path, may_be_new=True)
        self._cases = {case.id: case for case in opinions(path, root)}

    @property
    def file_name(self) -> str:
        return self._writer.path.name

    def marks_of(self, case: EvalCase) -> Marks:
        if (opinion := self._cases.get(case.id)) is not None:
            return Marks.of(opinion)
        return Marks(Marks.of(case).kind)

    def save(self, case: EvalCase, marks: Marks, pool: Sequence[Place]) -> str:
        bare = EvalCase(case.id, case.question, metadata={POOL: [*map(_judged, pool)]})
        cases = {**self._cases, case.id: case_with_marks(bare, marks)}
        self._writer.write("".join(f"{_as_line(opinion)}\n" for opinion in cases.values()).encode("utf-8"))
        self._cases = cases
        return ""


def _judged(place: Place) -> Json:
    if isinstance(place, Anchor):
        return {"rel_path": place.rel_path, "heading_path": place.heading_path}
    return place


def _as_line(case: EvalCase) -> str:
    mapping = case_to_mapping(case)
    del mapping["source"], mapping["requires_kg"]
    return json.dumps(mapping, ensure_ascii=False)


def opinion_file(path: Path, name: str) -> Path:
    """Return the file of second opinions: `cases.jsonl` of `anna` → `cases.labels.anna.jsonl`; CaseError if invalid."""
    if not name or not all(mark.isalnum() or mark in "-_" for mark in name):
        raise CaseError(f"--blind {name!r}: a name is needed that a file can have: letters, digits, - and _")
    return path.with_name(f"{path.name.removesuffix(path.suffix)}.labels.{name}.jsonl")


def opinion_files(path: Path) -> dict[str, Path]:
    """Return the second opinions on a case file by person."""
    stem = f"{path.name.removesuffix(path.suffix)}.labels."
    files = [file for file in sorted(path.parent.iterdir()) if file.name.startswith(stem) and file.suffix == ".jsonl"]
    return {file.name.removeprefix(stem).removesuffix(".jsonl"): file for file in files}


def opinions(path: Path, root: Path) -> Sequence[EvalCase]:
    """Read the cases of a file of second opinions; none if it does not exist, CaseError if it is broken."""
    if not path.exists():
        return ()
    loaded = load_file(path, root)
    if loaded.problems:
        raise CaseError(*loaded.problems)
    return loaded.cases
