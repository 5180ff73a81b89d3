"""Changes to the text of one CSV row: the cells named change, every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

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
