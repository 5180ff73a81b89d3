"""The judge by sentence embeddings, against a real server that embeds texts by their words."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fault_server import status
from judge_server import JudgeServer, by_words

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.embedding_judge import BATCH, UNRELATED, EmbeddingJudge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.model import Judgement, JudgeRequest

QUICK = 0.01


def a_request(
    rubric: str = "groundedness", answer: str = "Water boils at 100 degrees.", **variables: Any
) -> JudgeRequest:
    given = {
        "question": "When does water boil?",
        "answer": answer,
        "contexts": [{"chunk_id": "c1", "text": "Water boils at 100 degrees. Milk is white."}],
        "references": [],
        "key_facts": [],
    }
    return JudgeRequest(rubric, load_rubric(rubric).prompt_version, given | variables)


def judged(server: JudgeServer, *requests: JudgeRequest, **options: Any) -> list[Judgement]:
    judge = EmbeddingJudge("small", server.url, EndpointOptions(**options), backoff=QUICK)

    async def in_turn() -> list[Judgement]:
        try:
            return [await judge.judge(request) for request in requests]
        finally:
            await judge.aclose()

    return asyncio.run(in_turn())


def scores(*requests: JudgeRequest) -> list[float]:
    with JudgeServer() as server:
        return [next(iter(said.scores.values())) for said in judged(server, *requests)]


def test_what_the_context_says_is_grounded_and_what_it_does_not_is_not():
    same, near, far = scores(
        a_request(),
        a_request(answer="Water boils at 90 degrees."),
        a_request(answer="Her hat cost seven pounds."),
    )
    assert same == pytest.approx(5.0)
    assert far < near < same
    assert far < 2


def test_groundedness_is_the_mean_over_the_sentences_and_names_the_unsupported_ones():
    with JudgeServer() as server:
        (said,) = judged(server, a_request(answer="Water boils at 100 degrees. Her hat cost seven pounds."))
    assert said.supported_claims == ("Water boils at 100 degrees.",)
    assert said.unsupported_claims == ("Her hat cost seven pounds.",)
    assert 2.4 < said.scores["groundedness"] < 3.6
    assert "farthest" in said.reasoning


def test_correctness_takes_the_best_reference_and_the_mean_of_the_key_facts():
    right, wrong = scores(
        a_request("correctness", references=["Ducks swim.", "Water boils at 100 degrees."]),
        a_request("correctness", references=["Ducks swim."]),
    )
    assert right == pytest.approx(5.0)
    assert wrong < 2
    (half,) = scores(a_request("correctness", key_facts=["Water boils at 100 degrees.", "Ducks swim."]))
    assert 2.4 < half < 3.6


def test_abstention_is_told_by_phrases_without_a_request():
    with JudgeServer() as server:
        (said,) = judged(server, a_request("abstention", "I don't know."))
    assert (said.scores, said.model) == ({"abstained": 1.0}, "embedding/1:small")
    assert server.requests == []


@pytest.mark.parametrize(
    "request_",
    [
        a_request(contexts=[{"chunk_id": None, "text": "— …"}]),
        a_request(answer="…"),
        a_request("correctness"),
        a_request("relevance", "—"),
    ],
)
def test_where_there_is_nothing_to_compare_there_is_no_score_and_no_request(request_: JudgeRequest):
    with JudgeServer() as server:
        (said,) = judged(server, request_)
    assert said.scores == {}
    assert said.reasoning.startswith("heuristic: ")
    assert server.requests == []


def test_a_model_that_gives_much_to_strangers_is_read_by_what_it_gives_them():
    """Cosines between 0.7 and 1 in place of 0 and 1, as some models give: the same shares come out."""

    def high(text: str) -> list[float]:
        return [1.5, *by_words(text)]

    answer = "Water boils at 90 degrees. Her hat cost seven pounds."
    with JudgeServer(vector=high) as server:
        (said,) = judged(server, a_request(answer=answer))
    assert said.scores["groundedness"] == pytest.approx(scores(a_request(answer=answer))[0], abs=0.02)


def test_a_model_that_tells_nothing_apart_is_an_error():
    with JudgeServer(vector=lambda _: [1.0, 1.0]) as server, pytest.raises(JudgeError, match="tells nothing apart"):
        judged(server, a_request())


def texts_of(server: JudgeServer) -> list[list[str]]:
    return [request.json["input"] for request in server.embeddings]


def test_each_text_is_asked_for_once_and_strangers_once_in_all():
    with JudgeServer() as server:
        judged(server, a_request(), a_request(), a_request("relevance"))
    asked = [text for texts in texts_of(server) for text in texts]
    assert len(asked) == len(set(asked)) == len(UNRELATED) + 3
    assert {request.path for request in server.embeddings} == {"/v1/embeddings"}


def test_many_texts_go_in_batches_and_long_ones_are_cut():
    passages = [{"chunk_id": None, "text": f"Sentence number {n}."} for n in range(150)] + [
        {"chunk_id": None, "text": "x" * 9_000}
    ]
    with JudgeServer() as server:
        judged(server, a_request(contexts=passages))
    asked = texts_of(server)
    assert [len(texts) for texts in asked] == [BATCH, BATCH, 152 - 2 * BATCH, len(UNRELATED)]
    assert max(len(text) for texts in asked for text in texts) == 2_000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "0 embeddings came for 3 texts"),
        ([{"index": 0, "embedding": [1, 2]}] * 3, "the indices of the embeddings are not 0 to 2"),
        ([{"embedding": [1, 2]}, {"embedding": [1]}, {"embedding": [1, 2]}], "has 1 dimensions, others have 2"),
        ([{"embedding": [0, 0]}] * 3, "has no length"),
        ([{"embedding": [1.5e308, 1.5e308]}] * 3, "has no length, or holds a number that is not finite"),
        ([{"embedding": ["1"]}] * 3, "is not a list of 1 to"),
        ("no", "has no list of embeddings"),
    ],
)
def test_what_is_no_embedding_is_a_typed_error(data: object, said: str):
    body = json.dumps({"data": data}).encode()
    with JudgeServer(status(200, body)) as server, pytest.raises(JudgeError, match=said) as caught:
        judged(server, a_request(answer="It boils."))
    assert caught.value.kind == "invalid_response"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (status(400, b"no such model"), "http_4xx"),
        (status(404), "http_4xx"),
        (status(200, b'{"data": [{"embedding": [NaN]}]}'), "invalid_json"),
        (status(200, b'{"error": "overloaded"}'), "invalid_response"),
    ],
)
def test_a_fault_is_a_typed_error(fault: Any, kind: str):
    with JudgeServer(fault) as server, pytest.raises(JudgeError) as caught:
        judged(server, a_request())
    assert caught.value.kind == kind
