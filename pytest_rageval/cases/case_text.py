"""The text of a case file, line by line or row by row: changed at the labelled cases, equal in every byte elsewhere."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple, Protocol

from pytest_rageval.cases.canonical import written_anchor
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.keys import CELLS, spelling_of
from pytest_rageval.cases.marks import Marks, Place, case_with_marks
from pytest_rageval.cases.note_folder import NOTE_HASHES
from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.strict_json import parse
from pytest_rageval.model import Anchor, EvalCase, Json

Record = Mapping[str, Json]


def changed_values(record: Record, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[KeyPath, Json]:
    """What to set in the record of a case so that it says `marks`; nothing where it says them already.

    hashes  of the notes that the golds stand in, by path
    """
    before = Marks.of(case)
    values: dict[KeyPath, Json] = {}
    if marks.answerable != before.answerable:
        values["answerable",] = marks.answerable
    parts = _id_values if marks.kind == "ids" else _anchor_values
    values |= parts(record, before, marks)
    if not values:
        return {}
    if marks.kind == "anchors" and hashes:
        values["metadata", NOTE_HASHES] = dict(hashes)
    elif marks.kind == "anchors" and _inner(record, "metadata").get(NOTE_HASHES) is not None:
        values["metadata", NOTE_HASHES] = {}
    return _checked(record, case, marks, values)


def _anchor_values(record: Record, before: Marks, marks: Marks) -> dict[KeyPath, Json]:
    values: dict[KeyPath, Json] = {}
    supports = _path(record, "supports", "gold_supports")
    groups = _path(record, "support_groups", "required_support_groups")
    irrelevant = _path(record, "irrelevant_supports", "irrelevant_supports")
    if marks.golds != before.golds:
        values[supports] = _written(marks.golds, before.golds, _at(record, supports))
    if marks.groups != before.groups:
        values[groups] = [list(group) for group in marks.groups]
    if marks.irrelevant != before.irrelevant:
        values[irrelevant] = _written(marks.irrelevant, before.irrelevant, _at(record, irrelevant))
    if not marks.answerable:
        rule = _path(record, "recency_conflict_rule", "recency_conflict_rule")
        if _at(record, rule) is not None:
            values[rule] = None
    return values


def _id_values(record: Record, before: Marks, marks: Marks) -> dict[KeyPath, Json]:
    values: dict[KeyPath, Json] = {}
    spelling = spelling_of(tuple(record), tuple(_inner(record, "gold")))
    ids: KeyPath = (
        ("relevant_ids",) if "ids" in spelling
        else ("gold", "doc_chunk_ids") if "doc_chunk_ids" in _inner(record, "gold") or "layers" in spelling
        else ("gold", "chunk_ids")
    )  # fmt: skip
    irrelevant: KeyPath = ("irrelevant_ids",) if "ids" in spelling else ("gold", "irrelevant_ids")
    if marks.golds != before.golds:
        values[ids] = list(marks.golds)
        grades = _inner(record, "gold").get("relevance")
        if isinstance(grades, dict) and any(gold in grades for gold in set(before.golds) - set(marks.golds)):
            kept = {name: grade for name, grade in grades.items() if grade <= 0 or name in marks.golds}
            values["gold", "relevance"] = kept
    if marks.irrelevant != before.irrelevant:
        values[irrelevant] = list(marks.irrelevant)
    return values


def _path(record: Record, in_gold: str, on_line: str) -> KeyPath:
    """Where a part is written: where it is, or else where the line has its other parts."""
    gold = _inner(record, "gold")
    if record.get(on_line) is not None:
        return (on_line,)
    is_canonical = any(key in gold for key in ("supports", "support_groups", "irrelevant_supports"))
    return (
        ("gold", in_gold) if in_gold in gold or (is_canonical and record.get("gold_supports") is None) else (on_line,)
    )


def _inner(record: Record, key: str) -> Mapping[str, Json]:
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def _at(record: Record, path: KeyPath) -> Json:
    return record.get(path[0]) if len(path) == 1 else _inner(record, path[0]).get(path[1])


def _written(places: Sequence[Place], before: Sequence[Place], written: Json) -> list[Json]:
    """The places as plain data; one that stood there before as it was written."""
    as_it_was = dict(zip(before, written, strict=False)) if isinstance(written, list) else {}
    return [as_it_was.get(place, written_anchor(place) if isinstance(place, Anchor) else place) for place in places]


def _checked(record: Record, case: EvalCase, marks: Marks, values: dict[KeyPath, Json]) -> dict[KeyPath, Json]:
    """The values, if the record that they make is read as this case with these marks; else a CaseError."""
    try:
        made, _ = case_from_record(deepcopy(with_values(record, values)), case.source)
    except Unsound as unsound:
        raise CaseError(*(f"case {case.id!r}: {finding}" for finding in unsound.findings.kept)) from None
    if made.requires_kg != case.requires_kg:
        # A key of another spelling may change what an absent requires_kg means.
        values["requires_kg",] = case.requires_kg
        made = replace(made, requires_kg=case.requires_kg)
    if Marks.of(made) != Marks.of(case_with_marks(case, marks)):
        raise CaseError(f"case {case.id!r}: its spelling has no room for these marks; give it gold_supports")
    return values


def with_values(record: Record, values: Mapping[KeyPath, Json]) -> dict[str, Json]:
    """The record with the values set; the one given stays as it is."""
    made = dict(record)
    for path, value in values.items():
        if len(path) == 1:
            made[path[0]] = value
        else:
            made[path[0]] = {**_inner(made, path[0]), path[1]: value}
    return made


class CaseText(Protocol):
    """What is written of each case; `line` is where its record begins."""

    def line_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> str:
        """The record's text with the marks in it, with its line end; a CaseError where there is no room for them."""

    def record_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[str, Json]:
        """The record as a JSON object with the marks in it; a CaseError where there is no room for them."""

    def composed(self, changed: Mapping[int, str]) -> bytes:
        """The whole file with these records' texts in place of what stood there, by line; an empty one goes."""


