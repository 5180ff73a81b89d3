"""Annotations of a run in the log of GitHub Actions: ten errors, of gates and failing cases; warnings of flaky ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pytest_rageval.comparison.gate_lines import gate_line, gate_name
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.io.suggestions import listed
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.runs.flaky_cases import CASES
from pytest_rageval.text import printable
from pytest_rageval.views.causes import CauseView, causes_of

MOST = 10
"""GitHub shows ten errors and ten warnings of a step, and silently drops the rest."""
LONGEST = 400
"""Columns of a line of a message."""
SHOWN_NAMES = 3


def annotation_lines(
    metrics: Mapping[str, Any], cases: Sequence[ListedCase], flaky: Sequence[ListedCase], file: str
) -> Iterator[str]:
    """Yield the lines to print: failed gates of the run first, at `file`, then failing cases, ten in all.

    A warning for each flaky case follows, ten in all.

    If more than ten cases fail, equal causes are one annotation, at the first of their cases. If there are more than
    ten annotations, the last one counts the others. Source of the format and its escapes: the `command.ts` of GitHub's
    toolkit (`%`, line ends; in properties `:` and `,` as well).
    """
    lines = []
    # Means of a part of the cases fail no build.
    if not metrics["partial"]:
        failed = [gate for gate in metrics["gates"] if gate["passed"] is False]
        lines = [_error(file, 1, f"gate {gate_name(gate)}", gate_line(gate)) for gate in failed]
    if len(cases) > MOST:
        lines += _cause_lines(metrics, cases)
    else:
        lines += map(_of_case, cases)
    if len(lines) > MOST:
        sentence = f"and {len(lines) - MOST + 1:,} more: {metrics['verdict']['sentence']}"
        # The last of ten is for the count, or GitHub would drop the others without a word.
        lines[MOST - 1 :] = [_error(file, 1, "rageval", sentence)]
    yield from lines
    yield from _flaky_lines(metrics, flaky, file)


def notice(title: str, message: str) -> str:
    """Return a line that GitHub Actions shows as a notice of the step."""
    return f"::notice title={_value(title)}::{_data(message)}"


def _cause_lines(metrics: Mapping[str, Any], cases: Sequence[ListedCase]) -> Iterator[str]:
    """Yield a line for each cause, the most frequent first; then the cases without one, as in older runs."""
    case_by_key = {case.key: case for case in cases}
    place_by_key = {case.key: place for place, case in enumerate(cases)}
    explained: set[str] = set()
    for cause in causes_of(metrics, sorted(case_by_key)):
        explained.update(cause.keys)
        in_order = sorted(cause.keys, key=place_by_key.__getitem__)
        first = case_by_key[in_order[0]]
        yield _of_case(first) if len(in_order) == 1 else _of_cause(cause, first, in_order)
    for case in cases:
        if case.key not in explained:
            yield _of_case(case)


def _flaky_lines(metrics: Mapping[str, Any], flaky: Sequence[ListedCase], file: str) -> Iterator[str]:
    """Yield a warning for each flaky case, and for those beyond the tenth one together."""
    why = {case["case_key"]: case["why"] for case in metrics.get(CASES) or ()}
    shown = flaky if len(flaky) <= MOST else flaky[: MOST - 1]
    for case in shown:
        file_of_case, line = _place(case)
        message = "\n".join(filter(None, (why.get(case.key), case.question)))
        yield _annotation("warning", file_of_case, line, f"flaky: {case.id}", message)
    hidden = flaky[len(shown) :]
    if hidden:
        names = listed([case.id for case in hidden], SHOWN_NAMES)
        title = f"{len(hidden):,} more flaky cases"
        yield _annotation("warning", file, 1, title, names)


def _of_cause(cause: CauseView, first: ListedCase, keys: Sequence[str]) -> str:
    file, line = _place(first)
    message = "\n".join(filter(None, (listed(keys, SHOWN_NAMES), first.why, first.question)))
    return _error(file, line, cause.title, message)


def _of_case(case: ListedCase) -> str:
    if case.outcome == "error":
        state = "error"
    elif case.change == "worse":
        state = "newly failing"
    else:
        state = "failing"
    file, line = _place(case)
    message = "\n".join(filter(None, (case.why, case.question)))
    return _error(file, line, f"{state}: {case.id}", message)


def _place(case: ListedCase) -> tuple[str, str]:
    file, _, line = (case.place or f"{case.file}:1").rpartition(":")
    return file, line


def _error(file: str, line: object, title: str, message: str) -> str:
    return _annotation("error", file, line, title, message)


def _annotation(level: Literal["error", "warning"], file: str, line: object, title: str, message: str) -> str:
    shown_title = _value(shortened(title, 120))
    lines = [shortened(printable(text), LONGEST) for text in message.split("\n")]
    shown_message = _data("\n".join(lines))
    return f"::{level} file={_value(file)},line={line},title={shown_title}::{shown_message}"


def _data(text: str) -> str:
    # The percent sign first: the other escapes hold one.
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
