"""A judge check in words: what it may cost, each canary, and what the judge can be trusted with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_rageval.judges.canaries import Verdict, canaries_for, rubrics_of
from pytest_rageval.judges.judge import Judge
from pytest_rageval.llm.prices import Tariff
from pytest_rageval.model import Rubric
from pytest_rageval.render.text.columns import aligned

PASSAGES = 1
"""Of usual length: those of the canaries are short."""


def estimate_lines(judge: Judge, wordings: Mapping[str, Rubric], repeats: int) -> Iterator[str]:
    """What putting the canaries to a judge may cost, in a line; none where nothing is paid for."""
    tariff: Tariff | None = getattr(judge, "tariff", None)
    if tariff is None:
        return
    prompts = [rubric.prompt for rubric, _ in canaries_for(judge, wordings)]
    dollars = tariff.estimate(prompts, PASSAGES, repeats)
    cost = "its price is not known" if dollars is None else f"about ${dollars:.2f} by list prices"
    yield f"judge {tariff.model}: {len(prompts) * repeats} short requests, {cost}"


def table_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Each canary with what was expected of the judge and what came."""
    rows = [("", "rubric", "canary", "expected", "came")]
    rows += [
        ("✓" if verdict.passed else "✗", verdict.rubric, verdict.canary, _band(verdict), _came(verdict))
        for verdict in verdicts
    ]
    yield from aligned(rows, to_the_left=True)
    for error in dict.fromkeys(verdict.error for verdict in verdicts if verdict.error is not None):
        yield f"error: {error}"


def conclusion_lines(model: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What the judge can be trusted with and what not, one line each."""
    by_rubric = rubrics_of(verdicts)
    if trusted := [rubric for rubric, group in by_rubric.items() if all(verdict.passed for verdict in group)]:
        yield f"{model} can be trusted with {', '.join(trusted)}, as far as these canaries tell"
    for rubric, group in by_rubric.items():
        failed = [verdict for verdict in group if not verdict.passed]
        names = ", ".join(verdict.canary for verdict in failed)
        # Where the same bad answer without the attack got its low score, it is the attack that raised it.
        if failed and all(verdict.is_attack and verdict.score is not None for verdict in failed):
            yield f"{model} is talked into a better score for {rubric}: {names}"
        elif failed:
            yield f"{model} cannot be trusted with {rubric}, {len(failed)} of {len(group)} canaries failed: {names}"


def _band(verdict: Verdict) -> str:
    low, high = verdict.expected
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _came(verdict: Verdict) -> str:
    if verdict.score is None:
        return "no score" if verdict.error is None else "error"
    least, most = min(verdict.scores), max(verdict.scores)
    spread = f" ({round(least, 3):g} to {round(most, 3):g})" if most > least else ""
    return f"{round(verdict.score, 3):g}{spread}" + ("" if verdict.error is None else ", error")
