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

from pytest_rageval.cases.gold_places import unwinnable_line
from pytest_rageval.comparison.baseline import Side, write_baseline
from pytest_rageval.comparison.compared_sides import Comparison, compare_with_baseline
from pytest_rageval.comparison.gates_now import GATES
from pytest_rageval.comparison.notes import comparison_notes, doubt_notes
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_reasons import METRIC_FAILED
from pytest_rageval.comparison.verdict_sentence import (
    run_verdict,
)
from pytest_rageval.gates.gate import doubtful_limits
from pytest_rageval.io.atomic import read_json, write_json
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.index_coverage import not_understood
from pytest_rageval.run.end_checks import run_problems
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate, metric_errors
from pytest_rageval.runs.columns import CaseColumns, write_scores
from pytest_rageval.runs.config import flat_names, hardware, observed, reported, stated_otherwise
from pytest_rageval.runs.decision_hash import gates_in_effect
from pytest_rageval.runs.folder import write_metrics
from pytest_rageval.runs.judge_notes import failure_note, judge_notes, served_change, served_names
from pytest_rageval.runs.reader import CONFIG, METRICS
from pytest_rageval.runs.record_seal import RECORDED
from pytest_rageval.runs.reservations import RERUN, judge_left_out, reruns, still_left_out
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.row import Row, cases_of, flagged, in_order
from pytest_rageval.text import counted

INTERRUPTED = "baseline not updated: the session was interrupted; run it to its end"
KEPT = ("run_id", "timestamp", "concurrency", "hardware")
"""Keys of `volatile` about the asking, which re-scoring keeps; the others follow from the records."""


@dataclass(frozen=True)
class Finished:
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

    @cached_property
    def cases(self) -> CaseColumns:
        """Outcomes and scores by case key."""
        return CaseColumns.of_rows(self.rows)

    @property
    def is_partial(self) -> bool:
        return bool(self.metrics["partial"])


def finish(writer: RunWriter, plan: Plan, extent: Extent, baseline: Side | None, baseline_file: Path) -> Finished:
    """Decide the run's verdict from its records, and write it. Same rows, same bytes, except for the key `volatile`.

    metrics.json is written last, since it marks the end of a run.
    """
    finished = conclude(writer, plan, extent, baseline)
    if plan.settings.update_baseline:
        finished = _with_verdict(
            _with_baseline(finished, plan, extent, baseline_file, writer.folder.path), plan, extent
        )
    write_json(writer.folder.path / CONFIG, {**finished.config, RECORDED: writer.seal()})
    write_scores(writer.folder.path, finished.cases)
    writer.folder.log(f"finished: {counted(len(finished.rows), 'case')}, {finished.metrics['outcomes']}")
    write_metrics(writer.folder.path / METRICS, finished.metrics)
    if extent.earlier is None or is_last_run(extent.earlier, writer.folder.reports):
        write_metrics(writer.folder.reports / METRICS, finished.metrics)
    return finished


