"""The result of comparing the answers of two runs pair by pair: win rate, position flips, and the clearest cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pytest_rageval.comparison.answer_pairs import PairedAnswers, abstentions_on_one_side
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.pair_judging import TIE_REASONS, PairDecision
from pytest_rageval.judges.judge import asked_of, sum_costs
from pytest_rageval.model.case_fields import UNCATEGORISED
from pytest_rageval.runs.judge_notes import doubts_about, kinship_notes
from pytest_rageval.stats.win_rate import HALF, LOSS, TIE, WIN, WinRate, win_rate
from pytest_rageval.text import counted, percent, short

SCHEMA = 1
POINTS = {"win": WIN, "tie": TIE, "loss": LOSS}
MOST_FLIPS = 0.3
"""The share of judged pairs whose winner may depend on the order; beyond it the order decides, not the answers."""
MOST_ERRORS = 0.3
"""The share of pairs that may lack a judgement: beyond it the others are hardly a sample of all."""
CLEAREST = 10
"""Wins and losses to show with their reasons."""
VerdictWord = Literal["better", "worse", "even", "too_few", "none"]


def pairwise_content(
    before: Side, after: Side, paired: PairedAnswers, decisions: Sequence[PairDecision], judge: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the result as strict JSON, with all that every face shows.

    judge  the description of the judge; gates are added by `gated`
    """
    judged = [decision for decision in decisions if decision.outcome != "error"]
    failed = [decision for decision in decisions if decision.outcome == "error"]
    flips = _position_flips(judged)
    why_none = _no_verdict(decisions, failed, flips)
    rate = None if why_none is not None else win_rate_of(judged)
    word, sentence = _verdict(after.name, before.name, rate, why_none)
    return {
        "schema": SCHEMA,
        "verdict": {"word": word, "sentence": sentence},
        "before": {"name": before.name, "run_id": before.run_id},
        "after": {"name": after.name, "run_id": after.run_id},
        "judge": dict(judge),
        "n": len(judged),
        **_rate_members(rate),
        **_counts(judged),
        "ties_by_reason": _ties(judged),
        "position_flips": flips,
        "by_category": _by_category(judged, has_verdict=rate is not None),
        "lengths": _lengths(judged),
        **_clearest_members(judged),
        "errors": _errors(failed),
        "left_out": _left_out(paired),
        "abstentions": _abstentions(paired),
        "notes": list(_notes(before, after, paired, judge)),
        **_decision_members(decisions),
        "gates": [],
    }


def _clearest_members(judged: Sequence[PairDecision]) -> dict[str, Any]:
    wins = _clearest(judged, "win")
    losses = _clearest(judged, "loss")
    return {
        "clearest_wins": [_case(decision) for decision in wins],
        "clearest_losses": [_case(decision) for decision in losses],
    }


def _decision_members(decisions: Sequence[PairDecision]) -> dict[str, Any]:
    """Return what is listed of all pairs, also of those whose judgement failed."""
    doubtful = [decision for decision in decisions if _is_doubtful(decision)]
    return {
        "doubtful": [decision.pair.case_key for decision in doubtful],
        "spent": _spent(decisions),
        "cases": [_in_short(decision) for decision in decisions],
    }


def win_rate_of(decisions: Sequence[PairDecision]) -> WinRate | None:
    """Return the win rate of judged pairs, clustered by conversation; None without a pair."""
    if not decisions:
        return None
    points = [POINTS[decision.outcome] for decision in decisions]
    return win_rate(points, [decision.pair.cluster for decision in decisions])


def _position_flips(judged: Sequence[PairDecision]) -> dict[str, Any]:
    """Return how many of the pairs that the judge saw in both orders have another winner in the other order."""
    asked = [decision for decision in judged if decision.gains is not None]
    flipped = sum(decision.is_flipped for decision in asked)
    rate = flipped / len(asked) if asked else None
    return {"rate": rate, "flipped": flipped, "n": len(asked), "most": MOST_FLIPS}


def _no_verdict(
    decisions: Sequence[PairDecision], failed: Sequence[PairDecision], flips: Mapping[str, Any]
) -> str | None:
    """Return why the judgements allow no verdict, or None."""
    if not decisions:
        return "no two answers could be compared"
    if len(failed) > MOST_ERRORS * len(decisions):
        return (
            f"{len(failed)} of {counted(len(decisions), 'pair')} could not be judged, more than {percent(MOST_ERRORS)}"
        )
    if flips["rate"] is not None and flips["rate"] > MOST_FLIPS:
        flipped = f"the winner depended on the order in {flips['flipped']} of {counted(flips['n'], 'judged pair')}"
        return f"{flipped}, more than {percent(MOST_FLIPS)}: use another judge"
    return None


def _verdict(after: str, before: str, rate: WinRate | None, why_none: str | None) -> tuple[VerdictWord, str]:
    if rate is None:
        return "none", f"No verdict: {why_none}"
    figure = f"win rate {short(rate.rate)}"
    if rate.interval is None:
        return "too_few", f"Too few cases for a verdict: {figure} of {after} against {before}, n {rate.n}"
    low, high = rate.interval
    figures = f"{figure}, 95 % {short(low)} to {short(high)}"
    if low > HALF:
        return "better", f"{after} answers better than {before}: {figures}"
    if high < HALF:
        return "worse", f"{after} answers worse than {before}: {figures}"
    return "even", f"No difference shown between {after} and {before}: {figures}"


