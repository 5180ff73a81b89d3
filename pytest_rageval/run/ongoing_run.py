"""One run from opening to end, driven alike by the plugin, the command, the API and workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import Any, NoReturn

from pytest_rageval.comparison.outcomes import Ending, ending
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.abandoning import abandonable
from pytest_rageval.io.case_output import Output, Routing, routed_streams
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.model import CaseResult, EvalCase, Trial
from pytest_rageval.run.attempts import (
    CONFIRMATIONS,
    Attempts,
    DecidedCase,
    Deciding,
    NewFailureCount,
    drive,
)
from pytest_rageval.run.case_blocks import CaseBlocks, EvaluatedCase
from pytest_rageval.run.case_records import with_outcome, with_records
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish import FinishedRun, accept, finish
from pytest_rageval.run.prefetch import FIRST_CALLS, BackgroundLoop, Call, Prefetcher, calls_of
from pytest_rageval.run.prepare import Preparation, check_judge
from pytest_rageval.run.scoring import Evaluation, Observed
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.interrupts import Interrupts
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.runs.records.result_line import RecordLine
from pytest_rageval.runs.results_file import InterruptedRun, RunJournal, RunWriter
from pytest_rageval.targets.target import BaseTarget
from pytest_rageval.text import cut

CLOSE_WITHIN_S = 5.0
"""Seconds for a target or judge to close; the run is over, and only code of the project takes longer."""
INTERRUPTED = 2
"""The exit status of a run that a signal ended."""
_LONGEST_FAILURE = 120
"""Characters of a call's failure in the line on how to finish the run."""


def _leave_at_once() -> NoReturn:
    raise KeyboardInterrupt


