"""Lines of text about run gates: the change, the tolerance, the verdict with its reason, the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pytest_rageval.gates.gate import FEWEST_FOR_P95
from pytest_rageval.text import AS_WRITTEN, NO_VALUE, counted, figures, short

UNCOMPARED = {
    "incomparable": "is not compared: this run and the baseline cannot be",
    "unmeasured": "was not measured on both sides: no case has it in the baseline and in this run",
    "new": "was not measured in the baseline",
}


def is_regression(gate: Mapping[str, Any]) -> bool:
    """Return True for the result of a gate against the baseline, False for that of an absolute one."""
    return gate["op"] in ("drop", "rise")


def gate_name(gate: Mapping[str, Any]) -> str:
    """Return `recall_any@5 drop`, or `recall_any@5` for an absolute gate."""
    if is_regression(gate):
        return f"{gate['metric']} {gate['op']}"
    return str(gate.get("label", gate["metric"]))


def gate_line(gate: Mapping[str, Any], *, is_partial: bool = False) -> str:
    """Format a gate as one line; `is_partial`: in a run that no gate fails.

    Absolute: `recall_any@5 is 0.61, gate >= 0.85 · 40 of 42 cases`. Against the baseline:
    `mrr 0.9 → 0.7, tolerated drop 0.1: regressed · 95 % -0.26 to -0.14, p 0.0003, n 120, detectable 0.08`.
    """
    name = gate.get("label", gate["metric"])
    if not is_regression(gate):
        value = "has no value in this run" if gate["value"] is None else f"is {_measured(gate)}"
        if gate["value"] is None and gate.get("statistic") == "p95":
            value += f" (a p95 needs {FEWEST_FOR_P95})"
        line = f"{name} {value}, gate {gate['op']} {short(gate['limit'], AS_WRITTEN)}"
        if "n_scored" in gate:
            line += f" · {gate['n_scored']} of {gate['n_expected']} cases"
        return line
    limit = f"tolerated {gate['op']} {short(gate['limit'], AS_WRITTEN)}"
    if _is_lost(gate):
        lost_in = counted(gate["n_unmeasured"], "case")
        return f"{name} was not measured in {lost_in} that the baseline measured; {limit}"
    if gate["verdict"] in UNCOMPARED:
        return f"{name} {UNCOMPARED[gate['verdict']]}; {limit}"
    before, after = figures(gate["before"], gate["after"])
    line = f"{name} {before} → {after}, {limit}: {_verdict(gate, is_partial=is_partial)}"
    shown_evidence = evidence(gate)
    return f"{line} · {shown_evidence}" if shown_evidence else line


class GateState(NamedTuple):
    """Whether a gate of the run passes, as every face shows it."""

    symbol: str
    words: str
    kind: Literal["holds", "fails", "silent"]


def gate_state(gate: Mapping[str, Any], *, is_partial: bool) -> GateState:
    """Return whether a gate passes. The means of a partial run are of other cases: no gate fails it."""
    if gate["passed"] is None:
        return GateState("–", "not measured", "silent")
    if gate["passed"]:
        return GateState("✔", "holds", "holds")
    if is_partial:
        return GateState("–", "fails nothing, since the run is partial", "silent")
    return GateState("✘", "FAILS", "fails")


def gate_reason(gate: Mapping[str, Any]) -> str:
    """Return why a gate fails the run, in a few words: `run gate recall_any@5 0.81 < 0.85`."""
    name = gate.get("label", gate["metric"])
    if gate["value"] is None or _is_lost(gate):
        return f"run gate {name} was not measured"
    if not is_regression(gate):
        return f"run gate {name} {_measured(gate)} {_OPPOSITE[gate['op']]} {short(gate['limit'], AS_WRITTEN)}"
    moved = "fell" if gate["op"] == "drop" else "rose"
    return f"{name} {moved} by {_measured(gate).removeprefix('-')}, tolerated {short(gate['limit'], AS_WRITTEN)}"


def _is_lost(gate: Mapping[str, Any]) -> bool:
    """Return True for a gate on a metric that some cases lost, though others still have it."""
    return gate.get("verdict") == "unmeasured" and gate["value"] is not None


def _measured(gate: Mapping[str, Any]) -> str:
    """Return the value of a gate, with as many decimals as tell it from its limit."""
    limit = gate["limit"]
    if is_regression(gate):
        limit = -limit if gate["value"] < 0 else limit
    # 0.8499 beside a limit of 0.85 must not be rounded onto it.
    [text] = figures(gate["value"], limit=limit)
    return text


_OPPOSITE = {">=": "<", ">": "<=", "<=": ">", "<": ">="}


def evidence(change: Mapping[str, Any]) -> str:
    """Return interval and p of the deciding test, the paired cases and the detectable change; '' without cases."""
    if not change["n_paired"]:
        return ""
    if change.get("decided_by") == "one-sided p":
        p = f"one-sided p {p_text(change['p_one_sided'])} by itself"
    elif change.get("decided_by") == "own p":
        p = f"p {p_text(change['p'])}"
    else:
        p = f"p {p_text(change['p_adjusted'])}"
    lost = f" ({change['n_unmeasured']} more unmeasured now)" if change["n_unmeasured"] else ""
    detectable = NO_VALUE if change["detectable"] is None else f"{change['detectable']:.2g}"
    n = paired_cases(change)
    return f"95 % {_interval(change)}, {p}, n {n}{lost}, detectable {detectable}"


def paired_cases(change: Mapping[str, Any]) -> str:
    """Return how many cases a change is over, as `40 (8 independent)` if they are turns of conversations."""
    independent = change.get("n_independent")
    if independent is None or independent == change["n_paired"]:
        return str(change["n_paired"])
    return f"{change['n_paired']} ({independent} independent)"


def _interval(change: Mapping[str, Any]) -> str:
    low, high = change["ci"] or (None, None)
    if low is None or high is None:
        return NO_VALUE
    if change.get("decided_by") == "one-sided p":
        return f"at most {high:.3g}" if change["op"] == "drop" else f"at least {low:.3g}"
    low_text, high_text = figures(low, high)
    return f"{low_text} to {high_text}"


def is_warning(gate: Mapping[str, Any]) -> bool:
    """Return True if a gate passes although the metric got worse, significantly or beyond its tolerance."""
    if gate.get("verdict") not in ("beyond tolerance, may be noise", "significant, within tolerance"):
        return False
    if gate["value"] is None:
        return False
    has_risen = bool(gate["value"] > 0)
    is_rise_worse = bool(gate["op"] == "rise")
    return has_risen == is_rise_worse


def _verdict(gate: Mapping[str, Any], *, is_partial: bool) -> str:
    """Return the verdict; if the change may be noise, add whether the gate fails and the setting that decides it."""
    if gate["verdict"] != "beyond tolerance, may be noise" or not is_warning(gate):
        return str(gate["verdict"])
    verdict = "holds, may be noise"
    if gate["passed"] is False:
        verdict = "may be noise, beyond tolerance" if is_partial else "fails, may be noise"
    if gate.get("decided_by") == "one-sided p":
        return verdict
    significant = "true" if gate["significant"] else "false"
    return f"{verdict} (significant = {significant})"


def p_text(value: float) -> str:
    """Format a p value with two digits."""
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def failed_gate(gate: Mapping[str, Any]) -> str:
    """Return `recall_any@5 is 0, gate >= 1 (tag)` for a gate of a record."""
    tag = f" ({gate['tag']})" if gate["tag"] else ""
    return f"{gate['metric']} is {short(gate['value'])}, gate {gate['threshold']}{tag}"
