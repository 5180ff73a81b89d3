"""Ctrl-C while a stored run is judged: it leaves the run as it was, or whole with what was judged, and says which."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import NoReturn, Self

import click

from pytest_rageval.cli.exit_codes import STOPPED
from pytest_rageval.runs.interrupts import Interrupts


class Interruptible:
    """The time in which a run is judged. A signal ends it until `begin_writing`; from there on it waits for the end."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._interrupts = Interrupts(self._leave_written)

    def __enter__(self) -> Self:
        return self

    def begin_writing(self) -> None:
        """To be called before the first file of the run is replaced."""
        self._interrupts.install()
        self._interrupts.begin_finishing()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None or issubclass(kind, SystemExit):
                self._interrupts.end_finishing()
        finally:
            self._interrupts.restore()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._leave("is as it was; what was judged is in the judge cache")

    def _leave_written(self) -> NoReturn:
        self._leave("was written by then, with what was judged")

    def _leave(self, state: str) -> NoReturn:
        click.echo(f"interrupted: run {self._run_id} {state}", err=True)
        sys.exit(STOPPED)
