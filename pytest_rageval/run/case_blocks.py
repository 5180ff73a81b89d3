"""Consecutive cases of a run for one target and one judge, evaluated in blocks or asked ahead of need."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from itertools import chain
from typing import NamedTuple, Protocol

from pytest_rageval.io.case_output import Output
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.model import CaseResult, EvalCase, Trial
from pytest_rageval.run.engine import are_at_once
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.prefetch import MOST_OF_A_BLOCK, Prefetcher
from pytest_rageval.run.scoring import Evaluation, Observed
from pytest_rageval.runs.records.result_line import RecordLine
from pytest_rageval.targets.target import BaseTarget


class EvaluatedCase(NamedTuple):
    """A case with its outcome, its records, and what user code printed for it."""

    evaluation: Evaluation
    lines: Sequence[RecordLine]
    printed: Output

    @property
    def result(self) -> CaseResult:
        """Return the result over all trials."""
        return self.evaluation.overall


class _Run(Protocol):
    """What blocks of cases need of their run."""

    plan: Plan
    prefetcher: Prefetcher

    def trials(self, case: EvalCase, test: str | None = None) -> list[Trial]: ...

    def evaluated(self, trials: Sequence[Trial], observed: Sequence[Observed], attempts: int = 1) -> EvaluatedCase: ...


class CaseBlocks:
    """Consecutive cases for one target and one judge: evaluated in blocks if nothing waits, else asked ahead."""

    def __init__(self, run: _Run, cases: Sequence[EvalCase], target: BaseTarget, judge: BaseJudge | None) -> None:
        self._run = run
        self._cases = cases
        self._target = target
        self._judge = judge
        self._prefetcher = run.prefetcher
        self._is_at_once = are_at_once(target, judge)
        self._window = max(1, run.plan.settings.window // run.plan.settings.repeat)
        self._evaluated: dict[int, EvaluatedCase] = {}
        self._futures: dict[int, list[Future[Observed]]] = {}
        self._started = 0

    def case(self, position: int) -> EvaluatedCase:
        """Return the case at this position, which is asked again on a rerun."""
        self._prefetcher.is_reading = self._is_at_once
        if not self._is_at_once:
            return self._run.evaluated(self._run.trials(self._cases[position]), self._observed(position))
        if position not in self._evaluated:
            cases = [*map(self._run.trials, self._cases[position : position + MOST_OF_A_BLOCK])]
            block = self._prefetcher.read(cases, self._target, self._judge)
            evaluated = map(self._run.evaluated, cases, block)
            self._evaluated = dict(enumerate(evaluated, position))
        return self._evaluated.pop(position)

    def _observed(self, position: int) -> list[Observed]:
        """Return the observations of a case that may wait, by trial."""
        self._top_up(position)
        futures = self._futures.pop(position, None)
        if futures is None:
            return self._prefetcher.now(self._run.trials(self._cases[position]), self._target, self._judge)
        return [*map(self._prefetcher.observed, futures)]

    def _top_up(self, position: int) -> None:
        """Keep `window` cases started beyond this position, an eighth of it at a time."""
        first = max(self._started, position)
        last = min(position + 1 + self._window, len(self._cases))
        is_a_portion = last - first >= max(1, self._window // 8)
        is_the_rest = last == len(self._cases)
        is_awaited = first == position
        if first >= last or not (is_a_portion or is_the_rest or is_awaited):
            return
        self._started = last
        trials = [self._run.trials(case) for case in self._cases[first:last]]
        futures: list[Future[Observed]] = []
        for at, of_case in enumerate(trials, first):
            started = [Future[Observed]() for _ in of_case]
            self._futures[at] = started
            futures += started
        self._prefetcher.queue([*chain.from_iterable(trials)], self._target, self._judge, futures)
