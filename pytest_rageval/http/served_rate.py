"""How many calls a second a server serves while it refuses others, for people."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pytest_rageval.text import counted

MOST_RECENT = 50
"""Successes that the current rate is taken from."""
FEWEST = 3
"""Successes below which no rate is given."""
LEAST_SECONDS = 1.0
"""The shortest time that a current rate is taken from: a few calls let through at once gave 2,488 a second."""


class ServedRate:
    """The successes of one server since it first refused a call, in its loop's seconds.

    total  all successes, those before the first refusal too
    """

    def __init__(self) -> None:
        self.total = 0
        self._refused_at: float | None = None
        self._since_refusal = 0
        self._recent: deque[float] = deque(maxlen=MOST_RECENT)

    def note_success(self, now: float) -> None:
        """Count a success."""
        self.total += 1
        if self._refused_at is not None:
            self._since_refusal += 1
            self._recent.append(now)

    def note_refusal(self, now: float) -> None:
        """Begin to measure at the first refusal: what came before was a burst."""
        if self._refused_at is None:
            self._refused_at = now

    @property
    def recent(self) -> float | None:
        """Return the latest successes a second; None if the server refuses nothing, or if it was not measured yet."""
        times = list(self._recent)
        if self._refused_at is None or len(times) < FEWEST:
            return None
        if times[-1] - times[0] >= LEAST_SECONDS:
            return (len(times) - 1) / (times[-1] - times[0])
        if times[-1] - self._refused_at >= LEAST_SECONDS:
            return self.overall
        return None

    @property
    def overall(self) -> float | None:
        """Return the successes a second since the first refusal, None likewise."""
        if self._refused_at is None or self._since_refusal < FEWEST or self._recent[-1] <= self._refused_at:
            return None
        return self._since_refusal / (self._recent[-1] - self._refused_at)


def rate_in_words(a_second: float) -> str:
    """Format a rate as `5 a second`, or as `12 a minute` if it is slow."""
    if a_second >= 1:
        return f"{a_second:.0f} a second"
    return f"{max(1.0, 60 * a_second):.0f} a minute"


def allowance(who: str, a_second: float, calls_left: float) -> str:
    """Return what a server allows and how long the rest takes: `the judge allows about 5 a second; 2 min left`."""
    seconds = calls_left / a_second
    left = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return f"{who} allows about {rate_in_words(a_second)}; {left} left"


@dataclass(frozen=True, slots=True)
class BackOff:
    """How far the calls to the system were delayed, in one process or several together.

    most      calls that may be in flight
    lowest    the fewest in flight while calls waited
    refusals  number of refused calls
    a_second  calls served a second while others were refused; 0 if unknown
    """

    most: int = 0
    lowest: int = 0
    refusals: int = 0
    a_second: float = 0.0

    def __add__(self, other: BackOff) -> BackOff:
        """Add up two processes that query the same system, each within its own limit."""
        return BackOff(
            most=self.most + other.most,
            lowest=self.lowest + other.lowest,
            refusals=self.refusals + other.refusals,
            a_second=self.a_second + other.a_second,
        )

    @property
    def note(self) -> str | None:
        """Return a line about the refused calls for the user, or None if there were none."""
        if not self.refusals:
            return None
        note = (
            f"the system refused {counted(self.refusals, 'call')} (429 or 503): down to {self.lowest} of {self.most} "
            "questions were in flight"
        )
        # Rounded down: what the line advises must not be refused again.
        per_minute = int(60 * self.a_second)
        if per_minute < 1:
            return note
        return (
            f"{note}, about {rate_in_words(self.a_second)}; requests_per_minute = {per_minute} asks no more than it "
            "bears"
        )
