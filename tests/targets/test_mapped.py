from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from fault_server import Behaviour, FaultServer, gives, status

from pytest_rageval.config.tables import TargetMapping
from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.model import Answer, AskRequest, Edge, Turn
from pytest_rageval.targets.mapped_target import MappedTarget, checked_mapping
from pytest_rageval.targets.target import Connection

T = TypeVar("T")
QUESTION = AskRequest("What?", 5)
REQUEST = {"query": "{question}", "top_n": "{k}"}
REPLY = {
    "result": {"text": "Water boils at 100 degrees.", "status": "ok"},
    "hits": [
        {"id": 7, "doc": {"path": "notes/water.md", "headings": ["# Water", "## Boiling"]}, "body": "…", "score": 0.9},
        {"id": 8, "doc": {"path": "notes/ice.md", "headings": []}, "body": "Ice.", "score": 0.4},
    ],
    "cited": [{"hit": 7}],
    "timing": {"search": 3.5},
    "model": "m-2",
}
RESPONSE = tomllib.loads("""
answer = "result.text"
abstained = "result.status == 'no_answer'"
[retrieved_chunks]
each = "hits"
chunk_id = "to_string(id)"
rel_path = "doc.path"
heading_path = "join(' > ', doc.headings)"
text = "body"
score_final = "score"
[references]
each = "cited"
chunk_id = "to_string(hit)"
[latency]
retrieval_ms = "timing.search"
[versions]
llm = "model"
""")


def mapping_of(
    request: dict[str, Any] | None = None, response: dict[str, Any] | None = None, **more: Any
) -> TargetMapping:
    return TargetMapping(request=request or REQUEST, response=response or RESPONSE, **more)


def with_target(
    url: str, mapping: TargetMapping, use: Callable[[MappedTarget], Coroutine[Any, Any, T]], **options: Any
) -> T:
    async def run() -> T:
        target = MappedTarget(url, mapping, Connection(**{"backoff": 0.01, "timeout": 20.0} | options))
        try:
            return await use(target)
        finally:
            await target.aclose()

    return asyncio.run(run())


def answer_of(reply: Any, response: dict[str, Any] | None = None, **options: Any) -> Answer:
    behaviour = reply if callable(reply) else gives(reply)
    with FaultServer(behaviour) as server:
        return with_target(server.url, mapping_of(response=response), lambda target: target.ask(QUESTION), **options)


def failure_of(reply: Any, response: dict[str, Any] | None = None) -> TargetError:
    with pytest.raises(TargetError) as caught:
        answer_of(reply, response)
    assert str(caught.value).isprintable()
    return caught.value


def sent(template: dict[str, Any], request: AskRequest) -> Any:
    """The body that a template makes of a question, as it came over the wire."""
    with FaultServer(gives({"result": {"text": "x"}})) as server:
        mapping = mapping_of(template, {"answer": "result.text"})
        with_target(server.url, mapping, lambda target: target.ask(request))
    return server.requests[0].json


