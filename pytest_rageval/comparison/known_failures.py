"""Known failures that got worse, and cases that failed no gate until one was added."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pytest_rageval.comparison.changes import gain
from pytest_rageval.comparison.gates_now import Both, gates_of_case
from pytest_rageval.runs.columns import CaseColumns, values_at
from pytest_rageval.runs.row import IS_BAD
from pytest_rageval.text import counted, cut

WORSE_KNOWN_FAILURES = "worse_known_failures"
"""The key of known failures that got worse in a comparison; one without any is without it."""
ADDED_GATES = "fails_added_gate"
"""The key of the cases that fail only by gates added since, with these gates; a comparison may be without it."""
CLEAR_FALL = 0.5
"""A known failure got worse if a score that failed fell by more than this share of its scale.

A model that answers a little differently flips one fact of a case now and then: of two facts that is half of the scale.
"""
_LONGEST_GATE = 120


def known_failures_content(both: Both, before: CaseColumns, described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a comparison about cases that fail on both sides; without what is empty.

    before     the earlier cases with the outcomes of their time; those of `both` are decided by the gates of now
    described  the metrics as metrics.json describes them
    """
    worse: list[str] = []
    added: dict[str, list[str]] = {}
    outcomes_was = values_at(both.was.outcomes, both.shared.before)
    outcomes_now = values_at(both.now.outcomes, both.shared.after)
    for key, was, now in zip(both.shared.keys, outcomes_was, outcomes_now, strict=True):
        if was not in IS_BAD or now not in IS_BAD:
            continue
        gates = gates_of_case(key, both)
        if gates is None:
            continue
        failed = (gates.failed_before & gates.failed_now).difference(both.unlike)
        if before[key].outcome == "passed" and failed:
            added[key] = _new_gates(key, failed, both)
        elif gates.failed_now <= gates.failed_before and _has_fallen(key, failed, both, described):
            worse.append(key)
    content: dict[str, Any] = {}
    if worse:
        content[WORSE_KNOWN_FAILURES] = worse
    if added:
        content[ADDED_GATES] = added
    return content


def _new_gates(key: str, metrics: Collection[str], both: Both) -> list[str]:
    """Return the current gates on these metrics that a case did not have before, as text."""
    gates_was = both.gates_was.of(both.was[key].decision_hash) or ()
    gates_now = both.gates_now.of(both.now[key].decision_hash) or ()
    added = {*gates_now}.difference(gates_was)
    return sorted(gate for gate in added if _metric_of(gate) in metrics)


def _metric_of(gate: str) -> str:
    return gate.split()[0].partition("@")[0]


def _has_fallen(key: str, metrics: set[str], both: Both, described: Mapping[str, Any]) -> bool:
    """Return True if one of these metrics fell by more than a clear fall in a case."""
    now = both.now[key].scores
    for name, score in both.was[key].scores.items():
        if name.partition("@")[0] not in metrics or name not in now or "unit" in described[name]:
            continue
        share = gain(now[name] - score, described[name])
        if share is not None and share < -CLEAR_FALL:
            return True
    return False


def added_gate_words(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Yield `3 cases fail only by the new gate mrr >= 0.5`, if there are such cases."""
    cases = comparison.get(ADDED_GATES)
    if not cases:
        return
    gates: set[str] = set()
    for of_case in cases.values():
        gates.update(of_case)
    by = "new gates"
    if len(gates) == 1:
        [gate] = gates
        by = f"the new gate {cut(gate, _LONGEST_GATE)}"
    yield f"{counted(len(cases), 'case fails', 'cases fail')} only by {by}"
