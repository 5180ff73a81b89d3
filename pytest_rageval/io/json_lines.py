"""Records of a JSONL file: one object a line, blank lines allowed, every other line a problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_rageval.io.lines import Line
from pytest_rageval.io.messages import MOST_OF_A_RECORD, Report, found
from pytest_rageval.io.strict_json import Positions, StrictJsonError, parse
from pytest_rageval.model import Json


class JsonRow(NamedTuple):
    """One record and the line it was written in."""

    line: int
    record: dict[str, Json]
    text: str

    def column_finder(self) -> Positions:
        """Where its keys and values stand; slow."""
        return Positions(self.text)


def json_rows(lines: Iterator[Line], report: Report) -> Iterator[JsonRow]:
    """The objects of a JSONL file; what is not one is reported and passed over."""
    is_first = True
    for number, line, is_sound in lines:
        text = line.rstrip()  # a column past the end of the line would be counted on the next one
        if not text or not is_sound:
            continue
        if is_first and text.lstrip() in ("{", "["):
            report.add_unread(number, 1, "is JSON over several lines; write one object a line (JSONL)")
            return
        is_first = False
        record = parse_line(number, text, report)
        if isinstance(record, dict):
            yield JsonRow(number, record, text)


def parse_line(number: int, text: str, report: Report) -> dict[str, Json] | None:
    """The object that a line holds, or None and a problem."""
    try:
        record = parse(text)
    except StrictJsonError as error:
        _report_oddities(number, error, report)
        return None
    if isinstance(record, dict):
        return record
    remedy = "; write one object a line (JSONL)" if isinstance(record, list) else ""
    report.add_unread(number, 1, f"is {found(record)}, expected an object{remedy}")
    return None


def _report_oddities(number: int, error: StrictJsonError, report: Report) -> None:
    report.unread += 1
    wrong = "not valid JSON: " if error.kind == "syntax" else ""
    named = error.positions.case_id if error.kind == "strictness" else None
    for offset, message in error.oddities[:MOST_OF_A_RECORD]:
        report.add(number, offset + 1, f"{wrong}{message}", named)
    if (more := len(error.oddities) - MOST_OF_A_RECORD) > 0:
        report.add(number, 1, f"{more:,} more problems of this kind in this line")