def problems_of(request: dict[str, Any] | None = None, response: dict[str, Any] | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        checked_mapping(mapping_of(request, response))
    assert all("\n" not in problem and problem.isprintable() for problem in caught.value.problems)
    return caught.value.problems


def test_a_string_that_is_one_placeholder_becomes_the_value_with_its_type():
    request = AskRequest(
        "시장?", 7, history=(Turn("user", "First?"),), folders=("a", "b"), contexts=("One.",), params={"min": 0.3}
    )
    template = {
        "q": "{question}",
        "k": "{k}",
        "turns": "{history}",
        "chat": "{messages}",
        "scope": {"folders": "{folders}", "vaults": "{vaults}"},
        "passages": "{contexts}",
        "list": ["{k}", "{vaults}", 1],
        "threshold": "{params.min}",
        "fixed": [True, 2.5, {"deep": "plain"}],
    }
    assert sent(template, request) == {
        "q": "시장?",
        "k": 7,
        "turns": [{"role": "user", "text": "First?"}],
        "chat": [{"role": "user", "content": "First?"}, {"role": "user", "content": "시장?"}],
        "scope": {"folders": ["a", "b"]},
        "passages": ["One."],
        "list": [7, 1],
        "threshold": 0.3,
        "fixed": [True, 2.5, {"deep": "plain"}],
    }


def test_within_a_longer_string_a_value_stands_as_text():
    request = AskRequest("Wo?", 3, folders=("ä",))
    template = {"q": "In {folders}{vaults}: {question} (top {k}) {{question}} {not ours} {}"}
    assert sent(template, request) == {"q": 'In ["ä"]: Wo? (top 3) {question} {not ours} {}'}


def test_what_a_question_says_is_never_a_placeholder():
    question = "{k} {{question}} {params.secret} \\1 ${HOME} {question.__class__}"
    request = AskRequest(question, 3, params={"secret": "s"})
    body = sent({"q": "{question}", "text": "Q: {question}", "s": "{params.secret}"}, request)
    assert body == {"q": question, "text": f"Q: {question}", "s": "s"}


def test_parameters_without_a_place_come_at_the_top_level_over_the_template():
    request = AskRequest("What?", 5, params={"mode": "fast", "min": 0.3})
    assert sent({"q": "{question}", "mode": "slow", "opt": {"min": "{params.min}"}}, request) == {
        "q": "What?",
        "mode": "fast",
        "opt": {"min": 0.3},
    }


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("", "", "/"),
        ("/ask", "", "/ask"),
        ("/ask/", "", "/ask/"),
        ("/api?v=2", "/v2/query/", "/api/v2/query/?v=2"),
    ],
)
def test_the_address_is_the_url_with_the_path_of_the_mapping(base: str, path: str, expected: str):
    with FaultServer(gives(REPLY)) as server:
        with_target(server.url + base, mapping_of(path=path, method="PUT"), lambda target: target.ask(QUESTION))
    assert (server.requests[0].method, server.requests[0].path) == ("PUT", expected)


def test_headers_and_token_are_those_of_any_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", "t-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with FaultServer(gives(REPLY), status(401, b"no: t-0123456789")) as server:
        with_target(server.url, mapping_of(), lambda target: target.ask(QUESTION), headers={"X-Tenant": "lab"})
        with pytest.raises(TargetError, match=r"status 401: no: \*\*\*$"):
            with_target(server.url, mapping_of(), lambda target: target.ask(QUESTION))
    assert server.requests[0].headers["authorization"] == "Bearer t-0123456789"
    assert server.requests[0].headers["x-tenant"] == "lab"


def test_every_mapped_field_is_found():
    answer = answer_of(REPLY)
    assert (answer.text, answer.abstained) == ("Water boils at 100 degrees.", False)
    assert answer.chunks is not None
    assert [chunk.chunk_id for chunk in answer.chunks] == ["7", "8"]
    assert answer.chunks[0].rel_path == "notes/water.md"
    assert answer.chunks[0].heading_path == "# Water > ## Boiling"
    assert answer.chunks[1].score_final == 0.4
    assert [reference.chunk_id for reference in answer.references or ()] == ["7"]
    assert answer.latency == {"retrieval_ms": 3.5}
    assert answer.versions == {"llm": "m-2"}


def test_an_expression_may_build_the_items_itself_and_then_give_them_fields_of_its_own():
    answer = answer_of(REPLY, {"retrieved_chunks": "hits[?score > `0.5`].{rel_path: doc.path, author: doc.by, n: id}"})
    assert answer.text is None
    assert answer.chunks is not None
    assert [(chunk.rel_path, chunk.extra) for chunk in answer.chunks] == [
        ("notes/water.md", {"author": None, "n": 7}),
    ]


def test_an_expression_may_be_written_in_an_older_way():
    assert answer_of(REPLY, {"answer": "result.text", "abstained": "result.status == `no_answer`"}).abstained is False


def test_traces_can_be_mapped_as_well():
    trace = {
        "concepts": "g.c",
        "entities": {"each": "g.nodes", "id": "name", "type": "kind"},
        "kg_edges": {"each": "g.edges", "subject": "[0]", "predicate": "[1]", "object": "[2]"},
    }
    graph = {"c": ["heat"], "nodes": [{"name": "water"}], "edges": [["water", "boils_at", "100"]]}
    found = answer_of({"a": "x", "g": graph}, {"answer": "a", "trace": trace}).trace
    assert found is not None
    assert found.concepts == ("heat",)
    assert [entity.id for entity in found.entities or ()] == ["water"]
    assert found.kg_edges == (Edge("water", "boils_at", "100"),)


