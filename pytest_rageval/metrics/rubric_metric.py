"""L5 Answer: the metric that a rubric of the project's own makes."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics.answer import NO_GOLD_ANSWER
from pytest_rageval.metrics.described import is_described
from pytest_rageval.metrics.judged import judged_score
from pytest_rageval.metrics.registry import Metric, Registry, Scored
from pytest_rageval.model import Observation, Rubric

REFERENCES = frozenset({"reference", "references"})


def rubric_metric(rubric: Rubric) -> Metric:
    """The metric of a rubric: its score, on its scale, with a default gate at 70 % of it."""
    reads_contexts = "contexts" in rubric.variables

    def score(obs: Observation) -> Scored:
        if rubric.variables & REFERENCES and not any(gold.strip() for gold in obs.gold.answers or ()):
            return NO_GOLD_ANSWER
        return judged_score(obs, rubric.name, rubric.scale, from_context=reads_contexts)

    low, high = rubric.scale
    score.__doc__ = (
        f"Judged: the rubric `{rubric.name}` of this project.\n\n"
        f"In {low:g} to {high:g}, higher is better. Not applicable where no answer is recorded, the system abstained, "
        "what the rubric's prompt reads is not there, or no judge scored it."
    )
    return Metric(
        name=rubric.name,
        function=score,
        layer="L5",
        better="higher",
        scale=rubric.scale,
        needs=("answer", f"judge:{rubric.name}"),
        gates=(f"{rubric.name} >= 70% tag L5_{rubric.name}_fail",),
        on_by_default=False,
    )


def with_rubric_metrics(registry: Registry, rubrics: Iterable[Rubric], folder: str | None) -> Registry:
    """The registry with a metric for each of these rubrics that no metric reads yet.

    A rubric with the name of a metric of another kind is a SettingsError. One that a stored run only described becomes
    the metric itself.
    """
    metrics = {metric.name: metric for metric in registry}
    read = {rubric for metric in registry for rubric in metric.rubrics} | _READ_WITHOUT_A_METRIC
    problems = []
    for rubric in rubrics:
        if rubric.name in read:
            continue
        if rubric.name in registry and not is_described(registry[rubric.name]):
            problems.append(
                f"{folder}/{rubric.name}: {registry[rubric.name].name!r} is a metric already, which no judge scores; "
                "rename the file"
            )
        metrics[rubric.name] = rubric_metric(rubric)
    if problems:
        raise SettingsError(*problems)
    return Registry(metrics.values())


_READ_WITHOUT_A_METRIC = frozenset({"claim_split"})
