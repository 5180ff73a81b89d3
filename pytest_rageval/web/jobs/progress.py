"""How far a run is, read from its folder while it is written: each record is looked at once, and only at its ends."""

from __future__ import annotations

import math
import re
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path

from pytest_rageval.runs.disk.reader import RESULTS

BLOCK = 8 * 2**20
MANY_A_SECOND = 100
RATE_OVER_S = 30.0
"""Seconds over which the rate is taken."""
_OUTCOME = re.compile(rb'"outcome":"(\w+)"')
_COST = re.compile(rb'"judge_cost_usd":([0-9.eE+-]+)')
_TRIAL = b'"trial":'


@dataclass(frozen=True, slots=True)
class Progress:
    """Cases that have ended, by outcome; `rate` in cases a second, `cost_usd` of judging, None where not known yet."""

    done: int = 0
    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    rate: float | None = None
    cost_usd: float | None = None

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate and self.done < self.total else None

    @property
    def rate_in_words(self) -> str:
        """`9.8 cases/s`; blank while it is not known."""
        if not self.rate:
            return ""
        return f"{self.rate:.1f} cases/s" if self.rate < MANY_A_SECOND else f"{self.rate:,.0f} cases/s"

    @property
    def time_left_in_words(self) -> str:
        """`about 40 s left`; blank while it is not known."""
        seconds = self.seconds_left
        if seconds is None:
            return ""
        for unit, length, most in (("s", 1, 100), ("min", 60, 6000)):
            if seconds < most:
                return f"about {math.ceil(seconds / length)} {unit} left"
        return f"about {seconds / 3600:.1f} h left"

    @property
    def cost_in_words(self) -> str:
        """`$0.12` of judging; blank where nothing was paid, or nobody knows."""
        return f"${self.cost_usd:.2f}" if self.cost_usd else ""

    @property
    def percent(self) -> int:
        return min(100, 100 * self.done // self.total) if self.total else 0


class ProgressReader:
    """Reads one run's results as they come; safe to ask from several threads."""

    def __init__(self, run_folder: Path, total: int) -> None:
        self._file, self._total = run_folder / RESULTS, total
        self._lock = threading.Lock()
        self._offset = 0
        self._outcomes: Counter[str] = Counter()
        self._cost: float | None = None
        self._samples: deque[tuple[float, int]] = deque()

    def read(self) -> Progress:
        """How far the run is now."""
        with self._lock:
            self._take_new()
            done = sum(self._outcomes.values())
            if done == 0:
                self._samples.clear()  # starting takes its time, and is no part of the rate
            self._samples.append((time.monotonic(), done))
            while len(self._samples) > 2 and self._samples[-1][0] - self._samples[0][0] > RATE_OVER_S:
                self._samples.popleft()
            failed = self._outcomes["failed"] + self._outcomes["xfailed"]
            errors = self._outcomes["error"]
            return Progress(done, self._total, done - failed - errors, failed, errors, self._rate(), self._cost)

    def _rate(self) -> float | None:
        (first, before), (last, now) = self._samples[0], self._samples[-1]
        return (now - before) / (last - first) if now > before and last > first else None

    def _take_new(self) -> None:
        try:
            with self._file.open("rb") as file:
                if self._offset > file.seek(0, 2):  # another program wrote the file anew
                    self._offset, self._cost = 0, None
                    self._outcomes.clear()
                file.seek(self._offset)
                rest = b""
                while block := file.read(BLOCK):
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        self._take(line)
                        self._offset += len(line) + 1
        except OSError:
            return

    def _take(self, line: bytes) -> None:
        # Keys of ours stand before and behind what a system may have named alike; within texts quotation marks are
        # escaped. Parsing each record takes fifty times as long.
        if (outcome := _OUTCOME.search(line)) is None:
            return
        if costs := _COST.findall(line):
            self._cost = (self._cost or 0.0) + float(costs[-1])
        if line[line.rfind(_TRIAL) + len(_TRIAL) :].startswith(b"0"):
            self._outcomes[outcome[1].decode()] += 1
