"""The first screen of the HTML report: tiles of main metrics, causes, flipped cases, metrics that moved, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.cases.gold_places import cannot_be_won_line
from pytest_rageval.comparison.gate_lines import gate_line, gate_state
from pytest_rageval.comparison.known_failures import ADDED_GATES
from pytest_rageval.comparison.listed_case import FLAKY, ListedCase
from pytest_rageval.comparison.new_failures import FailureKind, counted_kinds, new_failures
from pytest_rageval.comparison.notes import missing_changes
from pytest_rageval.comparison.verdict_reasons import PASSED_THEN
from pytest_rageval.comparison.what_changed import changes_between
from pytest_rageval.render.html.figures import spark
from pytest_rageval.render.html.metric_rows import MetricRow, metric_row
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.sections import pass_rates
from pytest_rageval.runs.causes import NO_CAUSE, TITLES
from pytest_rageval.runs.config_diff import arrow_text, flat_settings
from pytest_rageval.text import NO_VALUE, counted, dollars_text, duration, percent
from pytest_rageval.views.causes import CauseView, advice_on_run, causes_of
from pytest_rageval.views.compared_metrics import ComparedMetric, fallen_lines, moved_metrics
from pytest_rageval.views.parts import Tone
from pytest_rageval.views.shared_traits import do_only_follow_ups_fail, shared_lines, traits_of_cases

TILES = 4
"""Tiles of metrics between that of the pass rate and that of latency and cost."""
PREFERRED = (
    "reference_match",
    "faithfulness",
    "recall_any",
    "context_recall",
    "groundedness",
    "correctness",
    "token_f1",
    "abstention_accuracy",
    "hits",
    "recall_all",
    "key_fact_recall",
    "mrr",
)
"""Metrics that readers look for, the first ones first."""
SHOWN_FLIPS = 5
SHOWN_CAUSES = 5
FAILING_BUILD = ("error", "failed")
"""Outcomes of cases that fail the build: known failures do not."""
OWN_WORDS = ("gate", "system_error", "judge_error", "evaluation_error", NO_CAUSE)
"""Causes whose title says less than the reason of the case."""


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Cases that fail for one cause."""

    text: str
    """The cause in words."""
    cases: int
    """The number of cases."""
    query: str
    """The filter that lists the cases of causes of this kind."""


@dataclass(frozen=True, slots=True)
class FirstCase:
    """A case of the first screen."""

    case: ListedCase
    """The case, whose question and answer are shown."""
    cause: str
    """Why it fails, in a few words."""
    note: str
    """`flaky`, or that it is a known failure with a new gate; '' for any other case."""


@dataclass(frozen=True, slots=True)
class FailingCases:
    """The cases that newly fail, or that fail if there is no comparison."""

    title: str
    """The heading."""
    cases: int
    """Their number."""
    kinds: str
    """In which ways they fail, if in more than one; else ''."""
    query: str
    """The filter that lists them all."""
    first: Sequence[FirstCase]
    """The first of them."""
    nothing: str
    """The sentence shown if there are none."""


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What a reader of the HTML report sees before the list of cases."""

    changed: Sequence[str]
    """The settings, versions and commits that differ from the other run, each as `k 5 → 7`."""
    equal: int
    """The number of settings that do not differ."""
    judge: Mapping[str, Any] | None
    """The judge, as metrics.json has it; None if nothing was judged."""
    notes: Sequence[str]
    """What a reader must know of the run's files and of the comparison."""
    unwinnable: str | None
    """How many cases cannot be won; None if none is known."""
    tiles: Sequence[MetricRow]
    """The pass rate, the main metrics and the latency."""
    causes: Sequence[CauseLine]
    """Why cases fail, the most frequent cause first."""
    more_causes: int
    """The number of causes that are not shown."""
    advice: str
    """What to do about the most frequent cause; '' without one."""
    shared: Sequence[str]
    """Traits that all failing cases share and the others do not, such as a tag."""
    news: FailingCases
    """The cases that newly fail."""
    moves: Sequence[ComparedMetric]
    """The metrics that moved, the worst verdict first; empty without a comparison."""
    no_moves: str
    """The sentence shown if no metric moved."""
    fallen: Sequence[str]
    """The metrics that got worse in the same cases, a line for each group."""


