"""Output of verbs: views as wide as the terminal, files named by `--output`, and progress."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click
from rich.cells import cell_len

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.render.text.view_text import StyledLine, view_lines

LEAST_COLUMNS = 40
"""Columns for which views are laid out even in a narrower terminal."""


def columns(otherwise: int = 80) -> int:
    """Return the width of the terminal, or of a pipe if nothing says how wide it is."""
    return max(shutil.get_terminal_size((otherwise, 24)).columns, LEAST_COLUMNS)


def echo_view(view: Any, worded: Callable[[str], str] = str) -> None:
    """Show a view, each line as `worded` makes it; colours appear only where the command shows any."""
    for line in view_lines(view, columns()):
        click.echo(styled(line._replace(text=worded(line.text))))


def styled(line: StyledLine) -> str:
    """Return a line in its style."""
    if line.style == "plain":
        return line.text
    if line.style == "bold":
        return click.style(line.text, bold=True)
    return click.style(line.text, fg=line.style)


def from_here(path: Path) -> Path:
    """Return the path as seen from the working directory, if it is below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def write_output(path: Path, text: str, named: str = "") -> None:
    """Write the file that `--output`, or what `named` says, names."""
    try:
        write_text(path, text.encode("utf-8", "backslashreplace").decode("utf-8"))
    except OSError as error:
        where = f"{named}:" if named else f"--output: {path}"
        raise SettingsError(f"{where} cannot be written: {error.strerror or error}") from None


FIRST_S = 1.0
"""Seconds until a progress is shown: what ends before needs none."""
EVERY_S = 0.1
"""Seconds between two updates."""


class Progress:
    """`with Progress("judged") as watch: watch(12)` shows `judged 12` on standard error, and wipes it at the end."""

    def __init__(self, what: str, total: int | None = None, end: Callable[[], str] = str) -> None:
        """Prepare the line; `end` follows the count each time."""
        self._what = what
        self._of = "" if total is None else f" of {total}"
        self._end = end
        self._next = time.monotonic() + FIRST_S
        self._is_terminal = sys.stderr.isatty()
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int) -> None:
        if not self._is_terminal:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        # A line of the full width would wrap, and could not be wiped.
        room = shutil.get_terminal_size().columns - 1
        line = shortened(f"{self._what} {done}{self._of}{self._end()}", room)
        self._width = max(self._width, cell_len(line))
        print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)

    def wipe(self) -> None:
        """Remove the line, so that something else can take its place."""
        if self._width:
            print("\r" + " " * self._width, end="\r", file=sys.stderr, flush=True)
            self._width = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wipe()
