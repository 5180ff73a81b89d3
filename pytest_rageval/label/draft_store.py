"""Drafts of cases, accepted into the case file one by one, or dropped. Both files follow from the decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from pytest_rageval.cases.case_text import CaseText, edited_json
from pytest_rageval.cases.case_writer import CaseWriter, ChangedMeanwhile
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, Place
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.label.label_store import AsideFile, hashes_of
from pytest_rageval.model import EvalCase

Decision = Literal["accepted", "dropped"]
DRAFT = "draft"
"""The tag of every draft that this package writes."""


class DraftStore:
    """`X.drafts.jsonl`, and the `X.jsonl` that receives accepted drafts. Dropped ones stay in the backup."""

    def __init__(self, path: Path, root: Path, notes: Path | None = None) -> None:
        self._notes = notes
        self._drafts = CaseWriter(path)
        self._text = CaseText(self._drafts.content)
        self._accepted_file = path.with_name(path.name.removesuffix(ENDING) + ".jsonl")
        self._cases = CaseWriter(self._accepted_file, may_be_new=True)
        loaded = load_file(self._accepted_file, root).cases if self._accepted_file.exists() else ()
        self._ids = {case.id for case in loaded}
        self._lines_before = self._cases.content
        self._changed: dict[int, str] = {}
        self._decisions: dict[int, Decision] = {}
        self._aside = AsideFile(path)
        self._accepted: dict[int, tuple[str, str]] = {}
        """Id and text by line in the file of drafts, in the order of acceptance."""

    @property
    def file_name(self) -> str:
        return self._drafts.path.name

    def marks_of(self, case: EvalCase) -> Marks:
        return Marks.of(case)

    def save(self, case: EvalCase, marks: Marks, pool: Sequence[Place]) -> str:  # noqa: ARG002 because others need it
        self._changed[case.source.line] = self._line(case, marks)
        return self._written(case, self._write_drafts)

    def decide(self, case: EvalCase, marks: Marks, decision: Decision | None) -> str:
        """Accept a draft with these marks, drop it, or undo either; return a message for the person, or an empty text.

        A CaseError where its id is taken.
        """
        line = case.source.line
        text = _as_case(self.text_of(case, marks))  # without the CR of a file whose lines end with CRLF
        accepted = {at: entry for at, entry in self._accepted.items() if at != line}
        if decision == "accepted":
            is_there = text in self._lines_before.decode("utf-8").split("\n")  # we were stopped between the two files
            if not is_there and case.id in self._ids | {case_id for case_id, _ in accepted.values()}:
                name = self._accepted_file.name
                raise CaseError(f"case {case.id!r}: {name} has a case with this id; press e and give it another one")
            if not is_there:
                accepted[line] = (case.id, text)
        before = self._lines_before
        ended = before if not before or before.endswith(b"\n") else before + b"\n"
        lines = "".join(f"{written}\n" for _, written in accepted.values())
        self._changed[line] = self._line(case, marks)
        if problem := self._written(case, lambda: self._cases.write(ended + lines.encode() if lines else before)):
            return problem
        self._accepted = accepted
        self._decisions = {at: kind for at, kind in self._decisions.items() if at != line}
        if decision is not None:
            self._decisions[line] = decision
        return self._written(case, self._write_drafts)

    def _written(self, case: EvalCase, write: Callable[[], object]) -> str:
        """Write the case file; if another program changed it, write a file next to it and return a message."""
        try:
            write()
        except ChangedMeanwhile as error:
            line = case.source.line
            return f"{error}; this draft is in {self._aside.put(line, self._changed[line].rstrip(chr(13)))}"
        return ""

    def text_of(self, case: EvalCase, marks: Marks) -> str:
        """Return the draft with these marks, as it would be written."""
        return self._line(case, marks).rstrip("\r")

    def written_text(self, case: EvalCase) -> str:
        """Return the draft as written, without later marks."""
        return self._text.text_of(case.source.line).rstrip("\r")

    def _line(self, case: EvalCase, marks: Marks) -> str:
        return self._text.line_with(case, marks, hashes_of(marks, self._notes))

    def edit(self, case: EvalCase, text: str) -> EvalCase:
        """Replace the text of a draft; raise CaseError if it is no case."""
        try:
            record = parse(text)
            edited, _ = case_from_record(dict(record) if isinstance(record, dict) else {}, case.source)
        except StrictJsonError as error:
            raise CaseError(f"not taken: {error.oddities[0][1]}; press e again") from None
        except Unsound as unsound:
            raise CaseError(f"not taken: {unsound.findings.first[0]}; press e again") from None
        self._text.replace(case.source.line, text)
        self._changed[case.source.line] = text
        self._write_drafts()
        return edited

    def _write_drafts(self) -> None:
        gone = dict.fromkeys(self._decisions, "")
        self._drafts.write(self._text.composed({**self._changed, **gone}))


def _as_case(text: str) -> str:
    """Return the line of a draft without its `draft` tag."""
    tags = parse(text).get("tags")
    if not isinstance(tags, list) or DRAFT not in tags:
        return text
    return edited_json(text, {("tags",): [tag for tag in tags if tag != DRAFT]})