def first_screen(page: PageRun) -> FirstScreen:
    """Return the content of the first screen."""
    comparison = page.comparison or {}
    problems = [problem["said"] for problem in comparison.get("problems", ())]
    # A missing change is shown as – in its place, with the reason as its tip.
    missing = set(missing_changes(page.compared)) if page.compared else set()
    notes = [note for note in comparison.get("notes", ()) if note not in missing]
    causes = causes_of_page(page)
    lines = cause_lines(page, causes)
    traits = traits_of_cases(page.cases, FAILING_BUILD)
    return FirstScreen(
        changed=changed_settings(page),
        equal=equal_settings(page),
        judge=page.metrics.get("judge"),
        notes=[*page.missing, *notes, *problems],
        unwinnable=cannot_be_won_line(page.config),
        tiles=list(tiles(page)),
        causes=lines[:SHOWN_CAUSES],
        more_causes=max(len(lines) - SHOWN_CAUSES, 0),
        advice=advice_on_run(page.metrics, causes, has_only_follow_ups=do_only_follow_ups_fail(traits)),
        shared=list(shared_lines(traits)),
        news=news_of(page),
        moves=moves(page),
        no_moves=no_moves(page),
        fallen=fallen_lines(page.compared or {}),
    )


def changed_settings(page: PageRun) -> list[str]:
    """Return what differs from the other run; empty if its configuration is not known."""
    if page.before is None or page.before.config is None or page.side.config is None:
        return []
    return [arrow_text(change) for change in changes_between(page.before.config, page.side.config)]


def causes_of_page(page: PageRun) -> list[CauseView]:
    """Return why cases fail, without known failures as in every face; those of known failures if nothing else fails."""
    failing = [case.key for case in page.cases if case.outcome in FAILING_BUILD]
    if not failing:
        failing = [case.key for case in page.cases if case.is_failing]
    return causes_of(page.metrics, failing)


def cause_lines(page: PageRun, causes: Sequence[CauseView]) -> list[CauseLine]:
    """Return the causes with the filters that list their cases; empty for a run of an older version."""
    outcomes = {case.outcome for case in page.cases if case.is_failing}
    is_mixed = not outcomes.isdisjoint(FAILING_BUILD) and not outcomes <= {*FAILING_BUILD}
    lines = []
    for cause in causes:
        query = f"cause:{cause.kind}"
        # Without the outcomes the link would list known failures, too, more cases than the line counts.
        if is_mixed:
            query += f" outcome:{','.join(FAILING_BUILD)}"
        lines.append(CauseLine(cause.text, len(cause.keys), query))
    return lines


def tiles(page: PageRun) -> Iterator[MetricRow]:
    """Yield the pass rate; metrics with gates, failing ones first; those that readers look for; the latency."""
    yield _pass_rate(page)
    gates: dict[str, Mapping[str, Any]] = {}
    # Stable: among gates that fail, and among others, the order of the project stays.
    for gate in sorted(page.gates, key=lambda gate: gate["passed"] is not False):
        gates.setdefault(gate["metric"], gate)
    measured = page.metrics["metrics"]
    by_bare: dict[str, str] = {}
    for name, metric in measured.items():
        if metric["mean"] is not None:
            by_bare.setdefault(name.partition("@")[0], name)
    preferred = [by_bare[name] for name in PREFERRED if name in by_bare]
    others = [name for name in by_bare.values() if not measured[name]["run_level"]]
    names = [*(name for name in gates if name in measured), *preferred, *others]
    for name in list(dict.fromkeys(names))[:TILES]:
        row = metric_row(name, page)
        decided = gates.get(name)
        if decided is not None:
            is_partial = page.metrics["partial"]
            state = gate_state(decided, is_partial=is_partial)
            row = row._replace(gate=(state, gate_line(decided, is_partial=is_partial)))
        yield row
    yield _speed(page)


def _pass_rate(page: PageRun) -> MetricRow:
    outcomes = page.metrics.get("outcomes") or {}
    total = page.metrics["total_tests"]
    passed = outcomes.get("passed", 0)
    value = percent(passed / total) if total else NO_VALUE
    row = MetricRow("pass rate", value, interval=page.verdict.pass_rate, line=spark(pass_rates(page.trend), 0.1))
    paired = (page.compared or {}).get("paired")
    if not paired or not paired["cases"]:
        return row
    if paired["cases"] != total:
        # The share of all cases beside one of some of them would look like a change.
        return row._replace(why="not of the same cases")
    before = paired.get(PASSED_THEN, paired["passed_before"])
    after = paired["passed_after"]
    tone: Tone = "plain"
    if after != before:
        tone = "better" if after > before else "worse"
    return row._replace(change=f"was {percent(before / paired['cases'])}", tone=tone)


