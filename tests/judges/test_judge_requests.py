"""Requests: what a judge is told about an answer, and when it is not asked at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_rageval.judges import requests_for
from pytest_rageval.judges.requests import judged_text
from pytest_rageval.judges.rubrics import rubric_names
from pytest_rageval.judges.rubrics.conversation import OF_CONVERSATION
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
    grounded = {"question", "answer", "contexts", "citations"}
    assert set(the_request("groundedness", a_case(), an_answer()).variables) == grounded
    assert set(the_request("abstention", a_case(), an_answer()).variables) == {"question", "answer"}


def test_the_top_k_chunks_by_rank_are_the_context():
    chunks = tuple(Chunk(f"c{rank}", text=f"text {rank}", rank=rank) for rank in (3, 1, 2))
    request = the_request("groundedness", a_case(), an_answer(chunks=chunks), k=2)
    assert [context["chunk_id"] for context in request.variables["contexts"]] == ["c1", "c2"]


@pytest.mark.parametrize("chunks", [None, (), (Chunk("c1"), Chunk("c2", text="  "))])
def test_without_chunk_texts_the_references_are_the_context(chunks):
    answer = an_answer(chunks=chunks, references=(Reference("r1", text="quoted"), Reference("r2")))
    request = the_request("groundedness", a_case(contexts=("given",)), answer)
    assert request.variables["contexts"] == [{"chunk_id": "r1", "text": "quoted"}]


@pytest.mark.parametrize("text", [None, "", " \n\t"])
def test_nothing_is_asked_about_an_answer_that_is_not_there(text):
    assert asked(a_case(), an_answer(text)) == set()


FIVE = {"relevance", "faithfulness", "citation_accuracy", "abstention_quality", "synthesis"}
TWO_DOCUMENTS = (Chunk("a#1", rel_path="a.md", text="30 Hz"), Chunk("b#1", rel_path="b.md", text="29 Hz"))


def all_asked(case: EvalCase, answer: Answer, **settings) -> set[str]:
    """Of all rubrics, those that apply; composite is left out, that it may cover none."""
    names = [name for name in rubric_names() if name != "composite"]
    return {request.rubric for request in requests_for(case, answer, names, 5, **settings)}


def a_full_case(**fields) -> EvalCase:
    return a_case(gold=Gold(answers=("30 Hz",), recency_conflict_rule="acknowledge_both"), **fields)


def test_every_rubric_is_asked_where_case_and_answer_have_all_that_it_needs():
    expected = {*rubric_names()} - {"composite", *OF_CONVERSATION}
    assert all_asked(a_full_case(), an_answer(chunks=TWO_DOCUMENTS)) == expected


def test_an_answer_of_a_system_that_found_no_chunk_is_asked_about_with_an_empty_context():
    asked = all_asked(a_full_case(), an_answer(chunks=()))
    assert {"groundedness", "faithfulness", "claim_support", "citation_accuracy"} <= asked
    assert the_request("groundedness", a_full_case(), an_answer(chunks=())).variables["contexts"] == []


def test_of_an_abstention_its_quality_is_judged_and_correctness_where_there_was_an_answer():
    refused = an_answer(abstained=True, chunks=TWO_DOCUMENTS)
    assert all_asked(a_full_case(), refused) == {"abstention_quality", "correctness"}
    assert all_asked(a_full_case(answerable=False), refused) == {"abstention_quality"}


@pytest.mark.parametrize("said", [True, False])
def test_what_a_classifier_said_counts_as_what_the_response_says(said):
    answer = an_answer(chunks=TWO_DOCUMENTS)
    told = replace(answer, abstained=said)
    assert all_asked(a_full_case(), answer, abstained=said) == all_asked(a_full_case(), told)
    assert all_asked(a_full_case(), told, abstained=not said) == all_asked(a_full_case(), told)


def test_the_composite_stands_for_the_rubrics_whose_scores_it_fills():
    names = sorted({*FIVE, "composite", "groundedness"})
    requests = requests_for(a_full_case(), an_answer(chunks=TWO_DOCUMENTS), names, 5)
    assert [request.rubric for request in requests] == ["composite", "groundedness"]
    refused = requests_for(a_full_case(), an_answer(abstained=True), names, 5)
    assert [request.rubric for request in refused] == ["abstention_quality"]


@pytest.mark.parametrize("rule", [None, "cite_newer", "cite_both"])
def test_a_conflict_is_judged_only_where_it_is_to_be_acknowledged(rule):
    case = a_case(gold=Gold(recency_conflict_rule=rule))
    assert not requests_for(case, an_answer(), ["conflict_acknowledged"], 5)


def test_synthesis_is_judged_where_an_answer_rests_on_several_documents():
    one = (Chunk("a#1", text="30 Hz"), Chunk("a#2", text="of the camera"))
    assert not requests_for(a_case(), an_answer(chunks=one), ["synthesis"], 5)
    assert requests_for(a_case(), an_answer(chunks=TWO_DOCUMENTS), ["synthesis"], 5)
    assert not requests_for(a_case(), an_answer(chunks=TWO_DOCUMENTS), ["synthesis"], 1)
    cites_one = an_answer(chunks=TWO_DOCUMENTS, references=(Reference("a#1"),))
    assert not requests_for(a_case(), cites_one, ["synthesis"], 5)
    given = requests_for(a_case(contexts=("one", "two")), an_answer(chunks=None), ["synthesis"], 5)
    assert given


def test_citations_are_shown_with_the_text_that_they_point_to():
    references = (
        Reference("b#1", rel_path="b.md", heading_path="# Camera"),
        Reference("c#9", text="quoted"),
        Reference(),
    )
    request = the_request("citation_accuracy", a_case(), an_answer(chunks=TWO_DOCUMENTS, references=references))
    assert request.variables["citations"] == [
        {"number": 1, "chunk_id": "b#1", "source": "b.md > # Camera", "text": "29 Hz"},
        {"number": 2, "chunk_id": "c#9", "source": None, "text": "quoted"},
        {"number": 3, "chunk_id": None, "source": None, "text": None},
    ]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"claims": [{"number": 1, "text": "a"}, {"number": 2, "text": "b"}], "contexts": []}, "a\nb"),
        ({"claim": "a", "contexts": []}, "a"),
        ({"answer": "a", "question": "?"}, "a"),
    ],
)
def test_the_text_that_is_judged_is_that_of_the_claims_else_the_answer(variables, text):
    assert judged_text(variables) == text
