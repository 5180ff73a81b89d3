"""The cases that keep a run from passing, the most severe first, as CI services are told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.views.comparison import failed_gate

FAILING = ("error", "failed")


class FailingCase(NamedTuple):
    """One case with an error, or whose gates do not hold. `reasons`: each failed gate, or the error."""

    key: str
    file: str
    line: int
    reasons: tuple[str, ...]
    is_error: bool
    is_new: bool
    """Did it pass in the baseline?"""
    question: str | None
    answer: str | None

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)


def failing_cases(run: StoredRun) -> list[FailingCase]:
    """Errors first, then what newly fails, of equals those with the most failed gates; known failures are left out."""
    comparison = (run.metrics or {}).get("comparison") or {}
    new = {*comparison.get("flipped_to_fail", ())}
    cases = [_case(trials, new) for trials in run.cases() if trials[-1]["outcome"] in FAILING]
    return sorted(cases, key=lambda case: (not case.is_error, not case.is_new, -len(case.reasons), case.key))


def _case(trials: Sequence[Mapping[str, Any]], new: set[str]) -> FailingCase:
    record = next((trial for trial in trials if _reasons(trial)), trials[-1])
    source = record.get("source") or {}
    return FailingCase(
        key=record["case_key"],
        file=str(source.get("file") or record["case_key"].partition("::")[0]),
        line=int(source.get("line") or 1),
        reasons=tuple(_reasons(record)) or ("see its record",),
        is_error=record["outcome"] == "error",
        is_new=record["case_key"] in new,
        question=record.get("question"),
        answer=record.get("answer"),
    )


def _reasons(record: Mapping[str, Any]) -> list[str]:
    if error := record.get("error"):
        return [f"{error['kind']}: {error['message']}"]
    return [failed_gate(gate) for gate in (record.get("verdict") or {}).get("failed_gates") or ()]
