"""A run for GitHub, as a comment on a pull request and on a job's page: verdict, causes, moved metrics, ten cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.comparison.verdict_reasons import shown_problems
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.markdown.markdown_text import MARKS, as_code, as_html, bounded, table, without_gaps
from pytest_rageval.text import NO_VALUE, counted
from pytest_rageval.views.causes import CauseView, advice_on_run
from pytest_rageval.views.compared_metrics import ComparedMetric, fallen_lines
from pytest_rageval.views.operations import slower_line
from pytest_rageval.views.run_digest import FailingCase, RunDigest

ALERTS = {"red": "CAUTION", "amber": "WARNING", "green": "TIP", "grey": "NOTE"}
"""The alerts of GitHub's Markdown by the tone of a verdict."""
LONGEST = 9_700
"""Characters of the document: with its marker, a comment stays below 10,000."""
SHOWN_GATES = 5
SHOWN_PROBLEMS = 3
SHOWN_CHANGES = 6
SHOWN_CAUSES = 5
SHOWN_METRICS = 8
SHOWN_NAMES = 3
"""Cases that are named beside their cause."""
TEXT_WIDTHS = (240, 160, 100, 60, 30)
"""Characters of each text of a case: the longest with which ten cases fit."""
METRIC_HEADS = ("metric", "before", "after", "change", "verdict")


def run_markdown(digest: RunDigest, *, link: str | None = None) -> str:
    """Return the document, of at most `LONGEST` characters, with as many of the ten cases as fit.

    `link`: the address of the whole report, if there is one.
    """
    sections = [
        _head(digest, link),
        slower_line(digest.metrics["volatile"].get("slower_answers")),
        _changes(digest.changes),
        _gates(digest.metrics),
        _causes(digest),
        _moved(digest),
    ]
    parts = ["\n".join(section) for section in sections]
    text = without_gaps("\n\n".join(filter(None, parts))) + "\n"
    # The cases last: only they can be made shorter.
    return text + _cases(digest, link, LONGEST - len(text))


def _head(digest: RunDigest, link: str | None) -> Iterator[str]:
    verdict = digest.metrics["verdict"]
    yield f"> [!{ALERTS[verdict['tone']]}]"
    yield f"> **{bounded(verdict['sentence'], 900)}**"
    yield ""
    description = digest.metrics["description"]
    if description:
        yield bounded(description, 300)
        yield ""
    yield " · ".join(_about(digest.metrics, link))


def _about(metrics: Mapping[str, Any], link: str | None) -> Iterator[str]:
    """Yield the run, what it was compared with, its judge, and the link to its report."""
    yield f"Run {bounded(str(metrics['volatile']['run_id'] or NO_VALUE), 100)}"
    baseline = (metrics.get("comparison") or {}).get("baseline_run_id")
    if baseline:
        yield f"compared with {bounded(str(baseline), 100)}"
    judge = metrics.get("judge")
    # A heuristic judges by words alone: nothing says "judge" where no model was one.
    if judge and not judge["heuristic"]:
        yield f"judge {bounded(judge['model'], 100)}"
    if link:
        yield f"[report]({link})"


