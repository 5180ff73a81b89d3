"""Gates that were removed or loosened since the other run: cases that failed them can pass now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.io.suggestions import listed
from pytest_rageval.text import cut

GATE_CHANGES = "gate_changes"
_SHOWN = 3
_LONGEST_GATE = 80
_GATE = re.compile(r"(?P<subject>[^<>=]+) (?P<sign>[<>=]=?) (?P<limit>[-+.\de]+)(?P<condition>.*)")
_CUT_OFF = re.compile(r"@\S*")
_TAG = re.compile(r" tag \S+")
"""The tag of a gate names its failures, and does not change which cases fail."""


class _WrittenGate(NamedTuple):
    """The parts of a gate's text that tell whether another one is as strict."""

    subject: str
    """The scope, the metric without its cut-off, and the statistic."""
    sign: str
    limit: float
    condition: str
    """The unit of the limit, and for which cases it is."""

    def is_as_strict_as(self, other: _WrittenGate) -> bool:
        if (self.subject, self.sign) != (other.subject, other.sign):
            return False
        # A gate without a condition is for all cases.
        if self.condition not in ("", other.condition):
            return False
        if self.sign.startswith(">"):
            return self.limit >= other.limit
        if self.sign.startswith("<"):
            return self.limit <= other.limit
        return self.limit == other.limit


def weaker_gate_words(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Yield `a gate was removed (mrr >= 0.5)` and `a gate was loosened (mrr >= 0.5 → 0.2)`, if any was."""
    added, removed = _added_and_removed(comparison.get(GATE_CHANGES, ()))
    dropped: list[str] = []
    loosened: list[str] = []
    for text in removed:
        gate = _read(text)
        now = _of_the_same_subject(gate, added)
        if gate is None or not now:
            dropped.append(cut(text, _LONGEST_GATE))
        elif not any(other.is_as_strict_as(gate) for other in now.values()):
            loosened.append(f"{cut(text, _LONGEST_GATE)} → {cut(next(iter(now)), _LONGEST_GATE)}")
    if dropped:
        yield f"{_gates(len(dropped))} removed ({listed(dropped, _SHOWN)})"
    if loosened:
        yield f"{_gates(len(loosened))} loosened ({listed(loosened, _SHOWN)})"


def _gates(number: int) -> str:
    return "a gate was" if number == 1 else f"{number:,} gates were"


def _of_the_same_subject(gate: _WrittenGate | None, texts: Iterable[str]) -> dict[str, _WrittenGate]:
    """Return the gates on the same metric in the same scope, by their text."""
    found: dict[str, _WrittenGate] = {}
    for text in texts:
        other = _read(text)
        if gate is not None and other is not None and other.subject == gate.subject:
            found[text] = other
    return found


def _added_and_removed(changes: Iterable[str]) -> tuple[Sequence[str], Sequence[str]]:
    added: list[str] = []
    removed: list[str] = []
    for change in changes:
        sign, _, gate = change.partition(" ")
        if sign == "+":
            added.append(gate)
        else:
            removed.append(gate)
    return added, removed


def _read(text: str) -> _WrittenGate | None:
    """Return the parts of a gate; None for one whose limit is no number."""
    parts = _GATE.fullmatch(text)
    if parts is None:
        return None
    try:
        limit = float(parts["limit"])
    except ValueError:
        return None
    return _WrittenGate(
        subject=_CUT_OFF.sub("", parts["subject"]),
        sign=parts["sign"],
        limit=limit,
        condition=_TAG.sub("", parts["condition"]),
    )
