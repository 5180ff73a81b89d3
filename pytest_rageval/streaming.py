"""A run outside pytest from its opening to its end: cases asked ahead, judged, scored, recorded one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pytest_rageval.case_output import Output
from pytest_rageval.comparison.outcomes import ending
from pytest_rageval.dead_end import FirstCalls, calls_of
from pytest_rageval.engine import Evaluation, evaluation
from pytest_rageval.finish import Extent, Finished, finish
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import asked_judge
from pytest_rageval.model import CaseResult, EvalCase, Trial
from pytest_rageval.prefetch import Batch, Prefetcher
from pytest_rageval.prepare import OpenRun, Prepared
from pytest_rageval.runs.record_lines import UNWRITABLE, ended, record_lines, unwritable
from pytest_rageval.targets.target import Target


class CaseStream:
    """Results of cases in their order, each on disk before it is seen; those that a resumed run has are left out.

    `dead_end` says why the stream ended before its last case, where its first calls all failed alike. `printed` is what
    code of the user's printed for the case that came last.
    """

    def __init__(
        self, prepared: Prepared, run: OpenRun, cases: Sequence[EvalCase], prefetcher: Prefetcher | None = None
    ) -> None:
        """`prefetcher`: asks in the place of the run's own, where target and judge belong to another loop."""
        self._prepared, self._run = prepared, run
        self._prefetcher = prefetcher or run.prefetcher
        self.waiting = [case for case in cases if not run.is_done(case)]
        self.dead_end: str | None = None
        self.printed = Output()

    def results(self, target: Target, judge: Judge | None) -> Iterator[CaseResult]:
        """What each case comes to over all of its trials."""
        return (evaluated.overall for evaluated in self.evaluations(target, judge))

    def evaluations(self, target: Target, judge: Judge | None) -> Iterator[Evaluation]:
        """Ask this target and this judge; ends where the first calls all fail alike."""
        first_calls = FirstCalls()
        for evaluated in self.all_evaluations(target, judge):
            yield evaluated
            self.dead_end = first_calls.add(calls_of([evaluated]))
            if self.dead_end is not None:
                return

    def all_evaluations(self, target: Target, judge: Judge | None) -> Iterator[Evaluation]:
        """Ask this target and this judge, however the first calls end."""
        numbers = range(self._prepared.settings.repeat)
        cases = [[Trial(case, number) for number in numbers] for case in self.waiting]
        batch = Batch(self._prefetcher, cases, target, judge)
        for position, trials in enumerate(cases):
            observed = batch.observed(position)
            self.printed = self._prefetcher.printed(trials)
            with self.printed.taking():
                evaluated = evaluation(trials, observed, self._prepared.plan)
            yield self._recorded(evaluated)

    def _recorded(self, evaluated: Evaluation) -> Evaluation:
        """Write the evaluation down, as pytest would end it; what has no form as JSON is an error of its case."""
        prepared, run = self._prepared, self._run
        end = ending(evaluated.overall, prepared.plan, prepared.baseline)
        evaluated = ended(evaluated, end.outcome, end.reason)
        try:
            lines = record_lines(evaluated, prepared.plan, run.config_hash)
        except UNWRITABLE as error:
            evaluated = unwritable(evaluated, error)
            lines = record_lines(evaluated, prepared.plan, run.config_hash)
        if run.writer is not None:
            run.writer.add(lines)
        else:
            run.journal.results("\n".join([line.text for line in lines]))
        return evaluated


# ── around the stream ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def judge_at_hand(prepared: Prepared, run: OpenRun, target: Target, judge: Judge | None) -> Iterator[JudgeAtHand]:
    """The judge behind its cache. At the end the cache is closed, and so are the target and the configured judge."""
    loop = run.prefetcher.loop
    cache = project_cache(prepared.settings, prepared.project.judge_cache_file) if judge is not None else None
    with ExitStack() as closing:
        if cache is not None:
            closing.callback(cache.close)
        try:
            asked = None if judge is None else asked_judge(judge, cache, prepared.settings, prepared.mask)
            yield JudgeAtHand(asked, (target, judge, cache))
        finally:
            loop.cancel()
            for part in (target, prepared.judge):
                if part is not None and not loop.is_blocked:
                    loop.run(part.aclose())


@dataclass(frozen=True, slots=True)
class JudgeAtHand:
    """The judge to ask, None where nothing is judged."""

    judge: Judge | None
    parts: tuple[object, ...]

    @property
    def notes(self) -> list[str]:
        """What target, judge and cache have to say once all was asked."""
        return [note for part in self.parts for note in getattr(part, "notes", ())]


def has_results(run: OpenRun) -> bool:
    """Is there anything to finish? Nothing is asked any more; a run in which nothing happened leaves no folder."""
    assert run.writer is not None
    run.stop_asking()
    run.writer.reconcile()
    if not run.writer.rows and not run.writer.folder.has_observations:
        run.writer.discard()
    return bool(run.writer.rows)


def finish_run(prepared: Prepared, run: OpenRun, extent: Extent) -> Finished:
    """Aggregate, compare with the baseline, gate and write, as every run ends."""
    assert run.writer is not None
    return finish(run.writer, prepared.plan, extent, prepared.baseline, prepared.project.baseline_file)
