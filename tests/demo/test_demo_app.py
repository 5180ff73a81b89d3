"""The demo speaks the native contract, and says what is wrong with a request."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from demo_notes import SHIPPED, ask, chunks, request, write_notes
from processes import PATIENCE_S

from pytest_rageval.demo.app import DemoApp, create_app

DRIFT = "By how many micrometres does the imaging plane sink during a two-photon session?"


def test_an_answer_cites_the_chunk_that_it_quotes():
    answer = ask(DRIFT, k=5)
    assert "6 to 9 micrometres" in answer["answer"]
    assert answer["answer"].count("[1]") >= 1
    assert answer["abstained"] is False
    assert answer["abstain_reason"] is None
    (reference,) = answer["references"]
    assert reference["rel_path"] == "imaging/two-photon-drift.md"
    assert reference["chunk_id"] == chunks(answer)[0]["chunk_id"]


def test_debug_has_every_part_of_the_contract():
    debug = ask("Which products does Laneige have?", k=3)["debug"]
    parts = {"retrieved_chunks", "folder_selection", "latency", "trace", "indexing_coverage", "versions"}
    assert set(debug) == parts
    assert set(debug["latency"]) == {"folder_selection_ms", "retrieval_ms", "generation_ms"}
    assert all(phase > 0 for phase in debug["latency"].values())
    assert debug["versions"]["llm"] == "extractive"
    assert debug["versions"]["embedding"] is None
    assert debug["versions"]["index"] == debug["indexing_coverage"]["index_version"]


def test_the_same_question_gives_the_same_bytes_apart_from_latency():
    first, second = (ask(DRIFT, k=10) for _ in range(2))
    for answer in (first, second):
        del answer["debug"]["latency"]
    assert json.dumps(first) == json.dumps(second)


def test_k_bounds_what_is_retrieved_and_not_the_answer():
    few, many = ask(DRIFT, k=1), ask(DRIFT, k=50)
    assert len(chunks(few)) == 1
    assert len(chunks(many)) > 1
    assert few["references"] == many["references"][:1]


@pytest.mark.parametrize(
    "question",
    [
        'drift" OR chunk MATCH "frame',
        "NEAR(frame rate) AND heading:drift*",
        "'; DROP TABLE chunk; --",
        "frame^2 -rate {heading body} : x",
        "\0 \x1b[31m frame rate",
        "💥" * 1000,
        "a" * 500_000,
        "frame rate " * 40_000,
    ],
)
def test_syntax_in_a_question_is_text(question: str):
    answer = ask(question)
    assert isinstance(answer["answer"], str)
    assert chunks(ask(DRIFT))


def test_a_scope_of_folders_is_honoured_and_includes_what_is_below():
    found = chunks(ask("Which brand leads the market?", folders=["catalogue"], k=20, min_score=0.1))
    assert found
    assert {chunk["rel_path"].split("/")[0] for chunk in found} == {"catalogue"}


def test_a_scope_of_vaults_is_honoured_in_every_folder_mode():
    for mode in ("off", "on", "on_with_fallback"):
        found = chunks(ask("frame rate water price", vaults=["desk"], folder_mode=mode, k=50, min_score=0))
        assert found
        assert {chunk["vault"] for chunk in found} == {"desk"}


def test_the_turn_before_helps_a_question_that_says_little():
    history = [{"role": "user", "text": DRIFT}, {"role": "assistant", "text": "6 to 9 micrometres."}]
    assert ask("Why is that?")["abstain_reason"] == "ambiguous_question"
    assert chunks(ask("Why is that?", history=history))[0]["rel_path"] == "imaging/two-photon-drift.md"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body is not JSON: EOF while parsing an object at line 1 column 1"),
        (b"[]", "the body is []: input should be an object"),
        (b"\xff{}", "the body is not JSON: expected value at line 1"),
        (b'{"question": NaN}', "question is NaN: input should be a valid string"),
        (b"[" * 200_000, "the body is not JSON: recursion limit exceeded"),
        (b'{"k": %s, "question": "x"}' % (b"9" * 5000), "the body is not JSON: number out of range"),
        (b"{}", "question is missing"),
        (b'{"question": 7}', "question is 7: input should be a valid string"),
        (b'{"question": "\\ud800"}', "the body is not JSON: unexpected end of hex escape"),
        (b'{"question": "x", "k": 0}', "k is 0: input should be greater than or equal to 1"),
        (b'{"question": "x", "k": true}', "k is true: input should be a valid integer"),
        (b'{"question": "x", "k": 1e999}', "k is Infinity: input should be a valid integer"),
        (b'{"question": "x", "min_score": "0.5"}', 'min_score is "0.5": input should be a valid number'),
        (b'{"question": "x", "vaults": ["lab", 3]}', "vaults[1] is 3: input should be a valid string"),
        (b'{"question": "x", "vaults": ["nowhere"]}', "unknown vault 'nowhere'; known are desk, lab"),
        (b'{"question": "x", "folder_mode": "maybe"}', "input should be 'off', 'on' or 'on_with_fallback'"),
        (b'{"question": "x", "history": [{"role": "user"}]}', "history[0].text is missing"),
        (b'{"question": "x", "rerank": "true"}', 'rerank is "true": input should be a valid boolean'),
        (
            b'{"question": "x", "reranker": true}',
            'unknown parameter "reranker"; known are chunk_max_tokens, chunk_overlap, question, k,',
        ),
        (b'{"question": "x", "chunk_overlap": 150}', "expected at most half of chunk_max_tokens (100)"),
    ],
)
def test_a_bad_body_is_refused_with_a_message_for_its_sender(body: bytes, problem: str):
    response = request(SHIPPED, "POST", "/api/v1/ask", content=body)
    assert response.status_code == 400
    assert problem in response.json()["error"]


def test_a_body_beyond_a_megabyte_is_refused():
    response = request(SHIPPED, "POST", "/api/v1/ask", content=b" " * (1024 * 1024 + 1))
    assert response.status_code == 413
    assert "larger than 1,048,576 bytes" in response.json()["error"]


@pytest.mark.parametrize(
    ("method", "target", "status", "problem"),
    [
        ("GET", "/api/v2/ask", 404, "no such path '/api/v2/ask'; known are /api/v1/ask"),
        ("GET", "/api/v1/ask", 405, "/api/v1/ask is for POST, not GET"),
        ("POST", "/api/v1/ask?debug=perhaps", 400, "debug is 'perhaps', expected true or false"),
        ("POST", "/api/v1/ask?verbose=1", 400, "unknown query parameter 'verbose'; known is debug"),
        ("GET", "/api/v1/health?debug=1", 400, "unknown query parameter 'debug'"),
    ],
)
def test_a_wrong_address_is_refused_with_the_right_one(method: str, target: str, status: int, problem: str):
    response = request(SHIPPED, method, target, json={"question": "x"})
    assert response.status_code == status
    assert problem in response.json()["error"]


@pytest.fixture
def long_note(tmp_path: Path) -> DemoApp:
    """The demo over one note of many sentences."""
    return create_app(write_notes(tmp_path, {"v/a.md": "# A\n\n" + "The heron has four nodes today. " * 20}))


def test_re_indexing_reads_the_notes_afresh(tmp_path: Path):
    app = create_app(write_notes(tmp_path, {"v/a.md": "# A\n\nThe heron has four nodes."}))
    assert ask("kestrel wings", app=app, min_score=0)["abstained"] is True
    write_notes(tmp_path, {"v/b.md": "# B\n\nThe kestrel has two wings."})
    stats = request(app, "POST", "/api/v1/index").json()
    assert stats["docs_processed"] == 2
    assert stats == request(app, "GET", "/api/v1/index/stats").json()
    assert ask("kestrel wings", app=app, min_score=0)["references"][0]["rel_path"] == "b.md"


def test_indexing_parameters_stay_until_they_are_changed(long_note: DemoApp):
    assert request(long_note, "GET", "/api/v1/index/stats").json()["chunks_embedded"] == 1
    small = request(long_note, "POST", "/api/v1/index", json={"chunk_max_tokens": 24, "chunk_overlap": 6}).json()
    assert small["parameters"] == {"chunk_max_tokens": 24, "chunk_overlap": 6}
    assert small["chunks_embedded"] > 5
    assert ask("heron", app=long_note, min_score=0)["debug"]["indexing_coverage"] == small


def test_a_budget_sent_with_a_question_is_for_that_question_only(long_note: DemoApp):
    for told, used in (({"chunk_max_tokens": 24}, 24), ({}, 200)):
        coverage = ask("heron", app=long_note, **told)["debug"]["indexing_coverage"]
        assert coverage["parameters"]["chunk_max_tokens"] == used


def test_many_threads_may_ask_while_the_index_is_built(tmp_path: Path):
    app = create_app()
    answers: list[str] = []

    def work() -> None:
        answers.extend(ask(DRIFT, app=app, chunk_max_tokens=size)["answer"] for size in (100, 200, 300))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(answers) == 18
    assert len(set(answers)) == 1
