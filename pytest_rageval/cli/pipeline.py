"""The steps of a run outside pytest: ask, retrieval metrics, judges, abstention, gates, summary, reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, NoReturn

from pytest_rageval.case_output import Output, Routing, routed_streams
from pytest_rageval.cli.case_files import CaseSelection
from pytest_rageval.cli.options import INTERRUPTED
from pytest_rageval.cli.screen import CaseProgress, Screen
from pytest_rageval.config.project import Project
from pytest_rageval.errors import JudgeUnavailable, SettingsError
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.model import EvalCase
from pytest_rageval.prepare import Prepared, prepare, run_configuration
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.runs.interrupts import Interrupts, is_called_by_script
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.runs.results_file import put_in_order
from pytest_rageval.scale.dispatch import ClusterRun, Machines, crew_size, waiting_cases
from pytest_rageval.session import RunSession
from pytest_rageval.targets.target import Target
from pytest_rageval.text import counted


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A run of the command at its end, whole or cut short. `finished` is None if it has no results."""

    prepared: Prepared
    run_id: str
    finished: Finished | None
    notes: tuple[str, ...]
    is_interrupted: bool = False
    has_stopped: bool = False
    """True if the circuit breaker ended the run: its first calls all failed alike."""
    left_out_judge: str | None = None
    """The specification of the judge that could not be asked."""
    is_broken: bool = False
    """True if its files could not be written."""


class WorkerMachines(NamedTuple):
    """The machines that ask, and the greatest number of processes there."""

    machines: Machines
    workers: int


def prepare_unjudged(project: Project) -> Prepared:
    """Prepare the run without its judge."""
    unjudged = project.settings.model_copy(update={"judge": "none"})
    return prepare(project._replace(settings=unjudged))