def _gates(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield what fails the run besides its cases."""
    problems = list(shown_problems(metrics).items())
    for name, message in problems[:SHOWN_PROBLEMS]:
        yield f"- ❌ **{bounded(name, 60)}**: {bounded(message, 250)}"
    if len(problems) > SHOWN_PROBLEMS:
        yield f"- {and_more(len(problems) - SHOWN_PROBLEMS)}"
    if metrics["partial"]:
        return  # a partial run fails no gate
    failed = [gate for gate in metrics["gates"] if gate["passed"] is False]
    for gate in failed[:SHOWN_GATES]:
        yield f"- ❌ {bounded(gate_line(gate), 200)}"
    if len(failed) > SHOWN_GATES:
        yield f"- {and_more(len(failed) - SHOWN_GATES)}"


def _causes(digest: RunDigest) -> Iterator[str]:
    """Yield why cases fail, and the metrics that fell in the same cases."""
    causes = digest.causes
    if not causes:
        return
    yield "**Why cases fail**"
    yield ""
    for cause in causes[:SHOWN_CAUSES]:
        yield _cause_point(cause)
    if len(causes) > SHOWN_CAUSES:
        yield f"- {and_more(len(causes) - SHOWN_CAUSES)}"
    comparison = digest.metrics.get("comparison")
    if comparison and comparison["compared"]:
        for line in fallen_lines(comparison):
            yield f"- {bounded(line, 200)}"
    advice = advice_on_run(digest.metrics, causes)
    if advice:
        yield ""
        yield f"**What to do**: {advice}"


def _cause_point(cause: CauseView) -> str:
    ids = [key.partition("::")[2] or key for key in cause.keys]
    return f"- **{bounded(cause.title, 160)}**: {bounded(listed(ids, SHOWN_NAMES), 120)}"


def _changes(changes: Sequence[str]) -> Iterator[str]:
    if not changes:
        return
    shown = [bounded(change, 100, as_code) for change in changes[:SHOWN_CHANGES]]
    if len(changes) > SHOWN_CHANGES:
        shown.append(and_more(len(changes) - SHOWN_CHANGES))
    yield f"**What changed**: {', '.join(shown)}"


def _moved(digest: RunDigest) -> Iterator[str]:
    """Yield the metrics that moved; those that did not, or were not measured, stand in the report."""
    moved = digest.moved
    if not moved:
        return
    rows = [metric_cells(metric) for metric in moved[:SHOWN_METRICS]]
    yield from table(METRIC_HEADS, rows)
    if len(moved) > SHOWN_METRICS:
        yield f"and {counted(len(moved) - SHOWN_METRICS, 'more metric')}"


def metric_cells(metric: ComparedMetric) -> list[str]:
    """Return the cells of a metric that moved, for `METRIC_HEADS`."""
    figures = metric.figures
    verdict = f"{MARKS[metric.tone]} {metric.verdict}"
    return [bounded(metric.label, 80), figures["before"], figures["after"], figures["change"], verdict]


def _cases(digest: RunDigest, link: str | None, room: int) -> str:
    """Return the ten cases, with texts as long as the room allows, and the number of the others."""
    if not digest.failing:
        return ""
    room -= 200 + len(link or "")  # for the title and the last line
    shown: list[str] = []
    for width in TEXT_WIDTHS:
        shown = ["\n".join(_case(case, width)) for case in digest.cases]
        if _size(shown) <= room:
            break
    # Only hostile texts, which escapes make many times longer, leave no room for ten cases.
    while shown and _size(shown) > room:
        shown.pop()
    rest = len(digest.failing) - len(shown)
    title = f"\n**Failing cases** ({len(shown)} of {len(digest.failing):,})\n\n"
    more = ""
    if rest:
        report = f": [the whole report]({link})" if link else ""
        more = f"\nand {counted(rest, 'more case')}{report}\n"
    return title + "\n".join(shown) + more


def _size(cases: Sequence[str]) -> int:
    return sum(len(case) + 1 for case in cases)


def _case(failing: FailingCase, width: int) -> Iterator[str]:
    case = failing.case
    cause = f" – {bounded(failing.cause, 100, as_html)}" if failing.cause else ""
    yield f"<details><summary>{bounded(case.id, 100, as_html)}: {failing.state}{cause}</summary>"
    yield ""
    if case.why:
        yield f"- {bounded(case.why, width)}"
    facts = {"question": case.question, "expected": failing.expected, "answer": case.answer}
    for name, text in facts.items():
        if text:
            yield f"- {name}: {bounded(text, width, as_code)}"
    yield f"- {bounded(case.place or case.file, 100, as_code)}"
    yield ""
    yield "</details>"
    yield ""
