"""The steps of a run outside pytest: ask, retrieval metrics, judges, abstention, gates, summary, reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, NoReturn

from pytest_rageval.case_output import Output, Routing, routed_streams
from pytest_rageval.cli.case_selection import CaseSelection
from pytest_rageval.cli.options import INTERRUPTED
from pytest_rageval.cli.screen import CaseProgress, Screen
from pytest_rageval.config.project import Project
from pytest_rageval.errors import JudgeUnavailable, SettingsError
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.model import EvalCase
from pytest_rageval.prepare import OpenRun, Prepared, open_run, prepare
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.runs.disk.record_order import put_in_order
from pytest_rageval.runs.interrupts import Interrupts, is_called_by_script
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.scale.cluster_run import ClusterRun, crew_size, waiting_cases
from pytest_rageval.scale.ray_cluster import RayCluster
from pytest_rageval.streaming import CaseStream, finish_run, has_results, judge_at_hand
from pytest_rageval.targets.target import Target
from pytest_rageval.text import counted


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that was asked as far as it went. `finished` is None where nothing came of it."""

    prepared: Prepared
    run_id: str
    finished: Finished | None
    notes: tuple[str, ...]
    is_interrupted: bool = False
    has_stopped: bool = False
    """Did its first calls all fail alike, so that the others were not made?"""
    left_out_judge: str | None = None
    """The judge that could not be asked, as it was spelt."""
    is_broken: bool = False
    """Could its files not be written?"""


class Elsewhere(NamedTuple):
    """The machines that ask, and at most how many processes there."""

    cluster: RayCluster
    workers: int


def prepare_unjudged(project: Project) -> Prepared:
    """The run without its judge."""
    unjudged = project.settings.model_copy(update={"judge": "none"})
    return prepare(project._replace(settings=unjudged))


