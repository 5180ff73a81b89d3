"""User code: importing objects by name (`package.module:object`), and exceptions described in one line."""

from __future__ import annotations

import functools
import importlib
import sys
import sysconfig
import traceback
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError, message_of
from pytest_rageval.io.case_output import foreign_code
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.text import excerpt, printable

_LONGEST_MESSAGE = 300
_NOT_THEIRS = tuple(
    str(Path(folder)) for folder in {Path(__file__).parents[1], *map(Path, sysconfig.get_paths().values())}
)


def import_object(what: str, module: str, attributes: str, root: Path | None = None) -> Any:
    """Import the object at `attributes` of a module, with `root` on `sys.path`.

    Raises SettingsError in one line, beginning with `what`, if the module cannot be imported or has no such object;
    ModuleNotFoundError if its top-level package is not installed, for which the caller may know a remedy.
    """
    if root is not None and str(root) not in sys.path:
        # Left there: the module may import more of the project later.
        sys.path.insert(0, str(root))
    try:
        with foreign_code():
            value: Any = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    # Importing runs user code, which may raise anything, SystemExit included.
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            raise
        raise SettingsError(f"{what}: {module} cannot be imported: {described_exception(error)}") from None
    for name in attributes.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            public = [attribute for attribute in dir(value) if not attribute.startswith("_")]
            raise SettingsError(f"{what}: {module} has no {name!r}{did_you_mean(name, public)}") from None
    return value


def plugged_in(group: str) -> EntryPoints:
    """Return the entry points of installed packages in a group."""
    # By the path as well: what is installed depends on it.
    return _installed(group, tuple(sys.path))


@functools.cache
def _installed(group: str, _path: tuple[str, ...]) -> EntryPoints:
    # This reads a file of each installed package: 5 ms for 150 of them, and a run asks five times for three groups.
    return entry_points(group=group)


def described_exception(error: BaseException) -> str:
    """Describe an exception in one line: its type, its message, and its place in the user's code."""
    message = excerpt(message_of(error), _LONGEST_MESSAGE)
    name = printable(type(error).__name__)
    place = _place(error)
    return name + (f": {message}" if message else "") + (f" (at {place})" if place else "")


def _place(error: BaseException) -> str:
    """Return `file:line` of the last frame outside libraries and this package."""
    if isinstance(error, SyntaxError) and error.filename:
        return ""  # its own message names the place
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((*_NOT_THEIRS, "<"))]
    if not theirs:
        return ""
    path = Path(theirs[-1].filename)
    line = theirs[-1].lineno
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{line}"
