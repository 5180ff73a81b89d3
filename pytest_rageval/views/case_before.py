"""A case in the run before: its outcome, its answer, its failed gates, and which gates fail only now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.gate_lines import failed_gate

Record = Mapping[str, Any]
_FAILING = ("failed", "xfailed")


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


def failed_gate_lines(record: Record, before: Record | None) -> Iterator[str]:
    """Yield each failed gate with value and limit, marked as new if the case failed before without it."""
    known = None
    if before is not None and before["outcome"] in _FAILING:
        known = {_bare(gate) for gate in before["verdict"]["failed_gates"]}
    for gate in record["verdict"]["failed_gates"]:
        is_new = known is not None and _bare(gate) not in known
        yield f"{failed_gate(gate)} · new, it did not fail before" if is_new else failed_gate(gate)


def _bare(gate: Record) -> str:
    """Return the metric of a gate without its cut-off, which may have changed."""
    return str(gate["metric"]).partition("@")[0]
