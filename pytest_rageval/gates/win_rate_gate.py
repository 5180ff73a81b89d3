"""Gates on the result of a pairwise comparison: `run win_rate.low >= 0.45`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.gate import HOLDS
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.text import plain

SUBJECTS = ("win_rate", "win_rate.low", "win_rate.high", "position_flips")
_NAMED = re.compile(r"\s*(?:run\s+)?(?:win_rate|position_flips)\b")
WIN_RATE_FORM = "run SUBJECT OP LIMIT[%]"
WIN_RATE_PATTERN = re.compile(
    r"(?:run\s+)?(?P<subject>[a-z_]+(?:\.[a-z_0-9]+)?)\s*(?P<op>>=|<=|>|<)\s*"
    r"(?P<limit>[0-9]+\.?[0-9]*|\.[0-9]+)\s*(?P<percent>%)?"
)


class WinRateGate(NamedTuple):
    """A limit on a figure of a pairwise comparison, as a share from 0 to 1."""

    subject: str
    op: str
    limit: float

    def __str__(self) -> str:
        return f"run {self.subject} {self.op} {plain(self.limit)}"

    def holds(self, content: Mapping[str, Any]) -> bool | None:
        """Return whether the result is within the limit; None if it does not have the figure."""
        value = self.value(content)
        return None if value is None else HOLDS[self.op](value, self.limit)

    def value(self, content: Mapping[str, Any]) -> float | None:
        """Return the figure in the content of a pairwise comparison, or None."""
        figure: float | None
        if self.subject == "position_flips":
            figure = content["position_flips"]["rate"]
        elif self.subject == "win_rate":
            figure = content["win_rate"]
        elif content["interval"] is None:
            figure = None
        else:
            figure = content["interval"][self.subject.removeprefix("win_rate.")]
        return figure


def is_win_rate_gate(written: str) -> bool:
    """Return True if a written gate is about a pairwise comparison, and no single run can meet it."""
    return _NAMED.match(written) is not None


def parse_win_rate_gate(written: str, place: str) -> WinRateGate:
    """Parse a gate of a pairwise comparison; raise SettingsError with the grammar if it is none."""
    match = WIN_RATE_PATTERN.fullmatch(written.strip())
    if match is None:
        raise SettingsError(
            f"{place}: gate {written!r} cannot be read; write {WIN_RATE_FORM}, as in 'run win_rate.low >= 0.45'"
        )
    subject = match["subject"]
    if subject not in SUBJECTS:
        remedy = did_you_mean(subject, SUBJECTS, f"; there are {', '.join(SUBJECTS)}")
        raise SettingsError(f"{place}: gate {written!r}: {subject!r} is no figure of a pairwise comparison{remedy}")
    limit = float(match["limit"])
    if match["percent"]:
        limit /= 100
    if limit > 1:
        raise SettingsError(f"{place}: gate {written!r}: the limit is beyond 1; did you mean {plain(limit)}%?")
    return WinRateGate(subject, match["op"], limit)
