"""Pairs of answers put before a judge in both orders, and what it decided about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_rageval.comparison.answer_pairs import AnswerPair
from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judging import ask_together
from pytest_rageval.judges.pairwise_requests import gain_of, pairwise_requests
from pytest_rageval.model import Judgement, JudgeRequest, Problem
from pytest_rageval.run.ask import problem_of, raised

PairOutcome = Literal["win", "tie", "loss", "error"]
TieReason = Literal["equal_answers", "judged_equal", "flipped", "one_order"]
TIE_REASONS: tuple[TieReason, ...] = ("equal_answers", "judged_equal", "flipped", "one_order")
"""Why a pair is a tie: the same text, equal in both orders, another winner in the other order, or a winner in one order
and none in the other."""


@dataclass(frozen=True, slots=True)
class PairDecision:
    """What a judge decided about a pair, from the side of the run after.

    gains  how much better the answer after is, -2 to 2: with the answer before shown first, then with it second
    """

    pair: AnswerPair
    outcome: PairOutcome
    tie_reason: TieReason | None = None
    gains: tuple[float, float] | None = None
    judgements: tuple[Judgement, ...] = ()
    problem: Problem | None = None

    @property
    def clearness(self) -> float:
        """Return how clear the decision is: the sum of both gains, without a sign."""
        return abs(sum(self.gains)) if self.gains is not None else 0.0

    @property
    def is_flipped(self) -> bool:
        return self.tie_reason == "flipped"


def equal_pair(pair: AnswerPair) -> PairDecision:
    """Return the tie of two equal answers, which no judge is asked about."""
    return PairDecision(pair, "tie", "equal_answers")


def decided(pair: AnswerPair, gains: tuple[float, float], judgements: Sequence[Judgement]) -> PairDecision:
    """Return the decision of two judgements: a winner only if both orders have the same."""
    first, second = gains
    outcome: PairOutcome = "tie"
    reason: TieReason | None = None
    if first > 0 and second > 0:
        outcome = "win"
    elif first < 0 and second < 0:
        outcome = "loss"
    elif first * second < 0:
        reason = "flipped"
    elif first == second:
        reason = "judged_equal"
    else:
        reason = "one_order"
    return PairDecision(pair, outcome, reason, gains, tuple(judgements))


@dataclass(frozen=True, slots=True)
class PairJudging:
    """A judge for pairs of answers. `watch` is given the number of judged pairs."""

    judge: BaseJudge
    mask: Mask
    at_most: int
    watch: Callable[[int], None]

    def decisions(self, pairs: Sequence[AnswerPair]) -> Iterator[PairDecision]:
        """Yield the decision about each pair, in order; raise SettingsError at the limit of cost."""
        yield from at_once(self._decision, pairs, self.at_most, close=self.judge.aclose, watch=self.watch)

    async def _decision(self, pair: AnswerPair) -> PairDecision:
        requests = pairwise_requests(pair.before, pair.after)
        calls = [self._asked(request) for request in requests]
        results = await ask_together(calls, in_turn=self.judge.answers_at_once)
        judgements = tuple(result for result in results if isinstance(result, Judgement))
        for result in results:
            if isinstance(result, Problem):
                return PairDecision(pair, "error", judgements=judgements, problem=result)
        gain = gain_of(judgements[0], is_after_first=False)
        gain_swapped = gain_of(judgements[1], is_after_first=True)
        if gain is None or gain_swapped is None:
            problem = Problem("judge_invalid_reply", f"judge {self.judge.model!r} gave no preference")
            return PairDecision(pair, "error", judgements=judgements, problem=problem)
        return decided(pair, (gain, gain_swapped), judgements)

    async def _asked(self, request: JudgeRequest) -> Judgement | Problem:
        try:
            return await self.judge.judge(request)
        except JudgeError as error:
            if error.kind == "budget":
                raise SettingsError(f"{error}; the same command with a higher limit goes on from there") from None
            return problem_of(f"judge_{error.kind}", error, self.mask)
        except SettingsError:
            raise
        except Exception as error:  # noqa: BLE001  a user's own judge may raise anything; it is this pair's error
            return Problem("judge_exception", raised(error, self.mask))
