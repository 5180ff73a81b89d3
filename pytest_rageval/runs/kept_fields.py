"""What did a stored run say of itself that deciding again must not change? When and where it was asked, above all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.runs.reader import StoredRun

KEPT = ("run_id", "timestamp", "concurrency", "hardware")
"""Of `volatile`: facts of the asking. Latency, cost and cache hits follow from the records."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The metrics.json of a run as it was before it is decided again."""

    metrics: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.metrics["volatile"]["run_id"])

    @property
    def is_partial(self) -> bool:
        return bool(self.metrics["partial"])

    @property
    def volatile(self) -> dict[str, Any]:
        return {name: self.metrics["volatile"][name] for name in KEPT}

    @property
    def n_unreached(self) -> int:
        """How many cases were selected and have no record: the run was cut short."""
        expected = max((one["n_expected"] for one in self.metrics["metrics"].values()), default=0)
        return max(0, expected - int(self.metrics["total_tests"]))

    def is_last_of(self, reports: Path) -> bool:
        """Is this the run whose metrics.json stands among the reports as the last one's?"""
        path = reports / "metrics.json"
        if not path.exists():
            return True
        return bool(read_json(path, "reports").get("volatile", {}).get("run_id") == self.run_id)

    def keep_reliability(self, metrics: dict[str, Any]) -> None:
        """A spot check of the judge stands as long as the same judge has judged with the same prompts."""
        if "judge_reliability" in self.metrics and self.metrics["judge"] == metrics["judge"]:
            metrics["judge_reliability"] = self.metrics["judge_reliability"]
            metrics["aggregate_metrics"]["judge_reliability"] = self.metrics["aggregate_metrics"]["judge_reliability"]


def earlier_of(run: StoredRun) -> Earlier:
    """What the run's metrics.json says; a SettingsError where the run has not ended, or its file is another's."""
    path = run.path / "metrics.json"
    if not path.exists():
        raise SettingsError(f"run {run.run_id} was interrupted; finish it first with --rageval-resume {run.run_id}")
    earlier = Earlier(read_json(path, "run"))
    try:
        earlier.volatile, earlier.n_unreached, earlier.metrics["judge"]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SettingsError(f"run: {path} is not what a run writes; was it changed?") from None
    return earlier
