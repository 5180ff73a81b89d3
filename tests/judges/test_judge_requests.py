"""Requests: what a judge is told about an answer, and when it is not asked at all."""

from __future__ import annotations

import pytest

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges import requests_for
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.model import Answer, Chunk, EvalCase, Gold, JudgeRequest, Reference, Turn

ALL = ("groundedness", "correctness", "relevance", "abstention")


def a_case(**fields) -> EvalCase:
    return EvalCase(**{"id": "q1", "question": "How fast is the camera?", **fields})


def an_answer(text="It runs at 30 Hz.", **fields) -> Answer:
    return Answer(**{"text": text, "chunks": (Chunk("c1", text="The camera runs at 30 Hz."),), **fields})


def the_request(rubric: str, case: EvalCase, answer: Answer, k: int = 5) -> JudgeRequest:
    (request,) = requests_for(case, answer, [rubric], k)
    return request


def asked(case: EvalCase, answer: Answer) -> set[str]:
    return {request.rubric for request in requests_for(case, answer, ALL, 5)}


def test_requests_come_in_the_order_of_the_rubrics_with_version_and_trial():
    requests = requests_for(a_case(), an_answer(), ["relevance", "groundedness"], 5, 3)
    assert [(one.rubric, one.trial) for one in requests] == [("relevance", 3), ("groundedness", 3)]
    assert requests[0].prompt_version == load_rubric("relevance").prompt_version


def test_a_request_carries_exactly_what_its_prompt_reads():
    gold = Gold(answers=("30 Hz", "thirty hertz"), key_facts=("30 Hz",))
    case = a_case(gold=gold, history=(Turn("user", "Hello"),))
    assert the_request("correctness", case, an_answer()).variables == {
        "question": "How fast is the camera?",
        "answer": "It runs at 30 Hz.",
        "contexts": [{"chunk_id": "c1", "text": "The camera runs at 30 Hz."}],
        "references": ["30 Hz", "thirty hertz"],
        "key_facts": ["30 Hz"],
        "history": [{"role": "user", "text": "Hello"}],
    }
    assert set(the_request("groundedness", case, an_answer()).variables) == {"question", "answer", "contexts"}
    assert set(the_request("abstention", case, an_answer()).variables) == {"question", "answer"}


def test_the_top_k_chunks_by_rank_are_the_context():
    chunks = tuple(Chunk(f"c{rank}", text=f"text {rank}", rank=rank) for rank in (3, 1, 2))
    request = the_request("groundedness", a_case(), an_answer(chunks=chunks), k=2)
    assert [context["chunk_id"] for context in request.variables["contexts"]] == ["c1", "c2"]


@pytest.mark.parametrize("chunks", [None, (), (Chunk("c1"), Chunk("c2", text="  "))])
def test_without_chunk_texts_the_references_are_the_context(chunks):
    answer = an_answer(chunks=chunks, references=(Reference("r1", text="quoted"), Reference("r2")))
    request = the_request("groundedness", a_case(contexts=("given",)), answer)
    assert request.variables["contexts"] == [{"chunk_id": "r1", "text": "quoted"}]


def test_where_the_system_returns_none_the_contexts_of_the_case_count():
    request = the_request("groundedness", a_case(contexts=("given",)), an_answer(chunks=None))
    assert request.variables["contexts"] == [{"chunk_id": None, "text": "given"}]


def test_groundedness_is_not_asked_without_any_context():
    assert asked(a_case(), an_answer(chunks=None)) == {"correctness", "relevance", "abstention"}


@pytest.mark.parametrize("text", [None, "", " \n\t"])
def test_nothing_is_asked_about_an_answer_that_is_not_there(text):
    assert asked(a_case(), an_answer(text)) == set()


@pytest.mark.parametrize("abstained", [True, False])
def test_a_system_that_says_whether_it_abstained_is_not_classified(abstained):
    assert "abstention" not in asked(a_case(), an_answer(abstained=abstained))


def test_of_an_abstention_only_correctness_is_judged_and_only_if_there_was_an_answer():
    assert asked(a_case(), an_answer(abstained=True)) == {"correctness"}
    assert asked(a_case(answerable=False), an_answer(abstained=True)) == set()


def test_an_unknown_rubric_is_said():
    with pytest.raises(SettingsError, match="unknown rubric 'style'"):
        requests_for(a_case(), an_answer(), ["style"], 5)
