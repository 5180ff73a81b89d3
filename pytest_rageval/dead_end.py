"""First calls that all fail alike, in a way that cannot heal: the others need not be made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_rageval.engine import Evaluation

FIRST_CALLS = 16

Call = tuple[str, str]
"""How a call failed, as kind and message; both empty where it answered, or may the next time."""


def calls_of(evaluations: Sequence[Evaluation]) -> list[Call]:
    """How the calls of some cases failed."""
    results = [result for evaluation in evaluations for result in evaluation.trials]
    problems = (result.observation.judge_problems if result.observation is not None else () for result in results)
    errors = [result.error or next(iter(of_judge), None) for result, of_judge in zip(results, problems, strict=True)]
    return [
        (f"{error.kind} {error.status or ''}", error.message) if error and error.is_lasting else ("", "")
        for error in errors
    ]


class FirstCalls:
    """Counts the first calls of a run, whoever made them."""

    def __init__(self) -> None:
        self._failures = 0
        self._kind: str | None = None
        self._is_over = False
        """Did a call answer, or fail otherwise? Then no later one ends the run."""

    def add(self, calls: Iterable[Call]) -> str | None:
        """Why the run is to end with these calls, as a line; None where it goes on."""
        for kind, message in calls:
            self._kind = self._kind or kind
            self._is_over = self._is_over or kind != self._kind or not kind
            self._failures += 1
            if not self._is_over and self._failures == FIRST_CALLS:
                self._is_over = True
                return (
                    f"rageval: the first {FIRST_CALLS} calls all failed alike, so the others were not made: {message}; "
                    "mend that and run again"
                )
        return None
