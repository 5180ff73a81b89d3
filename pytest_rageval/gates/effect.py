"""The gates in effect for a case, as text and as its hash: what two runs must share to be compared in that case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from pytest_rageval.gates.gate import FIELDS, Gate, is_meant_for
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.model import EvalCase, GoldKind

MOST_KEPT = 1_000
"""Combinations of labels for which the gates are remembered."""


class _InEffect(NamedTuple):
    gates: tuple[Gate, ...]
    hash: str


class GatesInEffect:
    """Gates in the same words at every configured cut-off `k`; tags are names, no decisions.

    Conditions alone make a difference between cases: for those with the same labels the gates are looked up once.
    """

    def __init__(self, gates: Iterable[Gate], k: int) -> None:
        self._gates = [(gate, _words(gate, k)) for gate in gates if gate.measure is not None]
        conditions = [each for gate, _ in self._gates for each in (gate.when, *gate.unless)]
        read = {name for condition in conditions for name, _ in condition}
        self._labels = tuple(name for name in FIELDS if name in read)
        self._known: dict[tuple[Any, ...], _InEffect] = {}

    def meant_for(self, case: EvalCase, kind: GoldKind) -> tuple[Gate, ...]:
        """The gates that decide about this case, without the conditions, which it meets."""
        return self._of(case, kind).gates

    def hash(self, case: EvalCase, kind: GoldKind) -> str:
        """SHA-256, in 64 hex digits, of the gates that decide about this case, in any order of theirs."""
        return self._of(case, kind).hash

    def words(self, case: EvalCase, kind: GoldKind) -> Iterator[str]:
        """What decides about this case, a line a gate."""
        return (words for gate, words in self._gates if is_meant_for(gate, case, kind))

    def _of(self, case: EvalCase, kind: GoldKind) -> _InEffect:
        labels = tuple([_label(case, kind, name) for name in self._labels])
        effect = self._known.get(labels)
        if effect is None:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            gates = (gate for gate, _ in self._gates if is_meant_for(gate, case, kind))
            text = "\n".join(sorted(self.words(case, kind)))
            effect = self._known[labels] = _InEffect(
                tuple(replace(gate, when=(), unless=()) if gate.when or gate.unless else gate for gate in gates),
                hashlib.sha256(text.encode()).hexdigest(),
            )
        return effect


def _label(case: EvalCase, kind: GoldKind, name: str) -> Any:
    """What a condition on this field looks at."""
    if name == "gold":
        return kind
    if name == "groups":
        return bool(case.gold.support_groups)
    if name == "answer":
        return answer_kinds(case.gold)
    return case.tags if name == "tag" else getattr(case, name)


def _words(gate: Gate, k: int) -> str:
    assert gate.measure is not None
    name = f"{gate.measure.metric.name}@k" if gate.measure.k == k else gate.name
    # A default gate leaves a heuristic's scores alone, a written one does not.
    default = " by default" if gate.is_default and gate.measure.metric.rubrics else ""
    return f"{name} {gate.op} {gate.threshold:g}{default}"
