"""Calls of the project's own hooks: an exception is a problem in one line, never the end of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_rageval.errors import SettingsError, ends_the_run
from pytest_rageval.io.importing import described_exception

if TYPE_CHECKING:
    import pluggy


def call_hook(hook: pluggy.HookCaller, **arguments: object) -> Any:
    """Call a hook; SettingsError if it raises. Ctrl-C and `pytest.exit` pass: they end the run in order.

    `pytest.skip` and the like are no Exception of Python's, and would end the session without a word about the run.
    """
    try:
        return hook(**arguments)
    except BaseException as error:
        if ends_the_run(error):
            raise
        raise SettingsError(f"{hook.name}: {described_exception(error)}") from None
