"""The text of a case file, line by line or row by row: changed at the labelled cases, equal in every byte elsewhere."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Mapping
from typing import Protocol

from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.marks import Marks
from pytest_rageval.cases.writing.csv_edit import edited_row, row_texts
from pytest_rageval.cases.writing.json_edit import KeyPath, edited_json
from pytest_rageval.cases.writing.label_values import changed_values, with_values
from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.strict_json import parse
from pytest_rageval.model import EvalCase, Json


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
