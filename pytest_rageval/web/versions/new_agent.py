"""What an agent begins with: the metrics that are on in it, and their thresholds."""

from __future__ import annotations

from pytest_rageval.metrics.registry import Registry
from pytest_rageval.web.versions.agent import DEFAULT_THRESHOLD, Agent
from pytest_rageval.web.versions.judge_prompts import MAIN_RUBRIC

FIRST_METRICS = (MAIN_RUBRIC, "faithfulness")
"""On in a new agent, each with the default threshold."""
OFF_AT_FIRST = ("token_f1", "groundedness", "correctness")
"""Off in a new agent although runs of the command begin with them: token_f1 holds it against a right answer
that it says more than the reference, and the other two would have a judge paid for nearly what FIRST_METRICS ask."""


def new_agent(registry: Registry, name: str = "", description: str = "") -> Agent:
    """An agent as it is begun: the demo system, held to two judged metrics."""
    on = [metric.name for metric in registry if metric.on_by_default or metric.name in FIRST_METRICS]
    return Agent(
        name=name, description=description, target="demo",
        metrics=tuple(metric for metric in on if metric not in OFF_AT_FIRST),
        thresholds=dict.fromkeys(FIRST_METRICS, DEFAULT_THRESHOLD),
    )  # fmt: skip
