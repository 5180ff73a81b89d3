"""Foreign texts as a command shows them: printable, and without the credentials of its project."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_rageval.io.case_output import Output, Routing, routed_streams
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.io.masking import Mask


class CommandTexts:
    """Cleans the texts of one call of the command; settings are read when the first text comes."""

    def clean(self, text: str) -> str:
        """Return the text for a terminal."""
        return printable(self._mask.output(text))

    @cached_property
    def _mask(self) -> Mask:
        from pytest_rageval.io.masking import Mask  # here, because a help text needs none

        return Mask(_secrets())

    @contextmanager
    def routed(self) -> Iterator[None]:
        """Show what user code prints outside of cases line by line, and cleaned."""
        with routed_streams(Routing(Output(self.clean))):
            yield


def clean(text: str) -> str:
    """Return a text that a system, its server or its code may have written, for the terminal."""
    return CommandTexts().clean(text)


def _secrets() -> Iterator[str]:
    """Yield the credentials of the environment, of the settings and of the command line."""
    # Imported here, because most commands show nothing that needs them.
    from pytest_rageval.config.project import find_project
    from pytest_rageval.errors import RagevalError
    from pytest_rageval.io.environment_secrets import secrets_of_environment
    from pytest_rageval.io.masking import secrets_of_target
    from pytest_rageval.io.secret_names import is_secret_name

    yield from secrets_of_environment(os.environ)
    for word in sys.argv[1:]:
        yield from secrets_of_target(word)
        name, _, value = word.partition("=")
        if is_secret_name(name):
            yield value
    try:
        yield from find_project().settings.secrets()
    except RagevalError:
        return
