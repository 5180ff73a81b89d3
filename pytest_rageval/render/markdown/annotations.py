"""Annotations of GitHub Actions: workflow commands that point at the line of each failing case.

Source of the format and its escapes: the toolkit's `command.ts` (`%`, line ends; in properties `:` and `,` as well).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.comparison.verdict_sentence import gate_name
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.text import printable

MOST = 10
"""GitHub shows ten errors of a step and silently drops the rest."""
LONGEST = 400


def annotation_lines(metrics: Mapping[str, Any], cases: Sequence[ListedCase], file: str) -> Iterator[str]:
    """Yield the lines to print: failed gates of the run first, at `file`, then failing cases, ten in all.

    If there are more than ten, the last line says how many.
    """
    failed = () if metrics["partial"] else (gate for gate in metrics["gates"] if gate["passed"] is False)
    gates = [_error(file, 1, f"gate {gate_name(gate)}", gate_line(gate)) for gate in failed]
    lines = gates + [
        _error(*_place(case), _title(case), "\n".join(filter(None, (case.why, case.question)))) for case in cases
    ]
    if len(lines) > MOST:
        sentence = f"and {len(lines) - MOST + 1} more: {metrics['verdict']['sentence']}"
        lines[MOST - 1 :] = [_error(file, 1, "rageval", sentence)]
    yield from lines


def notice(title: str, message: str) -> str:
    """Return a line that GitHub Actions shows as a notice of the step."""
    return f"::notice title={_value(title)}::{_data(message)}"


def _title(case: ListedCase) -> str:
    state = "error" if case.outcome == "error" else "newly failing" if case.change == "worse" else "failing"
    return f"{state}: {case.id}"


def _place(case: ListedCase) -> tuple[str, str]:
    file, _, line = (case.place or f"{case.file}:1").rpartition(":")
    return file, line


def _error(file: str, line: object, title: str, message: str) -> str:
    lines = (shortened(printable(text), LONGEST) for text in message.split("\n"))
    return (
        f"::error file={_value(file)},line={line},title={_value(shortened(title, 120))}::{_data(chr(10).join(lines))}"
    )


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