def _speed(page: PageRun) -> MetricRow:
    timed = page.operations.get("latency_ms")
    row = MetricRow("p95 latency", NO_VALUE, interval=_spent(page))
    if timed is None:
        return row
    # Of fewer than 20 cases, the 95th percentile would be the slowest one.
    statistic = "p50" if timed["p95"] is None else "p95"
    row = row._replace(name=f"{statistic} latency", value=duration(timed[statistic]))
    # Other cases may be longer or shorter: a difference would not be the system's.
    if page.before is not None and page.compared is not None and not page.is_of_same_cases:
        return row._replace(why="not of the same cases")
    timed_before = page.operations_before.get("latency_ms") or {}
    before = timed_before.get(statistic)
    return row if before is None else row._replace(change=f"was {duration(before)}")


def _spent(page: PageRun) -> str:
    """Return what the system and the judge cost, as far as it is known."""
    parts = []
    cost = page.operations.get("cost_usd")
    if cost:
        parts.append(f"system {dollars_text(cost['total'])}")
    dollars = (page.metrics["volatile"].get("cost") or {}).get("judge_total_usd")
    # Unknown prices are no price of 0.
    if dollars is not None:
        parts.append(f"judge ${dollars:.2f}")
    return ", ".join(parts) or "cost unknown"


def news_of(page: PageRun) -> FailingCases:
    """Return newly failing cases and errors, or without a comparison all failing ones."""
    is_alone = page.compared is None
    kinds = new_failures(page.compared)
    news = [case for case in page.cases if _is_news(case, kinds, is_alone=is_alone)]
    of_news = [kinds[case.key] for case in news if case.key in kinds]
    errors = sum(case.outcome == "error" for case in news)
    if is_alone:
        title, query = "Failing", "outcome:failed,error,xfailed"
    elif not errors:
        title, query = "Newly failing", "changed:worse"
        if any(kind.name not in ("flipped_to_fail", "fails_new_gate") for kind in of_news):
            # Added and changed cases are new ones to the filter.
            query = f"outcome:{','.join(FAILING_BUILD)} changed:worse,new"
    elif errors == len(news):
        title, query = "Errors", "outcome:error"
    else:
        title, query = "Newly failing, and errors", "outcome:error,failed"
    first = [FirstCase(case, _cause(case), _note(case, kinds)) for case in news[:SHOWN_FLIPS]]
    return FailingCases(title, len(news), counted_kinds(of_news), query, first, _no_failing_case(page))


def _is_news(case: ListedCase, kinds: Mapping[str, FailureKind], *, is_alone: bool) -> bool:
    if is_alone:
        return case.is_failing
    return case.key in kinds or case.outcome == "error"


def _note(case: ListedCase, kinds: Mapping[str, FailureKind]) -> str:
    # Without a note, one that failed before or was not there would read as a change of the system.
    if case.key in kinds and kinds[case.key].note:
        return kinds[case.key].note
    return "flaky" if case.flaky == FLAKY else ""


def _cause(case: ListedCase) -> str:
    return case.why if case.cause in OWN_WORDS else TITLES[case.cause]


def _no_failing_case(page: PageRun) -> str:
    if not page.cases and page.metrics["total_tests"]:
        return "The cases of this run are not kept."
    if not page.cases:
        return "This run has no cases."
    failing = sum(case.is_failing for case in page.cases)
    if not page.compared or not failing:
        return "No case fails."
    by_added_gate = len(page.compared.get(ADDED_GATES, ()))
    before = failing - by_added_gate
    words = ["Nothing newly fails."]
    if before:
        words.append(f"{counted(before, 'case fails', 'cases fail')} as before.")
    if by_added_gate:
        words.append(f"{counted(by_added_gate, 'case fails', 'cases fail')} only by a gate added since.")
    return " ".join(words)


def moves(page: PageRun) -> list[ComparedMetric]:
    """Return the metrics that fell, the worst verdict first, then those that rose."""
    if page.compared is None:
        return []
    order: Sequence[Tone] = ("worse", "doubtful", "better", "plain")
    moved = (metric for metric in moved_metrics(page.compared) if metric.figures["change"] not in ("=", NO_VALUE))
    return sorted(moved, key=lambda metric: order.index(metric.tone))


def no_moves(page: PageRun) -> str:
    """Return the sentence shown if no metric moved; it counts the metrics that have no value in this run only."""
    metrics = page.compared["metrics"] if page.compared else {}
    unmeasured = sum(metric["verdict"] == "unmeasured" for metric in metrics.values())
    if not unmeasured:
        return "No metric moved."
    without_value = "1 metric has" if unmeasured == 1 else f"{unmeasured} metrics have"
    return f"{without_value} no value in this run, and had one before."


def equal_settings(page: PageRun) -> int:
    """Return the number of settings that are the same in both runs."""
    if page.before is None or page.before.config is None or page.side.config is None:
        return 0
    before = flat_settings(page.before.config)
    after = flat_settings(page.config)
    return sum(name in before and before[name] == value for name, value in after.items())
