"""The gates in effect now, applied to an earlier run's stored scores, and the changes of gates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_rageval.gates.effect import decide
from pytest_rageval.runs.columns import CaseColumns, SharedCases, values_at
from pytest_rageval.runs.decision_hash import gated_part
from pytest_rageval.runs.row import IS_BAD

GATES = "gates_in_effect"
"""The key of config.json with the text of each combination of gates, by hash."""


@dataclass(frozen=True, slots=True)
class SideGates:
    """The gates of one side, and how its scores are read.

    in_effect     gates as text by hash; None if they were not recorded
    cut_offs      the values of `@k`; the first with a score counts
    is_heuristic  whether its judge was a heuristic
    """

    in_effect: Mapping[str, Iterable[str]] | None
    cut_offs: tuple[int, ...]
    is_heuristic: bool

    def of(self, decision: str | None) -> Iterable[str] | None:
        """Return the gates in effect for a case, as text, by its decision hash; None if they are not known."""
        return None if self.in_effect is None else self.in_effect.get(gated_part(decision))

    def measured(self, gates: Iterable[str], scores: Mapping[str, float]) -> dict[str, bool]:
        """Return whether the gates of each metric with a score pass."""
        return decide(gates, scores, self.cut_offs, is_heuristic=self.is_heuristic)

    def failed(self, gates: Iterable[str], scores: Mapping[str, float]) -> set[str]:
        """Return the metrics whose gates these scores fail."""
        return {metric for metric, holds in self.measured(gates, scores).items() if not holds}


def gates_of(metrics: Mapping[str, Any], config: Mapping[str, Any] | None, k: int | None = None) -> SideGates:
    """Return the gates of a run from its metrics.json and config.json. `k`: the cut-off that the gates mean."""
    config = config or {}
    cut_offs = dict.fromkeys(one for one in (k, config.get("k")) if one is not None)
    judge = metrics.get("judge")
    return SideGates(config.get(GATES), tuple(cut_offs), bool(judge and judge["heuristic"]))


class CaseFlips(NamedTuple):
    """Keys of shared cases whose outcome changed.

    flipped_to_fail  fail now, did not before
    flipped_to_pass  failed before; now each gate that failed is measured and passes
    not_measured     failed before, do not fail now, but a gate that failed was not measured
    newly_gated      fail now, only by gates that the earlier run did not measure
    """

    flipped_to_fail: list[str]
    flipped_to_pass: list[str]
    not_measured: list[str]
    newly_gated: list[str]


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
    gates = both.gates_was.in_effect, both.gates_now.in_effect
    if gates[0] == gates[1] and len(gates[0] or ()) == 1:  # the usual case: nothing to decide again
        return both.was
    outcomes = list(both.was.outcomes)
    for key, was_at, now_at in zip(*both.shared, strict=True):
        decisions = both.was.decision_hashes[was_at], both.now.decision_hashes[now_at]
        if outcomes[was_at] not in ("passed", *IS_BAD) or gated_part(decisions[0]) == gated_part(decisions[1]):
            continue
        then, now = both.gates_was.of(decisions[0]), both.gates_now.of(decisions[1])
        if then is None or now is None:
            continue
        is_bad, scores = outcomes[was_at] in IS_BAD, both.was[key].scores
        if is_bad and not both.gates_was.failed(then, scores):
            continue  # not failed by gates, but by an assertion of the project's own test
        if is_bad != bool(both.gates_was.failed(now, scores)):
            outcomes[was_at] = "passed" if is_bad else "failed"
    return replace(both.was, outcomes=outcomes)


def case_flips(both: Both) -> CaseFlips:
    """Return the shared cases that newly fail, that are fixed, and those where neither is known."""
    flips = CaseFlips([], [], [], [])
    keys, was_at, now_at = both.shared
    outcomes = values_at(both.was.outcomes, was_at), values_at(both.now.outcomes, now_at)
    for key, before, after in (each for each in zip(keys, *outcomes, strict=True) if each[1] != each[2]):
        if after in IS_BAD and before not in IS_BAD:
            measured = before != "passed" or _is_measured(key, both, both.gates_now, both.gates_was)
            (flips.flipped_to_fail if measured else flips.newly_gated).append(key)
        elif before in IS_BAD and after in ("passed", "skipped"):
            is_fixed = after == "passed" and _is_measured(key, both, both.gates_was, both.gates_now)
            (flips.flipped_to_pass if is_fixed else flips.not_measured).append(key)
    return flips


def _is_measured(key: str, both: Both, failing: SideGates, other: SideGates) -> bool:
    """Return True if the other side measured the failed gates: any that fail now, or all that failed before."""
    gates = both.gates_now.of(both.now.decision_hashes[both.now.places[key]])
    if gates is None:
        return True
    was, now = both.was[key], both.now[key]
    is_before = failing is both.gates_was
    failed = failing.failed(gates, (was if is_before else now).scores)
    measured = other.measured(gates, (now if is_before else was).scores).keys() - both.unlike
    return failed <= measured if is_before else not failed or not failed.isdisjoint(measured)


def gate_changes(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """Return the gates added and removed between two config.json, for example `+ run recall_any@5 >= 0.85`."""
    was, now = _written(before or {}), _written(after or {})
    if not was or not now:
        return []
    added = [f"+ {gate}" for name, gate in now.items() if name not in was]
    return [*added, *(f"- {gate}" for name, gate in was.items() if name not in now)]


def _written(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the gates of a config.json as written, keyed by the same text with its cut-off as `@k`."""
    gates = config.get("gates") or {}
    written = [f"{'run ' * (scope == 'run')}{gate}" for scope in gates for gate in gates[scope]]
    return {re.sub(rf"@{config['k']}\b", "@k", gate): gate for gate in written}
