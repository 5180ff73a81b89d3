"""Why a case failed: its error, each gate with its arithmetic, and the golds that were not retrieved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.gates_now import GATES
from pytest_rageval.errors import RagevalError
from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.matching.dialects import MISSED
from pytest_rageval.matching.lost_snippets import has_lost_snippet
from pytest_rageval.metrics.assertions import NAME as ASSERTIONS
from pytest_rageval.metrics.assertions import broken_assertions
from pytest_rageval.metrics.registry import is_described
from pytest_rageval.metrics.tools import broken_tool_rules
from pytest_rageval.model import Observation
from pytest_rageval.run.plan import Plan
from pytest_rageval.text import short
from pytest_rageval.views.case_content import CaseContext
from pytest_rageval.views.case_parts import ChunkRow, FailingGate, error_line

OF_RETRIEVAL = ("L2", "L3")
"""Layers whose failure the golds that were not retrieved explain."""


def failed_gates(
    record: Mapping[str, Any], earlier: Mapping[str, Any] | None, observation: Observation | None, run: CaseContext
) -> Iterator[FailingGate]:
    """Yield the gates that fail. `earlier`: the record of the other run; None without one."""
    new_gates: Collection[str] = run.new_gates(record["case_key"])
    if GATES not in run.config:  # an older run, of which no comparison knows the gates
        new_gates = _new_by_records(record, earlier)
    for gate in record["verdict"]["failed_gates"]:
        yield FailingGate(
            metric=gate["metric"],
            value=short(gate["value"]),
            threshold=gate["threshold"],
            tag=gate["tag"] or "",
            terms=arithmetic(gate["metric"], observation, run),
            is_new=_bare(gate) in new_gates,
        )


def _new_by_records(record: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> Collection[str]:
    """Return the metrics of the gates that fail in one record and not in the earlier one; () if that one fails none."""
    failed_before = {_bare(gate) for gate in (earlier or {}).get("verdict", {}).get("failed_gates") or ()}
    if not failed_before:
        return ()
    return {_bare(gate) for gate in record["verdict"]["failed_gates"]} - failed_before


def _bare(gate: Mapping[str, Any]) -> str:
    """Return the metric of a gate without its cut-off, which may have changed."""
    return str(gate["metric"]).partition("@")[0]


def reasons(
    record: Mapping[str, Any], failed: Sequence[FailingGate], missed: Sequence[ChunkRow], remarks: Sequence[str]
) -> Iterator[str]:
    """Yield the error, or each failed gate with its arithmetic; then the golds that are missing, and the remarks."""
    yield from error_lines(record)
    for gate in failed:
        yield gate.line
    for chunk in missed:
        yield f"{chunk.mark} “{chunk.place}” was not retrieved{chunk.note}"
    yield from remarks


def remarks_on_failure(
    record: Mapping[str, Any], chunks: Sequence[ChunkRow], *, has_retrieval_failed: bool
) -> Iterator[str]:
    """Yield what explains a failure besides gates and missed golds: late ranks, spellings, the test's own reason."""
    gates = record["verdict"]["failed_gates"]
    if has_retrieval_failed:
        for chunk in chunks:
            if chunk.rank and chunk.note:
                yield f"{chunk.mark} “{chunk.place}” stands at rank {chunk.rank}{chunk.note}"
    if gates:
        yield from (flag for flag in record.get("flags", ()) if MISSED in flag or has_lost_snippet(flag))
        for line in broken_assertions((record.get("score_details") or {}).get(ASSERTIONS, {})):
            yield f"broken assertion: {line}".replace("broken assertion: note: ", "note: ")
        yield from broken_tool_rules(record.get("score_details") or {})
    if not gates and not record["error"] and record.get("reason"):
        yield str(record["reason"])


def has_retrieval_failed(record: Mapping[str, Any], run: CaseContext) -> bool:
    """Return True if a gate on retrieval fails, which golds that were not retrieved explain."""
    layers = [run.metrics.get(gate["metric"], {}).get("layer") for gate in record["verdict"]["failed_gates"]]
    return any(layer in OF_RETRIEVAL for layer in layers)


def error_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the error of the case, and those of its metrics."""
    if record["error"]:
        yield error_line(record["error"])
    for name, why in record.get("metric_errors", {}).items():
        yield f"{name} has no score: {why}"


def gate_lines(record: Mapping[str, Any], observation: Observation, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield each gate that examined the case, with the value and the verdict."""
    trial = GatedTrial(observation, record["scores"])
    for gate in plan.case_gates:
        if not looks_at(gate, trial):
            continue
        value = record["scores"][gate.name]
        if gate.holds(value):
            verdict = "holds"
        elif gate.tag:
            verdict = f"fails ({gate.tag})"
        else:
            verdict = "fails"
        yield str(gate), f"is {short(value)}", verdict


def arithmetic(name: str, observation: Observation | None, run: CaseContext) -> str:
    """Return the arithmetic of a metric; '' without an observation, or if the metric is not known here."""
    if observation is None:
        return ""
    try:
        measure = run.registry.measure(name, observation.k)
        return "" if is_described(measure.metric) else measure.arithmetic(observation)
    except RagevalError:  # a metric that is no longer registered
        return ""
