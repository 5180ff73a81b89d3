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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from environments import Peer

T = TypeVar("T")
HERE = Path(__file__).parent
PYTEST = (sys.executable, "-m", "pytest")
PLUGIN = ("-p", "pytest_rageval.plugin.hooks")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
    "PYTHONHASHSEED": "0"
}
"""Where it is set, each process compiles what was compiled already."""
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
    rounds: int = 0
    """Of how many rounds; 0 where it was made of several figures."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        """The figure of as many rounds as there are values, at least one."""
        found = list(values)
        return cls(min(found), statistics.median(found), len(found))

    def less(self, smaller: Figure, *, each: int = 1) -> Figure:
        """What this costs more than the smaller, for each of so many: least less least, median less median."""
        return Figure((self.least - smaller.least) / each, (self.median - smaller.median) / each)


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of us, and of one other; rows of the same `what` and `ours` are one line of the table.

    peer        the other's figure, or why there is none
    goal        the most that `ours` should be, in the same unit
    ratio_goal  the most that `ours` should be of the peer's
    loads       how many processes wanted the machine's cores, before and after
    """

    what: str
    unit: str
    ours: Figure
    peer_name: str = ""
    peer: Figure | str | None = None
    goal: float | None = None
    ratio_goal: float | None = None
    loads: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure: the usual amount, a tenth of it for a quick look, or also what takes long.

    peers    other tools: those that are there, and why others are not
    """

    is_quick: bool = False
    is_full: bool = False
    most_rounds: int | None = None
    peers: Sequence[Peer] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    def cases(self, usual: int) -> int:
        return max(1, usual // 10) if self.is_quick else usual

    def rounds(self, usual: int) -> int:
        rounds = max(1, usual // 3) if self.is_quick else usual
        return min(rounds, self.most_rounds or rounds)


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
            env={**_ENVIRONMENT, **(environment or {})}, start_new_session=True,
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


OURS = "ours"
SLOW_S, SLOW_ROUNDS = 6.0, 2
"""Whatever else takes longer is measured in two rounds: five of each would take the hour."""


def beside_peers(
    rounds: int, sides: Mapping[str, T], run: Callable[[str, T], Usage], peers: Collection[str]
) -> tuple[dict[str, list[Usage]], dict[str, str]]:
    """The sides in turns, as `in_turns` runs them; a peer that fails is left out from then on, and why comes back."""
    found: dict[str, list[Usage]] = {name: [] for name in sides}
    failures: dict[str, str] = {}
    for number in range(rounds):
        for name, side in sides.items():
            is_done = number >= SLOW_ROUNDS and name != OURS and found[name] and found[name][0].wall_s > SLOW_S
            if is_done or name in failures:
                continue
            try:
                found[name].append(run(name, side))
            except RuntimeError as error:
                if name not in peers:
                    raise
                failures[name] = f"fails: {str(error).splitlines()[-1].strip()[:160]}"
    return {name: usages for name, usages in found.items() if name not in failures}, failures


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
