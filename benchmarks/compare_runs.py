"""What does a comparison cost? Two runs of 100,000 cases and ten metrics: seconds, and memory beside the runs.

python benchmarks/compare_runs.py [CASES]
"""

from __future__ import annotations

import random
import resource
import sys
import time

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.compared_sides import compare_with_baseline
from pytest_rageval.config.settings import Settings
from pytest_rageval.metrics import load_registry
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.row import CaseScores, Row

CASES = 100_000
METRICS = ("recall_any", "recall_all", "context_recall", "precision", "mrr", "ndcg", "map", "token_f1", "groundedness",
           "correctness")  # fmt: skip
CHANGED = 0.2
"""Share of the cases that differ between the runs, in every metric: a new index, not a new machine."""
GROUPS = {"category": ("a",), "tag": (), "difficulty": (), "domain": (), "answerable": ("answerable",)}
COST = {"judge_tokens": None, "judge_cost_usd": None, "target_usage": None, "judgements": 0, "judgements_cached": 0}


def scores(plan: Plan, luck: random.Random) -> dict[str, float]:
    """Shares, ranks, and values that are anywhere, as the metrics give them."""
    found = {}
    for measure in plan.measures:
        low, high = measure.metric.scale
        if measure.metric.binary:
            found[measure.name] = float(luck.random() < 0.8)
        elif measure.metric.name in ("mrr", "map"):
            found[measure.name] = 1 / luck.randint(1, 10)
        elif high == 5:
            found[measure.name] = float(luck.randint(0, 5))
        else:
            found[measure.name] = low + (high - low) * luck.random()
    return found


def a_row(key: str, values: dict[str, float], outcome: str = "passed") -> Row:
    return Row(key=key, trial=0, outcome=outcome, content_hash="0" * 64, groups=GROUPS, scores=values,
               not_applicable=frozenset(), failed=(), gates_examined=1, error_kind=None, message=None, is_blank=False,
               trial_passed=True, latency={}, cost=COST, judge=None)  # fmt: skip


def main(cases: int) -> None:
    luck = random.Random(1)
    plan = make_plan(Settings(enabled=METRICS), load_registry())
    keys = [f"evalcases/some.jsonl::case-{number}" for number in range(cases)]
    before = [a_row(key, scores(plan, luck)) for key in keys]
    after = [a_row(row.key, scores(plan, luck) if luck.random() < CHANGED else dict(row.scores)) for row in before]
    info = RunInfo("hash", None, cases, False, None, {"run_id": "before"})
    metrics = [aggregate(rows, plan, info) for rows in (before, after)]
    stored = {row.key: CaseScores(row.content_hash, row.outcome, row.scores) for row in before}
    baseline = Side("baseline.json", metrics[0], CaseColumns.of(stored))
    held, start, cpu = peak_mb(), time.perf_counter(), time.process_time()
    found = compare_with_baseline(metrics[1], after, baseline, plan, None)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    tested = sum(one["p"] is not None for one in found.content["metrics"].values())
    memory = f"{peak_mb() - held:.0f} MB beside the runs' {held:.0f}"
    print(f"{cases} cases, {tested} metrics: {seconds:.2f} s ({cpu:.2f} of CPU), {memory}")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES)
