"""Write what verbs show: views as wide as the terminal, and files named by `--output`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.render.text.view_text import StyledLine, view_lines

LEAST_COLUMNS = 40


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
    return click.style(line.text, fg=None if line.style == "bold" else line.style, bold=line.style == "bold" or None)


def write_output(path: Path, text: str) -> None:
    """Write the file that `--output` names."""
    try:
        write_text(path, text.encode("utf-8", "backslashreplace").decode("utf-8"))
    except OSError as error:
        raise SettingsError(f"--output: {path} cannot be written: {error.strerror or error}") from None
