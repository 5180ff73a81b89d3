"""How much does a command cost? CPU of its whole process tree, peak memory, wall time; several rounds, in turns.

Standard library only, and small: a process that is started here counts this process's memory as its own until it has
replaced it, so a big harness would show up in every peak.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
HERE = Path(__file__).parent
PYTEST = (sys.executable, "-m", "pytest")
PLUGIN = ("-p", "pytest_rageval.plugin.hooks")
ONLY_ASKED_FOR = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Plugins that happen to be installed stay out, on every side of a comparison."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one command took.

    cpu_s     user and system seconds of the process and all of its descendants
    peak_mib  resident memory of the largest of them, in MiB
    wall_s    seconds from start to end
    """

    cpu_s: float
    peak_mib: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity over several rounds: the least (what it costs) and the median (what one may expect)."""

    least: float
    median: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        """The figure of as many rounds as there are values, at least one."""
        found = list(values)
        return cls(min(found), statistics.median(found))

    def less(self, smaller: Figure, *, each: int = 1) -> Figure:
        """What this costs more than the smaller, for each of so many: least less least, median less median."""
        return Figure((self.least - smaller.least) / each, (self.median - smaller.median) / each)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `goal` is the most that `ours` should be, in the same unit."""

    what: str
    unit: str
    ours: Figure
    peer_name: str = ""
    peer: Figure | None = None
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure: the usual amount, or a tenth of it for a quick look."""

    is_quick: bool = False
    peers_python: str | None = None
    """The interpreter of an environment with larger peers; None leaves them out."""

    def cases(self, usual: int) -> int:
        return max(1, usual // 10) if self.is_quick else usual

    def rounds(self, usual: int) -> int:
        return max(1, usual // 3) if self.is_quick else usual


def measure(
    command: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    expected: Sequence[int] = (0,),
    timeout_s: float = 1800,
) -> Usage:
    """Run a command in a folder; RuntimeError with the end of its output if it exits otherwise than expected."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONHASHSEED": "0", **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        stop = threading.Timer(timeout_s, os.killpg, (process.pid, signal.SIGKILL))
        stop.start()
        try:
            # Of this process and its descendants alone; RUSAGE_CHILDREN would hold the peaks of earlier commands too.
            _, status, used = os.wait4(process.pid, 0)
        finally:
            stop.cancel()
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in expected:
            output.seek(max(0, output.seek(0, os.SEEK_END) - 2000))
            said = output.read().decode(errors="replace")
            raise RuntimeError(f"exit code {process.returncode} of {' '.join(command)}:\n{said}")
    return Usage(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, wall_s)


def measure_inside(module: str, **arguments: Any) -> dict[str, Any]:
    """What a benchmark's `inside` measures of itself, in a fresh process: a mapping that goes through JSON."""
    command = [sys.executable, str(HERE / "inside.py"), module, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode:
        raise RuntimeError(f"{module} failed:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def in_turns(rounds: int, sides: Mapping[str, T], run: Callable[[str, T], Usage]) -> dict[str, list[Usage]]:
    """Run every side once a round, one after the other, so that a busy minute of the machine meets all of them."""
    found: dict[str, list[Usage]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(run(name, side))
    return found


def cpu(usages: Iterable[Usage], *, each: int = 1, unit: float = 1.0) -> Figure:
    """CPU over rounds, for each of so many, in parts of a second (`unit` 1e6 gives microseconds)."""
    return Figure.of(used.cpu_s / each * unit for used in usages)


def peak(usages: Iterable[Usage]) -> Figure:
    """Peak memory over rounds, in MiB."""
    return Figure.of(used.peak_mib for used in usages)


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, with all that was written into it."""
    with tempfile.TemporaryDirectory(prefix="rageval-bench-") as name:
        yield Path(name)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """The collector off, as it is while cases are loaded."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
