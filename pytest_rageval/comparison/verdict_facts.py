"""The facts that decide the verdict of a run or a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_rageval.comparison.gate_lines import is_regression
from pytest_rageval.comparison.known_failures import WORSE_KNOWN_FAILURES
from pytest_rageval.comparison.lost_retrieval import LOST_RETRIEVAL
from pytest_rageval.comparison.renamed_cases import RENAMED, STILL_FAILING
from pytest_rageval.comparison.weaker_gates import weaker_gate_words
from pytest_rageval.runs.reservations import ANSWER_LAYER, ANSWERS_UNMEASURED, RETRIEVAL_UNMEASURED


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """The facts that decide a verdict.

    metrics      the content of metrics.json, as far as it exists
    comparison   of metrics.json or of two runs: flips, and a verdict by metric; None without a baseline
    gates        of the run, absolute and against the baseline
    problems     the reasons to fail besides the gates, by name
    exit_status  of pytest, if known
    is_waived    whether failed regression gates do not fail the run
    known_failures  what becomes of a case that fails in the baseline as well: `fail`, `ratchet` or `report`
    """

    metrics: Mapping[str, Any]
    comparison: Mapping[str, Any] | None = None
    gates: Sequence[Mapping[str, Any]] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    exit_status: int = 0
    is_waived: bool = False
    known_failures: str = "fail"

    @property
    def is_partial(self) -> bool:
        return bool(self.metrics.get("partial"))

    @property
    def cases(self) -> int:
        return int(self.metrics["total_tests"])

    def outcome(self, name: str) -> int:
        return int(self.metrics["outcomes"].get(name, 0))

    @property
    def is_all_errors(self) -> bool:
        """Return True if every case ended in an error."""
        return 0 < self.cases == self.outcome("error")

    @property
    def is_compared(self) -> bool:
        return self.comparison is not None and bool(self.comparison.get("compared", True))

    @property
    def is_refused(self) -> bool:
        """Return True if there is something to compare with, but it shares no unchanged case."""
        return self.comparison is not None and not self.is_compared

    def flips(self, name: str) -> int:
        """Return how many cases this list of the comparison holds; 0 if nothing is compared."""
        if self.comparison is None or not self.is_compared:
            return 0
        return len(self.comparison.get(name, ()))

    @property
    def lacks_answers(self) -> bool:
        """Return True if answers were not measured, though the cases or the other run have something to measure."""
        is_unmeasured = bool(self.metrics.get(ANSWERS_UNMEASURED)) or self.has_lost_answers
        return is_unmeasured and not self.is_all_errors

    @property
    def has_lost_answers(self) -> bool:
        """Return True if the other run measured answers, and this one measured none."""
        if self.comparison is None or not self.is_compared or ANSWER_LAYER in self.metrics.get("by_layer", ()):
            return False
        of_answers = [metric for metric in self.comparison["metrics"].values() if metric.get("layer") == ANSWER_LAYER]
        return any(metric["verdict"] == "unmeasured" for metric in of_answers)

    @property
    def lost_retrieval(self) -> int:
        """Return in how many cases the other run measured retrieval, and this one did not."""
        return self.flips(LOST_RETRIEVAL)

    @property
    def worse_known_failures(self) -> int:
        """Return how many cases that fail as before got clearly worse."""
        return self.flips(WORSE_KNOWN_FAILURES)

    @property
    def removed(self) -> int:
        """Return how many cases only the other run has; 0 in a run of a part of the cases."""
        return 0 if self.is_partial else self.flips("only_before") - self.flips(RENAMED)

    @property
    def renamed_failing(self) -> int:
        """Return how many renamed cases fail as they did under their old name."""
        return self.flips(STILL_FAILING)

    @property
    def added_failing(self) -> int:
        """Return how many cases fail that the other run has not, under no name."""
        return self.flips("added_failing") - self.renamed_failing

    @property
    def unmeasured_retrieval(self) -> int:
        """Return in how many cases the gold names places, and the system reports nothing to compare with them."""
        return 0 if self.is_all_errors else int(self.metrics.get(RETRIEVAL_UNMEASURED, 0))

    @property
    def changed(self) -> int:
        """Return the number of changed cases, which are not compared; 0 if all are, or none is."""
        return self.flips("changed_cases")

    @property
    def regressed(self) -> list[str]:
        """Return the metrics that fell beyond their tolerance, not by chance."""
        if self.comparison is None or not self.is_compared:
            return []
        metrics = self.comparison["metrics"]
        return sorted(name for name, metric in metrics.items() if metric["verdict"] == "regressed")

    @property
    def weaker_gates(self) -> list[str]:
        """Return in words which gates were removed or loosened since the other run."""
        if self.comparison is None or not self.is_compared:
            return []
        return list(weaker_gate_words(self.comparison))

    @property
    def failed_gates(self) -> list[Mapping[str, Any]]:
        """Return the results of the gates that fail the run; a partial run fails none."""
        if self.is_partial:
            return []
        failed = [gate for gate in self.gates if gate["passed"] is False]
        if self.is_waived:
            failed = [gate for gate in failed if not is_regression(gate)]
        return failed
