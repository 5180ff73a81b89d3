"""Gates in effect for a case, as text and as a hash: two runs must share them to be compared in that case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.gates.gate import FIELDS, HOLDS, Gate, facts_of, is_meant_for
from pytest_rageval.model import EvalCase, GoldKind

CACHED = 1_000
"""How many combinations of labels are cached."""


class InEffect(NamedTuple):
    """The gates in effect for a case, without their conditions, which it meets.

    words  the gates as text, in the format of `read_gate`
    hash   SHA-256 (64 hex digits) of the sorted text
    """

    gates: tuple[Gate, ...]
    words: tuple[str, ...]
    hash: str


class GatesInEffect:
    """The gates in effect for cases, as text that is the same at every configured cut-off `k`; tags do not count.

    Gates are looked up once for all cases with the same labels, since only conditions tell cases apart.
    """

    def __init__(self, gates: Iterable[Gate], k: int) -> None:
        self._k = k
        self._gates = [gate for gate in gates if gate.measure is not None]
        read: set[str] = set()
        for gate in self._gates:
            for conditions in (gate.when, *gate.unless):
                read.update(name for name, _ in conditions)
        self._labels = tuple(name for name in FIELDS if name in read)
        self._known: dict[tuple[frozenset[str], ...], InEffect] = {}
        self._latest: tuple[EvalCase | None, GoldKind, InEffect | None] = None, "none", None
        """The last result: scoring and recording a case look up the same gates in succession."""

    def of(self, case: EvalCase, kind: GoldKind) -> InEffect:
        """Return the gates in effect for this case."""
        latest, of_kind, effect = self._latest
        if latest is case and of_kind == kind and effect is not None:
            return effect
        labels = tuple([facts_of(case, kind, name) for name in self._labels])
        effect = self._known.get(labels)
        if effect is None:
            # Conditions may read tags, of which a project can have one for each case.
            if len(self._known) >= CACHED:
                self._known.clear()
            effect = self._in_effect(case, kind)
            self._known[labels] = effect
        self._latest = case, kind, effect
        return effect

    def _in_effect(self, case: EvalCase, kind: GoldKind) -> InEffect:
        meant = [gate for gate in self._gates if is_meant_for(gate, case, kind)]
        words = tuple(self._words(gate, case, kind) for gate in meant)
        text = "\n".join(sorted(words))
        gates = tuple(map(_without_conditions, meant))
        return InEffect(gates, words, hashlib.sha256(text.encode()).hexdigest())

    def _words(self, gate: Gate, case: EvalCase, kind: GoldKind) -> str:
        words = _text(gate, self._k)
        others = [_text(other, self._k) for other in gate.yields_to if is_meant_for(other, case, kind)]
        return f"{words} unless {', '.join(others)}" if others else words


def _without_conditions(gate: Gate) -> Gate:
    if not (gate.when or gate.unless):  # nearly all gates
        return gate
    return replace(gate, when=(), unless=())


class StoredGate(NamedTuple):
    """A gate in effect, read from its text: its metric, whose cut-off may be `@k`, and its limit.

    is_judged  whether it is a default gate of a judged metric, which skips scores of a heuristic
    yields_to  default gates that take its place in the cases they examine
    settled_by the metric that settles a case where it is 1; '' for none
    """

    metric: str
    op: str
    limit: float
    is_judged: bool
    yields_to: tuple[StoredGate, ...]
    settled_by: str = ""


@lru_cache(CACHED)
def read_gate(words: str) -> StoredGate:
    """Read a line of `InEffect.words`."""
    written, _, others = words.partition(" unless ")
    metric, op, limit, *rest = written.split(" ")
    yields_to = tuple(map(read_gate, filter(None, others.split(", "))))
    settled_by = rest[-1] if rest[:2] == ["settled", "by"] else ""
    return StoredGate(metric, op, float(limit), rest == ["by", "default"], yields_to, settled_by)


def decide(
    gates: Iterable[str], scores: Mapping[str, float], cut_offs: Sequence[int], *, is_heuristic: bool
) -> dict[str, bool]:
    """Return whether the gates of each metric, named without its cut-off, pass with stored scores.

    Leave out metrics without a score: they were not measured. `cut_offs` are the values of `@k`; the first with a score
    counts. `is_heuristic`: whether the judge was a heuristic.
    """
    held: dict[str, bool] = {}

    def value_of(gate: StoredGate) -> float | None:
        if gate.is_judged and is_heuristic:
            return None
        metric, _, cut_off = gate.metric.partition("@")
        if cut_off != "k":
            return scores.get(gate.metric)
        names = [f"{metric}@{k}" for k in cut_offs]
        return next((scores[name] for name in names if name in scores), None)

    for gate in map(read_gate, gates):
        if gate.settled_by and scores.get(gate.settled_by) == 1:
            continue
        value = value_of(gate)
        if value is None or any(value_of(other) is not None for other in gate.yields_to):
            continue
        metric = gate.metric.partition("@")[0]
        passes = HOLDS[gate.op](value, gate.limit)
        held[metric] = held.get(metric, True) and passes
    return held


def _text(gate: Gate, k: int) -> str:
    assert gate.measure is not None
    metric = gate.measure.metric
    name = f"{metric.name}@k" if gate.measure.k == k else gate.name
    # A default gate skips scores of a heuristic, a written one does not.
    default = " by default" if gate.is_default and metric.name in metric.rubrics else ""
    settled_by = f" settled by {gate.settled_by}" if gate.settled_by else ""
    return f"{name} {gate.op} {gate.threshold:.12g}{default}{settled_by}"