def conclude(writer: RunWriter, plan: Plan, extent: Extent, baseline: Side | None) -> Finished:
    """Return the run's verdict; write nothing."""
    trials = in_order(writer.rows.values())
    rows = cases_of(trials)
    recorded = _recorded(trials, plan)
    info = _info(writer, plan, extent, rows, recorded)
    metrics = aggregate(trials, plan, info)
    if extent.is_judge_left_out:
        metrics |= judge_left_out(rows)
    elif extent.earlier is not None and metrics["judge"] is None:
        metrics |= still_left_out(extent.earlier)
    if info.is_partial:
        metrics["selection"] = _selection(extent, recorded)
    stated = writer.config["settings"].get("versions") or {}
    config = {
        **writer.config,
        **observed(
            stated,
            reported(writer.versions, writer.coverage),
            writer.coverage,
            ", ".join(served_names(row.judge for row in trials)) or None,
        ),
        "reported_fields": sorted(writer.reported),
    }
    config |= flat_names(config) | {GATES: gates_in_effect(rows, plan)}
    comparison = compare_with_baseline(metrics, rows, baseline, plan, config) if baseline is not None else None
    metrics["comparison"] = comparison.content if comparison else None
    metrics["gates"] += comparison.gates if comparison else ()
    earlier = extent.earlier or {}
    if "judge_reliability" in earlier and earlier["judge"] == metrics["judge"]:
        # The judge's spot check stands, since the same judge has judged with the same prompts.
        metrics["judge_reliability"] = earlier["judge_reliability"]
        metrics["aggregate_metrics"]["judge_reliability"] = earlier["aggregate_metrics"]["judge_reliability"]
    lost = sorted(key for key in extent.expected if key not in recorded)
    problems = dict(run_problems(plan, extent, rows, comparison, lost, is_partial=info.is_partial))
    problems |= {f"{METRIC_FAILED}{name}": error for name, error in metric_errors(metrics["metrics"]).items()}
    # A failing run may be accepted, but nothing advises it.
    is_failing = bool(problems) or metrics["outcomes"]["failed"] > 0
    metrics["can_be_baseline"] = not is_failing and _refusal(plan, extent, metrics) is None
    served = served_change(baseline.config, config) if baseline is not None and baseline.config else None
    notes = (
        *([served] if served else ()),
        *([problems["verdicts"]] if "verdicts" in problems else ()),  # hooks may change the report that says it, too
        *stated_otherwise(stated, reported(writer.versions, writer.coverage)),
        *_notes(writer, trials, config, plan, comparison),
        *doubt_notes(metrics, writer.place_flags),
        *(() if info.is_partial else _unscored(plan, metrics)),
    )
    is_unfinished = bool(lost or extent.unreached)
    finished = Finished(metrics, config, rows, writer.folder.path, problems, notes, is_unfinished)
    return _with_verdict(finished, plan, extent)


def _with_verdict(finished: Finished, plan: Plan, extent: Extent) -> Finished:
    """Add the verdict, which every report shows in the same words."""
    metrics, settings = finished.metrics, plan.settings
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
    return replace(finished, metrics={**metrics, "verdict": run_verdict(facts).content() | decided})


def _recorded(trials: Sequence[Row], plan: Plan) -> Collection[str]:
    """Return the keys of cases with a record of every trial; an error of one trial is that of the case."""
    if plan.settings.repeat == 1:
        return {row.key for row in trials}
    recorded = set()
    for key, of_case in groupby(trials, attrgetter("key")):
        outcomes = [row.outcome for row in of_case]
        if len(outcomes) >= plan.settings.repeat or "error" in outcomes:
            recorded.add(key)
    return recorded


def _selection(extent: Extent, recorded: Collection[str]) -> dict[str, Any]:
    """Return how many cases a partial run has records of, and how they were selected."""
    if extent.earlier is not None:
        return {**extent.earlier.get("selection", {}), "recorded": len(recorded)}
    return {
        "cases": len(extent.every) + sum(key not in extent.every for key in extent.expected),
        "selected": len(extent.expected),
        "recorded": len(recorded),
        "by": dict(extent.selection),
    }


def is_last_run(metrics: Mapping[str, Any], reports: Path) -> bool:
    """Return True if the metrics.json among the reports is of this run, or does not exist."""
    path = reports / "metrics.json"
    if not path.exists():
        return True
    return bool(read_json(path, "reports").get("volatile", {}).get("run_id") == metrics["volatile"].get("run_id"))


def _with_baseline(finished: Finished, plan: Plan, extent: Extent, file: Path, folder: Path) -> Finished:
    """Write the run as the new baseline, or add the problem that prevents it."""
    if extent.is_interrupted:  # then problems are not shown
        return replace(finished, notes=(*finished.notes, INTERRUPTED))
    refusal = _refusal(plan, extent, finished.metrics)
    if refusal is not None:
        return replace(finished, problems={**finished.problems, "update-baseline": refusal})
    metrics = finished.metrics
    write_baseline(file, metrics, finished.rows, finished.config, folder)
    failing = metrics["outcomes"]["failed"] + metrics["outcomes"]["xfailed"]
    flipped = metrics["comparison"]["flipped_to_fail"] if metrics["comparison"] else []
    newly = f", {len(flipped)} of them new: {listed(flipped)}" if flipped else ""
    note = f"baseline updated: {file.name} with {counted(metrics['total_tests'], 'case')}, {failing} failing{newly}"
    return replace(finished, notes=(*finished.notes, note))