class OngoingRun:
    """A run in progress, as one process sees it.

    own_writer    writes the run; None on a worker, whose journal holds its results
    unfinished    what an interrupted run has, where this one finishes it
    broken_off    why the run ended before its last case, where its first calls all failed alike
    notes         what a person should know at the end
    is_broken     True if its files could not be written
    """

    def __init__(
        self,
        prepared: Preparation,
        config_hash: str,
        folder: RunFolder | None,
        *,
        own_writer: RunWriter | None = None,
        worker: str | None = None,
        loop: BackgroundLoop | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        is_resumed = folder is not None and prepared.settings.resume is not None
        self.prepared = prepared
        self.plan = prepared.plan
        self.config_hash = config_hash
        self.own_writer = own_writer
        self.unfinished = InterruptedRun(folder.path) if folder is not None and is_resumed else None
        self.journal = RunJournal(folder, prepared.plan, worker, self.unfinished)
        self.loop = loop or BackgroundLoop(prepared.settings.longest_call)
        self._owns_loop = loop is None
        self.prefetcher = Prefetcher(prepared.plan, self.journal.find, self.journal.keep, self.loop)
        self.interrupts = interrupts or Interrupts(_leave_at_once)
        if folder is not None:
            folder.give_secret(prepared.judge)
        self._first_calls: list[Call] = []
        self._new_failures = NewFailureCount()
        self.broken_off: str | None = None
        self.notes: list[str] = []
        self.is_broken = False
        self._finished_rows = 0

    @classmethod
    def open(
        cls,
        prepared: Preparation,
        config: Mapping[str, Any],
        *,
        is_judge_asked: bool = True,
        loop: BackgroundLoop | None = None,
        interrupts: Interrupts | None = None,
    ) -> OngoingRun:
        """Begin a run, or continue the resumed one; raise SettingsError if that fails.

        config          the content of config.json
        is_judge_asked  True if the configured judge judges: then its server must be there
        loop            where target and judge belong to one; it outlives the run
        interrupts      takes the signals over, until the run is closed
        """
        prepared = prepared.knowing(config.get("namesakes", ()), config.get("added_metrics", ()))
        own_loop = loop or BackgroundLoop(prepared.settings.longest_call)
        with ExitStack() as opened:
            if loop is None:
                opened.callback(own_loop.close)
            if is_judge_asked:
                check_judge(prepared, own_loop)
            writer = _writer_of(prepared, prepared.mask.value(config))
            opened.callback(writer.folder.close)
            session = cls(
                prepared,
                str(config["config_hash"]),
                writer.folder,
                own_writer=writer,
                loop=own_loop,
                interrupts=interrupts,
            )
            session._owns_loop = loop is None
            opened.pop_all()  # success: from now on the run closes them
        if interrupts is not None:
            interrupts.install()
        return session

    @classmethod
    def join(
        cls,
        prepared: Preparation,
        folder: RunFolder | None,
        worker: str,
        config_hash: str,
        loop: BackgroundLoop | None = None,
    ) -> OngoingRun:
        """Join a run, as a worker, that another process has opened; without a folder nothing is written."""
        return cls(prepared, config_hash, folder, worker=worker, loop=loop)

    @property
    def writer(self) -> RunWriter:
        """Return the writer of the run, on the process that controls it."""
        assert self.own_writer is not None
        return self.own_writer

    # ── cases ─────────────────────────────────────────────────────────────────────────────────────────────────

    def is_done(self, case: EvalCase) -> bool:
        """Return True if the resumed run has a result of this case."""
        return self.unfinished is not None and self.unfinished.is_done(case.key)

    def waiting(self, cases: Sequence[EvalCase]) -> list[EvalCase]:
        """Return the cases without a result."""
        return [case for case in cases if not self.is_done(case)]

    def trials(self, case: EvalCase, test: str | None = None) -> list[Trial]:
        """Return the trials of one case; `test` is the node id of a test of the user's own."""
        return [Trial(case, number, test) for number in range(self.plan.settings.repeat)]

    def evaluations(
        self, cases: Sequence[EvalCase], target: BaseTarget, judge: BaseJudge | None, *, breaks_off: bool = True
    ) -> Iterator[EvaluatedCase]:
        """Evaluate cases in their order; each result is in the run's files before it is yielded.

        Ends where the first calls all fail alike, unless another process decides about that.
        """
        blocks = CaseBlocks(self, cases, target, judge)
        for position in range(len(cases)):
            evaluated = blocks.case(position)
            self.keep(evaluated.lines)
            yield evaluated
            if breaks_off and len(self._first_calls) < FIRST_CALLS:
                self.count(calls_of([evaluated.evaluation]))
                if self.broken_off is not None:
                    return

    def evaluate_here(
        self,
        cases: Sequence[EvalCase],
        target: BaseTarget,
        clean: Callable[[str], str],
        show: Callable[[EvaluatedCase], object],
        judge: BaseJudge | None = None,
    ) -> None:
        """Evaluate cases outside pytest, and show each.

        clean  makes lines fit to be shown that are printed for no case
        judge  instead of the configured one
        """
        with (
            routed_streams(Routing(Output(clean))),
            self.asking(target, judge or self.prepared.judge) as cached_judge,
        ):
            for evaluated in self.evaluations(cases, target, cached_judge):
                show(evaluated)
        self.notes += filter(None, [self.prefetcher.back_off.note])

    def deciding(self, case: EvalCase, target: BaseTarget, reruns: int = 1, test: str | None = None) -> Deciding:
        """Return the attempts at one case; `reruns` and `test` as for `Attempts`."""
        confirm = self._confirmations(target)
        attempts = Attempts(
            case,
            self.plan,
            self.prepared.baseline,
            confirm,
            self.prefetcher.printed,
            reruns,
            test,
            self._new_failures,
        )
        return attempts.decide()

    def _confirmations(self, target: BaseTarget) -> int:
        """Return how often a case that newly fails is asked again; recorded answers stay the same."""
        if self.prepared.baseline is None or not target.is_called:
            return 0
        confirm = self.plan.settings.confirm
        return CONFIRMATIONS if confirm is None else confirm

    def may_ask_again(self, target: BaseTarget) -> bool:
        """Return True if the first trials of a case may not be all of them."""
        return self.plan.stops_when_decided or self._confirmations(target) > 0

    def decided_now(
        self, case: EvalCase, target: BaseTarget, judge: BaseJudge | None, reruns: int = 1, test: str | None = None
    ) -> DecidedCase:
        """Ask one case now, after everything queued before."""

        def ask(trials: list[Trial]) -> list[Observed]:
            return self.prefetcher.now(trials, target, judge)

        deciding = self.deciding(case, target, reruns, test)
        return drive(deciding, ask(next(deciding)), ask)

    def evaluated(self, decided: DecidedCase) -> EvaluatedCase:
        """Return a decided case with its records."""
        evaluation, end, printed = decided
        return EvaluatedCase(*self.recorded(with_outcome(evaluation, end.outcome, end.reason)), printed)

    def ending(self, result: CaseResult) -> Ending:
        """Return how a case of this result ends, known failures included."""
        return ending(result, self.plan, self.prepared.baseline)

    def count(self, calls: Iterable[Call]) -> None:
        """Count calls of cases that ended: the run breaks off if the first ones all failed alike, and cannot heal."""
        self._first_calls = [*self._first_calls, *calls][:FIRST_CALLS]
        kinds = {kind for kind, _ in self._first_calls}
        if len(self._first_calls) == FIRST_CALLS and len(kinds) == 1 and all(kinds):
            self.broken_off = (
                f"rageval: the first {FIRST_CALLS} calls all failed alike, so the others were not made: "
                f"{self._first_calls[-1][1]}; mend that and run again"
            )

    @property
    def why_unfinished(self) -> str:
        """Return why the run has cases left."""
        if self.broken_off is None:
            return "interrupted"
        return f"stopped, since its first calls all failed: {cut(self._first_calls[-1][1], _LONGEST_FAILURE)}"

    def how_to_finish(self, command: str) -> str:
        """Return why the run has cases left, and how to finish it with the command that resumes it."""
        if self.broken_off is None:
            return f"{self.why_unfinished}; {command} finishes it"
        # Resuming asks for no case again that has a result: the errors would stay.
        return f"{self.why_unfinished}; mend that and run again ({command} would keep the errors)"

    def recorded(self, evaluated: Evaluation) -> tuple[Evaluation, list[RecordLine]]:
        """Return the evaluation with its records; one that JSON cannot hold becomes an error."""
        return with_records(evaluated, self.plan, self.config_hash)

    def keep(self, lines: Sequence[RecordLine]) -> None:
        """Write records to the run, or on a worker to its journal."""
        if self.own_writer is not None:
            self.own_writer.add(lines, is_paid=not self.prefetcher.is_reading)
        else:
            self.journal.results(b"\n".join(line.data for line in lines))

    @contextmanager
    def asking(self, target: BaseTarget, judge: BaseJudge | None) -> Iterator[BaseJudge | None]:
        """Yield the judge behind its cache; close the cache, the target and the configured judge at the end."""
        prepared = self.prepared
        cache = None
        if judge is not None and not judge.is_local:
            cache = project_cache(prepared.settings, prepared.project.judge_cache_file)
        with nullcontext() if cache is None else closing(cache):
            try:
                yield None if judge is None else judge_with_cache(judge, cache, prepared.settings, prepared.mask)
            finally:
                self.loop.cancel()
                self.release(target, prepared.judge)
        for part in (target, judge, cache):
            if part is not None:
                self.notes += part.notes

    def release(self, *parts: BaseTarget | BaseJudge | None) -> None:
        """Close targets and judges on the loop on which they were used; a blocked one is abandoned with its thread."""
        for part in parts:
            if part is not None and not self.loop.is_blocked:
                self.loop.run(_close(part))

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    def stop_asking(self) -> None:
        """End the loop, after which nothing is observed; safe to call twice."""
        if self._owns_loop:
            self.loop.close()

    def has_results(self) -> bool:
        """Stop asking, and return True if there is anything to finish; remove the folder of an empty run."""
        self.stop_asking()
        self.writer.reconcile()
        if not self.writer.rows and not self.writer.folder.has_observations:
            self.writer.discard()
        return bool(self.writer.rows)

    def finish(self, extent: Extent) -> FinishedRun:
        """Aggregate, compare with the baseline, gate and write; again if late records arrived."""
        prepared = self.prepared
        self.writer.reconcile()
        name = prepared.project.baseline_file.name
        finished = finish(self.writer, prepared.plan, extent, prepared.baseline, name)
        self._finished_rows = len(self.writer.rows)
        return finished

    def accept(self, finished: FinishedRun) -> None:
        """Replace the baseline if the run is accepted, once its reports are written; not if a signal came meanwhile."""
        if not self.interrupts.is_repeated:
            accept(finished, self.prepared.project.baseline_file)

    def exit_status(self, *, is_interrupted: bool) -> int:
        """Return the exit status of a run outside pytest, before its gates."""
        is_failing = any(row.outcome in ("failed", "error") for row in self.writer.rows.values())
        return INTERRUPTED if is_interrupted else int(is_failing or self.broken_off is not None)

    @property
    def has_late_results(self) -> bool:
        """Return True if records arrived since the run was finished."""
        return len(self.writer.rows) > self._finished_rows

    def cannot_write(self, error: OSError | RagevalError, resume: str) -> str:
        """Return what could not be written, and the remedy: to go on with `resume`. Files on disk stay."""
        self.is_broken = True
        folder = self.writer.folder
        if isinstance(error, RagevalError):
            what = "; ".join(error.problems)
        else:
            what = f"{error.filename or folder.path} cannot be written: {error.strerror}"
        return f"{what}; mend that, and finish the run with {resume} {folder.run_id}"

    def close(self) -> None:
        """Release files, lock and signals; safe to call twice."""
        self.interrupts.begin_closing()
        try:
            self.stop_asking()
        finally:
            self.journal.close()
            if self.own_writer is not None:
                self.own_writer.folder.close()
            self.interrupts.restore()


def _writer_of(prepared: Preparation, config: Mapping[str, Any]) -> RunWriter:
    project = prepared.project
    resumed = prepared.settings.resume
    try:
        if resumed is None:
            return RunWriter.new(project.reports, prepared.plan, config)
        return RunWriter.resuming(
            open_stored_run(project.reports, resumed, project.baseline_file), prepared.plan, config
        )
    except OSError as error:
        remedy = "make room, or set another folder with reports"
        raise SettingsError(f"reports: {error.filename} cannot be written: {error.strerror}; {remedy}") from None


async def _close(part: BaseTarget | BaseJudge) -> None:
    """Close a target or judge; abandon it if it does not end."""
    limit = asyncio.timeout(CLOSE_WITHIN_S)
    try:
        async with limit:
            await abandonable(part.aclose())
    except TimeoutError:
        if not limit.expired():
            raise