class Pipeline:
    """One run: opened, streamed, finished."""

    def __init__(
        self,
        prepared: Prepared,
        cases: CaseSelection,
        target: Target,
        screen: Screen,
        elsewhere: Elsewhere | None = None,
        left_out_judge: str | None = None,
    ) -> None:
        """`elsewhere`: the machines that ask, where it is not this process; `left_out_judge` as in Ended."""
        self._prepared, self._cases, self._target, self._screen = prepared, cases, target, screen
        self._elsewhere = elsewhere
        is_program = partial(is_called_by_script, "pytest_rageval.cli.main", "main")
        self._interrupts = Interrupts(self._leave, is_program=is_program)
        self._notes: list[str] = []
        self._run_id = ""
        self._is_failing = self._is_interrupted = False
        self._dead_end: str | None = None
        self._left_out_judge = left_out_judge

    def run(self) -> Ended:
        """All steps. SettingsError where the run cannot be opened."""
        run = self._opened()
        assert run.writer is not None
        self._run_id = run.writer.folder.run_id
        self._interrupts.install()
        try:
            self._stream(run)
        except KeyboardInterrupt:
            self._is_interrupted = True
        except OSError as error:
            return self._broken(run, error)
        except SettingsError:
            self._leave_nothing(run)
            raise
        try:
            self._interrupts.begin_finishing()
            finished = self._finished(run)
        except OSError as error:
            return self._broken(run, error)
        finally:
            self._interrupts.end_finishing()
            self._interrupts.begin_closing()
            run.close()
            self._interrupts.restore()
        return Ended(
            self._prepared, self._run_id, finished, tuple(self._notes), is_interrupted=self._is_interrupted,
            has_stopped=self._dead_end is not None, left_out_judge=self._left_out_judge,
        )  # fmt: skip

    def _opened(self) -> OpenRun:
        """The run; where the judge cannot be asked, without one."""
        try:
            return open_run(self._prepared, self._cases.cases, self._cases.paths)
        except JudgeUnavailable as error:
            self._screen.step_failed("judging", "; ".join(error.problems))
        self._left_out_judge = self._prepared.settings.judge
        self._prepared = prepare_unjudged(self._prepared.project)
        return open_run(self._prepared, self._cases.cases, self._cases.paths)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _stream(self, run: OpenRun) -> None:
        here: Sequence[EvalCase] = self._cases.asked
        elsewhere: Sequence[EvalCase] = ()
        if self._elsewhere is not None:
            here, elsewhere = waiting_cases(run, self._cases.asked, self._prepared.settings.repeat)
        stream = CaseStream(self._prepared, run, here)
        number = len(stream.waiting) + len(elsewhere)
        if (cost := estimate(self._prepared.judge, self._prepared.plan, number)) is not None:
            self._screen.line(cost)
        if stream.waiting or self._elsewhere is None:
            self._stream_here(run, stream)
        if self._elsewhere is not None and elsewhere and self._dead_end is None:
            self._stream_elsewhere(run, elsewhere, self._elsewhere)

    def _stream_here(self, run: OpenRun, stream: CaseStream) -> None:
        progress = CaseProgress(self._screen, run.prefetcher.tally, len(stream.waiting))
        run.prefetcher.loop.on_wait = progress.tick
        try:
            with (
                routed_streams(Routing(Output(self._screen.clean))),
                judge_at_hand(self._prepared, run, self._target, self._prepared.judge) as at_hand,
            ):
                for result in stream.results(self._target, at_hand.judge):
                    self._is_failing |= result.outcome in ("failed", "error")
                    progress.ended(result, stream.printed)
            self._notes += at_hand.notes
            self._notes += filter(None, [run.prefetcher.slots.back_off.note])
        finally:
            run.prefetcher.loop.on_wait = None
            progress.wipe()
            self._dead_end = stream.dead_end

    def _stream_elsewhere(self, run: OpenRun, cases: Sequence[EvalCase], elsewhere: Elsewhere) -> None:
        """The cases evaluated by workers; their records are put in order once nothing comes any more."""
        workers = crew_size(self._prepared, len(cases), elsewhere.workers)
        crew = elsewhere.cluster.crew(self._prepared, run.config_hash)
        cluster_run = ClusterRun(self._prepared, run, cases, crew, workers)
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
            self._notes += crew.notes()
        finally:
            progress.wipe()
            crew.close()
            self._notes += dispatch.notes
            self._dead_end = cluster_run.dead_end

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    def _finished(self, run: OpenRun) -> Finished | None:
        """The verdict and the reports of what is on disk; a run in which nothing happened leaves no trace."""
        prepared = self._prepared
        assert run.writer is not None
        if self._elsewhere is not None:
            self._notes += put_in_order(run.writer.folder.path)
        if self._dead_end is not None:
            self._screen.problems(self._dead_end.removeprefix("rageval: "))
        if not has_results(run):
            return None
        extent = self._extent()
        finished = finish_run(prepared, run, extent)
        try:
            reports = write_all_reports(
                finished.folder, prepared.plan, finished.cases, prepared.project.baseline_file,
                exit_status=extent.exit_status,
            )  # fmt: skip
        except OSError as error:
            self._screen.step_failed("report", f"{error.filename} cannot be written: {error.strerror}")
            return finished
        self._notes += reports.notes
        if reports.page is not None and reports.page.problem is not None:
            self._screen.step_failed("report", reports.page.problem)
        return finished

    def _extent(self) -> Extent:
        has_failed = self._is_failing or self._dead_end is not None
        return Extent(
            every={case.key for case in self._cases.cases},
            expected={case.key for case in self._cases.asked},
            selection={option: self._prepared.mask.text(text) for option, text in self._cases.selected_by.items()},
            is_ended_early=self._is_interrupted or self._dead_end is not None,
            exit_status=INTERRUPTED if self._is_interrupted else int(has_failed),
        )

    def _leave_nothing(self, run: OpenRun) -> None:
        """Nothing could be asked: a run that began just now leaves no folder."""
        try:
            has_results(run)
        finally:
            run.close()
            self._interrupts.restore()

    def _broken(self, run: OpenRun, error: OSError) -> Ended:
        run.close()
        self._interrupts.restore()
        what = f"{error.filename or self._prepared.project.reports} cannot be written: {error.strerror}"
        self._screen.problems(f"{what}; mend that, and finish the run with {resume_command(self._run_id)}")
        return Ended(self._prepared, self._run_id, None, tuple(self._notes), is_broken=True)

    def _leave(self) -> NoReturn:
        """At a second signal, once the run's files are written."""
        self._screen.line(f"interrupted; {resume_command(self._run_id)} finishes the run", colour="yellow")
        raise SystemExit(INTERRUPTED)


def resume_command(run_id: str) -> str:
    return f"rageval run --resume {run_id}"
