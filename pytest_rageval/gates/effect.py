"""Gates in effect for a case, as text and as a hash: two runs must share them to be compared in that case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from pytest_rageval.gates.gate import FIELDS, HOLDS, Gate, is_meant_for
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.model import EvalCase, GoldKind

CACHED = 1_000
"""How many combinations of labels are cached."""


class _InEffect(NamedTuple):
    gates: tuple[Gate, ...]
    hash: str


class GatesInEffect:
    """The gates in effect for cases, as text that is the same at every configured cut-off `k`; tags do not count.

    Gates are looked up once for all cases with the same labels, since only conditions tell cases apart.
    """

    def __init__(self, gates: Iterable[Gate], k: int) -> None:
        self._k = k
        self._gates = [(gate, _words(gate, k)) for gate in gates if gate.measure is not None]
        conditions = [each for gate, _ in self._gates for each in (gate.when, *gate.unless)]
        read = {name for condition in conditions for name, _ in condition}
        self._labels = tuple(name for name in FIELDS if name in read)
        self._known: dict[tuple[Any, ...], _InEffect] = {}
        self._latest: tuple[EvalCase | None, GoldKind, _InEffect | None] = None, "none", None
        """The last result: scoring and recording a case look up the same gates in succession."""

    def meant_for(self, case: EvalCase, kind: GoldKind) -> tuple[Gate, ...]:
        """Return the gates in effect for this case, without their conditions, which it meets."""
        return self._of(case, kind).gates

    def hash(self, case: EvalCase, kind: GoldKind) -> str:
        """Return the SHA-256 (64 hex digits) of the gates in effect for this case, in any order."""
        return self._of(case, kind).hash

    def words(self, case: EvalCase, kind: GoldKind) -> Iterator[str]:
        """Yield the gates in effect for this case as text, in the format of `read_gate`."""
        for gate, words in self._gates:
            if is_meant_for(gate, case, kind):
                others = [_words(other, self._k) for other in gate.yields_to if is_meant_for(other, case, kind)]
                yield f"{words} unless {', '.join(others)}" if others else words

    def _of(self, case: EvalCase, kind: GoldKind) -> _InEffect:
        latest, of_kind, effect = self._latest
        if latest is case and of_kind == kind and effect is not None:
            return effect
        labels = tuple([_label(case, kind, name) for name in self._labels])
        effect = self._known.get(labels)
        if effect is None:
            if len(self._known) >= CACHED:
                self._known.clear()
            gates = (gate for gate, _ in self._gates if is_meant_for(gate, case, kind))
            text = "\n".join(sorted(self.words(case, kind)))
            effect = self._known[labels] = _InEffect(
                tuple(replace(gate, when=(), unless=()) if gate.when or gate.unless else gate for gate in gates),
                hashlib.sha256(text.encode()).hexdigest(),
            )
        self._latest = case, kind, effect
        return effect


def _label(case: EvalCase, kind: GoldKind, name: str) -> Any:
    """Return the value that a condition on this field reads."""
    if name == "gold":
        return kind
    if name == "groups":
        return bool(case.gold.support_groups)
    if name == "answer":
        return answer_kinds(case.gold)
    return case.tags if name == "tag" else getattr(case, name)


class StoredGate(NamedTuple):
    """A gate in effect, read from its text: its metric, whose cut-off may be `@k`, and its limit.

    is_judged  whether it is a default gate of a judged metric, which skips scores of a heuristic
    yields_to  default gates that take its place in the cases they examine
    """

    metric: str
    op: str
    limit: float
    is_judged: bool
    yields_to: tuple[StoredGate, ...]


@lru_cache(CACHED)
def read_gate(words: str) -> StoredGate:
    """Read a line of `words`."""
    written, _, others = words.partition(" unless ")
    metric, op, limit, *default = written.split(" ")
    return StoredGate(metric, op, float(limit), bool(default), tuple(map(read_gate, filter(None, others.split(", ")))))


def decide(
    gates: Iterable[str], scores: Mapping[str, float], cut_offs: Sequence[int], *, is_heuristic: bool
) -> dict[str, bool]:
    """Return whether the gates of each metric, named without its cut-off, pass with stored scores.

    Leave out metrics without a score: they were not measured. `cut_offs` are the values of `@k`; the first with a score
    counts. `is_heuristic`: whether the judge was a heuristic.
    """
    held: dict[str, bool] = {}
    for gate in map(read_gate, gates):
        value = _value(gate, scores, cut_offs, is_heuristic=is_heuristic)
        if value is None or any(
            _value(other, scores, cut_offs, is_heuristic=is_heuristic) is not None for other in gate.yields_to
        ):
            continue
        metric = gate.metric.partition("@")[0]
        held[metric] = held.get(metric, True) and HOLDS[gate.op](value, gate.limit)
    return held


def _value(
    gate: StoredGate, scores: Mapping[str, float], cut_offs: Sequence[int], *, is_heuristic: bool
) -> float | None:
    """Return the score that a gate examines, or None."""
    if gate.is_judged and is_heuristic:
        return None
    metric, _, cut_off = gate.metric.partition("@")
    names = [f"{metric}@{k}" for k in cut_offs] if cut_off == "k" else [gate.metric]
    return next((scores[name] for name in names if name in scores), None)


def _words(gate: Gate, k: int) -> str:
    assert gate.measure is not None
    name = f"{gate.measure.metric.name}@k" if gate.measure.k == k else gate.name
    # A default gate skips scores of a heuristic, a written one does not.
    default = " by default" if gate.is_default and gate.measure.metric.name in gate.measure.metric.rubrics else ""
    return f"{name} {gate.op} {gate.threshold:.12g}{default}"