def test_what_is_not_there_is_absent():
    answer = answer_of({"result": {"text": "x"}})
    assert (answer.chunks, answer.references, answer.trace) == (None, None, None)
    assert answer.latency == {}
    assert answer_of({"result": {"text": "x"}, "hits": []}).chunks == ()


def test_an_answer_that_is_not_found_is_none_unless_the_system_abstained():
    failure = failure_of({"result": {"txt": "x"}})
    assert failure.kind == "no_answer"
    assert str(failure).endswith(": target.mapping.response.answer 'result.text' finds nothing in the response")
    answer = answer_of({"result": {"status": "no_answer"}})
    assert (answer.text, answer.abstained) == (None, True)


def test_a_blank_answer_is_none_if_the_reply_says_that_it_is_no_abstention():
    for said in ({"error": "overloaded"}, {"message": {"tool_calls": [1]}}, {"choices": [{"finish_reason": "length"}]}):
        failure = failure_of({"a": " ", **said}, {"answer": "a"})
        assert failure.kind == "no_answer"
        assert "the mapped answer is blank" in str(failure)
    assert answer_of({"a": "", "finish_reason": "stop"}, {"answer": "a"}).text == ""


@pytest.mark.parametrize(
    ("reply", "response", "said"),
    [
        ({"a": 7}, {"answer": "a"}, "mapped: answer is 7 (a number), expected a string"),
        ({"a": "\ud800"}, {"answer": "a"}, "mapped: answer is '\\ud800', expected text without lone surrogates"),
        ({"a": "x", "h": {}}, {"answer": "a", "retrieved_chunks": {"each": "h", "text": "t"}}, "expected a list"),
        (REPLY, {"retrieved_chunks": {"each": "hits", "chunk_id": "id"}}, "mapped: retrieved_chunks[0].chunk_id is 7"),
        (REPLY, {"retrieved_chunks": {"each": "hits", "chunk_id": "idd", "text": "txt"}}, "mapped retrieved_chunks[0]"),
        (REPLY, {"answer": "join(', ', model)"}, "mapped answer is \"join(', ', model)\", expected an expression that"),
        (REPLY, {"answer": "model", "latency": {"x": "sum(hits[*].id)", "y": "avg(model)"}}, "latency.y is 'avg("),
        ({"a": "x", "t": float("nan")}, {"answer": "a", "latency": {"t": "t"}}, "latency.t is nan, expected a finite"),
        ({"a": "x", "t": float("inf")}, {"answer": "a", "latency": {"t": "ceil(t)"}}, "an expression that fits"),
        ({"a": "x", "u": {"d": "\udc80"}}, {"answer": "a", "usage": "u"}, "usage.d is '\\udc80'"),
        ([], {"answer": "a"}, "'a' finds nothing"),
        ("text", {"answer": "a"}, "'a' finds nothing"),
    ],
)  # fmt: skip
def test_what_is_found_is_checked_like_any_response(reply: Any, response: dict[str, Any], said: str):
    failure = failure_of(reply, response)
    assert failure.kind == ("no_answer" if "finds nothing" in said else "invalid_response")
    assert str(failure).startswith("POST http://127.0.0.1:")
    assert said in str(failure)


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (status(200, b""), "empty"),
        (status(200, b"{"), "invalid_json"),
        (status(429, retry_after="3600"), "rate_limited"),
    ],
)
def test_failures_of_the_server_have_the_kinds_of_any_target(behaviour: Behaviour, kind: str):
    assert failure_of(behaviour).kind == kind


def test_what_was_mapped_and_never_found_is_noted_at_the_end():
    async def use(target: MappedTarget) -> list[str]:
        assert target.notes == []
        for _ in range(2):
            await target.ask(QUESTION)
        return target.notes

    response = {"answer": "a", "abstain_reason": "why", "retrieved_chunks": "hitz", "usage": {"tokens": "n"}}
    with FaultServer(gives({"a": "x", "hits": []}), gives({"a": "x", "n": 3})) as server:
        notes = with_target(server.url, mapping_of(response=response), use)
    assert notes == ["target.mapping.response.retrieved_chunks found nothing in any of 2 responses"]


