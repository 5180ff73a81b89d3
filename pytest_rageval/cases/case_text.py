"""The text of a case file by line or row: written anew at the labelled cases, byte for byte equal elsewhere."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pytest_rageval.cases.conversations import TurnRecord, turn_record
from pytest_rageval.cases.json_edit import ValuePath, edited_json
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.label_values import KeyPath, changed_values, with_values
from pytest_rageval.cases.marks import Marks
from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.strict_json import parse
from pytest_rageval.model import EvalCase, Json


class MarkedCase(NamedTuple):
    """A case with a person's marks, and the hashes of the notes that hold its golds, by path."""

    case: EvalCase
    marks: Marks
    hashes: Mapping[str, str]


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

    def record_in(self, text: str) -> dict[str, Json]:
        """Read the record of a line: of a case, or of a conversation."""
        record: dict[str, Json] = parse(text.rstrip())
        return record

    def edited(self, text: str, values: Mapping[ValuePath, Json], case: EvalCase) -> str:  # noqa: ARG002 because a row needs it
        """Return the text of a case's record with these values set."""
        return edited_json(text, values)

    def values(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[ValuePath, Json]:
        """Return the values to set in the line so that the case has these marks; those of a turn are in its turn."""
        record = self.record_in(self.text_of(case.source.line))
        if case.turn is None:
            of_case = changed_values(record, case, marks, hashes)
            return {(*path,): value for path, value in of_case.items()}
        turn = turn_record(record, case.turn, case.source)
        return _in_turn(turn, changed_values(turn.record, case, marks, hashes))

    def line_with(self, *marked: MarkedCase) -> str:
        """Return the text of a line with these marks on its case, or on turns of its conversation.

        Raises CaseError if the format of the line cannot hold them.
        """
        text = self.text_of(marked[0].case.source.line)
        for case, marks, hashes in marked:
            values = self.values(case, marks, hashes)
            if values:
                text = self.edited(text, values, case)
        return text

    def record_with(self, *marked: MarkedCase) -> dict[str, Json]:
        """Return the record of a line as a JSON object with these marks; raise CaseError as `line_with`."""
        return self.record_in(self.line_with(*marked))

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

    def record_in(self, text: str) -> dict[str, Json]:
        cells = _cells(text)
        record: dict[str, Json] = {}
        for name, cell in zip(self._header, cells, strict=False):
            if cell.strip():
                record[name] = cell if CELLS[name] == "text" else _value(cell, name)
        return record

    def values(self, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[ValuePath, Json]:
        if case.turn is not None:
            return super().values(case, marks, hashes)
        values = super().values(case, marks, hashes if "metadata" in self._header else {})
        # An empty cell already means the same as an empty list or null.
        record = self.record_in(self.text_of(case.source.line))
        return {path: value for path, value in values.items() if value or value is False or path[0] in record}

    def edited(self, text: str, values: Mapping[ValuePath, Json], case: EvalCase) -> str:
        if case.turn is not None:
            return self._with_turn(text, values)
        names = list(dict.fromkeys(str(path[0]) for path in values))
        if missing := [name for name in names if name not in self._header]:
            columns = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise CaseError(
                f"{self._file}: case {case.id!r}: the header lacks the {columns}; add what is lacking to it"
            )
        of_case = {tuple(map(str, path)): value for path, value in values.items()}
        record = with_values(self.record_in(text), of_case)
        return edited_row(text, self._header, {name: _cell(record[name]) for name in names})

    def _with_turn(self, text: str, values: Mapping[ValuePath, Json]) -> str:
        """Return the row with these values set in the cell that holds the turns."""
        column = str(next(iter(values))[0])
        cell = _cells(text)[self._header.index(column)]
        written = edited_json(cell, {path[1:]: value for path, value in values.items()})
        return edited_row(text, self._header, {column: written})


def _in_turn(turn: TurnRecord, values: Mapping[KeyPath, Json]) -> dict[ValuePath, Json]:
    """Return values of a turn's record as values of its line."""
    placed: dict[ValuePath, Json] = {}
    for path, value in values.items():
        key, *below = path
        if below and turn.own.get(key) is None and turn.record.get(key) is not None:
            # The turn's own object stands in place of the conversation's: it must say all of that, too.
            placed[*turn.place, key] = with_values(turn.record, {path: value})[key]
        else:
            placed[*turn.place, *path] = value
    return placed


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


def row_texts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each row of a CSV text with its 1-based first line; a quoted line end does not end a row."""
    rows: list[str] = []
    first = 1
    is_open = False
    for number, line in enumerate(re.split(r"(?<=\n)", text), start=1):
        if not rows:
            first = number
        rows.append(line)
        # A quotation mark within a quoted cell is doubled, so that an odd number opens or closes a cell.
        is_open ^= line.count('"') % 2 == 1
        if not is_open:
            yield first, "".join(rows)
            rows = []
    if rows:
        yield first, "".join(rows)


# ── one record ──────────────────────────────────────────────────────────────────────────────────────────────────────


def edited_row(text: str, header: list[str], cells: Mapping[str, str]) -> str:
    """Return the row of a CSV file with these cells set, by header name."""
    row = _cells(text)
    row += [""] * (len(header) - len(row))
    for name, value in cells.items():
        row[header.index(name)] = value
    written = io.StringIO()
    # Line ends in cells are quoted only if they are among those of the writer.
    csv.writer(written, lineterminator="\r\n").writerow(row)
    # The row keeps its own line end, as every byte outside of the changed cells.
    line_end = text[len(text.rstrip("\r\n")) :]
    return written.getvalue().removesuffix("\r\n") + line_end


def _cells(text: str) -> list[str]:
    # Not `splitlines`: a cell may hold other line separators.
    return next(csv.reader(io.StringIO(text, newline="")), [])
