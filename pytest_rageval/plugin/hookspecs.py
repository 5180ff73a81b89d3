"""Hooks that a conftest.py or another plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_rageval.metrics.registry import Metric
    from pytest_rageval.model import CaseResult, EvalCase


def pytest_rageval_metrics(config: pytest.Config) -> list[Metric] | None:
    """Metrics of your own, made with `@metric`. Called once per process, before the first case is scored."""


@pytest.hookspec(firstresult=True)
def pytest_rageval_case(case: EvalCase) -> EvalCase | None:
    """Change a case before it is asked: return the case to use instead, None to leave it.

    Called once a case when its file is read, in every process, for files that are not collected too. A conftest.py in
    a sub-folder sees that folder's cases.
    """


def pytest_rageval_result(item: pytest.Item, result: CaseResult) -> None:
    """Look at a case's result when it is final, on the process that made it, before it is recorded."""


def pytest_rageval_run_config(config: pytest.Config, run_config: dict[str, Any]) -> None:
    """Add what you want to know later to config.json. Called once, on the controlling process, before any case."""
