"""Consecutive cases of a run for one target and one judge, evaluated in blocks or asked ahead of need."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pytest_rageval.io.case_output import Output
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.model import CaseResult, EvalCase, Trial
from pytest_rageval.run.attempts import DecidedCase, Deciding, drive
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

    def deciding(self, case: EvalCase, target: BaseTarget) -> Deciding: ...

    def may_ask_again(self, target: BaseTarget) -> bool: ...

    def evaluated(self, decided: DecidedCase) -> EvaluatedCase: ...

    def decided_now(self, case: EvalCase, target: BaseTarget, judge: BaseJudge | None) -> DecidedCase: ...


@dataclass(slots=True)
class _OpenCase:
    """A case whose trials are being asked, until it is decided."""

    deciding: Deciding
    futures: list[Future[Observed]]
    """The trials under way; once the case is decided, its last ones."""
    decided: DecidedCase | None = None

    @property
    def is_waiting(self) -> bool:
        """Return True if all trials under way have been observed, and the case is not decided yet."""
        return self.decided is None and all(map(_is_observed, self.futures))


def _is_observed(future: Future[Observed]) -> bool:
    # One that was cancelled, or that ends the run, raises when it is the turn of its case.
    return future.done() and not future.cancelled() and future.exception() is None


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
        self._may_ask_again = run.may_ask_again(target)
        self._evaluated: dict[int, EvaluatedCase] = {}
        self._open: dict[int, _OpenCase] = {}
        self._started = 0

    def case(self, position: int) -> EvaluatedCase:
        """Return the case at this position, which is asked again on a rerun."""
        self._prefetcher.is_reading = self._is_at_once
        if not self._is_at_once:
            return self._run.evaluated(self._decided(position))
        if position not in self._evaluated:
            self._read_block(position)
        return self._evaluated.pop(position)

    def _read_block(self, position: int) -> None:
        """Evaluate the cases from this position on that are read in a moment."""
        block = [self._deciding(case) for case in self._cases[position : position + MOST_OF_A_BLOCK]]
        first_trials = [next(deciding) for deciding in block]
        observed = self._prefetcher.read(first_trials, self._target, self._judge)
        self._evaluated = {}
        for number, (deciding, of_case) in enumerate(zip(block, observed, strict=False), position):
            self._evaluated[number] = self._run.evaluated(drive(deciding, of_case, self._read))

    def _deciding(self, case: EvalCase) -> Deciding:
        return self._run.deciding(case, self._target)

    def _read(self, trials: list[Trial]) -> list[Observed]:
        return self._prefetcher.read([trials], self._target, self._judge)[0]

    def _decided(self, position: int) -> DecidedCase:
        """Return a case that may wait, once all trials that decide it were observed."""
        self._top_up(position)
        if self._may_ask_again:
            self._go_on_with_waiting_cases()
        opened = self._open.pop(position, None)
        if opened is None:
            return self._run.decided_now(self._cases[position], self._target, self._judge)
        if opened.decided is not None:
            return opened.decided
        return drive(opened.deciding, self._awaited(opened.futures), self._ask)

    def _awaited(self, futures: list[Future[Observed]]) -> list[Observed]:
        return [*map(self._prefetcher.observed, futures)]

    def _ask(self, trials: list[Trial]) -> list[Observed]:
        futures = self._queued(trials)
        self._go_on_with_waiting_cases()
        return self._awaited(futures)

    def _queued(self, trials: list[Trial]) -> list[Future[Observed]]:
        futures: list[Future[Observed]] = [Future() for _ in trials]
        self._prefetcher.queue(trials, self._target, self._judge, futures)
        return futures

    def _go_on_with_waiting_cases(self) -> None:
        """Ask the further trials of the cases ahead that wait for them, so that they need not be waited for later."""
        for opened in self._open.values():
            if opened.is_waiting:
                observed = self._awaited(opened.futures)
                try:
                    opened.futures = self._queued(opened.deciding.send(observed))
                except StopIteration as end:
                    opened.decided = end.value

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
        trials: list[Trial] = []
        futures: list[Future[Observed]] = []
        for at, case in enumerate(self._cases[first:last], first):
            deciding = self._deciding(case)
            of_case = next(deciding)
            started = [Future[Observed]() for _ in of_case]
            self._open[at] = _OpenCase(deciding, started)
            trials += of_case
            futures += started
        self._prefetcher.queue(trials, self._target, self._judge, futures)