def _info(writer: RunWriter, plan: Plan, extent: Extent, rows: Sequence[Row], recorded: Collection[str]) -> RunInfo:
    earlier = extent.earlier
    keys = {row.key for row in rows}
    if earlier:
        # A run that was cut short has no record of some selected cases.
        planned = max((metric.get("n_expected", 0) for metric in earlier["metrics"].values()), default=0)
        unreached = max(0, planned - int(earlier["total_tests"]))
        volatile = {name: earlier["volatile"].get(name) for name in KEPT}
    else:
        timestamp = datetime.now(UTC).isoformat(timespec="seconds")
        described = (writer.folder.run_id, timestamp, plan.settings.concurrency, hardware())
        unreached, volatile = 0, dict(zip(KEPT, described, strict=True))
    has_skipped_answers = any(row.outcome == "skipped" and row.error_kind == "missing" for row in rows)
    unrecorded = sum(key not in keys for key in extent.expected)
    is_partial = bool(
        extent.unreached
        or extent.has_unread_files
        or has_skipped_answers
        or any(key not in recorded for key in extent.every)
        or any(key not in recorded for key in extent.expected)
        or (earlier and earlier["partial"])
    )
    return RunInfo(
        config_hash=writer.config["config_hash"],
        dataset_version=writer.config["dataset_version"],
        expected=len(rows) + unrecorded + unreached,
        is_partial=is_partial,
        coverage=writer.coverage,
        volatile=volatile,
    )


def _notes(
    writer: RunWriter, trials: Sequence[Row], config: Mapping[str, Any], plan: Plan, comparison: Comparison | None
) -> Iterator[str]:
    if writer.has_changing_coverage:
        yield "the system changed what it says of its index during the run: was it re-indexed?"
    if (problem := not_understood(writer.coverage)) is not None:
        yield problem
    if (line := unwinnable_line(config)) is not None:
        yield line
    if comparison and comparison.problems and plan.settings.ignore_invariants:
        yield "compared in spite of: " + "; ".join(map(str, comparison.problems))
    if comparison:
        yield from comparison_notes(comparison.content, len(cases_of(trials)))
    systems = {config["llm_model"], *writer.model_names}
    if writer.unread:
        yield (
            f"the system sends {' and '.join(map(repr, sorted(writer.unread)))} at the top level of its answers, where "
            "nothing is read; send it under 'debug', or name it in [tool.rageval.target.mapping.response]"
        )
    if again := reruns(trials).get(RERUN):
        yield f"passed only when run again: {listed(again)}"
    yield from doubtful_limits([*plan.case_gates, *plan.run_gates])
    yield from judge_notes(config, systems, [row.judge for row in trials], flagged(trials))
    yield from filter(None, [failure_note(flagged(trials, "failed"))])
    yield from writer.warnings


def _unscored(plan: Plan, metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the named metrics that have no value for any case, which is easily overlooked."""
    named = {*(plan.settings.enabled or ())}
    measures = [measure for measure in plan.measures if named & {measure.name, measure.metric.name}]
    counts = {measure.name: metrics["metrics"][measure.name] for measure in measures if not measure.metric.run_level}
    unscored = [name for name, count in counts.items() if count["n_not_applicable"] and not count["n_scored"]]
    if unscored:
        yield f"{listed(unscored)}: named to be scored, and no case has a value; each case says why (rageval explain)"


def _refusal(plan: Plan, extent: Extent, metrics: Mapping[str, Any]) -> str | None:
    """Return why this run cannot become the baseline. A partial run never can; errors can be forced."""
    if extent.uncounted:
        return "baseline not updated: pytest did not count all verdicts (rageval-gates::verdicts)"
    if metrics["partial"]:
        return "baseline not updated: the run is partial: some cases have no result; run them all"
    if plan.settings.force:
        return None
    errors, unknown = metrics["outcomes"]["error"], not_measured(metrics)
    unjudged = failure_note(metrics["judge_errors"])
    if errors:
        why = f"{counted(errors, 'case')} ended in errors"
    elif unjudged:
        why = unjudged
    elif plan.settings.retrieval_only:
        why = "the run is retrieval-only, so that no gate of an answer was measured"
    elif unknown:
        failed = counted(len(unknown), "case that failed was", "cases that failed were")
        why = f"{failed} not measured: {listed(unknown)}"
    else:
        return None
    return f"baseline not updated: {why}; --rageval-force accepts it all the same"


def not_measured(metrics: Mapping[str, Any]) -> Sequence[str]:
    """Return the cases that failed in the baseline by gates that this run did not measure."""
    return list((metrics["comparison"] or {}).get("not_measured", ()))
