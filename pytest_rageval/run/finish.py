"""The end of a run: aggregate, compare with the baseline, gate; write metrics.json and, if requested, the baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Side, write_baseline
from pytest_rageval.comparison.compared_causes import with_comparison
from pytest_rageval.comparison.compared_sides import Comparison, compare_with_baseline
from pytest_rageval.comparison.gates_now import GATES
from pytest_rageval.comparison.notes import comparison_notes, doubt_notes
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_reasons import METRIC_FAILED
from pytest_rageval.comparison.verdict_sentence import run_verdict
from pytest_rageval.io.atomic import read_json, write_json
from pytest_rageval.io.suggestions import listed
from pytest_rageval.run.acceptance import refusal_of_baseline
from pytest_rageval.run.end_checks import judging_problem, run_problems
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish_notes import answer_notes, system_notes, unscored_notes
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate, metric_errors
from pytest_rageval.runs.columns import CaseColumns, write_scores
from pytest_rageval.runs.config import flat_names, hardware, observed, reported, stated_otherwise
from pytest_rageval.runs.decision_hash import gates_in_effect
from pytest_rageval.runs.folder import write_metrics
from pytest_rageval.runs.judge_notes import served_change, served_names
from pytest_rageval.runs.reader import CONFIG, METRICS, StoredRun
from pytest_rageval.runs.record_seal import RECORDED
from pytest_rageval.runs.reservations import LEFT_OUT, judge_left_out, still_left_out
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.row import Row, cases_of, in_order
from pytest_rageval.text import counted

INTERRUPTED = "baseline not updated: the session was interrupted; run it to its end"
KEPT = ("run_id", "timestamp", "concurrency", "hardware")
"""Keys of `volatile` about the asking, which re-scoring keeps; the others follow from the records."""


@dataclass(frozen=True)
class FinishedRun:
    """A finished run. `problems` by name fail the run; `notes` are for people."""

    metrics: Mapping[str, Any]
    config: Mapping[str, Any]
    rows: Sequence[Row]
    """In order, one a case."""
    folder: Path
    problems: Mapping[str, str]
    notes: tuple[str, ...]
    is_unfinished: bool = False
    """True if selected cases have no record: then the run can be resumed."""
    is_accepted: bool = False
    """True if the run is to become the baseline; `accept` makes it that."""

    @cached_property
    def cases(self) -> CaseColumns:
        """Outcomes and scores by case key."""
        return CaseColumns.of_rows(self.rows)

    @cached_property
    def stored(self) -> StoredRun:
        """The run as its files hold it, each read once for all its reports."""
        return StoredRun(self.folder)

    @property
    def is_partial(self) -> bool:
        return bool(self.metrics["partial"])


def finish(
    writer: RunWriter, plan: Plan, extent: Extent, baseline: Side | None, baseline_name: str = "baseline.json"
) -> FinishedRun:
    """Decide the run's verdict from its records, and write it. Same rows, same bytes, except for the key `volatile`.

    metrics.json is written last, since it marks the end of a run. The baseline is replaced by `accept`.
    """
    finished = conclude(writer, plan, extent, baseline)
    if plan.settings.update_baseline:
        finished = _with_acceptance(finished, plan, extent, baseline_name)
        # A refusal of the baseline is a problem of the run, and changes its verdict.
        finished = _with_verdict(finished, plan, extent)
    write_json(writer.folder.path / CONFIG, {**finished.config, RECORDED: writer.seal()})
    write_scores(writer.folder.path, finished.cases)
    writer.folder.log(f"finished: {counted(len(finished.rows), 'case')}, {finished.metrics['outcomes']}")
    write_metrics(writer.folder.path / METRICS, finished.metrics)
    if extent.earlier is None or is_last_run(extent.earlier, writer.folder.reports):
        write_metrics(writer.folder.reports / METRICS, finished.metrics)
    return finished


def accept(finished: FinishedRun, baseline_file: Path) -> None:
    """Replace the baseline by a run that was accepted as the new one; do nothing for others.

    This is the last step, after the reports: a run that is killed before it compares with the same baseline when it is
    resumed, and so comes to the same verdict.
    """
    if finished.is_accepted:
        write_baseline(baseline_file, finished.metrics, finished.rows, finished.config, finished.folder)


def fail_judging(writer: RunWriter, plan: Plan, extent: Extent, finished: FinishedRun) -> FinishedRun:
    """Decide a finished run again whose answers could not be submitted to its judge; write its metrics.json."""
    metrics = {**finished.metrics, **judge_left_out(finished.rows, LEFT_OUT), "can_be_baseline": False}
    problems = {**finished.problems, **judging_problem(metrics)}
    failed = _with_verdict(replace(finished, metrics=metrics, problems=problems), plan, extent)
    write_metrics(writer.folder.path / METRICS, failed.metrics)
    write_metrics(writer.folder.reports / METRICS, failed.metrics)
    return failed


def conclude(writer: RunWriter, plan: Plan, extent: Extent, baseline: Side | None) -> FinishedRun:
    """Return the run's verdict; write nothing."""
    trials = in_order(writer.rows.values())
    rows = cases_of(trials)
    recorded = _recorded(trials, plan)
    info = _info(writer, plan, extent, rows, recorded)
    measured = _measured(trials, rows, plan, extent, info, recorded)
    config = _observed_config(writer, plan, trials, rows)
    comparison = None
    if baseline is not None:
        comparison = compare_with_baseline(measured, rows, baseline, plan, config)
    compared = with_comparison(measured, comparison, rows, baseline, writer.folder)
    metrics = _with_spot_check(compared, extent.earlier or {})
    lost = sorted(key for key in extent.expected if key not in recorded)
    problems = dict(run_problems(plan, extent, rows, comparison, lost, is_partial=info.is_partial))
    for name, error in metric_errors(metrics["metrics"]).items():
        problems[f"{METRIC_FAILED}{name}"] = error
    problems |= judging_problem(metrics)
    problems = plan.mask.value(problems)
    metrics["can_be_baseline"] = _is_advised_as_baseline(plan, extent, metrics, problems)
    finished = FinishedRun(
        metrics,
        config,
        rows,
        writer.folder.path,
        problems,
        notes=(),
        is_unfinished=bool(lost or extent.unreached),
    )
    notes = plan.mask.value(tuple(_notes(finished, writer, plan, trials, comparison, baseline)))
    return _with_verdict(replace(finished, notes=notes), plan, extent)


