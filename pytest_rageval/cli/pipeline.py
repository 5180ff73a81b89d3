"""A run outside pytest: opened, its cases evaluated here or by workers, finished, and shown with its exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pytest_rageval.cli.case_files import CaseSelection
from pytest_rageval.cli.options import INTERNAL, as_written_here
from pytest_rageval.cli.output import from_here
from pytest_rageval.cli.screen import CaseProgress, Screen
from pytest_rageval.cli.stored_run import exit_code_of, show_figures, show_verdict
from pytest_rageval.config.project import Project
from pytest_rageval.errors import JudgeUnavailable, SettingsError
from pytest_rageval.io.masking import public_target
from pytest_rageval.model import EvalCase
from pytest_rageval.render.gate_tests import gate_tests
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish import FinishedRun, fail_judging
from pytest_rageval.run.ongoing_run import INTERRUPTED, OngoingRun
from pytest_rageval.run.prepare import Preparation, prepare, run_configuration
from pytest_rageval.runs.interrupts import Interrupts, is_called_by_script
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.runs.reservations import IN_A_BATCH, LEFT_OUT
from pytest_rageval.runs.run_files import put_in_order
from pytest_rageval.scale.dispatch import ClusterRun, Crew, crew_size, waiting_cases
from pytest_rageval.targets.target import BaseTarget
from pytest_rageval.text import counted
from pytest_rageval.views.run import may_be_accepted

RESUME = "rageval run --resume"
REPORTS = ("summary.md", "report.html")


class Workers(NamedTuple):
    """The workers that ask, made for one run, and the greatest number of them."""

    crew: Callable[[Preparation, str, BaseTarget], Crew]
    most: int


def prepare_unjudged(project: Project) -> Preparation:
    """Prepare the run without its judge."""
    unjudged = project.settings.model_copy(update={"judge": "none"})
    return prepare(project._replace(settings=unjudged), is_before_cases=True)


class CommandRun:
    """A run of the command; `finished` is None if it has no results."""

    def __init__(
        self,
        prepared: Preparation,
        cases: CaseSelection,
        target: BaseTarget,
        screen: Screen,
        workers: Workers | None = None,
        left_out_judge: str | None = None,
        *,
        is_batched: bool = False,
    ) -> None:
        """Open the run, without its judge if that cannot be asked; raise SettingsError if that fails.

        workers         those that ask, if it is not this process
        left_out_judge  the specification of the judge that could not be asked
        is_batched      True if the judging is submitted as a batch, once the run is finished
        """
        self.prepared = prepared
        self._cases = cases
        self._target = target
        self._screen = screen
        self._workers = workers
        self._left_out_judge = left_out_judge
        self._is_batched = is_batched
        self.is_interrupted = False
        self._is_ordered = workers is None
        self.finished: FinishedRun | None = None
        try:
            self.run = self._open()
        except JudgeUnavailable as error:
            screen.step_failed("judging", as_written_here("; ".join(error.problems)))
            self._left_out_judge = prepared.settings.judge
            self.prepared = prepare_unjudged(prepared.project)
            self.run = self._open()
        self.run_id = self.run.writer.folder.run_id

    def _open(self) -> OngoingRun:
        config = run_configuration(self.prepared, self._cases.cases, self._cases.paths)
        is_program = partial(is_called_by_script, "pytest_rageval.cli.main", "main")
        interrupts = Interrupts(self._leave, is_program=is_program)
        return OngoingRun.open(self.prepared, config, interrupts=interrupts)

    def _leave(self) -> NoReturn:
        """Leave at a second signal, once the run's files are written."""
        self._screen.line(f"interrupted; {RESUME} {self.run_id} finishes the run", colour="yellow")
        raise SystemExit(INTERRUPTED)

    def take_all_steps(self) -> None:
        """Evaluate the cases, decide the verdict and write the reports; raise SettingsError if nothing can be asked."""
        run = self.run
        try:
            self._evaluate()
            run.interrupts.begin_finishing()
            try:
                self._finish()
            finally:
                run.interrupts.end_finishing()
        except OSError as error:
            self._screen.problems(run.cannot_write(error, RESUME))
        finally:
            run.close()

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _evaluate(self) -> None:
        run = self.run
        cases = self._cases.asked
        here: Sequence[EvalCase]
        elsewhere: Sequence[EvalCase]
        if self._workers is None:
            here = run.waiting(cases)
            elsewhere = ()
        else:
            here, elsewhere = waiting_cases(run, cases, self.prepared.settings.repeat)
        cost = estimate(self.prepared.judge, self.prepared.plan, len(here) + len(elsewhere))
        if cost:
            self._screen.line(cost)
        try:
            if here or self._workers is None:
                self._evaluate_here(here)
            if self._workers is not None and elsewhere and run.broken_off is None:
                self._evaluate_elsewhere(elsewhere, self._workers)
        except KeyboardInterrupt:
            self.is_interrupted = True
        except SettingsError:
            run.has_results()  # nothing could be asked: a new run leaves no folder
            raise

    def _evaluate_here(self, cases: Sequence[EvalCase]) -> None:
        run = self.run
        progress = CaseProgress(self._screen, run.prefetcher.tally, len(cases))
        run.loop.on_wait = progress.tick
        run.prefetcher.expected = len(cases) * run.plan.settings.repeat
        try:
            run.evaluate_here(cases, self._target, self._screen.clean, progress.end_case)
        finally:
            run.loop.on_wait = None
            progress.wipe()

    def _evaluate_elsewhere(self, cases: Sequence[EvalCase], workers: Workers) -> None:
        run = self.run
        number = crew_size(self.prepared, len(cases), workers.most)
        crew = workers.crew(run.prepared, run.config_hash, self._target)
        cluster_run = ClusterRun(run, cases, crew, number)
        dispatch = cluster_run.dispatch

        def working() -> str:
            return f" · {dispatch.working} of {number} workers"

        progress = CaseProgress(self._screen, cluster_run.tally, len(cases), working)
        self._screen.line(f"{counted(len(cases), 'case')} on {counted(number, 'worker')}")
        try:
            for block in cluster_run.blocks():
                if block is None:  # nothing has ended for a while
                    progress.tick()
                    continue
                for failure in block.failures:
                    progress.failed(*failure)
                progress.advance(block.cases)
            run.notes += crew.notes()
            self._is_ordered = cluster_run.is_ordered
        finally:
            progress.wipe()
            crew.close()
            run.notes += dispatch.notes

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    def _finish(self) -> None:
        run = self.run
        if not self._is_ordered:
            run.writer.reconcile()  # first: records of this process may wait to be written
            run.notes += put_in_order(run.writer.folder.path)
        if run.broken_off is not None:
            self._screen.problems(run.broken_off.removeprefix("rageval: "))
        if not run.has_results():
            return
        extent = self._extent()
        finished = run.finish(extent)
        self.finished = finished
        self._write_reports(finished, extent)
        run.accept(finished)

    def fail_judging(self, judge: str | None) -> None:
        """Decide the finished run again, whose answers could not be submitted to this judge."""
        assert self.finished is not None
        self._left_out_judge = judge
        extent = self._extent()
        self.finished = fail_judging(self.run.writer, self.prepared.plan, extent, self.finished)
        self._write_reports(self.finished, extent)

    def _write_reports(self, finished: FinishedRun, extent: Extent) -> None:
        run = self.run
        try:
            reports = write_all_reports(
                finished.stored,
                self.prepared.plan,
                finished.cases,
                self.prepared.project.baseline_file,
                exit_status=extent.exit_status,
            )
        except OSError as error:
            self._screen.step_failed("report", f"{error.filename} cannot be written: {error.strerror}")
        else:
            run.notes += reports.notes
            if reports.page is not None and reports.page.problem is not None:
                self._screen.step_failed("report", reports.page.problem)

    def _extent(self) -> Extent:
        mask = self.prepared.mask
        selection = {option: mask.text(text) for option, text in self._cases.selected_by.items()}
        return Extent(
            every={case.key for case in self._cases.cases},
            expected={case.key for case in self._cases.asked},
            selection=selection,
            is_ended_early=self.is_interrupted or self.run.broken_off is not None,
            exit_status=self.run.exit_status(is_interrupted=self.is_interrupted),
            unjudged_because=self._unjudged_because,
        )

    @property
    def _unjudged_because(self) -> str | None:
        if self._left_out_judge is not None:
            return LEFT_OUT
        return IN_A_BATCH if self._is_batched else None

    @property
    def _resume_command(self) -> str | None:
        """Return the command that finishes the run; None if none is left to ask, or without answers no folder."""
        has_cases_left = self.finished is not None and self.finished.is_unfinished
        is_unfinished = self.is_interrupted or has_cases_left
        has_folder = self.run.writer.folder.path.is_dir()
        if self.run.is_broken or (is_unfinished and has_folder):
            return f"{RESUME} {self.run_id}"
        return None

    @property
    def _judge_command(self) -> str | None:
        """Return the command that judges the answers, if the judge could not be asked."""
        if self._left_out_judge is None:
            return None
        return f"rageval judge {self.run_id} --judge {public_target(self._left_out_judge)}"

    @property
    def _reports(self) -> list[Path]:
        if self.finished is None:
            return []
        paths = [self.finished.folder / name for name in REPORTS]
        return [path for path in paths if path.is_file()]

    def show(self) -> int:
        """Show the result of the run; return its exit code."""
        run = self.run
        screen = self._screen
        if run.is_broken:
            return INTERNAL
        code = 0
        if self.finished is not None:
            show_figures(self.finished, self.prepared.plan, as_written_here)
            code = exit_code_of(self.finished, self.prepared.plan)
        for note in run.notes:
            screen.line(as_written_here(note), colour="yellow")
        if self.finished is not None:
            show_verdict(self.finished, self.prepared.project.baseline_file, as_written_here)
        for path in self._reports:
            screen.line(f"{path.stem}: {from_here(path)}")
        if self._judge_command is not None:
            screen.line(f"judge its answers later: {self._judge_command}", colour="yellow")
        if self._resume_command is not None:
            screen.line(run.how_to_finish(self._resume_command), colour="yellow")
        elif self.is_interrupted:
            screen.line("interrupted before anything was answered: nothing is kept", colour="yellow")
        if self.is_interrupted:
            return INTERRUPTED
        if screen.failed_steps or run.broken_off is not None:
            return max(code, 1)
        return code

    def outcome(self) -> dict[str, Any]:
        """Return the content of `--json`, except the exit code."""
        content: dict[str, Any] = {"run": self.run_id, "failed_steps": self._screen.failed_steps}
        if self.finished is not None:
            content |= self._results(self.finished)
        content["next"] = list(self._next())
        masked: dict[str, Any] = self.prepared.mask.value(content)
        return masked

    def _results(self, finished: FinishedRun) -> dict[str, Any]:
        metrics = finished.metrics
        failed_tests = [test for test in gate_tests(finished, self.prepared.plan) if test.outcome == "failed"]
        return {
            "folder": str(finished.folder),
            "reports": {path.stem: str(path) for path in self._reports},
            "verdict": metrics["verdict"]["word"],
            "sentence": metrics["verdict"]["sentence"],
            "partial": finished.is_partial,
            "outcomes": metrics["outcomes"],
            "overall_score": metrics["overall_score"],
            "failed_gates": {test.name: test.message for test in failed_tests},
        }

    def _next(self) -> Iterator[str]:
        if self._judge_command is not None:
            yield self._judge_command
        if self._resume_command is not None:
            yield self._resume_command
        finished = self.finished
        if finished is None:
            return
        failing = [row.key for row in finished.rows if row.outcome in ("failed", "error")]
        if failing:
            yield f"rageval explain {self.run_id} {shlex.quote(failing[0])}"
        if finished.metrics["comparison"] is not None:
            yield f"rageval compare baseline {self.run_id}"
        elif may_be_accepted(finished.metrics) and not self.is_interrupted:
            yield "rageval run --update-baseline"
