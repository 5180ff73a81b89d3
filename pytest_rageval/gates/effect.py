"""The gates in effect for a case, as text and as its hash: what two runs must share to be compared in that case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from pytest_rageval.gates.gate import Gate, is_meant_for
from pytest_rageval.model import EvalCase, GoldKind


class GatesInEffect:
    """Gates in the same words at every configured cut-off `k`; tags are names, no decisions.

    Conditions alone make a difference between cases: what meets the same ones is written and hashed once.
    """

    def __init__(self, gates: Iterable[Gate], k: int) -> None:
        self._gates = [(gate, _words(gate, k)) for gate in gates if gate.measure is not None]
        self._conditional = [gate for gate, _ in self._gates if gate.when or gate.unless]
        self._hashes: dict[tuple[bool, ...], str] = {}

    def hash(self, case: EvalCase, kind: GoldKind) -> str:
        """SHA-256, in 64 hex digits, of the gates that decide about this case, in any order of theirs."""
        conditions = tuple([is_meant_for(gate, case, kind) for gate in self._conditional])
        if conditions not in self._hashes:
            text = "\n".join(sorted(self.words(case, kind)))
            self._hashes[conditions] = hashlib.sha256(text.encode()).hexdigest()
        return self._hashes[conditions]

    def words(self, case: EvalCase, kind: GoldKind) -> Iterator[str]:
        """What decides about this case, a line a gate."""
        return (words for gate, words in self._gates if is_meant_for(gate, case, kind))


def _words(gate: Gate, k: int) -> str:
    assert gate.measure is not None
    name = f"{gate.measure.metric.name}@k" if gate.measure.k == k else gate.name
    # A default gate leaves a heuristic's scores alone, a written one does not.
    default = " by default" if gate.is_default and gate.measure.metric.rubrics else ""
    return f"{name} {gate.op} {gate.threshold:g}{default}"
