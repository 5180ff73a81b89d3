"""The stores of labels: the case file, a file of second opinions, or a file of drafts and what receives them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_rageval.cases.canonical import case_content
from pytest_rageval.cases.case_text import MarkedCase, case_text
from pytest_rageval.cases.case_writer import CaseWriter, ChangedMeanwhile
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.cases.json_edit import edited_json
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, Place, case_with_marks
from pytest_rageval.cases.note_folder import note_hashes
from pytest_rageval.errors import CaseError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Anchor, EvalCase, Json

POOL = "pool"
"""The key in the metadata of a second opinion: the places that were judged."""
DRAFT = "draft"
"""The tag of every draft that this package writes."""
Decision = Literal["accepted", "dropped"]


@dataclass(frozen=True, slots=True)
class CaseState:
    """A person's labels of one case so far. A draft may be decided, and have another text than in its file."""

    case: EvalCase
    marks: Marks
    decision: Decision | None = None
    text: str | None = None


LineStates = Mapping[int | None, CaseState]
"""The states of a line by the number of the turn, None for a case alone: an edited draft may have another id."""


class CaseFileStore:
    """The case file itself. Once another program has changed it, all further labels go into a file next to it."""

    def __init__(self, path: Path, notes: Path | None) -> None:
        self._writer = CaseWriter(path)
        self._text = case_text(self._writer.content, path.name)
        self._notes = notes
        self._states: dict[int, LineStates] = {}
        """The saved states by line: the turns of a conversation share one."""
        self._changed: dict[int, str] = {}
        self._aside: Path | None = None
        self._aside_lines: dict[int, str] = {}

    @property
    def file_name(self) -> str:
        return (self._aside or self._writer.path).name

    def marks_of(self, case: EvalCase) -> Marks:
        return Marks.of(case)

    def save(self, state: CaseState, pool: Sequence[Place]) -> str:  # noqa: ARG002 because opinions need it
        """Write the state of a case, with the `pool` of places looked at; return a message, or an empty text.

        Raises CaseError if it cannot be written.
        """
        line = state.case.source.line
        states = self._with_state(state)
        marked = self._marked(states)
        words = "saved in"
        changed = {**self._changed, line: self._text.line_with(*marked)}
        if self._aside is None:
            try:
                self._writer.write(self._text.composed(changed))
            except ChangedMeanwhile as error:
                words = f"{error}; this label and all that follow are in"
            else:
                self._changed = changed
                self._states[line] = states
                return ""
        self._states[line] = states
        record = self._text.record_with(*marked)
        name = self._put_aside(line, json.dumps(record, ensure_ascii=False))
        return f"{words} {name}"

    def _with_state(self, state: CaseState) -> LineStates:
        """Return the states of a line with this one in place of an earlier one of the same case."""
        return {**self._states.get(state.case.source.line, {}), state.case.turn: state}

    def _marked(self, states: LineStates) -> list[MarkedCase]:
        """Return the marks on the case of a line, or on the turns of its conversation."""
        return [MarkedCase(state.case, state.marks, hashes_of(state.marks, self._notes)) for state in states.values()]

    def _put_aside(self, line: int, text: str) -> str:
        """Store a line that has no place in a changed file in a file next to it; return the name of that."""
        self._aside = self._aside or aside_file(self._writer.path)
        self._aside_lines[line] = text
        write_lines(self._aside, self._aside_lines.values())
        return self._aside.name


class DraftStore(CaseFileStore):
    """`X.drafts.jsonl`, and the `X.jsonl` that receives accepted drafts. Dropped ones stay in the backup."""

    def __init__(self, path: Path, root: Path, notes: Path | None = None) -> None:
        super().__init__(path, notes)
        self._first_texts: dict[int, str] = {}
        self._cases = CaseWriter(path.with_name(path.name.removesuffix(ENDING) + ".jsonl"), may_be_new=True)
        self._ids = {_line_id(case) for case in opinions(self._cases.path, root, is_strict=False)}
        self._cases_before = self._cases.content
        self._accepted: dict[int, tuple[str, str]] = {}
        """Id and text by line in the file of drafts, in the order of acceptance."""

    def save(self, state: CaseState, pool: Sequence[Place]) -> str:  # noqa: ARG002 because opinions need it
        """Write a draft with its marks, accepted or dropped if it is decided; a CaseError where its id is taken."""
        line = state.case.source.line
        states = self._with_state(state)
        text = self._line(states)
        accepted = {at: entry for at, entry in self._accepted.items() if at != line}
        decision = decision_on(states.values())
        if decision == "accepted":
            taken = {case_id for case_id, _ in accepted.values()}
            accepted |= self._as_accepted(state, text, taken)
        if accepted != self._accepted:
            content = self._cases_with([written for _, written in accepted.values()])
            problem = self._written(line, text, lambda: self._cases.write(content))
            if problem:
                return problem
            self._accepted = accepted
        self._states[line] = states
        self._changed[line] = "" if decision is not None else text
        return self._written(line, text, lambda: self._writer.write(self._text.composed(self._changed)))

    def _cases_with(self, lines: Sequence[str]) -> bytes:
        """Return the file of cases as it was first read, with these lines at its end."""
        before = self._cases_before
        if not lines:
            return before
        if before and not before.endswith(b"\n"):
            before += b"\n"
        return before + "".join(f"{line}\n" for line in lines).encode()

    def _as_accepted(self, state: CaseState, text: str, taken: set[str]) -> dict[int, tuple[str, str]]:
        """Return the line of an accepted draft; none if it stands there, since we were stopped between the files."""
        text = text.rstrip("\r")  # that of a file whose lines end with CRLF
        tags = parse(text).get("tags")
        if isinstance(tags, list) and DRAFT in tags:
            text = edited_json(text, {("tags",): [tag for tag in tags if tag != DRAFT]})
        if text in self._cases_before.decode("utf-8").split("\n"):
            return {}
        case_id = _line_id(state.case)
        if case_id in self._ids | taken:
            name = self._cases.path.name
            raise CaseError(f"case {case_id!r}: {name} has a case with this id; press e and give it another one")
        return {state.case.source.line: (case_id, text)}

    def _written(self, line: int, text: str, write: Callable[[], object]) -> str:
        """Write a file; if another program changed it, write the draft next to it and return a message."""
        try:
            write()
        except ChangedMeanwhile as error:
            return f"{error}; this draft is in {self._put_aside(line, text.rstrip(chr(13)))}"
        return ""

    def text_of(self, state: CaseState) -> str:
        """Return the draft with its marks, as it would be written."""
        return self._line(self._with_state(state)).rstrip("\r")

    def _line(self, states: LineStates) -> str:
        """Return the line of a draft with its marks."""
        latest = list(states.values())[-1]
        line = latest.case.source.line
        first_text = self._first_texts.setdefault(line, self._text.text_of(line))
        self._text.replace(line, first_text if latest.text is None else latest.text)
        return self._text.line_with(*self._marked(states))