def _rate_members(rate: WinRate | None) -> dict[str, Any]:
    if rate is None:
        return {"win_rate": None, "interval": None, "p": None, "clusters": None}
    interval = None
    if rate.interval is not None:
        low, high = rate.interval
        interval = {"low": low, "high": high}
    return {"win_rate": rate.rate, "interval": interval, "p": rate.p, "clusters": rate.clusters}


def _counts(decisions: Iterable[PairDecision]) -> dict[str, int]:
    counts = Counter(decision.outcome for decision in decisions)
    return {"wins": counts["win"], "ties": counts["tie"], "losses": counts["loss"]}


def _ties(judged: Iterable[PairDecision]) -> dict[str, int]:
    counts = Counter(decision.tie_reason for decision in judged)
    return {reason: counts[reason] for reason in TIE_REASONS}


def _by_category(judged: Sequence[PairDecision], *, has_verdict: bool) -> dict[str, Any]:
    """Return counts and win rate by category; {} if no case has one."""
    members: dict[str, list[PairDecision]] = {}
    for decision in judged:
        members.setdefault(decision.pair.category or UNCATEGORISED, []).append(decision)
    if members.keys() <= {UNCATEGORISED}:
        return {}
    groups: dict[str, Any] = {}
    for name, group in sorted(members.items()):
        rate = win_rate_of(group) if has_verdict else None
        groups[name] = {"n": len(group), **_counts(group), **_rate_members(rate)}
    return groups


def _lengths(judged: Iterable[PairDecision]) -> dict[str, Any]:
    """Return the mean lengths of winning and losing answers in characters, and how often the longer one won."""
    winners: list[int] = []
    losers: list[int] = []
    for decision in judged:
        before = len(decision.pair.before.answer.text or "")
        after = len(decision.pair.after.answer.text or "")
        if decision.outcome == "win":
            winners.append(after)
            losers.append(before)
        elif decision.outcome == "loss":
            winners.append(before)
            losers.append(after)
    longer = sum(winner > loser for winner, loser in zip(winners, losers, strict=True))
    return {"winners": _mean(winners), "losers": _mean(losers), "n": len(winners), "longer_won": longer}


def _mean(values: Sequence[int]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _clearest(judged: Iterable[PairDecision], outcome: str) -> list[PairDecision]:
    of_outcome = [decision for decision in judged if decision.outcome == outcome]
    of_outcome.sort(key=lambda decision: -decision.clearness)  # stable: otherwise in the order of the run
    return of_outcome[:CLEAREST]


def _case(decision: PairDecision) -> dict[str, Any]:
    pair = decision.pair
    return {
        **_in_short(decision),
        "question": pair.after.case.question,
        "answer_before": pair.before.answer.text,
        "answer_after": pair.after.answer.text,
        "reasons": [judgement.reasoning for judgement in decision.judgements],
    }


def _in_short(decision: PairDecision) -> dict[str, Any]:
    return {
        "case_key": decision.pair.case_key,
        "category": decision.pair.category,
        "outcome": decision.outcome,
        "tie_reason": decision.tie_reason,
        "gains": None if decision.gains is None else list(decision.gains),
    }


def _notes(before: Side, after: Side, paired: PairedAnswers, judge: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on the judge and the runs."""
    if paired.has_trials:
        yield "cases were asked several times: the first answer of each is compared"
    for doubt in doubts_about(judge, None):
        if not doubt.is_unchecked:  # canaries try no pairs
            yield doubt.text
    for side in (before, after):
        for model in sorted(_models_of(side)):
            for note in kinship_notes(model, [judge["model"]]):
                yield f"{side.name}: {note}"


def _models_of(side: Side) -> set[str]:
    """Return the models that answered, as far as the run knows them."""
    config = side.config or {}
    models = config.get("llm_model"), config.get("observed", {}).get("llm")
    return {model for model in models if isinstance(model, str)}


def _errors(failed: Sequence[PairDecision]) -> dict[str, Any]:
    problems = [decision.problem for decision in failed if decision.problem is not None]
    first = f"{problems[0].kind}: {problems[0].message}" if problems else None
    by_kind = Counter(problem.kind for problem in problems)
    cases = [decision.pair.case_key for decision in failed]
    return {"count": len(failed), "by_kind": dict(sorted(by_kind.items())), "first": first, "cases": cases}


def _left_out(paired: PairedAnswers) -> dict[str, list[str]]:
    return {
        "only_before": paired.only_before,
        "only_after": paired.only_after,
        "changed": paired.changed,
        "small_talk": paired.small_talk,
        "unanswered_before": paired.unanswered_before,
        "unanswered_after": paired.unanswered_after,
        "unanswered": paired.unanswered,
    }


def _abstentions(paired: PairedAnswers) -> dict[str, list[str]]:
    sides: dict[str, list[str]] = {"before": [], "after": []}
    for key, is_after in abstentions_on_one_side(paired.pairs):
        sides["after" if is_after else "before"].append(key)
    return sides


def _is_doubtful(decision: PairDecision) -> bool:
    return any(judgement.flags for judgement in decision.judgements)


def _spent(decisions: Iterable[PairDecision]) -> dict[str, Any]:
    """Return requests and cost of what was judged now, and how many judgements were stored before."""
    new = []
    stored = 0
    for decision in decisions:
        for judgement in decision.judgements:
            if judgement.cached:
                stored += 1
            else:
                new.append(judgement)
    return {"judgements": len(new), "cached": stored, **asked_of(new), "cost_usd": sum_costs(new)["cost_usd"]}
