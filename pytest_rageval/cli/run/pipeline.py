"""The steps of a run outside pytest: ask, retrieval metrics, judges, abstention, gates, summary, reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from pytest_rageval.cli.exit_codes import INTERRUPTED
from pytest_rageval.cli.run.case_selection import CaseSelection
from pytest_rageval.cli.run.screen import CaseProgress, Screen
from pytest_rageval.errors import JudgeUnavailable
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.prepare import OpenRun, Prepared, open_run, prepare
from pytest_rageval.report.run_reports import write_all_reports
from pytest_rageval.runs.estimate import estimate
from pytest_rageval.runs.interrupts import Interrupts
from pytest_rageval.streaming import CaseStream, finish_run, has_results, judge_at_hand
from pytest_rageval.targets.target import Target


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


class Pipeline:
    """One run: opened, streamed, finished."""

    def __init__(self, prepared: Prepared, cases: CaseSelection, target: Target, screen: Screen) -> None:
        self._prepared, self._cases, self._target, self._screen = prepared, cases, target, screen
        self._interrupts = Interrupts(self._leave)
        self._notes: list[str] = []
        self._run_id = ""
        self._is_failing = self._is_interrupted = False
        self._dead_end: str | None = None
        self._left_out_judge: str | None = None

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
        project = self._prepared.project
        self._left_out_judge = project.settings.judge
        unjudged = project.settings.model_copy(update={"judge": "none"})
        self._prepared = prepare(project._replace(settings=unjudged))
        return open_run(self._prepared, self._cases.cases, self._cases.paths)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _stream(self, run: OpenRun) -> None:
        stream = CaseStream(self._prepared, run, self._cases.asked)
        if (cost := estimate(self._prepared.judge, self._prepared.plan, len(stream.waiting))) is not None:
            self._screen.line(cost)
        progress = CaseProgress(self._screen, run.prefetcher.tally, len(stream.waiting))
        run.prefetcher.loop.on_wait = progress.tick
        try:
            with judge_at_hand(self._prepared, run, self._target, self._prepared.judge) as at_hand:
                for result in stream.results(self._target, at_hand.judge):
                    self._is_failing |= result.outcome in ("failed", "error")
                    progress.ended(result)
            self._notes += at_hand.notes
            self._notes += filter(None, [run.prefetcher.slots.note])
        finally:
            run.prefetcher.loop.on_wait = None
            progress.wipe()
            self._dead_end = stream.dead_end

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    def _finished(self, run: OpenRun) -> Finished | None:
        """The verdict and the reports of what is on disk; a run in which nothing happened leaves no trace."""
        prepared = self._prepared
        if not has_results(run):
            return None
        if self._dead_end is not None:
            self._screen.problems(self._dead_end.removeprefix("rageval: "))
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
