"""The text of a case file by line or row: edited at the labelled cases, byte for byte equal elsewhere."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

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
    """Return the values to set in a case's record so that it has these marks; empty if it has them already.

    hashes  of the notes that contain the golds, by path
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


_ANCHOR_PARTS = (
    ("golds", "supports", "gold_supports"),
    ("groups", "support_groups", "required_support_groups"),
    ("irrelevant", "irrelevant_supports", "irrelevant_supports"),
)
"""Fields of Marks with their keys in `gold` and at the top level of the line."""


def _anchor_values(record: Record, before: Marks, marks: Marks) -> dict[KeyPath, Json]:
    values: dict[KeyPath, Json] = {}
    for name, in_gold, on_line in _ANCHOR_PARTS:
        old, new = getattr(before, name), getattr(marks, name)
        path = _path(record, in_gold, on_line)
        if new != old:
            values[path] = [list(group) for group in new] if name == "groups" else _written(new, old, _at(record, path))
    rule = _path(record, "recency_conflict_rule", "recency_conflict_rule")
    if not marks.answerable and _at(record, rule) is not None:
        values[rule] = None
    return values


def _id_values(record: Record, before: Marks, marks: Marks) -> dict[KeyPath, Json]:
    values: dict[KeyPath, Json] = {}
    spelling = spelling_of(tuple(record), tuple(_inner(record, "gold")))
    is_layered = "layers" in spelling or "doc_chunk_ids" in _inner(record, "gold")
    ids: KeyPath = ("gold", "doc_chunk_ids" if is_layered else "chunk_ids")
    irrelevant: KeyPath = ("gold", "irrelevant_ids")
    if "ids" in spelling:
        ids, irrelevant = ("relevant_ids",), ("irrelevant_ids",)
    if marks.golds != before.golds:
        values[ids] = list(marks.golds)
        grades = _inner(record, "gold").get("relevance")
        if isinstance(grades, dict) and any(gold in grades for gold in set(before.golds) - set(marks.golds)):
            remaining = {name: grade for name, grade in grades.items() if grade <= 0 or name in marks.golds}
            values["gold", "relevance"] = remaining
    if marks.irrelevant != before.irrelevant:
        values[irrelevant] = list(marks.irrelevant)
    return values


def _path(record: Record, in_gold: str, on_line: str) -> KeyPath:
    """Return the path of a part: its present one, or one that matches the line's other parts."""
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
    """Convert places to plain data; a place that was there before keeps its written form."""
    as_it_was = dict(zip(before, written, strict=False)) if isinstance(written, list) else {}
    return [as_it_was.get(place, written_anchor(place) if isinstance(place, Anchor) else place) for place in places]


def _checked(record: Record, case: EvalCase, marks: Marks, values: dict[KeyPath, Json]) -> dict[KeyPath, Json]:
    """Return the values if the changed record reads back as this case with these marks; else raise CaseError."""
    try:
        made, _ = case_from_record(deepcopy(with_values(record, values)), case.source)
    except Unsound as unsound:
        raise CaseError(*(f"case {case.id!r}: {finding}" for finding in unsound.findings.first)) from None
    if made.requires_kg != case.requires_kg:
        # A key of another format may change what an absent requires_kg means.
        values["requires_kg",] = case.requires_kg
        made = replace(made, requires_kg=case.requires_kg)
    if Marks.of(made) != Marks.of(case_with_marks(case, marks)):
        raise CaseError(f"case {case.id!r}: its spelling has no room for these marks; give it gold_supports")
    return values


def with_values(record: Record, values: Mapping[KeyPath, Json]) -> dict[str, Json]:
    """Return a copy of the record with these values set."""
    made = dict(record)
    for path, value in values.items():
        if len(path) == 1:
            made[path[0]] = value
        else:
            made[path[0]] = {**_inner(made, path[0]), path[1]: value}
    return made


