"""Two runs of the same cases, as the comparison takes them: rows and aggregates now, a baseline before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Baseline
from pytest_rageval.comparison.verdicts import Comparison, compare_with_baseline
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Regression
from pytest_rageval.metrics import load_registry
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate
from pytest_rageval.runs.row import CaseScores, Row, cases_of

REGISTRY = load_registry()


def a_plan(*enabled: str, regression: Sequence[Regression] = (), **settings: Any) -> Plan:
    """A plan of some metrics, of all those on by default where none is named."""
    return make_plan(Settings(enabled=enabled or None, regression=tuple(regression), **settings), REGISTRY)


def a_row(key: str, trial: int = 0, **fields: Any) -> Row:
    """A case that passed. `fields` are those of a row, or scores with `_at_` for the @ of their names."""
    known: dict[str, Any] = {
        "outcome": "passed", "content_hash": "hash", "not_applicable": frozenset(), "failed": (), "gates_examined": 1,
        "error_kind": None, "message": None, "is_blank": False, "trial_passed": True, "latency": {}, "judge": None,
        "groups": {"category": ("a",), "tag": (), "difficulty": (), "domain": (), "answerable": ("answerable",)},
        "cost": {"judge_tokens": None, "judge_cost_usd": None, "target_usage": None, "judgements": 0,
                 "judgements_cached": 0},
    }  # fmt: skip
    told = {name: fields.pop(name) for name in list(fields) if name in known}
    scores = {name.replace("_at_", "@"): value for name, value in fields.items()}
    return Row(key=key, trial=trial, scores=scores, **(known | told))


def some_rows(metric: str, scores: Iterable[float], **fields: Any) -> list[Row]:
    """A case for each score."""
    return [a_row(f"q{number:04}", **({metric: score} | fields)) for number, score in enumerate(scores)]


def metrics_of(rows: Sequence[Row], plan: Plan, **changed: Any) -> dict[str, Any]:
    """What metrics.json of a run with these rows holds."""
    return aggregate(rows, plan, RunInfo("hash", None, len(rows), False, None, {"run_id": "before"})) | changed


def a_baseline(rows: Sequence[Row], metrics: Mapping[str, Any]) -> Baseline:
    """A run, taken as the baseline."""
    cases = {row.key: CaseScores(row.content_hash, row.outcome, row.scores) for row in cases_of(rows)}
    return Baseline(Path("baseline.json"), metrics, cases)


def compared(before: Sequence[Row], after: Sequence[Row], plan: Plan) -> Comparison:
    """One run against an earlier one."""
    return compare_with_baseline(
        metrics_of(after, plan), after, a_baseline(before, metrics_of(before, plan)), plan, None
    )
