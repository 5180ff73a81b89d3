"""Exit codes of verbs: declared at the verb, shown by its `--help` and by `rageval schema`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
USUAL: Mapping[int, str] = {0: "done", 2: "wrong usage, wrong settings, or a file that cannot be read or written"}
INTERRUPTED = BROKEN_CASES = 2
INTERNAL, USAGE, NO_CASES = 3, 4, 5
STOPPED = 130
"""What Ctrl-C ended, as shells have it; not of verbs that do what pytest does."""
CODES_OF_PYTEST: Mapping[int, str] = {
    0: "all cases ran, and all gates hold",
    1: "a case, a gate or a step failed",
    INTERRUPTED: "interrupted, or a broken case file",
    INTERNAL: "the run's files could not be written",
    USAGE: "wrong settings or wrong usage",
    NO_CASES: "there are no cases",
}
"""Of the verbs that do what pytest does."""
_DECLARED: dict[Callable[..., Any], Mapping[int, str]] = {}


def exit_codes(codes: Mapping[int, str], *, is_all: bool = False) -> Callable[[F], F]:
    """Declare what the codes of a verb mean, those beside the usual ones, and append them to its help.

    To be written below the decorators of click. `is_all`: there are no codes but these.
    """

    def declared(callback: F) -> F:
        meanings = dict(sorted({**({} if is_all else USUAL), **codes}.items()))
        _DECLARED[callback] = meanings
        lines = "\n".join(f"  {code}  {meaning}" for code, meaning in meanings.items())
        callback.__doc__ = f"{inspect.cleandoc(callback.__doc__ or '')}\n\n\b\nExit codes:\n{lines}"
        return callback

    return declared


def exit_codes_of(command: click.Command) -> Mapping[int, str]:
    """What the exit codes of a verb mean."""
    return _DECLARED.get(command.callback, USUAL) if command.callback is not None else USUAL
