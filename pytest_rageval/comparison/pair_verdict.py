"""The verdict of a run against another one than its baseline."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.compared_sides import Comparison
from pytest_rageval.comparison.gate_lines import is_regression
from pytest_rageval.comparison.gates_now import Both, gates_of_case
from pytest_rageval.comparison.outcomes import is_known_failure
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_reasons import RECORDS_OF
from pytest_rageval.comparison.verdict_sentence import (
    NOT_COMPARABLE,
    RunVerdict,
    not_comparable,
    run_verdict,
)
from pytest_rageval.config.settings import Settings
from pytest_rageval.runs.row import IS_BAD

OF_A_BASELINE = (NOT_COMPARABLE, "update-baseline")
"""Problems of a run that depend on the baseline it was compared with when it ended."""


def pair_verdict(after: Side, comparison: Comparison, current: Settings, damages: Mapping[str, str]) -> RunVerdict:
    """Return the verdict of a run against another one than its baseline.

    `damages`: by name of a side, how its records differ from those that the run wrote.
    """
    metrics = after.metrics
    decided = metrics.get("verdict") or {}
    stored = decided.get("problems") or {}
    problems = {name: problem for name, problem in stored.items() if name not in OF_A_BASELINE}
    for name, damage in damages.items():
        problems[f"{RECORDS_OF}{name}"] = damage
    if not (comparison.content["compared"] or metrics["partial"]):
        problems[NOT_COMPARABLE] = not_comparable(comparison.problems)
    outcomes = _outcomes(after, comparison, decided.get("known_failures"))
    absolute = [gate for gate in metrics["gates"] if not is_regression(gate)]
    facts = VerdictFacts(
        metrics={**metrics, "outcomes": outcomes},
        comparison=comparison.content,
        gates=[*absolute, *comparison.gates],
        problems=problems,
        exit_status=decided.get("exit_status", 0),
        is_waived=current.allow_regressions,
        known_failures=decided.get("known_failures") or "fail",
    )
    return run_verdict(facts)


def _outcomes(after: Side, comparison: Comparison, known_failures: str | None) -> Mapping[str, int]:
    """Return how many cases have each outcome; with `ratchet`, known failures are those of the other run."""
    outcomes: dict[str, int] = dict(after.metrics["outcomes"])
    if known_failures != "ratchet" or after.scores is None:
        return outcomes
    cases = after.scores
    outcome_of = dict(zip(cases.case_keys, cases.outcomes, strict=True))
    failing = {key for key, outcome in outcome_of.items() if outcome in IS_BAD}
    xfailed = {key for key in failing if outcome_of[key] == "xfailed"}
    # An xfail mark of the project's own test has a reason of its own.
    records = after.records(xfailed)
    marked = {key for key, record in records.items() if not is_known_failure(record["reason"])}
    unmarked = failing - marked
    known = sum(_is_known(key, comparison.both) for key in unmarked)
    return outcomes | {"xfailed": len(marked) + known, "failed": len(unmarked) - known}


def _is_known(key: str, both: Both) -> bool:
    """Return True if the scores of the other run fail every gate that the case fails now."""
    if key not in both.was or key not in both.now or both.was[key].outcome not in IS_BAD:
        return False
    gates = gates_of_case(key, both)
    if gates is None or not gates.failed_now:
        return False
    return gates.failed_now <= gates.failed_before
