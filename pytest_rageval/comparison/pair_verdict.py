"""The verdict of two stored runs: what a run of the second against the first would show."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.comparison.case_diff import records_of
from pytest_rageval.comparison.gates_now import Both
from pytest_rageval.comparison.outcomes import IS_KNOWN
from pytest_rageval.comparison.side import Side
from pytest_rageval.comparison.verdict_sentence import (
    NOT_COMPARABLE,
    RunVerdict,
    VerdictFacts,
    not_comparable,
    run_verdict,
)
from pytest_rageval.comparison.verdicts import Comparison
from pytest_rageval.config.settings import Settings
from pytest_rageval.runs.row import IS_BAD

OF_A_BASELINE = (NOT_COMPARABLE, "update-baseline")
"""Problems of a run that follow from what it was compared with when it ended."""


def pair_verdict(after: Side, comparison: Comparison, current: Settings) -> RunVerdict:
    """Return the verdict of a run against another one than that with which it was compared when it ended."""
    decided, metrics = after.metrics.get("verdict") or {}, after.metrics
    problems = {name: said for name, said in (decided.get("problems") or {}).items() if name not in OF_A_BASELINE}
    if not (comparison.content["compared"] or metrics["partial"]):
        problems[NOT_COMPARABLE] = not_comparable(comparison.problems)
    absolute = [gate for gate in metrics["gates"] if gate["op"] not in ("drop", "rise")]
    return run_verdict(
        VerdictFacts(
            {**metrics, "outcomes": _outcomes(after, comparison, decided.get("known_failures"))},
            comparison.content,
            [*absolute, *comparison.gates],
            problems,
            decided.get("exit_status", 0),
            is_waived=current.allow_regressions,
        )
    )


def _outcomes(after: Side, comparison: Comparison, known_failures: str | None) -> Mapping[str, int]:
    """Return how many cases have each outcome; of a ratchet the known failures are those of the other run."""
    outcomes: dict[str, int] = dict(after.metrics["outcomes"])
    if known_failures != "ratchet" or after.scores is None:
        return outcomes
    cases = after.scores.cases
    failing = {key for key, outcome in zip(cases.case_keys, cases.outcomes, strict=True) if outcome in IS_BAD}
    xfailed = {key for key in failing if cases[key].outcome == "xfailed"}
    records = records_of(after.run.path / "results.jsonl", xfailed) if after.run and xfailed else {}
    marked = {key for key, record in records.items() if not str(record["reason"] or "").startswith(IS_KNOWN)}
    known = sum(_is_known(key, comparison.both) for key in failing - marked)
    return outcomes | {"xfailed": len(marked) + known, "failed": len(failing - marked) - known}


def _is_known(key: str, both: Both) -> bool:
    """Do the scores of the other run fail every gate that the case fails now?"""
    if key not in both.was or key not in both.now or both.was[key].outcome not in IS_BAD:
        return False
    gates = both.gates_now.of(both.now[key].decision_hash) or ()
    failed = both.gates_now.failed(gates, both.now[key].scores)
    return bool(failed) and failed <= both.gates_was.failed(gates, both.was[key].scores)
