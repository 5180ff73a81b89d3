"""Hooks that a conftest.py or another plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_rageval.metrics.registry import Metric
    from pytest_rageval.model import CaseResult, EvalCase


def pytest_rageval_metrics(config: pytest.Config) -> list[Metric] | None:
    """Return metrics of your own, made with `@metric`.

    Called once per process, before the first case is scored. An exception ends the session with a usage error.
    """


@pytest.hookspec(firstresult=True)
def pytest_rageval_case(case: EvalCase) -> EvalCase | None:
    """Return a changed case to ask instead, or None to leave it as it is.

    Called once for each case when its file is read, in every process, also for files that are not collected. A
    conftest.py in a sub-folder sees that folder's cases. The changed case replaces the original everywhere. An
    exception is a problem of the case file. Commands of `rageval` that only read case files do not call it.
    """


def pytest_rageval_result(item: pytest.Item, result: CaseResult) -> None:
    """Look at the final result of a case, on the process that made it, before it is recorded.

    A conftest.py in a sub-folder sees that folder's cases. An exception is an error of the case.
    """


def pytest_rageval_run_config(config: pytest.Config, run_config: dict[str, Any]) -> None:
    """Add keys to `config.json`, to know them later.

    Called once, on the controlling process, before any case. An exception ends the session with a usage error.
    """
