"""A run for GitHub: Markdown for a job summary or a pull request, cut by whole cases, and annotations of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_list import ListedCase, changes_of, list_cases
from pytest_rageval.comparison.gate_lines import gate_line, gate_name
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.render.markdown.markdown_text import as_code, as_html, as_name, without_gaps
from pytest_rageval.render.markdown.view_markdown import block_lines
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.views.compared_metrics import metrics_section
from pytest_rageval.views.run import gates_to_show

FAILING = ("error", "failed")


def failing_cases(run: StoredRun) -> list[ListedCase]:
    """Return newly failing cases, the largest fall first, then errors, then the others, the lowest scores first."""
    comparison = run.finished_metrics.get("comparison")
    new = {key: place for place, key in enumerate((comparison or {}).get("flipped_to_fail", ()))}
    listed = list_cases(side_of_run(run), changes_of(comparison))
    failing = (case for case in listed.cases if case.outcome in FAILING)
    return sorted(failing, key=lambda case: new.get(case.key, len(new)))


MARKS = {"red": "❌", "amber": "⚠️", "green": "✅", "grey": "➖"}
LONGEST_SUMMARY = 1_000_000
"""Bytes: GitHub drops a step's summary of more than 1 MiB."""
LONGEST_COMMENT = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""
SHOWN_GATES = 20
"""Gates to list."""


def run_markdown(
    metrics: Mapping[str, Any], cases: Sequence[ListedCase], *, longest: int, link: str | None = None
) -> str:
    """Return the document with as many cases as fit into `longest` characters and as many bytes.

    `link`: the address of the whole report, if there is one.
    """
    head = without_gaps("".join(f"{line}\n" for line in _head(metrics, link)))
    room = longest - _size(head) - 200
    shown: list[str] = []
    for case in cases:
        text = "".join(f"{line}\n" for line in _case(case))
        room -= _size(text)
        if room < 0:
            break
        shown.append(text)
    rest = len(cases) - len(shown)
    more = ""
    if rest:
        report = f": [the whole report]({link})" if link else ""
        more = f"\n{and_more(rest, 'cases')}{report}\n"
    return head + "".join(shown) + more


def _size(text: str) -> int:
    return len(text.encode())


def _head(metrics: Mapping[str, Any], link: str | None) -> Iterator[str]:
    verdict = metrics["verdict"]
    yield f"### {MARKS[verdict['tone']]} {as_name(verdict['sentence'], 1000)}"
    yield ""
    if metrics["description"]:
        yield as_name(metrics["description"], 300)
        yield ""
    yield " · ".join(_about(metrics, link))
    yield ""
    for name, message in verdict["problems"].items():
        yield f"- ❌ **{as_name(name)}**: {as_name(message, 600)}"
    # Those that fail the run first, then passed gates with a warning.
    gates = sorted(gates_to_show(metrics), key=lambda gate: gate.tone != "worse")
    for gate in gates[:SHOWN_GATES]:
        yield from block_lines(gate)
    if len(gates) > SHOWN_GATES:
        yield f"- {and_more(len(gates) - SHOWN_GATES, 'gates')}"
    yield ""
    comparison = metrics["comparison"]
    if comparison and comparison["compared"]:
        for block in metrics_section(comparison):
            yield from block_lines(block)


def _about(metrics: Mapping[str, Any], link: str | None) -> Iterator[str]:
    """Yield the run, what it was compared with, its judge, and the link to its report."""
    yield f"Run {as_name(metrics['volatile']['run_id'] or '–')}"
    baseline = (metrics.get("comparison") or {}).get("baseline_run_id")
    if baseline:
        yield f"compared with {as_name(str(baseline))}"
    judge = metrics.get("judge")
    if judge:
        yield f"judge {as_name(judge['model'])}"
    if link:
        yield f"[report]({link})"


def _case(case: ListedCase) -> Iterator[str]:
    state = "error" if case.outcome == "error" else "fails"
    new = ", did not before" if case.change == "worse" else ""
    yield f"<details><summary>{as_html(case.key)}: {state}{new}</summary>"
    yield ""
    yield f"- {as_name(case.why, 1000)}"
    if case.question:
        yield f"- question: {as_code(case.question)}"
    if case.answer:
        yield f"- answer: {as_code(case.answer)}"
    yield f"- {as_code(case.place or case.file, 200)}"
    yield ""
    yield "</details>"
    yield ""


# ── annotations ────────────────────────────────────────────────────────────────────────────────────────────────


MOST = 10
"""GitHub shows ten errors of a step and silently drops the rest."""
LONGEST = 400
"""Columns of a line of a message."""


def annotation_lines(metrics: Mapping[str, Any], cases: Sequence[ListedCase], file: str) -> Iterator[str]:
    """Yield the lines to print: failed gates of the run first, at `file`, then failing cases, ten in all.

    If there are more than ten, the last line says how many. Source of the format and its escapes: the `command.ts` of
    GitHub's toolkit (`%`, line ends; in properties `:` and `,` as well).
    """
    lines = []
    if not metrics["partial"]:
        failed = [gate for gate in metrics["gates"] if gate["passed"] is False]
        lines = [_error(file, 1, f"gate {gate_name(gate)}", gate_line(gate)) for gate in failed]
    lines += map(_annotation, cases)
    if len(lines) > MOST:
        sentence = f"and {len(lines) - MOST + 1} more: {metrics['verdict']['sentence']}"
        lines[MOST - 1 :] = [_error(file, 1, "rageval", sentence)]
    yield from lines


def notice(title: str, message: str) -> str:
    """Return a line that GitHub Actions shows as a notice of the step."""
    return f"::notice title={_value(title)}::{_data(message)}"


def _annotation(case: ListedCase) -> str:
    if case.outcome == "error":
        state = "error"
    elif case.change == "worse":
        state = "newly failing"
    else:
        state = "failing"
    place = case.place or f"{case.file}:1"
    file, _, line = place.rpartition(":")
    message = "\n".join(filter(None, (case.why, case.question)))
    return _error(file, line, f"{state}: {case.id}", message)


def _error(file: str, line: object, title: str, message: str) -> str:
    shown_title = _value(shortened(title, 120))
    lines = [shortened(printable(text), LONGEST) for text in message.split("\n")]
    shown_message = _data("\n".join(lines))
    return f"::error file={_value(file)},line={line},title={shown_title}::{shown_message}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