def _measured(
    trials: Sequence[Row],
    rows: Sequence[Row],
    plan: Plan,
    extent: Extent,
    info: RunInfo,
    recorded: Collection[str],
) -> dict[str, Any]:
    """Return metrics.json as far as it follows from this run alone."""
    # The description and gates may hold a credential, as records may not.
    metrics = plan.mask.value(aggregate(trials, plan, info))
    if extent.unjudged_because is not None:
        metrics |= judge_left_out(rows, extent.unjudged_because)
    elif extent.earlier is not None and metrics["judge"] is None:
        metrics |= still_left_out(extent.earlier)
    if info.is_partial:
        metrics["selection"] = _selection(extent, recorded)
    return metrics


def _observed_config(writer: RunWriter, plan: Plan, trials: Sequence[Row], rows: Sequence[Row]) -> dict[str, Any]:
    """Return config.json with what the answers and judgements revealed."""
    served = ", ".join(served_names(row.judge for row in trials)) or None
    by_system = reported(writer.versions, writer.coverage)
    config = {
        **writer.config,
        **observed(_stated_versions(writer), by_system, writer.coverage, served),
        "reported_fields": sorted(writer.reported),
    }
    config |= flat_names(config)
    config[GATES] = gates_in_effect(rows, plan)
    return plan.mask.value(config)


def _stated_versions(writer: RunWriter) -> Mapping[str, Any]:
    """Return the versions that the project states in its settings."""
    return writer.config["settings"].get("versions") or {}


