"""Grids as they are written, scores of points, and the difference between two: by hand, and against each other."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from pytest_rageval.model import EvalCase, Source
from pytest_rageval.tune.sweep.grid import FULL, QUICK, Grid, parse_grid
from pytest_rageval.tune.sweep.ranking import (
    DEFAULT_WEIGHTS,
    CaseParts,
    Gain,
    difference,
    in_halves,
    point_scores,
    sampled,
)

BEFORE = {f"p{at}": CaseParts(0.5, None, 0.25) for at in range(10)} | {
    f"n{at}": CaseParts(None, 0, None) for at in range(5)
}
AFTER = {f"p{at}": CaseParts(1.0, None, 0.25) for at in range(10)} | {
    f"n{at}": CaseParts(None, float(at < 3), None) for at in range(5)
}


def test_a_part_without_cases_counts_nothing():
    scores = point_scores(AFTER, DEFAULT_WEIGHTS, [f"p{at}" for at in range(10)])
    assert scores.negative_accuracy is None
    assert scores.score == pytest.approx((0.5 * 1 + 0.2 * 0.25) / 0.7)
    assert point_scores({}, DEFAULT_WEIGHTS, []).score is None


def test_the_difference_is_that_of_the_scores_and_its_interval_holds_it():
    change = difference(AFTER, BEFORE, DEFAULT_WEIGHTS, AFTER)
    after, before = (point_scores(side, DEFAULT_WEIGHTS, AFTER).score for side in (AFTER, BEFORE))
    assert after is not None
    assert before is not None
    assert change.delta == pytest.approx(after - before)
    assert change.ci is not None
    assert change.ci[0] < change.delta < change.ci[1]
    assert change.n == 15
    assert change.is_distinguishable


@pytest.mark.parametrize("share", [0.0, 0.2, 0.35, 0.5, 0.8])
@pytest.mark.parametrize("n", [5, 8, 12, 30])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_is_distinguishable_exactly_if_its_interval_and_its_p_say_so(n: int, share: float, sign: int):
    random = Random(f"{n} {share}")
    before = {f"q{at}": CaseParts(random.choice((0.0, 0.5)), None, 0.5) for at in range(n)}
    after = {
        key: parts._replace(recall=(parts.recall or 0) + sign * 0.5 * (random.random() < share))
        for key, parts in before.items()
    }
    change = difference(after, before, DEFAULT_WEIGHTS, after)
    assert change.ci is not None
    low, high = change.ci
    assert low < high
    assert change.is_distinguishable == (low > 0 or high < 0) == ((change.p or 0) <= 0.05)
    assert not change.is_distinguishable or (low > 0) == (change.delta > 0)


def test_five_cases_that_all_move_are_enough_and_four_of_thirty_are_not():
    before = {f"q{at}": CaseParts(0.0, None, 0.5) for at in range(30)}

    def moved(cases: int) -> dict[str, CaseParts]:
        return {key: parts._replace(recall=float(at < cases)) for at, (key, parts) in enumerate(before.items())}

    four, five = (difference(moved(cases), before, DEFAULT_WEIGHTS, before) for cases in (4, 5))
    assert (four.is_distinguishable, five.is_distinguishable) == (False, True)
    assert four.ci is not None
    assert five.ci is not None
    assert four.ci[0] < 0 < five.ci[0]


@pytest.mark.parametrize("ci", [(0.0, 0.2), (-0.2, 0.0), (-0.1, 0.1), None])
def test_an_interval_that_holds_or_touches_0_shows_no_change(ci: tuple[float, float] | None):
    assert not Gain(0.1, ci, 0.05, 9).is_distinguishable


def test_cases_with_an_error_on_one_side_are_not_compared():
    without = {key: parts for key, parts in AFTER.items() if key != "p0"}
    assert difference(without, BEFORE, DEFAULT_WEIGHTS, AFTER).n == 14


def test_halves_hold_every_case_once_and_do_not_depend_on_the_others():
    keys = [f"a.jsonl::case{at}" for at in range(100)]
    first, second = in_halves(keys)
    assert sorted((*first, *second)) == sorted(keys)
    assert 30 < len(first) < 70
    assert set(in_halves(keys[:50])[0]) == set(first) & set(keys[:50])


def test_turns_of_a_conversation_are_in_one_half():
    conversations = {f"a.jsonl::talk{talk}[{turn}]": f"a.jsonl::talk{talk}" for talk in range(20) for turn in (1, 2, 3)}
    for half in in_halves(tuple(conversations), conversations):
        assert len(half) == 3 * len({conversations[key] for key in half})


def test_a_difference_over_turns_is_that_of_conversations():
    before = {f"t{at}": CaseParts(0.5, None, 0.5, f"talk{at // 5}") for at in range(30)}
    after = {f"t{at}": CaseParts(1.0, None, 0.5, f"talk{at // 5}") for at in range(15)}
    after |= {f"t{at}": before[f"t{at}"] for at in range(15, 30)}
    alone = {key: parts._replace(conversation=None) for key, parts in after.items()}
    assert difference(alone, before, DEFAULT_WEIGHTS, before).is_distinguishable
    change = difference(after, before, DEFAULT_WEIGHTS, before)
    assert change.n == 30
    assert not change.is_distinguishable


def test_samples_are_in_order_and_grow_by_cases():
    cases = [EvalCase(str(at), "?", source=Source("a.jsonl", at)) for at in range(30)]
    few, more = sampled(cases, 5, 0), sampled(cases, 10, 0)
    assert len(few) == 5
    assert {case.id for case in few} < {case.id for case in more}
    assert [case.source.line for case in more] == sorted(case.source.line for case in more)
    assert sampled(cases, 5, 1) != few
    assert sampled(cases, 99, 0) == cases


def test_a_sample_takes_conversations_whole():
    def turn(number: int, conversation: str) -> EvalCase:
        case_id = f"{conversation}[{number}]"
        return EvalCase(case_id, "q", source=Source("c.jsonl", 1), conversation=conversation, turn=number)

    cases = [turn(number, conversation) for conversation in "abcdefgh" for number in (1, 2, 3)]
    for seed in range(5):
        chosen = sampled(cases, 8, seed)
        turns = Counter(case.conversation for case in chosen)
        assert len(chosen) == 9
        assert set(turns.values()) == {3}


def test_the_quick_grid_has_six_points_and_the_full_one_189():
    assert len(Grid(QUICK).points()) == 6
    assert len(Grid(FULL).points()) == 189
    assert len(Grid(FULL).families()) == 9


def test_a_family_differs_in_its_cuts_alone_and_its_widest_point_cuts_least():
    (family, other) = parse_grid(["min_score=.4,.2", "k=5,10", "mode=a,b"]).families()
    assert len(family.points) == len(other.points) == 4
    assert family.widest.params == {"mode": "a", "min_score": 0.2, "k": 10}
    assert [point.params["k"] for point in family.by_score] == [5, 10]
    assert {point.params["min_score"] for point in family.by_score} == {0.4}


def test_a_threshold_that_is_no_number_is_no_cut():
    grid = parse_grid(["min_score=low,high", "k=5,10"])
    assert grid.cuts == ("k",)
    assert len(grid.families()) == 2
