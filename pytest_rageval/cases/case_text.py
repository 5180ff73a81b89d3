"""The text of a case file by line or row: written anew at the labelled cases, byte for byte equal elsewhere."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.label_values import KeyPath, changed_values, with_values
from pytest_rageval.cases.marks import Marks
from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.strict_json import parse
from pytest_rageval.model import EvalCase, Json


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
        """Return the values to set so that the record has these marks; raise CaseError for a turn, which has none."""
        if case.turn is not None:
            raise CaseError(
                f"{case.source}: case {case.id!r}: is a turn of a conversation, which cannot be labelled here yet; "
                "write its gold into the turn"
            )
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
        cells = _cells(self.text_of(case.source.line))
        record: dict[str, Json] = {}
        for name, cell in zip(self._header, cells, strict=False):
            if cell.strip():
                record[name] = cell if CELLS[name] == "text" else _value(cell, name)
        return record

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


def row_texts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each row of a CSV text with its 1-based first line; a quoted line end does not end a row."""
    rows: list[str] = []
    first = 1
    is_open = False
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


# ── one record ──────────────────────────────────────────────────────────────────────────────────────────────────────


def edited_json(text: str, values: Mapping[KeyPath, Json]) -> str:
    """Return the line of a JSON object with these values set; new keys come last in their object.

    The order of the keys, the white space around the object, compact or spaced separators and escaped characters stay.
    `text` is valid strict JSON without duplicate keys.
    """
    written = text.strip()
    is_compact = '":' in written and '": ' not in written
    separators = (",", ":") if is_compact else (", ", ": ")
    is_ascii = written.isascii() and "\\u" in written
    record = json.dumps(with_values(parse(written), values), ensure_ascii=is_ascii, separators=separators)
    return text.replace(written, record)


def edited_row(text: str, header: list[str], cells: Mapping[str, str]) -> str:
    """Return the row of a CSV file with these cells set, by header name."""
    row = _cells(text)
    row += [""] * (len(header) - len(row))
    for name, value in cells.items():
        row[header.index(name)] = value
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(row)
    line_end = text[len(text.rstrip("\r\n")) :]
    return written.getvalue() + line_end


def _cells(text: str) -> list[str]:
    # Not `splitlines`: a cell may hold other line separators.
    return next(csv.reader(io.StringIO(text, newline="")), [])