class CaseText:
    """The text of a JSONL file, by the lines where its records begin."""

    between = "\n"
    """The separator of records."""

    def __init__(self, content: bytes) -> None:
        self._bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        self._texts = dict(self.cut(content[len(self._bom) :].decode("utf-8")))

    def cut(self, text: str) -> Iterable[tuple[int, str]]:
        """Split the text into records, each with the line that it begins at."""
        # Lines end with LF alone: a text may contain U+2028 and other line separators.
        return enumerate(text.split("\n"), start=1)

    def record(self, case: EvalCase) -> dict[str, Json]:
        """Read the record of a case."""
        record: dict[str, Json] = parse(self.text_of(case.source.line).rstrip())
        return record

    def edited(self, case: EvalCase, values: Mapping[KeyPath, Json]) -> str:
        """Return the record's text with these values set."""
        return edited_json(self.text_of(case.source.line), values)

    def values(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[KeyPath, Json]:
        """Return the values to set so that the record has these marks."""
        return changed_values(self.record(case), case, marks, hashes)

    def line_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> str:
        """Return the record's text with these marks; raise CaseError if its format cannot hold them."""
        values = self.values(case, marks, hashes)
        return self.edited(case, values) if values else self.text_of(case.source.line)

    def record_with(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[str, Json]:
        """Return the record as a JSON object with these marks; raise CaseError if its format cannot hold them."""
        return with_values(self.record(case), self.values(case, marks, hashes))

    def text_of(self, line: int) -> str:
        """Return the record's text."""
        return self._texts[line]

    def replace(self, line: int, text: str) -> None:
        """Replace the text of the record at this line."""
        self._texts[line] = text

    def composed(self, changed: Mapping[int, str]) -> bytes:
        """Return the whole file with these records replaced; a record with an empty text is removed."""
        texts = [changed.get(line, text) for line, text in self._texts.items() if changed.get(line) != ""]
        return self._bom + self.between.join(texts).encode("utf-8")


class CsvRows(CaseText):
    """The text of a CSV file. Only columns that the header has can be written."""

    between = ""

    def __init__(self, content: bytes, file: str) -> None:
        super().__init__(content)
        self._file = file
        first = next((text for text in self._texts.values() if text.strip()), "")
        self._header = [name.strip() for name in next(csv.reader([first]), [])]

    def cut(self, text: str) -> Iterable[tuple[int, str]]:
        return row_texts(text)

    def record(self, case: EvalCase) -> dict[str, Json]:
        cells = next(csv.reader([*self.text_of(case.source.line).splitlines(keepends=True)]), [])
        written = {name: cell for name, cell in zip(self._header, cells, strict=False) if cell.strip()}
        return {name: cell if CELLS[name] == "text" else _value(cell, name) for name, cell in written.items()}

    def values(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[KeyPath, Json]:
        values = super().values(case, marks, hashes if "metadata" in self._header else {})
        # An empty cell already means the same as an empty list or null.
        record = self.record(case)
        return {path: value for path, value in values.items() if value or value is False or path[0] in record}

    def edited(self, case: EvalCase, values: Mapping[KeyPath, Json]) -> str:
        if missing := list(dict.fromkeys(path[0] for path in values if path[0] not in self._header)):
            columns = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise CaseError(
                f"{self._file}: case {case.id!r}: the header lacks the {columns}; add what is lacking to it"
            )
        record = with_values(self.record(case), values)
        cells = {path[0]: _cell(record[path[0]]) for path in values}
        return edited_row(self.text_of(case.source.line), self._header, cells)


def _value(cell: str, name: str) -> Json:
    return flag_of(cell) if CELLS[name] == "flag" else parse(cell)


def _cell(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if value else ""


def case_text(content: bytes, file: str) -> CaseText:
    """Return the text of a valid case file; the file's suffix selects CSV or JSONL."""
    return CsvRows(content, file) if file.lower().endswith(".csv") else CaseText(content)


_CELL = re.compile(r'"(?:[^"]|"")*"|[^,\r\n]*')


def row_texts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each row of a CSV text with its 1-based first line; a quoted line end does not end a row."""
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
    """Return the row's text with these cells set, by header name; a quoted cell stays quoted."""
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
"""The path of a value in a record: ('gold_supports',) or ('gold', 'supports')."""

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
    """The format of a JSON text: the separators after commas and colons, and whether non-ASCII text is escaped."""

    comma: str
    colon: str
    is_ascii: bool

    def dumped(self, value: Json) -> str:
        return json.dumps(value, ensure_ascii=self.is_ascii, separators=(self.comma, self.colon))


def edited_json(text: str, values: Mapping[KeyPath, Json]) -> str:
    """Return the text of a JSON object with these values set; new keys come last in their object.

    `text` is valid strict JSON without duplicate keys.
    """
    style = _style_of(text)
    for path, value in values.items():
        text = _with_value(text, _after_space(text, 0), path, value, style)
    return text


def _with_value(text: str, start: int, path: KeyPath, value: Json, style: _Style) -> str:
    """Return the text with the value set in the object that begins at `start`."""
    members = _members(text, start)
    member = next((member for member in members if member.key == path[0]), None)
    if member and len(path) > 1 and text[member.value_start] == "{":
        return _with_value(text, member.value_start, path[1:], value, style)
    for key in reversed(path[1:]):
        value = {key: value}
    if member is None:
        written = style.dumped(path[0]) + style.colon + style.dumped(value)
        if not members:
            return text[: start + 1] + written + text[start + 1 :]
        last = members[-1].value_end
        return text[:last] + style.comma + written + text[last:]
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
