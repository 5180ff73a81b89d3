"""Notes at the end of a run: what the system did oddly, what was repeated, and what was not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.cases.gold_places import unwinnable_line
from pytest_rageval.gates.gate import doubtful_limits
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.index_coverage import not_understood
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.judge_notes import failure_note, judge_notes
from pytest_rageval.runs.reservations import RERUN, reruns, skip_notes
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.rewritten_follow_ups import rewrite_note
from pytest_rageval.runs.row import Row, cases_of, flagged


def system_notes(writer: RunWriter, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes about the system's index and the golds that it cannot win."""
    if writer.has_changing_coverage:
        yield "the system changed what it says of its index during the run: was it re-indexed?"
    problem = not_understood(writer.coverage)
    if problem is not None:
        yield problem
    line = unwinnable_line(config)
    if line is not None:
        yield line


def answer_notes(
    writer: RunWriter,
    plan: Plan,
    trials: Sequence[Row],
    rows: Sequence[Row],
    metrics: Mapping[str, Any],
    config: Mapping[str, Any],
) -> Iterator[str]:
    """Yield notes about unread fields, repeated cases, rewrites, doubtful limits of gates, and the judge."""
    if writer.unread:
        fields = " and ".join(map(repr, sorted(writer.unread)))
        yield (
            f"the system sends {fields} at the top level of its answers, where "
            "nothing is read; send it under 'debug', or name it in [tool.rageval.target.mapping.response]"
        )
    yield from skip_notes(rows)
    again = reruns(cases_of(trials)).get(RERUN)
    if again:
        yield f"passed only when run again: {listed(again)}"
    rewrites = rewrite_note(metrics, is_wanted=plan.settings.rewrites)
    if rewrites is not None:
        yield rewrites
    yield from doubtful_limits([*plan.case_gates, *plan.run_gates])
    if plan.skipped_gates:
        skipped = listed(list(map(str, plan.skipped_gates)))
        yield f"gates not looked at, since this run leaves out their layer: {skipped}"
    models = {config["llm_model"], *writer.model_names}
    judges = [row.judge for row in trials]
    yield from judge_notes(config, models, judges, flagged(trials))
    failure = failure_note(flagged(trials, "failed"))
    if failure is not None:
        yield failure


def unscored_notes(plan: Plan, metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the named metrics that have no value for any case, which is easily overlooked."""
    named = {*(plan.settings.enabled or ())}
    measures = [measure for measure in plan.measures if named & {measure.name, measure.metric.name}]
    counts = {measure.name: metrics["metrics"][measure.name] for measure in measures if not measure.metric.run_level}
    unscored = [name for name, count in counts.items() if count["n_not_applicable"] and not count["n_scored"]]
    if unscored:
        yield f"{listed(unscored)}: named to be scored, and no case has a value; each case says why (rageval explain)"
