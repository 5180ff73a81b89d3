"""Requests that compare two answers: both orders, and nothing that tells which system is which."""

from __future__ import annotations

from pytest_rageval.judges.pairwise_requests import AnsweredCase, gain_of, pairwise_requests, pairwise_rubric
from pytest_rageval.judges.requests import can_join
from pytest_rageval.model import Answer, Chunk, Dialogue, EvalCase, Judgement, Turn

CASE = EvalCase("q", "What does it cost?")


def answered(text: str, *passages: str, said: str = "", k: int = 5) -> AnsweredCase:
    chunks = tuple(Chunk(chunk_id=f"{text}-{n}", text=passage) for n, passage in enumerate(passages))
    dialogue = Dialogue("c", (Turn("user", "Hello?"), Turn("assistant", said))) if said else None
    return AnsweredCase(CASE, Answer(text=text, chunks=chunks), k, dialogue)


def test_the_two_requests_differ_in_the_order_of_the_answers_alone():
    one, other = pairwise_requests(answered("4 euros"), answered("5 euros"))
    assert (one.variables["first_answer"], one.variables["second_answer"]) == ("4 euros", "5 euros")
    swapped = {"first_answer": "5 euros", "second_answer": "4 euros"}
    assert {**one.variables, **swapped} == other.variables


def test_comparing_the_other_way_round_sends_the_same_requests():
    before = answered("4 euros", "zebra", "shared", "apple", said="Hi.")
    after = answered("5 euros", "mango", "zebra", said="Good day.")
    one, other = pairwise_requests(before, after)
    assert pairwise_requests(after, before) == (other, one)
    assert [context["text"] for context in one.variables["contexts"]] == ["mango", "zebra", "shared", "apple"]


def test_ids_of_chunks_are_not_shown_and_each_side_shows_its_own_number_of_them():
    one, _ = pairwise_requests(answered("a", "1", "2", "3", k=1), answered("b", "4", "5", "6", k=2))
    assert one.variables["contexts"] == [{"text": "1"}, {"text": "4"}, {"text": "5"}]


def test_equal_earlier_answers_are_shown_and_different_ones_are_not():
    one, _ = pairwise_requests(answered("a", said="Hi."), answered("b", said="Hi."))
    assert [turn["role"] for turn in one.variables["history"]] == ["user", "assistant"]
    one, _ = pairwise_requests(answered("a", said="Hi."), answered("b", said="Hello."))
    assert one.variables["history"] == [{"role": "user", "text": "Hello?"}]


def test_a_preference_is_a_gain_of_the_run_after():
    judgement = Judgement("pairwise", {"pairwise": 5.0}, (1.0, 5.0))
    assert gain_of(judgement, is_after_first=False) == 2
    assert gain_of(judgement, is_after_first=True) == -2
    assert gain_of(Judgement("pairwise", {}), is_after_first=True) is None


def test_it_shares_no_request_with_other_rubrics():
    assert not can_join(pairwise_rubric())
