"""What a metric needs, by the words of `@metric(needs=…)`: without it, the metric is not applicable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_rageval.model import NotApplicable, Observation

Guard = Callable[[Observation], NotApplicable | None]
_OF_ANSWERS = {"answer": "text", "chunks": "chunks", "references": "references", "trace": "trace",
               "folder_selection": "folder_selection"}  # fmt: skip
_OF_GOLDS = {"answer": "answers", "irrelevant": "irrelevant_supports"}
"""Fields that a need calls otherwise."""


def guard_of(needs: Sequence[str]) -> Guard:
    """Return a function that says why an observation lacks something; None if it has everything."""

    def absent(obs: Observation) -> NotApplicable | None:
        for need in needs:
            reason = _absent(need, obs)
            if reason is not None:
                return reason
        return None

    return absent


def _absent(need: str, obs: Observation) -> NotApplicable | None:
    if need in _OF_ANSWERS:
        is_absent = getattr(obs.answer, _OF_ANSWERS[need]) is None
        what = need.replace("_", " ")
        return NotApplicable(f"the system reports no {what}", is_unobserved=True) if is_absent else None
    if need.startswith("judge:"):
        rubric = need.removeprefix("judge:")
        return None if rubric in obs.judgements else NotApplicable(f"nothing was judged by {rubric}")
    if need == "gold":
        return NotApplicable("no gold is labelled") if obs.gold.is_empty else None
    kind, _, part = need.partition(".")
    if kind != "gold" or part == "unanswerable":  # which every case has
        return None
    is_labelled = bool(getattr(obs.gold, _OF_GOLDS.get(part, part), True))
    return None if is_labelled else NotApplicable(f"no gold {part.replace('_', ' ')} is labelled")
