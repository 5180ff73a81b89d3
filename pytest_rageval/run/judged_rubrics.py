"""The rubrics of a run: those that its measures need, and those of the project itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_rageval.config.settings import Settings
from pytest_rageval.judges.judging import ASKED_WITH, CLASSIFIER
from pytest_rageval.judges.rubrics import Rubric, check_rubrics
from pytest_rageval.metrics.registry import Measure


def rubrics_to_ask(measures: Iterable[Measure]) -> tuple[str, ...]:
    """Return the rubrics that these measures need, each once."""
    rubrics: dict[str, None] = {}
    for measure in measures:
        rubrics |= dict.fromkeys(measure.metric.rubrics)
    return tuple(rubrics)


def with_companions(rubrics: Iterable[str]) -> list[str]:
    """Return the rubrics, each followed by those judged along with it, once each."""
    names: dict[str, None] = {}
    for rubric in rubrics:
        names |= dict.fromkeys((rubric, *ASKED_WITH.get(rubric, ()), CLASSIFIER))
    return list(names)


def own_rubrics(settings: Settings, root: Path) -> dict[str, Rubric]:
    """Read the rubrics of the project's folder by name; raise all problems of its files as one SettingsError."""
    if settings.rubrics is None:
        return {}
    return check_rubrics(root / settings.rubrics, settings.rubrics)
