"""A worker of a run: it evaluates portions of cases like `rageval run`, and sends their records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.case_output import Output, Routing, routed_streams
from pytest_rageval.model import EvalCase
from pytest_rageval.run.case_blocks import EvaluatedCase
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prefetch import FIRST_CALLS, Tally, calls_of
from pytest_rageval.run.prepare import Preparation, make_target, prepare
from pytest_rageval.runs.comparable import other_configuration
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.records.line_form import OBSERVATIONS
from pytest_rageval.runs.results_file import NotedRecord, noted_record
from pytest_rageval.runs.row import SharedParts
from pytest_rageval.scale.assignment import Assignment, baseline_hash, own_configuration
from pytest_rageval.scale.portions import MOST_OF_A_BLOCK, Block, Failure
from pytest_rageval.targets.answer_records import AnswerRecord, SharesAnswers
from pytest_rageval.targets.target import BaseTarget

JOURNAL = "portion"


class SentLines(RunFolder):
    """The observations of a portion, which are sent instead of written; results are sent as they are evaluated."""

    def __init__(self) -> None:
        super().__init__(Path())
        self._observations: list[bytes] = []

    def append(self, name: str, line: str | bytes) -> None:
        """Keep a line; called on the loop's thread, too."""
        if name.startswith(OBSERVATIONS.partition(".")[0]):
            self._observations.append(line if isinstance(line, bytes) else line.encode())

    def take(self) -> bytes:
        """Return the lines since the last call."""
        lines = self._observations
        self._observations = []
        return b"\n".join(lines)


class PortionWorker:
    """A worker for the whole run: target, judge and rate limits are made once."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._first_calls = FIRST_CALLS
        self._shared = SharedParts()

    def begin(self, written: str) -> list[str]:
        """Make target and judge for an assignment in JSON; return what keeps this worker from it, a line each."""
        try:
            self._begin(Assignment.model_validate_json(written))
        except RagevalError as error:
            return list(error.problems)
        return []

    def _begin(self, assigned: Assignment) -> None:
        project = assigned.project
        if not project.root.is_dir():
            raise SettingsError(f"there is no folder {project.root}; the project must be there too, at the same path")
        prepared = prepare(project, workers=assigned.share.of, is_worker=True, is_before_cases=True)
        self._prepared = prepared.knowing(assigned.namesakes, assigned.added_metrics)
        _check_same(self._prepared, assigned)
        if assigned.answers is None:
            self._target: BaseTarget = make_target(project)
        else:
            from pytest_rageval.targets.answers_target import AnswersTarget  # here, because other runs do not need it

            self._target = AnswersTarget.of_checked(assigned.answers)
        # Without a folder, since each portion has its own.
        self._run = OngoingRun.join(self._prepared, None, JOURNAL, "")
        self._opened.callback(self._run.close)
        self._judge = self._opened.enter_context(self._run.asking(self._target, self._prepared.judge))

    def blocks(
        self, cases: Sequence[EvalCase], config_hash: str, answers: Sequence[AnswerRecord] | None = None
    ) -> Iterator[Block]:
        """Evaluate the cases and yield their records in the cases' order.

        `answers` are the records with their answers, if the assignment says that the command has checked the file.
        Exceptions pass through; another worker then gets the rest.
        """
        if answers is not None and isinstance(self._target, SharesAnswers):
            self._target.take(answers)
        observations = SentLines()
        run = OngoingRun.join(self._prepared, observations, JOURNAL, config_hash, self._run.loop)
        sent = Tally()
        block: list[EvaluatedCase] = []
        size = 0
        try:
            evaluations = run.evaluations(cases, self._target, self._judge, breaks_off=False)
            for number, evaluated in enumerate(evaluations, start=1):
                block.append(evaluated)
                size += sum(len(line.data) for line in evaluated.lines)
                # What was asked is sent at once: it would be asked again if this worker were lost.
                is_free = run.prefetcher.is_reading
                if size >= MOST_OF_A_BLOCK or number == len(cases) or not is_free:
                    yield self._sent(block, observations.take(), run.prefetcher.tally, sent, is_free=is_free)
                    block = []
                    size = 0
        finally:
            run.close()

    def _sent(
        self, evaluated: Sequence[EvaluatedCase], observations: bytes, tally: Tally, sent: Tally, *, is_free: bool
    ) -> Block:
        """Return a block with what was counted since the last one, and count it as sent."""
        # A case has a call for each of its trials: so many cases are enough.
        first = [case.evaluation for case in evaluated[: self._first_calls]]
        calls = calls_of(first)[: self._first_calls]
        self._first_calls -= len(calls)
        results: list[bytes] = []
        noted: list[NotedRecord] = []
        for case in evaluated:
            for line in case.lines:
                results.append(line.data)
                noted.append(noted_record(line.record, self._shared))
        block = Block(
            cases=len(evaluated),
            results=b"\n".join(results),
            observations=observations,
            noted=tuple(noted),
            failures=tuple(_failures(evaluated)),
            calls=tuple(calls),
            asked=tally.asked - sent.asked,
            judged=tally.judged - sent.judged,
            in_flight=tally.in_flight,
            cost_usd=tally.cost_usd - sent.cost_usd,
            is_free=is_free,
        )
        sent.asked = tally.asked
        sent.judged = tally.judged
        sent.cost_usd = tally.cost_usd
        return block

    def end(self) -> list[str]:
        """Close all resources; return the notes of target, judge and cache."""
        self._opened.close()
        return self._run.notes


def _failures(evaluated: Sequence[EvaluatedCase]) -> Iterator[Failure]:
    for case in evaluated:
        result = case.result
        if result.outcome in ("failed", "error"):
            yield Failure(result.key, result.outcome, (result.reason or "").partition("\n")[0])


class ProcessWorker(PortionWorker):
    """A worker in a process of its own, in the command's working directory if it exists here."""

    def _begin(self, assigned: Assignment) -> None:
        for folder in (assigned.folder, assigned.root):
            if Path(folder).is_dir():
                os.chdir(folder)
                break
        # Hide what the project's code prints for a case: the command shows results in the order of arrival.
        self._opened.enter_context(routed_streams(Routing(Output())))
        super()._begin(assigned)


def _check_same(prepared: Preparation, assigned: Assignment) -> None:
    """Raise SettingsError if the run would differ on this machine."""
    # Read on the command's machine, so that "here" is the command's, and "there" is this worker's.
    commands = assigned.configuration
    own = own_configuration(prepared)
    release = commands["libraries"]["pytest-rageval"]
    own_release = own["libraries"]["pytest-rageval"]
    if release != own_release:
        raise SettingsError(f"pytest-rageval is {own_release} there and {release} here; install the same one")
    # Known failures depend on it: another one gives other outcomes.
    if baseline_hash(prepared) != assigned.baseline:
        raise SettingsError(f"{prepared.project.baseline_file} is another one there than here; copy it there")
    other = other_configuration(commands, own)
    if other is not None:
        raise SettingsError(f"the project is configured otherwise there: {other}; copy it there anew")