def test_all_problems_of_a_mapping_are_said_together():
    response = {"answr": "a", "retrieved_chunks": {"chunk_idd": "id"}, "latency": {"x": "a["}, "trace": {"entities": 3}}
    assert problems_of({"q": "{qestion}", "n": "{nothing}"}, response) == (
        "target.mapping.request.q: {qestion} stands for nothing; did you mean 'question'?",
        "target.mapping.request.n: {nothing} stands for nothing; known are question, k, history, messages, "
        "conversation_id, vaults, "
        "folders, contexts and params.NAME (for the text itself write {{nothing}})",
        "target.mapping.request sends no question; put '{question}' or '{messages}' where it belongs",
        "target.mapping.response.answr is not a field of an answer; did you mean 'answer'?",
        "target.mapping.response.retrieved_chunks.each is missing: the expression that finds the list",
        "target.mapping.response.retrieved_chunks.chunk_idd is not a field of an answer; did you mean 'chunk_id'?",
        "target.mapping.response.latency.x is 'a[', no JMESPath expression: it is incomplete",
        "target.mapping.response.trace.entities is 3, expected a JMESPath expression, as in 'result.text'",
    )


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "it is empty"),
        ("a..b", "got: dot at column 3"),
        ("'x", "Unclosed ' delimiter at column 1"),
        ("a\nb c", "Unexpected token: b at column 3"),
        ("결과", "Unknown token 결 at column 1"),
        ("hits[].lenght(id)", "there is no function lenght(); did you mean 'length'?"),
        ("length(a, b)", "length() takes 1 arguments, not 2"),
        ("not_null()", "not_null() takes 1 or more arguments, not 0"),
        ("a.{x: foo(b)}", "there is no function foo(); "),
        ("(" * 5000, "it is nested too deep"),
    ],
)
def test_an_expression_that_is_none_is_said_with_the_reason(expression: str, said: str):
    (problem,) = problems_of(response={"answer": expression})
    assert problem.startswith("target.mapping.response.answer is ")
    assert said in problem


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ({"usage": "u"}, "finds neither 'answer' nor 'retrieved_chunks'; map one of them"),
        ({"answer": {"x": "y"}}, "target.mapping.response.answer is {\"x\": \"y\"}, expected a JMESPath expression"),
        ({"answer": "a", "debug": "d"}, "target.mapping.response.debug is not a field of an answer; fields are "),
        ({"answer": "a", "usage": {}}, "target.mapping.response.usage maps nothing"),
        ({"retrieved_chunks": {"each": "h"}}, "target.mapping.response.retrieved_chunks maps nothing"),
    ],
)  # fmt: skip
def test_a_response_that_cannot_be_an_answer_is_said(response: dict[str, Any], said: str):
    (problem,) = problems_of(response=response)
    assert said in problem


def test_a_template_holds_what_json_can_hold():
    template = tomllib.loads('q = "{question}"\nday = 2026-01-01\nbig = inf\nlist = [nan]')
    assert problems_of(template) == (
        "target.mapping.request.day is datetime.date(2026, 1, 1), expected what JSON can hold",
        "target.mapping.request.big is inf, expected what JSON can hold",
        "target.mapping.request.list[0] is nan, expected what JSON can hold",
    )


def test_a_part_of_a_list_that_no_item_had_is_noted_at_the_end():
    async def use(target: MappedTarget) -> list[str]:
        for _ in range(2):
            await target.ask(QUESTION)
        return target.notes

    chunks = {"each": "hits", "rel_path": "dateiname", "text": "body", "score_final": "score"}
    references = {"each": "cited", "chunk_id": "hit"}
    response = {"answer": "a", "retrieved_chunks": chunks, "references": references}
    first = {"a": "x", "hits": [{"body": "One.", "datei": "a.md"}], "cited": []}
    second = {"a": "y", "hits": [{"body": "Two.", "score": 0.5}]}
    with FaultServer(gives(first), gives(second)) as server:
        notes = with_target(server.url, mapping_of(response=response), use)
    nowhere = "found nothing in any of 2 responses"
    assert f"target.mapping.response.retrieved_chunks.rel_path {nowhere}" in notes
    assert [note for note in notes if "retrieved_chunks" in note and "rel_path" not in note] == []
    assert not [note for note in notes if "references.chunk_id" in note]
