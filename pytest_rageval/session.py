"""One run from opening to end, driven alike by the plugin, the command, the API and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from pytest_rageval.case_output import Output
from pytest_rageval.comparison.outcomes import ending
from pytest_rageval.engine import Evaluation, Observed, evaluation
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.finish import Extent, Finished, finish
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.model import CaseResult, EvalCase, Outcome, Problem, Trial
from pytest_rageval.prefetch import BackgroundLoop, Batch, CircuitBreaker, Prefetcher, calls_of
from pytest_rageval.prepare import Prepared, check_judge
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.interrupts import Interrupts
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.runs.records import RecordLine, record_lines
from pytest_rageval.runs.results_file import InterruptedRun, RunJournal, RunWriter
from pytest_rageval.targets.target import Target
from pytest_rageval.text import printable

UNWRITABLE = (ValueError, TypeError, RecursionError)
"""Exceptions of `record_lines` for a result that JSON cannot hold."""


def _leave_at_once() -> NoReturn:
    raise KeyboardInterrupt


class RunSession:
    """A run in progress, as one process sees it.

    own_writer    writes the run; None on a worker, whose journal holds its results
    unfinished    what an interrupted run has, where this one finishes it
    printed       what code of the user's printed for the case that was evaluated last
    broken_off    why the run ended before its last case, where its first calls all failed alike
    notes         what a person should know at the end
    is_broken     True if its files could not be written
    """

    def __init__(
        self,
        prepared: Prepared,
        config_hash: str,
        folder: RunFolder | None,
        *,
        own_writer: RunWriter | None = None,
        worker: str | None = None,
        loop: BackgroundLoop | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        is_resumed = folder is not None and prepared.settings.resume is not None
        self.prepared, self.config_hash, self.own_writer = prepared, config_hash, own_writer
        self.unfinished = InterruptedRun(folder.path) if folder is not None and is_resumed else None
        self.journal = RunJournal(folder, prepared.settings, worker, self.unfinished)
        self.loop = loop or BackgroundLoop(prepared.settings.longest_call)
        self._owns_loop = loop is None
        self.prefetcher = Prefetcher(prepared.plan, self.journal, self.loop)
        self.interrupts = interrupts or Interrupts(_leave_at_once)
        self.breaker = CircuitBreaker()
        if folder is not None:
            folder.give_secret(prepared.judge)
        self.printed = Output()
        self.broken_off: str | None = None
        self.notes: list[str] = []
        self.is_broken = False
        self._finished_rows = 0

    @classmethod
    def open(
        cls,
        prepared: Prepared,
        config: Mapping[str, Any],
        *,
        is_judge_asked: bool = True,
        loop: BackgroundLoop | None = None,
        interrupts: Interrupts | None = None,
    ) -> RunSession:
        """Begin a run, or continue the resumed one; raise SettingsError if that fails.

        config          the content of config.json
        is_judge_asked  True if the configured judge judges: then its server must be there
        loop            where target and judge belong to one; it outlives the run
        interrupts      takes the signals over, until the run is closed
        """
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
        cls, prepared: Prepared, folder: Path | None, worker: str, config_hash: str, loop: BackgroundLoop | None = None
    ) -> RunSession:
        """Join a run, as a worker, that another process has opened; without a folder nothing is written."""
        return cls(prepared, config_hash, RunFolder(folder) if folder else None, worker=worker, loop=loop)

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
        return [Trial(case, number, test) for number in range(self.prepared.settings.repeat)]

    def evaluations(
        self, cases: Sequence[EvalCase], target: Target, judge: Judge | None, *, breaks_off: bool = True
    ) -> Iterator[Evaluation]:
        """Ask, judge, score and gate cases in their order; each result is in the run's files before it is yielded.

        Ends where the first calls all fail alike, unless another process decides about that.
        """
        plan, baseline = self.prepared.plan, self.prepared.baseline
        trials = [self.trials(case) for case in cases]
        batch = Batch(self.prefetcher, trials, target, judge)
        for position, of_case in enumerate(trials):
            evaluated = self.evaluated(of_case, batch.observed(position))
            asked = plan.hashes_of(evaluated.overall.case).asked if baseline is not None else None
            end = ending(evaluated.overall, plan, baseline, asked)
            evaluated, lines = self.lines(with_outcome(evaluated, end.outcome, end.reason))
            self.keep(lines)
            yield evaluated
            if breaks_off and not self.breaker.is_over:
                self.broken_off = self.breaker.add(calls_of([evaluated]))
                if self.broken_off is not None:
                    return

    def evaluated(self, trials: Sequence[Trial], observed: Sequence[Observed], attempts: int = 1) -> Evaluation:
        """Score and gate the trials of one case."""
        self.printed = self.prefetcher.printed(trials)
        with self.printed:
            return evaluation(trials, observed, self.prepared.plan, attempts)

    def lines(self, evaluated: Evaluation) -> tuple[Evaluation, list[RecordLine]]:
        """Return the evaluation with its records; one that JSON cannot hold becomes an error."""
        try:
            return evaluated, record_lines(evaluated, self.prepared.plan, self.config_hash)
        except UNWRITABLE as error:
            evaluated = _unwritable(evaluated, error)
            return evaluated, record_lines(evaluated, self.prepared.plan, self.config_hash)

    def keep(self, lines: Sequence[RecordLine]) -> None:
        """Write records to the run, or on a worker to its journal."""
        if self.own_writer is not None:
            self.own_writer.add(lines, is_paid=not self.prefetcher.is_reading)
        else:
            self.journal.results("\n".join(line.text for line in lines))

    @contextmanager
    def asking(self, target: Target, judge: Judge | None) -> Iterator[Judge | None]:
        """Yield the judge behind its cache; close the cache, the target and the configured judge at the end."""
        prepared = self.prepared
        cache = project_cache(prepared.settings, prepared.project.judge_cache_file) if judge is not None else None
        with ExitStack() as closing:
            if cache is not None:
                closing.callback(cache.close)
            try:
                yield None if judge is None else judge_with_cache(judge, cache, prepared.settings, prepared.mask)
            finally:
                self.loop.cancel()
                for part in (target, prepared.judge):
                    if part is not None and not self.loop.is_blocked:
                        self.loop.run(part.aclose())
        self.notes += [note for part in (target, judge, cache) for note in getattr(part, "notes", ())]

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

    def finish(self, extent: Extent) -> Finished:
        """Aggregate, compare with the baseline, gate and write; again if late records arrived."""
        prepared = self.prepared
        self.writer.reconcile()
        finished = finish(self.writer, prepared.plan, extent, prepared.baseline, prepared.project.baseline_file)
        self._finished_rows = len(self.writer.rows)
        return finished

    @property
    def has_late_results(self) -> bool:
        """Return True if records arrived since the run was finished."""
        return len(self.writer.rows) > self._finished_rows

    def cannot_write(self, error: OSError | RagevalError) -> str:
        """Return the message for the end of the run on what could not be written; files on disk stay."""
        self.is_broken = True
        if isinstance(error, RagevalError):
            return "; ".join(error.problems)
        return f"{error.filename or self.writer.folder.path} cannot be written: {error.strerror}"

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


def _writer_of(prepared: Prepared, config: Mapping[str, Any]) -> RunWriter:
    project, resumed = prepared.project, prepared.settings.resume
    try:
        if resumed is None:
            return RunWriter.new(project.reports, prepared.plan, config)
        stored = open_stored_run(project.reports, resumed, project.baseline_file)
        return RunWriter.resuming(stored, prepared.plan, config)
    except OSError as error:
        raise SettingsError(
            f"reports: {error.filename} cannot be written: {error.strerror}; make room, or set another folder with "
            "reports"
        ) from None


def with_outcome(evaluation: Evaluation, outcome: Outcome, reason: str | None) -> Evaluation:
    """Set the outcome of the case; the outcome of all trials together is that of each."""
    trials = tuple(_result_with_outcome(result, outcome, reason) for result in evaluation.trials)
    is_single = len(trials) == 1 and evaluation.trials[0] is evaluation.overall
    return Evaluation(trials[0] if is_single else _result_with_outcome(evaluation.overall, outcome, reason), trials)


def _result_with_outcome(result: CaseResult, outcome: Outcome, reason: str | None) -> CaseResult:
    if (result.outcome, result.reason) == (outcome, reason):
        return result
    return replace(result, outcome=outcome, reason=reason)


def _unwritable(evaluation: Evaluation, error: Exception) -> Evaluation:
    """Replace the evaluation by the error that JSON cannot hold it, without its values."""
    message = printable(f"{evaluation.overall.key}: its result cannot be written as JSON: {error}")
    case = evaluation.overall.case
    bare_case = EvalCase(printable(case.id), printable(case.question), source=case.source)
    bare = CaseResult(bare_case, "error", error=Problem("record", message))
    return Evaluation(bare, tuple(replace(bare, trial=result.trial) for result in evaluation.trials))
