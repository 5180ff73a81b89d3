"""The `rageval` fixture: evaluate a case in a test of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.engine import Evaluation, evaluation
from pytest_rageval.model import Answer, CaseResult, EvalCase
from pytest_rageval.plugin.case_verdict import assert_gates
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession

RESULTS = pytest.StashKey[list[Evaluation]]()
"""On an item: what its test evaluated, to be recorded with the test's outcome."""


@dataclass(frozen=True)
class Evaluated:
    """One case, asked, judged and scored."""

    result: CaseResult
    _run: EvalSession

    @property
    def scores(self) -> Mapping[str, float]:
        """Values by name, as in `scores["recall_any@5"]`; a metric that is not applicable is in `skipped` instead."""
        return self.result.scores

    @property
    def skipped(self) -> Mapping[str, str]:
        """Why metrics have no value here, by name."""
        return self.result.skipped_metrics

    @property
    def answer(self) -> Answer:
        """What the system gave back."""
        assert self.result.observation is not None
        return self.result.observation.answer

    def assert_gates(self) -> None:
        """Fail (or xfail, for a known failure) with every gate that does not hold."""
        assert_gates(self.result, self._run)


class Evaluator:
    """Evaluates cases on demand with the target and judge that the test's fixtures gave."""

    def __init__(self, run: EvalSession, node: pytest.Item, target: object, judge: object, cache: object) -> None:
        self._run, self._node = run, node
        self._target, self._judge = run.stretches.parts(target, judge, cache)

    def evaluate(self, case: EvalCase) -> Evaluated:
        """Ask, judge and score; a failure to ask or judge fails the test in one line."""
        self._run.check_asking_allowed()
        trials = self._run.trials(case, self._node.nodeid)
        found = evaluation(trials, self._run.ahead.now(trials, self._target, self._judge), self._run.plan)
        self._node.stash.setdefault(RESULTS, []).append(found)
        result = found.overall
        if result.error is not None:
            pytest.fail(printable(f"{result.error.kind}: {result.error.message}"), pytrace=False)
        return Evaluated(result, self._run)
