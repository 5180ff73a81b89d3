"""The screen of a run of the command: lines as they arrive, and progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import indent

import click

from pytest_rageval.cli.options import as_written_here
from pytest_rageval.cli.output import Progress
from pytest_rageval.io.masking import Mask
from pytest_rageval.run.case_blocks import EvaluatedCase
from pytest_rageval.run.prefetch import Tally
from pytest_rageval.text import printable

WORDS = {"failed": "FAILED", "error": "ERROR"}
COLOURS = {"failed": "red", "error": "red"}


class Screen:
    """The lines of one run, printable and without credentials."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.failed_steps: dict[str, str] = {}
        """Failures by step: each is shown at once, and the other steps go on."""

    def clean(self, text: str) -> str:
        return printable(self.mask.output(text))

    def line(self, text: str, *, colour: str | None = None) -> None:
        with _named_output():
            click.secho(self.clean(text), fg=colour)

    def problems(self, *problems: str) -> list[str]:
        """Print problems, a line each."""
        lines = [self.clean(as_written_here(problem)) for problem in problems]
        for line in lines:
            click.echo(f"ERROR: {line}", err=True)
        return lines

    def step_failed(self, step: str, problem: str) -> None:
        self.failed_steps[step] = problem
        self.problems(f"{step} failed, the other steps go on: {problem}")


class CaseProgress:
    """The progress of a run's cases: a line for each that did not pass, and a count on a terminal."""

    def __init__(self, screen: Screen, tally: Tally, total: int, workers: Callable[[], str] = str) -> None:
        """Prepare the count; `workers` stands at its end if others do the work."""
        self._screen = screen
        self._tally = tally
        self._workers = workers
        self._count = Progress("case", total, end=self._in_flight)
        self._done = 0
        self._shown_errors: set[str] = set()

    def tick(self) -> None:
        """Show the progress; called now and then while nothing ends."""
        self._count(self._done)

    def end_case(self, case: EvaluatedCase) -> None:
        """Show a case that has ended here, with the output of its code if it did not pass, as pytest does."""
        result = case.result
        first_line = (result.reason or "").partition("\n")[0]
        if result.outcome in ("failed", "error") and self.failed(result.key, result.outcome, first_line):
            for stream, text in case.printed.texts():
                self._screen.line(f"  captured {stream}:\n{indent(text.rstrip(), '    ')}")
        self.advance(1)

    def failed(self, key: str, outcome: str, reason: str) -> bool:
        """Show a case that did not pass; return False, and show nothing, for an error that was shown already.

        The causes at the end count equal errors.
        """
        if outcome == "error":
            if reason in self._shown_errors:
                return False
            self._shown_errors.add(reason)
        self._count.wipe()
        self._screen.line(f"{WORDS[outcome]} {key} - {as_written_here(reason)}", colour=COLOURS[outcome])
        return True

    def advance(self, cases: int) -> None:
        """Count this many more cases as ended."""
        self._done += cases
        self._count(self._done)

    def wipe(self) -> None:
        self._count.wipe()
        with _named_output():
            sys.stdout.flush()

    def _in_flight(self) -> str:
        tally = self._tally
        cost = f", ${tally.cost_usd:.2f}" if tally.cost_usd else ""
        counts = f" · {tally.judged} judged, {tally.in_flight} in flight{cost}{self._workers()}"
        return ", ".join([counts, *tally.allowances()])


@contextmanager
def _named_output() -> Iterator[None]:
    """Add the name of the output to an error without one: else the error would name the folder of the run."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise
