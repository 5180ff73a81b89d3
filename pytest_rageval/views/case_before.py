"""A case in the run before: its outcome, its answer, its failed gates; and the gates that fail now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.gate_lines import failed_gate

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CaseBefore:
    """A case as the compared run has it."""

    outcome: str
    """passed, failed, error, xfailed or skipped."""
    answer: str | None
    """The answer, cut as records cut it; None without one."""
    failed_gates: Sequence[str]
    """The gates that failed then, each with value and limit."""


def case_before(before: Record | None) -> CaseBefore | None:
    """Return the case as the compared run has it; None if that run does not keep it."""
    if before is None:
        return None
    failed = before["verdict"]["failed_gates"]
    return CaseBefore(before["outcome"], before["answer"], tuple(map(failed_gate, failed)))


def failed_gate_lines(record: Record, new_gates: Sequence[str]) -> Iterator[str]:
    """Yield each failed gate with value and limit; mark those whose metrics are in `new_gates`."""
    for gate in record["verdict"]["failed_gates"]:
        line = failed_gate(gate)
        if gate["metric"].partition("@")[0] in new_gates:
            line += " · new, it did not fail before"
        yield line