def _line_id(case: EvalCase) -> str:
    """Return the id of the line of a case: that of its conversation, for a turn."""
    return case.id if case.conversation is None else case.conversation


def decision_on(states: Iterable[CaseState]) -> Decision | None:
    """Return the decision on a draft; a person decides on a conversation at any of its turns."""
    return next((state.decision for state in states if state.decision is not None), None)


def states_of_line(states: Sequence[CaseState], at: int) -> Sequence[CaseState]:
    """Return the states of the turns of a conversation, which are neighbours, or that of a case alone."""
    line = states[at].case.source.line
    first = last = at
    while first > 0 and states[first - 1].case.source.line == line:
        first -= 1
    while last + 1 < len(states) and states[last + 1].case.source.line == line:
        last += 1
    return states[first : last + 1]


def edited_draft(state: CaseState, text: str) -> CaseState:
    """Return the draft with another text; raise CaseError if it is no case, or a turn, which is no draft alone."""
    if state.case.turn is not None:
        raise CaseError("not taken: this draft is a conversation; edit it in its file")
    try:
        record = parse(text)
        case, _ = case_from_record(dict(record) if isinstance(record, dict) else {}, state.case.source)
    except StrictJsonError as error:
        raise CaseError(f"not taken: {error.oddities[0][1]}; press e again") from None
    except Unsound as unsound:
        raise CaseError(f"not taken: {unsound.findings.first[0]}; press e again") from None
    return CaseState(case, Marks.of(case), state.decision, text)


def hashes_of(marks: Marks, notes: Path | None) -> dict[str, str]:
    """Return the hashes of the notes that contain the marked places; none without a folder of notes."""
    places = [place.rel_path for place in (*marks.golds, *marks.irrelevant) if isinstance(place, Anchor)]
    return note_hashes(notes, places) if notes is not None else {}


def aside_file(path: Path) -> Path:
    """Return a new name for labels that have no place in the file: `X.labels-20261122_101500.jsonl`."""
    stem = f"{path.name.removesuffix(path.suffix)}.labels-{time.strftime('%Y%m%d_%H%M%S')}"
    place = path.with_name(f"{stem}.jsonl")
    number = 0
    while place.exists():
        number += 1
        place = path.with_name(f"{stem}-{number}.jsonl")
    return place


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

    def save(self, state: CaseState, pool: Sequence[Place]) -> str:
        case = state.case
        judged = [_judged(place) for place in pool]
        bare = EvalCase(case.id, case.question, metadata={POOL: judged})
        cases = {**self._cases, case.id: case_with_marks(bare, state.marks)}
        lines = []
        for opinion in cases.values():
            mapping = case_content(opinion)
            del mapping["requires_kg"]
            lines.append(json.dumps(mapping, ensure_ascii=False) + "\n")
        self._writer.write("".join(lines).encode("utf-8"))
        self._cases = cases
        return ""


def _judged(place: Place) -> Json:
    """Return a place as the metadata of an opinion keep it: without snippets, since the whole chunk was judged."""
    if isinstance(place, Anchor):
        return {"rel_path": place.rel_path, "heading_path": place.heading_path}
    return place


LabelStore = CaseFileStore | OpinionStore


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


def opinions(path: Path, root: Path, *, is_strict: bool = True) -> Sequence[EvalCase]:
    """Read the cases of a file that may not exist; raise CaseError if it is broken and `is_strict`."""
    if not path.exists():
        return ()
    loaded = load_file(path, root)
    if loaded.problems and is_strict:
        raise CaseError(*loaded.problems)
    return loaded.cases