class JsonLines:
    """A JSONL file."""

    def __init__(self, content: bytes) -> None:
        self._bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        # Lines end with LF alone: U+2028 and the like may stand inside a text.
        self._lines = content[len(self._bom) :].decode("utf-8").split("\n")

    def line_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> str:
        text = self._lines[case.source.line - 1]
        values = changed_values(parse(text.rstrip()), case, marks, hashes)
        return edited_json(text, values) if values else text

    def record_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[str, Json]:
        record: dict[str, Json] = parse(self._lines[case.source.line - 1].rstrip())
        return with_values(record, changed_values(record, case, marks, hashes))

    def replace(self, line: int, text: str) -> None:
        """Take another text for the record at this line, without its line end."""
        self._lines[line - 1] = text

    def text_of(self, line: int) -> str:
        """The record's text."""
        return self._lines[line - 1]

    def composed(self, changed: Mapping[int, str]) -> bytes:
        lines = [changed.get(number, line) for number, line in enumerate(self._lines, start=1)]
        gone = {number for number, text in changed.items() if not text}
        kept = [line for number, line in enumerate(lines, start=1) if number not in gone]
        return self._bom + "\n".join(kept).encode("utf-8")


class CsvRows:
    """A CSV file. Only columns that the header has can be written."""

    def __init__(self, content: bytes, file: str) -> None:
        self._file = file
        self._bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        self._rows = dict(row_texts(content[len(self._bom) :].decode("utf-8")))
        first = next((line for line, text in self._rows.items() if text.strip()), 1)
        header = next(csv.reader([self._rows.get(first, "")]), [])
        self._header = [name.strip() for name in header]

    def line_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> str:
        text = self._rows[case.source.line]
        values = self._values(case, marks, hashes)
        missing = [path[0] for path in values if path[0] not in self._header]
        if missing:
            columns = f"column{'s' if len(missing) > 1 else ''} {', '.join(dict.fromkeys(missing))}"
            raise CaseError(
                f"{self._file}: case {case.id!r}: the header lacks the {columns}; add what is lacking to it"
            )
        record = with_values(self._record(case), values)
        return edited_row(text, self._header, {path[0]: _cell(record[path[0]]) for path in values})

    def record_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[str, Json]:
        return with_values(self._record(case), self._values(case, marks, hashes))

    def _values(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[KeyPath, Json]:
        values = changed_values(self._record(case), case, marks, hashes if "metadata" in self._header else {})
        # A cell that is empty says already what an empty list or null would.
        record = self._record(case)
        return {path: value for path, value in values.items() if value or value is False or path[0] in record}

    def _record(self, case: EvalCase) -> dict[str, Json]:
        cells = next(csv.reader([*self._rows[case.source.line].splitlines(keepends=True)]), [])
        written = {name: cell for name, cell in zip(self._header, cells, strict=False) if cell.strip()}
        return {name: cell if CELLS[name] == "text" else _value(cell, name) for name, cell in written.items()}

    def composed(self, changed: Mapping[int, str]) -> bytes:
        return self._bom + "".join(changed.get(line, text) for line, text in self._rows.items()).encode("utf-8")


def _value(cell: str, name: str) -> Json:
    return flag_of(cell) if CELLS[name] == "flag" else parse(cell)


def _cell(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if value else ""


def case_text(content: bytes, file: str) -> CaseText:
    """The text of a case file that was read without problems; CSV by its name."""
    return CsvRows(content, file) if file.lower().endswith(".csv") else JsonLines(content)


_CELL = re.compile(r'"(?:[^"]|"")*"|[^,\r\n]*')


def row_texts(text: str) -> Iterator[tuple[int, str]]:
    """Each row of a CSV text with its line ends, and the 1-based line that it begins at; lines inside quotes belong
    to the row that opened them."""
    rows: list[str] = []
    first, is_open = 1, False
    for number, line in enumerate(re.split(r"(?<=\n)", text), start=1):
        if not rows:
            first = number
        rows.append(line)
        is_open ^= line.count('"') % 2 == 1
        if not is_open:
            yield first, "".join(rows)
            rows = []
    if rows:
        yield first, "".join(rows)


def edited_row(text: str, header: Sequence[str], cells: Mapping[str, str]) -> str:
    """The text of a row with these cells set, by the header's names; a cell that was quoted stays so."""
    for name, value in cells.items():
        start, end = _cell_span(text, header.index(name))
        must_quote = text[start : start + 1] == '"' or any(mark in value for mark in ',"\r\n')
        written = '"' + value.replace('"', '""') + '"' if must_quote else value
        text = text[:start] + written + text[end:]
    return text


def _cell_span(text: str, position: int) -> tuple[int, int]:
    start = 0
    for _ in range(position):
        start = _end_of_cell(text, start) + 1
    return start, _end_of_cell(text, start)


def _end_of_cell(text: str, start: int) -> int:
    match = _CELL.match(text, start)
    return match.end() if match else start


# ── one JSON object ─────────────────────────────────────────────────────────────────────────────────────────────


KeyPath = tuple[str, ...]
"""The way to a value from the top of a record: ('gold_supports',) or ('gold', 'supports')."""

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """One key with its value; offsets into the text."""

    key: str
    key_start: int
    key_end: int
    value_start: int
    value_end: int


class _Style(NamedTuple):
    """How a text is written: what stands after a comma and a colon, and whether other scripts are escaped."""

    comma: str
    colon: str
    is_ascii: bool

    def dumped(self, value: Json) -> str:
        return json.dumps(value, ensure_ascii=self.is_ascii, separators=(self.comma, self.colon))


def edited_json(text: str, values: Mapping[KeyPath, Json]) -> str:
    """The text of a JSON object with these values set; new keys come last in their object.

    `text` has been read without problems before, so that no key stands twice.
    """
    style = _style_of(text)
    for path, value in values.items():
        text = _with_value(text, _after_space(text, 0), path, value, style)
    return text


def _with_value(text: str, start: int, path: KeyPath, value: Json, style: _Style) -> str:
    """The text with the value set in the object that begins at `start`."""
    members = _members(text, start)
    member = next((member for member in members if member.key == path[0]), None)
    if member is None:
        for key in reversed(path[1:]):
            value = {key: value}
        written = style.dumped(path[0]) + style.colon + style.dumped(value)
        if not members:
            return text[: start + 1] + written + text[start + 1 :]
        last = members[-1].value_end
        return text[:last] + style.comma + written + text[last:]
    if len(path) > 1 and text[member.value_start] == "{":
        return _with_value(text, member.value_start, path[1:], value, style)
    for key in reversed(path[1:]):
        value = {key: value}
    return text[: member.value_start] + style.dumped(value) + text[member.value_end :]


def _members(text: str, start: int) -> list[_Member]:
    members: list[_Member] = []
    at = _after_space(text, start + 1)
    while text[at] != "}":
        key, key_end = _DECODER.raw_decode(text, at)
        value_start = _after_space(text, _after_space(text, key_end) + 1)
        _, value_end = _DECODER.raw_decode(text, value_start)
        members.append(_Member(key, at, key_end, value_start, value_end))
        at = _after_space(text, value_end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return members


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _style_of(text: str) -> _Style:
    members = _members(text, _after_space(text, 0))
    colon = text[members[0].key_end : members[0].value_start] if members else ": "
    comma = text[members[0].value_end : members[1].key_start] if len(members) > 1 else ", " if " " in colon else ","
    return _Style(comma, colon, text.isascii() and "\\u" in text)
