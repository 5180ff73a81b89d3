"""A worker of a run: it evaluates portions of cases like `rageval run`, and sends their records."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_rageval.case_output import routed_streams
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import EvalCase
from pytest_rageval.prefetch import FIRST_CALLS, Call, Tally, calls_of
from pytest_rageval.prepare import Prepared, make_target, prepare
from pytest_rageval.runs.comparable import other_configuration
from pytest_rageval.runs.reader import OBSERVATIONS, RESULTS
from pytest_rageval.scale.assignment import Assignment, own_configuration, release
from pytest_rageval.scale.portions import Block, Failure, Tail, read_cases
from pytest_rageval.session import RunSession
from pytest_rageval.targets.target import Target

EVERY_S = 0.25
"""Seconds between two looks for records to send: so much work is lost with a worker, and done again."""
JOURNAL = "portion"


class PortionWorker:
    """A worker for the whole run: target, judge and rate limits are made once.

    All inputs and outputs are text or numbers.
    """

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._first_calls = FIRST_CALLS

    def begin(self, written: str) -> list[str]:
        """Make target and judge for an assignment in JSON; return what keeps this worker from it, a line each."""
        try:
            self._begin(Assignment.from_json(written))
        except RagevalError as error:
            return list(error.problems)
        return []

    def _begin(self, assigned: Assignment) -> None:
        project = assigned.project
        if not project.root.is_dir():
            raise SettingsError(f"there is no folder {project.root}; the project must be there too, at the same path")
        self._prepared = prepare(project, workers=assigned.share.of, is_worker=True)
        _check_release(self._prepared, assigned)
        self._target = make_target(project)
        # Without a folder, since each portion has its own journal.
        self._run = RunSession.join(self._prepared, None, JOURNAL, "")
        self._opened.callback(self._run.close)
        self._judge = self._opened.enter_context(self._run.asking(self._target, self._prepared.judge))

    def blocks(self, written_portion: str, config_hash: str) -> Iterator[Block]:
        """Evaluate the cases and yield their records in the cases' order.

        Exceptions pass through; another worker then gets the rest.
        """
        with TemporaryDirectory(prefix="rageval-portion-") as folder:
            run = RunSession.join(self._prepared, Path(folder), JOURNAL, config_hash, self._run.loop)
            try:
                asking = _Asking(run, read_cases(written_portion), self._target, self._judge)
                asking.start()
                yield from self._sent(asking, Path(folder))
            finally:
                run.close()

    def _sent(self, asking: _Asking, folder: Path) -> Iterator[Block]:
        results = Tail(_journal_file(folder, RESULTS), self._prepared.settings.repeat)
        observations = Tail(_journal_file(folder, OBSERVATIONS))
        sent = Tally()
        while True:
            # Read once more after the thread has ended: then nothing is written any more.
            is_over = not asking.is_alive(EVERY_S)
            while (block := self._block(asking, results, observations, sent)) is not None:
                yield block
            if is_over:
                break
        if asking.error is not None:
            raise asking.error

    def _block(self, asking: _Asking, results: Tail, observations: Tail, sent: Tally) -> Block | None:
        """Return what is ready to send; None if there is nothing besides the tally."""
        failures, calls = asking.take_failures(), asking.take_calls(self._first_calls)
        self._first_calls -= len(calls)
        lines, cases = results.take()
        observed, _ = observations.take()
        if not (lines or observed or failures):
            return None
        tally = asking.tally
        asked, judged, cost = tally.asked - sent.asked, tally.judged - sent.judged, tally.cost_usd - sent.cost_usd
        sent.asked, sent.judged, sent.cost_usd = sent.asked + asked, sent.judged + judged, sent.cost_usd + cost
        return Block(cases, lines, observed, failures, calls, asked, judged, tally.in_flight, cost)

    def end(self) -> list[str]:
        """Close all resources; return the notes of target, judge and cache."""
        self._opened.close()
        return self._run.notes


class ProcessWorker(PortionWorker):
    """A worker in a process of its own, in the command's working directory if it exists here."""

    def _begin(self, assigned: Assignment) -> None:
        folder = next((place for place in (assigned.folder, assigned.root) if Path(place).is_dir()), None)
        if folder is not None:
            os.chdir(folder)
        # Hide what the project's code prints for a case: the command shows results in the order of arrival.
        self._opened.enter_context(routed_streams())
        super()._begin(assigned)


@dataclass
class _Asking:
    """A portion under evaluation on a thread of its own, which fills its journal."""

    run: RunSession
    cases: Sequence[EvalCase]
    target: Target
    judge: Judge | None
    error: BaseException | None = None
    _failures: list[Failure] = field(default_factory=list)
    _calls: list[Call] = field(default_factory=list)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._ask, name="rageval-portion", daemon=True)
        self._thread.start()

    def is_alive(self, seconds: float) -> bool:
        """Wait at most so many seconds for the end; return True if the thread still runs."""
        self._thread.join(seconds)
        return self._thread.is_alive()

    @property
    def tally(self) -> Tally:
        return self.run.prefetcher.tally

    def take_failures(self) -> tuple[Failure, ...]:
        taken = tuple(self._failures)
        del self._failures[: len(taken)]
        return taken

    def take_calls(self, most: int) -> tuple[Call, ...]:
        taken = tuple(self._calls[:most])
        self._calls.clear()
        return taken

    def _ask(self) -> None:
        try:
            for evaluated in self.run.evaluations(self.cases, self.target, self.judge, breaks_off=False):
                result = evaluated.result
                self._calls += calls_of([evaluated.evaluation])
                if result.outcome in ("failed", "error"):
                    reason = (result.reason or "").splitlines() or [""]
                    self._failures.append(Failure(result.key, result.outcome, reason[0]))
        except BaseException as error:  # noqa: BLE001  SystemExit of a target too: it is raised on the thread that waits
            self.error = error


def _check_release(prepared: Prepared, assigned: Assignment) -> None:
    """Raise SettingsError if the run would differ on this machine."""
    configuration = own_configuration(prepared)
    here, there = release(prepared, configuration), assigned.release
    if here.rageval != there.rageval:
        raise SettingsError(f"pytest-rageval is {here.rageval} there and {there.rageval} here; install the same one")
    if here.baseline != there.baseline:
        raise SettingsError(f"{prepared.project.baseline_file} is another one there than here; copy it there")
    other = other_configuration(assigned.configuration, configuration)
    if other is not None:
        raise SettingsError(f"the project is configured otherwise there: {other}; copy it there anew")


def _journal_file(folder: Path, name: str) -> Path:
    stem, _, ending = name.partition(".")
    return folder / f"{stem}-{JOURNAL}.{ending}"
