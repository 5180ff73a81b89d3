"""Pairwise comparisons: the answers of two runs put before a judge, behind its cache and within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pytest_rageval.check.judge_check import configured_judge, judge_at_hand
from pytest_rageval.comparison.answer_pairs import AnswerPair, paired_answers
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.pair_judging import PairDecision, PairJudging, equal_pair
from pytest_rageval.comparison.pairwise_result import pairwise_content
from pytest_rageval.config.project import Project
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.win_rate_gate import WinRateGate, is_win_rate_gate, parse_win_rate_gate
from pytest_rageval.io.masking import Mask, public_target
from pytest_rageval.judges.judge import BaseJudge, described_judge
from pytest_rageval.judges.pairwise_requests import can_compare_answers, pairwise_rubric

NO_JUDGE = "compares no answers; name a model with --judge, as in --judge openai:MODEL"


@dataclass(frozen=True, slots=True)
class PairwiseTold:
    """What a face is told on the way: the likely cost, notes of judge and cache, and the number of judged pairs."""

    cost: Callable[[str], object]
    note: Callable[[str], object]
    watch: Callable[[int], None]


def written_gates(project: Project, options: Sequence[str]) -> tuple[WinRateGate, ...]:
    """Return the gates of the command line, and those of the table on figures that it does not name."""
    given = [parse_win_rate_gate(text, "--gate") for text in options]
    named = {gate.subject for gate in given}
    kept: list[WinRateGate] = []
    for text in filter(is_win_rate_gate, project.settings.gates.run):
        gate = parse_win_rate_gate(text, "gates.run")
        if gate.subject not in named:
            kept.append(gate)
    return (*given, *kept)


def compare_pairwise(
    before: Side, after: Side, project: Project, gates: Sequence[WinRateGate], told: PairwiseTold
) -> dict[str, Any]:
    """Return the content of a pairwise comparison, with its gates.

    Raise SettingsError before anything is asked if the judge cannot compare answers; at the limit of cost; or if no
    pair could be judged.
    """
    judge = asyncio.run(_described(project))
    paired = paired_answers(before, after)
    equal = [pair for pair in paired.pairs if pair.is_equal]
    different = [pair for pair in paired.pairs if not pair.is_equal]
    by_key = {pair.case_key: equal_pair(pair) for pair in equal}
    if different:
        for decision in _judged(different, project, told):
            by_key[decision.pair.case_key] = decision
    decisions = [by_key[pair.case_key] for pair in paired.pairs]
    _check_any_judged(decisions, different)
    content = pairwise_content(before, after, paired, decisions, judge)
    return gated(content, gates)


def gated(content: dict[str, Any], gates: Sequence[WinRateGate]) -> dict[str, Any]:
    """Return the content with its gates; one without a figure has `passed` None and says why."""
    decided = []
    for gate in gates:
        value = gate.value(content)
        why = None
        if value is None:
            why = content["verdict"]["sentence"]
        decided.append({"gate": str(gate), "value": value, "passed": gate.holds(content), "why": why})
    return {**content, "gates": decided}


def fails_gates(content: dict[str, Any]) -> bool:
    """Return True if a gate does not hold. One that cannot be decided does not: a build must not pass by that."""
    return any(gate["passed"] is not True for gate in content["gates"])


async def _described(project: Project) -> dict[str, Any]:
    """Describe the configured judge; raise SettingsError if it compares no answers."""
    settings = project.settings
    async with aclosing(configured_judge(settings, project.root, NO_JUDGE)) as judge:
        if not can_compare_answers(judge):
            raise SettingsError(f"judge {public_target(settings.judge)!r}: {NO_JUDGE}")
        return described_judge(judge, settings.judge_temperature)


def _judged(pairs: Sequence[AnswerPair], project: Project, told: PairwiseTold) -> list[PairDecision]:
    settings = project.settings
    mask = Mask(settings.secrets())
    with judge_at_hand(project, settings, mask, NO_JUDGE, told.note) as judge:
        cost = _estimate(judge, pairs, is_replay=settings.judge_cache == "replay")
        if cost is not None:
            told.cost(cost)
        judging = PairJudging(judge, mask, settings.concurrency, told.watch)
        return list(judging.decisions(pairs))


def _estimate(judge: BaseJudge, pairs: Sequence[AnswerPair], *, is_replay: bool) -> str | None:
    """Return the likely cost; None if nothing is paid or the price is unknown."""
    if judge.tariff is None or is_replay:
        return None
    passages = max(pair.before.k + pair.after.k for pair in pairs)  # unless both retrieved the same
    dollars = judge.tariff.estimate([pairwise_rubric().prompt], passages=passages, times=2 * len(pairs))
    if dollars is None:
        return None
    requests = f"up to {2 * len(pairs):,} requests, about ${dollars:.2f} by list prices"
    return f"judge {judge.tariff.model}: {requests}; what the judge cache holds costs nothing"


def _check_any_judged(decisions: Sequence[PairDecision], different: Sequence[AnswerPair]) -> None:
    """Raise SettingsError if no pair could be judged: then the judge is what is to be mended."""
    problems = [decision.problem for decision in decisions if decision.problem is not None]
    if problems and len(problems) == len(different):
        first = problems[0]
        raise SettingsError(f"none of {len(different)} pairs could be judged: {first.kind}: {first.message}")
