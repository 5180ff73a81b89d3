"""A run in short that is as large as can be: thousands of failing cases, hundreds of gates, long texts."""

from __future__ import annotations

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.views.causes import CauseView
from pytest_rageval.views.compared_metrics import ComparedMetric
from pytest_rageval.views.run_digest import FailingCase, RunDigest

MANY = 5_000


def large_digest(text: str, gates: int) -> RunDigest:
    """5,000 failing cases and as many causes, with this text wherever a case, a system or a setting gives one."""
    listed = tuple(
        ListedCase(
            f"a.jsonl::{number} {text}", "failed" if number % 7 else "error", {"category": "c"},
            place=f"{text}:{number}", message=text, question=text, answer=text, change="worse",
        )
        for number in range(MANY)
    )  # fmt: skip
    gate = {"metric": f"mrr {text}", "op": ">=", "limit": 0.5, "value": 0.1, "passed": False, "verdict": ""}
    comparison = {"compared": True, "baseline_run_id": text, "metrics": {},
                  "fallen": [{"metrics": [text, text], "cases": 9, "first": []}] * 9}  # fmt: skip
    metrics = {
        "verdict": {"tone": "red", "word": "Gate failed", "sentence": f"Fails the build: 5,000 cases fail, {text}",
                    "problems": {f"{number} {text}": text for number in range(20)}},
        "description": text, "volatile": {"run_id": text}, "partial": False, "gates": [gate] * gates,
        "comparison": comparison, "judge": {"model": text, "heuristic": False},
    }  # fmt: skip
    figures = {"before": "0.900", "after": "0.100 of 5", "change": "-0.800"}
    moved = ComparedMetric(text, text, figures, "beyond tolerance, may be noise", "worse", "fell")
    causes = tuple(CauseView("system_error", f"the system failed: {number} {text}", [text] * 9) for number in range(99))
    return RunDigest(
        metrics=metrics, changes=(text,) * 50, causes=causes, known_causes=causes, failing=listed, flaky=(),
        cases=tuple(FailingCase(case, text, text) for case in listed[:10]), moved=(moved,) * 60,
    )  # fmt: skip
