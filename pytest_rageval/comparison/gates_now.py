"""The gates in effect now, applied to an earlier run's stored scores, and the changes of gates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pytest_rageval.gates.effect import decide
from pytest_rageval.runs.columns import CaseColumns, SharedCases, values_at
from pytest_rageval.runs.decision_hash import gated_part
from pytest_rageval.runs.flaky_cases import spared_gates
from pytest_rageval.runs.row import IS_BAD

GATES = "gates_in_effect"
"""The key of config.json with the text of each combination of gates, by hash."""


@dataclass(frozen=True, slots=True)
class SideGates:
    """The gates of one side, and how its scores are read.

    in_effect     gates as text by hash; None if they were not recorded
    cut_offs      the values of `@k`; the first with a score counts
    is_heuristic  whether its judge was a heuristic
    spared        metrics whose gates failed at first and not in most attempts, by case
    """

    in_effect: Mapping[str, Iterable[str]] | None
    cut_offs: tuple[int, ...]
    is_heuristic: bool
    spared: Mapping[str, Collection[str]] = field(default_factory=dict)

    def of(self, decision: str | None) -> Iterable[str] | None:
        """Return the gates in effect for a case, as text, by its decision hash; None if they are not known."""
        return None if self.in_effect is None else self.in_effect.get(gated_part(decision))

    def measured(self, gates: Iterable[str], scores: Mapping[str, float]) -> dict[str, bool]:
        """Return whether the gates of each metric with a score pass."""
        return decide(gates, scores, self.cut_offs, is_heuristic=self.is_heuristic)

    def of_case(self, key: str, gates: Iterable[str], scores: Mapping[str, float]) -> dict[str, bool]:
        """Return whether the gates of each metric with a score pass in this case; one that was spared does."""
        holds = self.measured(gates, scores)
        for metric in self.spared.get(key, ()):
            holds[metric] = True
        return holds

    def failed(self, gates: Iterable[str], scores: Mapping[str, float]) -> set[str]:
        """Return the metrics whose gates these scores fail."""
        return {metric for metric, holds in self.measured(gates, scores).items() if not holds}


def gates_of(metrics: Mapping[str, Any], config: Mapping[str, Any] | None, k: int | None = None) -> SideGates:
    """Return the gates of a run from its metrics.json and config.json. `k`: the cut-off that the gates mean."""
    config = config or {}
    configured = (k, config.get("k"))
    # Ordered: the cut-off that the gates mean comes before the one that the run was configured with.
    cut_offs = dict.fromkeys(cut_off for cut_off in configured if cut_off is not None)
    judge = metrics.get("judge")
    is_heuristic = bool(judge and judge["heuristic"])
    return SideGates(config.get(GATES), tuple(cut_offs), is_heuristic, spared_gates(metrics))


class CaseFlips(NamedTuple):
    """Keys of shared cases whose outcome changed.

    flipped_to_fail  fail now, did not before
    flipped_to_pass  failed before; now each gate that failed is measured and passes
    not_measured     failed before, do not fail now, but a gate that failed was not measured
    newly_gated      fail now, only by gates that the earlier run did not measure
    fails_new_gate   failed before and fail now, by a gate among others that did not fail before; with the metrics of
                     these gates, without their cut-offs
    """

    flipped_to_fail: list[str]
    flipped_to_pass: list[str]
    not_measured: list[str]
    newly_gated: list[str]
    fails_new_gate: dict[str, list[str]]


class Both(NamedTuple):
    """Two runs by case. `was` is decided by the gates of `now`; `unlike` are metrics judged by different judges."""

    was: CaseColumns
    now: CaseColumns
    shared: SharedCases
    gates_was: SideGates
    gates_now: SideGates
    unlike: Collection[str]


def decided_by_gates_now(both: Both) -> CaseColumns:
    """Return the earlier cases with the outcomes that the current gates give their stored scores."""
    gates_then = both.gates_was.in_effect
    if gates_then == both.gates_now.in_effect and len(gates_then or ()) == 1:
        return both.was  # the usual case: nothing to decide again
    outcomes = list(both.was.outcomes)
    for key, was_at, now_at in zip(*both.shared, strict=True):
        outcome = outcomes[was_at]
        # The hash of a case's gates is a part of its decision hash: equal ones leave nothing to decide.
        decision_was = both.was.decision_hashes[was_at]
        decision_now = both.now.decision_hashes[now_at]
        if outcome not in ("passed", *IS_BAD) or gated_part(decision_was) == gated_part(decision_now):
            continue
        gates_was = both.gates_was.of(decision_was)
        gates_now = both.gates_now.of(decision_now)
        if gates_was is None or gates_now is None:
            continue
        scores = both.was[key].scores
        was_bad = outcome in IS_BAD
        if was_bad and not both.gates_was.failed(gates_was, scores):
            continue  # not failed by gates, but by an assertion of the project's own test
        is_bad = bool(both.gates_was.failed(gates_now, scores))
        if is_bad != was_bad:
            outcomes[was_at] = "failed" if is_bad else "passed"
    return replace(both.was, outcomes=outcomes)


@dataclass(frozen=True, slots=True)
class CaseGates:
    """The current gates of a shared case, decided by its scores on each side: whether those of a metric pass.

    Metrics are named without their cut-off. One without a score on a side was not measured there, and is left out.
    """

    was: Mapping[str, bool]
    now: Mapping[str, bool]

    @property
    def failed_before(self) -> set[str]:
        return {metric for metric, passes in self.was.items() if not passes}

    @property
    def failed_now(self) -> set[str]:
        return {metric for metric, passes in self.now.items() if not passes}


def gates_of_case(key: str, both: Both) -> CaseGates | None:
    """Return the current gates of a shared case on both sides; None if they were not recorded."""
    # Look for gates first: to build both cases from their columns takes far longer.
    decision = both.now.decision_hashes[both.now.places[key]]
    gates = both.gates_now.of(decision)
    if gates is None:
        return None
    return CaseGates(
        was=both.gates_was.of_case(key, gates, both.was[key].scores),
        now=both.gates_now.of_case(key, gates, both.now[key].scores),
    )


def case_flips(both: Both) -> CaseFlips:
    """Return the shared cases that newly fail, that are fixed, and those where neither is known."""
    flips = CaseFlips([], [], [], [], {})
    outcomes_was = values_at(both.was.outcomes, both.shared.before)
    outcomes_now = values_at(both.now.outcomes, both.shared.after)
    for key, was, now in zip(both.shared.keys, outcomes_was, outcomes_now, strict=True):
        if was in IS_BAD and now in IS_BAD:
            _add_new_gates(key, both, flips)
        elif was == now:
            continue
        elif now in IS_BAD:
            # A gate on a metric that only this run measured says nothing about what changed in the system.
            if was != "passed" or _is_failure_measured_before(key, both):
                flips.flipped_to_fail.append(key)
            else:
                flips.newly_gated.append(key)
        elif was in IS_BAD and now == "passed" and _are_failures_measured_now(key, both):
            flips.flipped_to_pass.append(key)
        elif was in IS_BAD and now in ("passed", "skipped"):
            flips.not_measured.append(key)
    return flips


def _add_new_gates(key: str, both: Both, flips: CaseFlips) -> None:
    """Add a case that failed before and fails now to the list of those that fail a gate which did not fail before."""
    gates = gates_of_case(key, both)
    if gates is None:
        return
    newly_failed = gates.failed_now - gates.failed_before - set(both.unlike)
    if not newly_failed.isdisjoint(gates.was):
        flips.fails_new_gate[key] = sorted(newly_failed)
    elif newly_failed:
        flips.newly_gated.append(key)


def _is_failure_measured_before(key: str, both: Both) -> bool:
    """Return True if the earlier run measured any gate that fails now, or no gate is known to fail."""
    gates = gates_of_case(key, both)
    if gates is None or not gates.failed_now:
        return True
    measured_before = gates.was.keys() - both.unlike
    return not gates.failed_now.isdisjoint(measured_before)


def _are_failures_measured_now(key: str, both: Both) -> bool:
    """Return True if each gate that failed before is measured now."""
    gates = gates_of_case(key, both)
    if gates is None:
        return True
    measured_now = gates.now.keys() - both.unlike
    return gates.failed_before <= measured_now


def gate_changes(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """Return the gates added and removed between two config.json, for example `+ run recall_any@5 >= 0.85`."""
    was = _written_gates(before or {})
    now = _written_gates(after or {})
    if not was or not now:
        return []
    added = [f"+ {gate}" for name, gate in now.items() if name not in was]
    removed = [f"- {gate}" for name, gate in was.items() if name not in now]
    return [*added, *removed]


def _written_gates(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the gates of a config.json as written, keyed by the same text with its cut-off as `@k`."""
    written: dict[str, str] = {}
    for scope, gates in (config.get("gates") or {}).items():
        for gate in gates:
            text = f"run {gate}" if scope == "run" else gate
            name = re.sub(rf"@{config['k']}\b", "@k", text)
            written[name] = text
    return written
