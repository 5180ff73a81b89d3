"""Lines of JSON → records: one object a line, blank lines allowed, every other line a problem."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from pytest_rageval.io.lines import Line
from pytest_rageval.io.messages import MOST_OF_A_RECORD, Report, found
from pytest_rageval.io.strict_json import Positions, RefusedJson, parse, reworded
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
    except json.JSONDecodeError as error:
        report.add_unread(number, error.colno, f"not valid JSON: {reworded(error)}")
    except RecursionError:
        report.add_unread(number, 1, "is nested too deep")
    except RefusedJson:
        _report_oddities(number, text, report)
    except ValueError:  # int() refuses thousands of digits
        report.add_unread(number, 1, "holds a number of thousands of digits; write it as a string")
    else:
        if isinstance(record, dict):
            return record
        remedy = "; write one object a line (JSONL)" if isinstance(record, list) else ""
        report.add_unread(number, 1, f"is {found(record)}, expected an object{remedy}")
    return None


def _report_oddities(number: int, text: str, report: Report) -> None:
    positions = Positions(text)
    oddities = positions.oddities
    for column, message in oddities[:MOST_OF_A_RECORD]:
        report.add(number, column, message, positions.case_id)
    if len(oddities) > MOST_OF_A_RECORD:
        report.add(number, 1, f"{len(oddities) - MOST_OF_A_RECORD:,} more problems of this kind in this line")
    report.unread += 1
    try:
        json.loads(text)
    except json.JSONDecodeError as error:  # the oddity came first and hid it
        report.add(number, error.colno, f"not valid JSON: {reworded(error)}", positions.case_id)
    except (RecursionError, ValueError):
        report.add(number, 1, "is nested too deep, or holds a number of thousands of digits", positions.case_id)
