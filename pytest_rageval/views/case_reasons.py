"""Why a case failed: its error, each gate with its arithmetic, and the golds that were not retrieved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.errors import RagevalError
from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.matching.dialects import MISSED
from pytest_rageval.metrics.registry import is_described
from pytest_rageval.model import Observation
from pytest_rageval.run.plan import Plan
from pytest_rageval.text import short
from pytest_rageval.views.case_content import CaseContext
from pytest_rageval.views.case_parts import ChunkRow, error_line

OF_RETRIEVAL = ("L2", "L3")
"""Layers whose failure the golds that were not retrieved explain."""


def reasons(
    record: Mapping[str, Any], observation: Observation | None, chunks: Sequence[ChunkRow], run: CaseContext
) -> Iterator[str]:
    """Yield the error, or each failed gate with its arithmetic; then the golds that are missing."""
    yield from error_lines(record)
    gates = record["verdict"]["failed_gates"]
    for gate in gates:
        yield _failed_gate_line(gate, observation, run)
    layers = [run.metrics.get(gate["metric"], {}).get("layer") for gate in gates]
    if any(layer in OF_RETRIEVAL for layer in layers):
        yield from _missing_golds(chunks)
    if gates:
        yield from (flag for flag in record.get("flags", ()) if MISSED in flag)
    if not gates and not record["error"] and record.get("reason"):
        yield str(record["reason"])


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


def _failed_gate_line(gate: Mapping[str, Any], observation: Observation | None, run: CaseContext) -> str:
    line = f"{gate['metric']} = {short(gate['value'])}, needs {gate['threshold']}"
    if gate["tag"]:
        line += f" ({gate['tag']})"
    terms = arithmetic(gate["metric"], observation, run)
    return f"{line}: {terms}" if terms else line


def _missing_golds(chunks: Sequence[ChunkRow]) -> Iterator[str]:
    """Yield the golds that were not retrieved, then those beyond the cut-off."""
    for chunk in chunks:
        if not chunk.rank:
            yield f"{chunk.mark} “{chunk.place}” was not retrieved{chunk.note}"
    for chunk in chunks:
        if chunk.rank and chunk.note:
            yield f"{chunk.mark} “{chunk.place}” stands at rank {chunk.rank}{chunk.note}"
