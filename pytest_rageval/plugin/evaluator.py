"""The `rageval` fixture, which evaluates a case in a test of your own, and a case's verdict in pytest's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.outcomes import NOTHING_SCORED, REPORT, known_failure, unmeasured
from pytest_rageval.engine import Evaluation
from pytest_rageval.errors import GateFailure
from pytest_rageval.model import Answer, CaseResult, EvalCase
from pytest_rageval.plan import Plan
from pytest_rageval.render.text.failure import failure_text
from pytest_rageval.text import printable

RESULTS = pytest.StashKey[list[Evaluation]]()
"""The evaluations of an item's test, to be recorded with the test's outcome."""


@dataclass(frozen=True)
class Evaluated:
    """One case, asked, judged and scored."""

    result: CaseResult
    _assert_gates: Callable[[CaseResult], None]

    @property
    def scores(self) -> Mapping[str, float]:
        """Return values by name, as in `scores["recall_any@5"]`; metrics that are not applicable are in `skipped`."""
        return self.result.scores

    @property
    def skipped(self) -> Mapping[str, str]:
        """Return by name why metrics have no value here."""
        return self.result.skipped_metrics

    @property
    def answer(self) -> Answer:
        """Return the system's answer."""
        assert self.result.observation is not None
        return self.result.observation.answer

    def assert_gates(self) -> None:
        """Fail (or xfail, for a known failure) with every gate that does not hold."""
        self._assert_gates(self.result)


class Evaluator:
    """Evaluates cases on demand with the target and judge that the test's fixtures gave."""

    def __init__(
        self,
        node: pytest.Item,
        evaluate: Callable[[EvalCase], Evaluation],
        assert_gates: Callable[[CaseResult], None],
    ) -> None:
        self._node, self._evaluate, self._assert_gates = node, evaluate, assert_gates

    def evaluate(self, case: EvalCase) -> Evaluated:
        """Ask, judge and score; a failure to ask or judge fails the test in one line."""
        evaluation = self._evaluate(case)
        self._node.stash.setdefault(RESULTS, []).append(evaluation)
        result = evaluation.overall
        if result.error is not None:
            pytest.fail(printable(f"{result.error.kind}: {result.error.message}"), pytrace=False)
        return Evaluated(result, self._assert_gates)


def assert_gates(result: CaseResult, plan: Plan, baseline: Side | None) -> None:
    """Raise what pytest understands, unless all gates pass."""
    __tracebackhide__ = True
    if result.failed_gates:
        reason = known_failure(result, plan, baseline)
        if reason:
            pytest.xfail(f"{reason}: " + "; ".join(map(str, result.failed_gates)))
        raise GateFailure(failure_text(result))
    if reason := unmeasured(result, baseline):
        if plan.settings.known_failures == "report":
            pytest.xfail(f"{REPORT}: {reason}")
        raise GateFailure(failure_text(result, reason))
    if result.outcome == "skipped":
        pytest.skip(result.reason or NOTHING_SCORED)
