"""Measures whose values are taken from a run's records: what cannot, or is not to, be computed anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_rageval.metrics.registry import Measure, is_described
from pytest_rageval.model import NotApplicable, Observation, RunFacts, Score
from pytest_rageval.plan import Plan

Record = Mapping[str, Any]
Stays = Callable[[Measure], bool]


def is_described_measure(measure: Measure) -> bool:
    """Is this a metric of the project's own, of which the run knows the description only?"""
    return is_described(measure.metric)


def recorded_measures(plan: Plan, records: Sequence[Record], stays: Stays) -> tuple[Measure, ...] | None:
    """The plan's measures, those that stay with their values from the records of a case's trials.

    None where one of these has neither a value nor a reason in a record: it raised an error, which stays as well.
    """
    staying = {measure.name for measure in plan.measures if stays(measure)}
    if not all(staying <= record["scores"].keys() | record["skipped_metrics"].keys() for record in records):
        return None
    return tuple(_recorded(measure, records) if measure.name in staying else measure for measure in plan.measures)


def _recorded(measure: Measure, records: Sequence[Record]) -> Measure:
    by_trial = {record["trial"]: record for record in records}
    name = measure.name

    def recorded(obs: Observation, k: int | None = None) -> Score | NotApplicable:  # noqa: ARG001 as metrics are called
        record = by_trial[obs.trial]
        if name in record["scores"]:
            return Score(record["scores"][name], record["score_details"].get(name, {}))
        return NotApplicable(record["skipped_metrics"][name], name in record["verdict"].get("unobserved", ()))

    return replace(measure, metric=replace(measure.metric, function=recorded, options={}))


def recorded_run_measures(plan: Plan, metrics: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The plan's measures of the whole run, those of the project's own with their values from a metrics.json."""
    return tuple(
        _recorded_of_run(measure, metrics) if is_described_measure(measure) else measure
        for measure in plan.run_measures
    )


def _recorded_of_run(measure: Measure, metrics: Mapping[str, Any]) -> Measure:
    value = metrics["metrics"].get(measure.name, {}).get("mean")

    def recorded(facts: RunFacts, k: int | None = None) -> Score | NotApplicable:  # noqa: ARG001 as metrics are called
        return NotApplicable("only pytest can compute it") if value is None else Score(value)

    return replace(measure, metric=replace(measure.metric, function=recorded, options={}))