class Pipeline:
    """A run of the command: opened, its cases evaluated here or elsewhere, finished."""

    def __init__(
        self,
        prepared: Prepared,
        cases: CaseSelection,
        target: Target,
        screen: Screen,
        elsewhere: WorkerMachines | None = None,
        left_out_judge: str | None = None,
    ) -> None:
        """`elsewhere`: the machines that ask, if it is not this process; `left_out_judge` as in CommandRun."""
        self._prepared, self._cases, self._target, self._screen = prepared, cases, target, screen
        self._elsewhere = elsewhere
        self._is_failing = self._is_interrupted = False
        self._left_out_judge = left_out_judge

    def run(self) -> CommandRun:
        """Take all steps; raise SettingsError if the run cannot be opened."""
        self._session = run = self._opened()
        try:
            return self._ended(self._evaluated_and_finished(run))
        except OSError as error:
            what = run.cannot_write(error)
            self._screen.problems(f"{what}; mend that, and finish the run with {resume_command(self._run_id)}")
            return self._ended(None)
        finally:
            run.close()

    def _evaluated_and_finished(self, run: RunSession) -> Finished | None:
        try:
            self._evaluate(run)
        except KeyboardInterrupt:
            self._is_interrupted = True
        except SettingsError:
            run.has_results()  # nothing could be asked: a new run leaves no folder
            raise
        run.interrupts.begin_finishing()
        try:
            return self._finished(run)
        finally:
            run.interrupts.end_finishing()

    def _ended(self, finished: Finished | None) -> CommandRun:
        run = self._session
        return CommandRun(
            self._prepared,
            self._run_id,
            finished,
            tuple(run.notes),
            is_interrupted=self._is_interrupted,
            has_stopped=run.broken_off is not None,
            left_out_judge=self._left_out_judge,
            is_broken=run.is_broken,
        )

    @property
    def _run_id(self) -> str:
        return self._session.writer.folder.run_id

    def _opened(self) -> RunSession:
        """Open the run, without its judge if that cannot be asked."""
        try:
            return self._open()
        except JudgeUnavailable as error:
            self._screen.step_failed("judging", "; ".join(error.problems))
        self._left_out_judge = self._prepared.settings.judge
        self._prepared = prepare_unjudged(self._prepared.project)
        return self._open()

    def _open(self) -> RunSession:
        config = run_configuration(self._prepared, self._cases.cases, self._cases.paths)
        is_program = partial(is_called_by_script, "pytest_rageval.cli.main", "main")
        return RunSession.open(self._prepared, config, interrupts=Interrupts(self._leave, is_program=is_program))

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _evaluate(self, run: RunSession) -> None:
        here: Sequence[EvalCase] = run.waiting(self._cases.asked)
        elsewhere: Sequence[EvalCase] = ()
        if self._elsewhere is not None:
            here, elsewhere = waiting_cases(run, self._cases.asked, self._prepared.settings.repeat)
        number = len(here) + len(elsewhere)
        if (cost := estimate(self._prepared.judge, self._prepared.plan, number)) is not None:
            self._screen.line(cost)
        if here or self._elsewhere is None:
            self._evaluate_here(run, here)
        if self._elsewhere is not None and elsewhere and run.broken_off is None:
            self._evaluate_elsewhere(run, elsewhere, self._elsewhere)

    def _evaluate_here(self, run: RunSession, cases: Sequence[EvalCase]) -> None:
        progress = CaseProgress(self._screen, run.prefetcher.tally, len(cases))
        run.loop.on_wait = progress.tick
        try:
            with (
                routed_streams(Routing(Output(self._screen.clean))),
                run.asking(self._target, self._prepared.judge) as judge,
            ):
                for evaluated in run.evaluations(cases, self._target, judge):
                    result = evaluated.overall
                    self._is_failing |= result.outcome in ("failed", "error")
                    progress.end_case(result, run.printed)
            run.notes += filter(None, [run.prefetcher.slots.back_off.note])
        finally:
            run.loop.on_wait = None
            progress.wipe()

    def _evaluate_elsewhere(self, run: RunSession, cases: Sequence[EvalCase], elsewhere: WorkerMachines) -> None:
        """Let workers evaluate the cases, and sort their records at the end."""
        workers = crew_size(self._prepared, len(cases), elsewhere.workers)
        crew = elsewhere.machines.crew(self._prepared, run.config_hash)
        cluster_run = ClusterRun(run, cases, crew, workers)
        dispatch = cluster_run.dispatch
        progress = CaseProgress(
            self._screen, cluster_run.tally, len(cases), lambda: f" · {dispatch.working} of {workers} workers"
        )
        self._screen.line(f"{counted(len(cases), 'case')} on {counted(workers, 'worker')}")
        try:
            for block in cluster_run.blocks():
                for failure in block.failures if block is not None else ():
                    self._is_failing = True
                    progress.failed(*failure)
                progress.advance(block.cases if block is not None else 0)
            run.notes += crew.notes()
        finally:
            progress.wipe()
            crew.close()
            run.notes += dispatch.notes

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    def _finished(self, run: RunSession) -> Finished | None:
        """Decide the verdict and write the reports from the files on disk; an empty run leaves no folder."""
        prepared = self._prepared
        if self._elsewhere is not None:
            run.writer.reconcile()  # first: records of this process may wait to be written
            run.notes += put_in_order(run.writer.folder.path)
        if run.broken_off is not None:
            self._screen.problems(run.broken_off.removeprefix("rageval: "))
        if not run.has_results():
            return None
        extent = self._extent()
        finished = run.finish(extent)
        try:
            reports = write_all_reports(
                finished.folder,
                prepared.plan,
                finished.cases,
                prepared.project.baseline_file,
                exit_status=extent.exit_status,
            )
        except OSError as error:
            self._screen.step_failed("report", f"{error.filename} cannot be written: {error.strerror}")
            return finished
        run.notes += reports.notes
        if reports.page is not None and reports.page.problem is not None:
            self._screen.step_failed("report", reports.page.problem)
        return finished

    def _extent(self) -> Extent:
        has_stopped = self._session.broken_off is not None
        return Extent(
            every={case.key for case in self._cases.cases},
            expected={case.key for case in self._cases.asked},
            selection={option: self._prepared.mask.text(text) for option, text in self._cases.selected_by.items()},
            is_ended_early=self._is_interrupted or has_stopped,
            exit_status=INTERRUPTED if self._is_interrupted else int(self._is_failing or has_stopped),
        )

    def _leave(self) -> NoReturn:
        """Leave at a second signal, once the run's files are written."""
        self._screen.line(f"interrupted; {resume_command(self._run_id)} finishes the run", colour="yellow")
        raise SystemExit(INTERRUPTED)


def resume_command(run_id: str) -> str:
    return f"rageval run --resume {run_id}"
