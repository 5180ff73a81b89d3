"""The cases of an open run, asked ahead, judged, scored and recorded one after the other, without pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_rageval.compare.outcomes import ending
from pytest_rageval.dead_end import FirstCalls, calls_of
from pytest_rageval.engine import Evaluation, evaluation
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import CaseResult, EvalCase, Trial
from pytest_rageval.prefetch import Batch
from pytest_rageval.prepare import OpenRun, Prepared
from pytest_rageval.runs.record_lines import UNWRITABLE, ended, record_lines, unwritable
from pytest_rageval.targets.target import Target


class CaseStream:
    """Results of cases in their order, each on disk before it is seen; those that a resumed run has are left out.

    `dead_end` says why the stream ended before its last case, where its first calls all failed alike.
    """

    def __init__(self, prepared: Prepared, run: OpenRun, cases: Sequence[EvalCase]) -> None:
        self._prepared, self._run = prepared, run
        self.waiting = [case for case in cases if not run.is_done(case)]
        self.dead_end: str | None = None

    def results(self, target: Target, judge: Judge | None) -> Iterator[CaseResult]:
        """Ask this target and this judge."""
        trials = [self._trials(case) for case in self.waiting]
        batch = Batch(self._run.prefetcher, trials, target, judge)
        first_calls = FirstCalls()
        for position in range(len(self.waiting)):
            evaluated = evaluation(trials[position], batch.observed(position), self._prepared.plan)
            yield self._recorded(evaluated)
            self.dead_end = first_calls.add(calls_of([evaluated]))
            if self.dead_end is not None:
                return

    def _trials(self, case: EvalCase) -> list[Trial]:
        return [Trial(case, number) for number in range(self._prepared.settings.repeat)]

    def _recorded(self, evaluated: Evaluation) -> CaseResult:
        """Write the evaluation down, as pytest would end it; what has no form as JSON is an error of its case."""
        prepared, run = self._prepared, self._run
        end = ending(evaluated.overall, prepared.settings, prepared.baseline)
        evaluated = ended(evaluated, end.outcome, end.reason)
        try:
            lines = record_lines(evaluated, prepared.plan, run.config_hash)
        except UNWRITABLE as error:
            evaluated = unwritable(evaluated, error)
            lines = record_lines(evaluated, prepared.plan, run.config_hash)
        assert run.writer is not None
        run.writer.take("\n".join(lines))
        return evaluated.overall
