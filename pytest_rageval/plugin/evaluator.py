"""The `rageval` fixture, which evaluates a case in a test of your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from pytest_rageval.comparison.outcomes import Ending
from pytest_rageval.model import Answer, CaseResult, EvalCase
from pytest_rageval.plugin.items import assert_gates
from pytest_rageval.run.scoring import Evaluation
from pytest_rageval.text import printable

RESULTS = pytest.StashKey[list[Evaluation]]()
"""The evaluations of an item's test, to be recorded with the test's outcome."""
RUNS = pytest.StashKey[dict[str, int]]()
"""How often an item's test was run to its end, by the key of each case that it evaluated: a plugin may run it again."""


@dataclass(frozen=True)
class Evaluated:
    """One case, asked, judged and scored."""

    result: CaseResult
    _ending: Ending

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
        __tracebackhide__ = True
        assert_gates(self.result, self._ending)


class Evaluator:
    """Evaluates cases on demand with the target and judge that the test's fixtures gave."""

    def __init__(self, node: pytest.Item, evaluate: Callable[[EvalCase], tuple[Evaluation, Ending]]) -> None:
        self._node = node
        self._evaluate = evaluate

    def evaluate(self, case: EvalCase) -> Evaluated:
        """Ask, judge and score; a failure to ask or judge fails the test in one line."""
        evaluation, ending = self._evaluate(case)
        # Before it may fail: the record of a failed case is wanted as well.
        self._node.stash.setdefault(RESULTS, []).append(evaluation)
        if (error := evaluation.overall.error) is not None:
            pytest.fail(printable(f"{error.kind}: {error.message}"), pytrace=False)
        return Evaluated(evaluation.overall, ending)