def _with_spot_check(metrics: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the spot check of the judge from the earlier metrics.json if the same judge used the same prompts."""
    if "judge_reliability" not in earlier or earlier["judge"] != metrics["judge"]:
        return metrics
    averages = {
        **metrics["aggregate_metrics"],
        "judge_reliability": earlier["aggregate_metrics"]["judge_reliability"],
    }
    return {**metrics, "judge_reliability": earlier["judge_reliability"], "aggregate_metrics": averages}


def _is_advised_as_baseline(
    plan: Plan, extent: Extent, metrics: Mapping[str, Any], problems: Mapping[str, str]
) -> bool:
    """Return True if the reports may advise to accept the run. A failing run can be accepted, but is not advised."""
    if problems or metrics["outcomes"]["failed"]:
        return False
    return refusal_of_baseline(plan, extent, metrics) is None


def _with_verdict(finished: FinishedRun, plan: Plan, extent: Extent) -> FinishedRun:
    """Add the verdict, which every report shows in the same words."""
    metrics = finished.metrics
    settings = plan.settings
    is_waived = settings.allow_regressions or settings.update_baseline
    facts = VerdictFacts(
        metrics,
        metrics["comparison"],
        metrics["gates"],
        finished.problems,
        extent.exit_status,
        is_waived=is_waived,
        known_failures=settings.known_failures,
    )
    decided: dict[str, Any] = {"known_failures": settings.known_failures}
    if extent.exit_status and not (facts.outcome("failed") or facts.outcome("error")):
        decided["exit_status"] = extent.exit_status  # other tests failed, which no comparison shows
    verdict = run_verdict(facts).content() | decided
    return replace(finished, metrics={**metrics, "verdict": verdict})


def _recorded(trials: Sequence[Row], plan: Plan) -> Collection[str]:
    """Return the keys of cases with a record of every trial; an error of one trial is that of the case."""
    if plan.settings.repeat == 1 and all(row.records is None for row in trials):
        return {row.key for row in trials}
    recorded = set()
    for key, rows in groupby(trials, attrgetter("key")):
        of_case = list(rows)
        outcomes = [row.outcome for row in of_case]
        needed = of_case[0].records or plan.settings.repeat
        if len(outcomes) >= needed or "error" in outcomes:
            recorded.add(key)
    return recorded


def _selection(extent: Extent, recorded: Collection[str]) -> dict[str, Any]:
    """Return how many cases a partial run has records of, and how they were selected."""
    if extent.earlier is not None:
        return {**extent.earlier.get("selection", {}), "recorded": len(recorded)}
    unlisted = sum(key not in extent.every for key in extent.expected)
    return {
        "cases": len(extent.every) + unlisted,
        "selected": len(extent.expected),
        "recorded": len(recorded),
        "by": dict(extent.selection),
    }


def is_last_run(metrics: Mapping[str, Any], reports: Path) -> bool:
    """Return True if the metrics.json among the reports is of this run, or does not exist."""
    path = reports / "metrics.json"
    if not path.exists():
        return True
    written = read_json(path, "reports").get("volatile", {})
    return bool(written.get("run_id") == metrics["volatile"].get("run_id"))


def _with_acceptance(finished: FinishedRun, plan: Plan, extent: Extent, name: str) -> FinishedRun:
    """Accept the run as the new baseline of this name, or add the problem that prevents it."""
    if extent.is_interrupted:  # then problems are not shown
        return replace(finished, notes=(*finished.notes, INTERRUPTED))
    refusal = refusal_of_baseline(plan, extent, finished.metrics)
    if refusal is not None:
        return replace(finished, problems={**finished.problems, "update-baseline": refusal})
    metrics = finished.metrics
    failing = metrics["outcomes"]["failed"] + metrics["outcomes"]["xfailed"]
    note = f"baseline updated: {name} with {counted(metrics['total_tests'], 'case')}, {failing} failing"
    comparison = metrics["comparison"]
    if comparison and comparison["flipped_to_fail"]:
        flipped = comparison["flipped_to_fail"]
        note += f", {len(flipped)} of them new: {listed(flipped)}"
    return replace(finished, notes=(*finished.notes, note), is_accepted=True)


def _info(writer: RunWriter, plan: Plan, extent: Extent, rows: Sequence[Row], recorded: Collection[str]) -> RunInfo:
    keys = {row.key for row in rows}
    unrecorded = sum(key not in keys for key in extent.expected)
    earlier = extent.earlier
    if earlier:
        # A run that was cut short has no record of some selected cases.
        planned = max((metric.get("n_expected", 0) for metric in earlier["metrics"].values()), default=0)
        unreached = max(0, planned - int(earlier["total_tests"]))
        volatile = {name: earlier["volatile"].get(name) for name in KEPT}
    else:
        unreached = 0
        volatile = {
            "run_id": writer.folder.run_id,
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "concurrency": plan.settings.concurrency,
            "hardware": hardware(),
        }
        assert volatile.keys() == {*KEPT}
    return RunInfo(
        config_hash=writer.config["config_hash"],
        dataset_version=writer.config["dataset_version"],
        expected=len(rows) + unrecorded + unreached,
        is_partial=_is_partial(extent, rows, recorded),
        coverage=writer.coverage,
        volatile=volatile,
    )


def _is_partial(extent: Extent, rows: Sequence[Row], recorded: Collection[str]) -> bool:
    """Return True if any case is known or suspected to have no result."""
    if extent.unreached or extent.has_unread_files:
        return True
    if extent.earlier and extent.earlier["partial"]:
        return True
    if any(row.outcome == "skipped" and row.error_kind == "missing" for row in rows):
        return True  # the target had no stored answer to a case
    return any(key not in recorded for key in (*extent.every, *extent.expected))


def _notes(
    finished: FinishedRun,
    writer: RunWriter,
    plan: Plan,
    trials: Sequence[Row],
    comparison: Comparison | None,
    baseline: Side | None,
) -> Iterator[str]:
    config = finished.config
    if baseline is not None and baseline.config:
        served = served_change(baseline.config, config)
        if served is not None:
            yield served
    if "verdicts" in finished.problems:
        # The hooks that changed the reports of cases may change the report of this problem, too.
        yield finished.problems["verdicts"]
    yield from stated_otherwise(_stated_versions(writer), reported(writer.versions, writer.coverage))
    yield from system_notes(writer, config)
    if comparison is not None:
        if comparison.problems and plan.settings.ignore_invariants:
            yield "compared in spite of: " + "; ".join(map(str, comparison.problems))
        yield from comparison_notes(comparison.content, len(finished.rows))
    yield from answer_notes(writer, plan, trials, finished.rows, finished.metrics, config)
    yield from writer.warnings
    yield from doubt_notes(finished.metrics, writer.place_flags)
    if not finished.is_partial:
        yield from unscored_notes(plan, finished.metrics)
