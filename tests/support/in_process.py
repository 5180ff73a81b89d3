"""Runs of pytest and of the command inside the process of the test, with what they print and the code they end with.

A run of one case costs 0.2 s of CPU so, and 1.5 to 2 s as a process of its own. A test whose subject is the process
itself (workers, signals, crashes, encodings, what is imported) starts one instead.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
from warm_workers import warm_workers

import pytest_rageval
from pytest_rageval.cli.main import main as command

PLAIN = ("-p", "rageval", "-p", "xdist")
"""Our plugin and its workers. What else lives in this environment costs each process 0.2 s; test_neighbours has it."""
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
PLUGIN_OF = {"--html": ("-p", "metadata", "-p", "html"), "--timeout": ("-p", "timeout")}
OF_THE_PROCESS = ("faulthandler", "threadexception", "unraisableexception")
"""What pytest watches for a whole process: the session of the test itself does, and makes errors of what it sees."""


def _load_everything() -> None:
    """Import all modules of the package: the first run should take no longer than the others, nor change them."""
    for module in pkgutil.walk_packages(pytest_rageval.__path__, "pytest_rageval."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def rageval(folder: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`rageval ARGUMENTS` in a folder, to its exit code."""
    return _ended(folder, command, "rageval", [str(argument) for argument in arguments], environment)


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder, with no plugin but ours and those that the arguments speak of."""
    with warm_workers():
        return run_pytest_with_neighbours(folder, *plain(arguments), **ALONE, **environment)


def run_pytest_with_neighbours(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder, with all plugins of this environment."""
    watched = [argument for name in OF_THE_PROCESS for argument in ("-p", f"no:{name}")]

    def run() -> None:
        sys.exit(int(pytest.main([*watched, *arguments])))

    return _ended(folder, run, "pytest", arguments, environment)


def plain(arguments: Sequence[str]) -> tuple[str, ...]:
    """Arguments of pytest, with the plugins that they need where none is loaded of itself."""
    needed = [of for option, of in PLUGIN_OF.items() if any(argument.startswith(option) for argument in arguments)]
    return (*PLAIN, *(word for of in needed for word in of), *arguments)


def as_result(ended: subprocess.CompletedProcess[str]) -> pytest.RunResult:
    """What ended, as `pytester.run` would give it."""
    return pytest.RunResult(ended.returncode, ended.stdout.splitlines(), ended.stderr.splitlines(), 0.0)


def _ended(
    folder: Path, run: Callable[[], None], name: str, arguments: Iterable[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    out, err = io.BytesIO(), io.BytesIO()
    words = [name, *arguments]
    with (
        _as_if_alone(folder),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(io.TextIOWrapper(out, "utf-8", "strict", "\n", write_through=True)),
        contextlib.redirect_stderr(io.TextIOWrapper(err, "utf-8", "backslashreplace", "\n", write_through=True)),
    ):
        code = _exit_code(run)
        # Still here: a stream that is let go of closes what it wrote to.
        shown = [stream.getvalue().decode("utf-8") for stream in (out, err)]
    print(*words, *shown, sep="\n")  # for whoever reads why a test failed
    return subprocess.CompletedProcess(words, code, *shown)


def _exit_code(run: Callable[[], None]) -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextlib.contextmanager
def _as_if_alone(folder: Path) -> Iterator[None]:
    """In this folder, with none of its modules imported yet; afterwards they are forgotten."""
    modules, path = dict(sys.modules), list(sys.path)
    # A test before this one may have had a module of the same name somewhere else.
    for name in {path.stem for path in folder.rglob("*.py")} & sys.modules.keys():
        del sys.modules[name]
    importlib.invalidate_caches()
    # Compiled files are told apart by second and size: a bot written anew within a second would be the old one.
    with contextlib.chdir(folder), mock.patch.object(sys, "dont_write_bytecode", True):
        try:
            yield
        finally:
            sys.path[:] = path
            for name, module in list(sys.modules.items()):
                if name not in modules and _lies_below(module, folder):
                    del sys.modules[name]
            sys.modules.update(modules)


def _lies_below(module: ModuleType, folder: Path) -> bool:
    place = getattr(module, "__file__", None)
    return place is not None and Path(place).is_relative_to(folder)


_load_everything()
