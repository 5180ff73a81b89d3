from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_rageval.errors import TargetError
from pytest_rageval.model import Answer, Chunk, Edge, Entity, FolderSelection, Json, Reference, Trace
from pytest_rageval.targets.native_contract import (
    answer_from_body,
    answer_from_record,
    answer_from_response,
    answer_to_response,
)

pytestmark = pytest.mark.reliability("API faults", "malformed and wrong responses")

RESPONSE: dict[str, Any] = {
    "answer": "Off by one [1].",
    "references": [{"chunk_id": "c1", "rel_path": "data/vbo.md", "heading_path": "# VBO > ## Timestamps", "page": 3}],
    "abstained": False,
    "abstain_reason": None,
    "request_id": "r-1",
    "debug": {
        "retrieved_chunks": [
            {
                "doc_id": "t01",
                "chunk_id": "c1",
                "rel_path": "data/vbo.md",
                "heading_path": "# VBO > ## Timestamps",
                "start_line": 3,
                "end_line": 9.0,
                "score_vector": 1,
                "score_lexical": 0.5,
                "score_final": 0.7,
                "text": "시장 frames start at 1",
                "text_truncated": True,
                "rank": 1,
                "token_count": 12,
                "author": "Kim",
            }
        ],
        "folder_selection": {"folders": ["data"], "reasoning": "named", "fallback": False, "model": "m"},
        "latency": {"folder_selection_ms": 1, "retrieval_ms": 2.5, "generation_ms": None},
        "trace": {
            "entities": [{"id": "e1", "type": "Brand", "text": "Laneige", "score": 0.9}],
            "concepts": ["price"],
            "constraints": [],
            "kg_entities": ["e1"],
            "kg_edges": ["laneige -hasProduct-> B08XYZ", {"subject": "a", "predicate": "b", "object": "c"}],
            "inferences": [{"rule": "via brand"}],
            "entity_types": {"e1": "Brand"},
            "violations": ["range", {"path": "x"}],
            "depth": 2,
        },
        "indexing_coverage": {"docs_processed": 60, "by_type": {"md": {"docs": 60}}},
        "usage": {"tokens": 10},
        "versions": {"llm": "x", "embedding": None},
        "spans": [1, [2, {"a": None}]],
    },
}


def response_with(path: str, value: Json) -> Json:
    """RESPONSE with one value changed; the path is written as messages write it."""
    changed = json.loads(json.dumps(RESPONSE))
    at: Any = changed
    *steps, last = path.replace("[", ".[").split(".")
    for step in steps:
        at = at[int(step[1:-1])] if step.startswith("[") else at[step]
    at[int(last[1:-1]) if last.startswith("[") else last] = value
    return changed


def wrong(data: Json, kind: str = "invalid_response") -> str:
    with pytest.raises(TargetError) as caught:
        answer_from_response(data, "POST /ask")
    assert caught.value.kind == kind
    message = str(caught.value)
    assert message.startswith("POST /ask: ")
    assert message.isprintable()
    return message.removeprefix("POST /ask: ")


def test_every_field_of_the_contract_is_read():
    answer = answer_from_response(RESPONSE, "")
    assert answer == Answer(
        text="Off by one [1].",
        references=(Reference("c1", "data/vbo.md", "# VBO > ## Timestamps", extra={"page": 3}),),
        abstained=False,
        chunks=(
            Chunk(
                "c1", "t01", "data/vbo.md", "# VBO > ## Timestamps", "시장 frames start at 1", True, 1, 1.0, 0.5, 0.7,
                3, 9, 12, {"author": "Kim"},
            ),
        ),
        folder_selection=FolderSelection(("data",), "named", False, {"model": "m"}),
        trace=Trace(
            (Entity("e1", "Brand", "Laneige", {"score": 0.9}),), ("price",), (), ("e1",),
            (Edge("laneige", "hasProduct", "B08XYZ"), Edge("a", "b", "c")), ({"rule": "via brand"},), {"e1": "Brand"},
            ("range", {"path": "x"}), {"depth": 2},
        ),
        latency={"folder_selection_ms": 1.0, "retrieval_ms": 2.5},
        usage={"tokens": 10},
        versions={"llm": "x", "embedding": None},
        indexing_coverage={"docs_processed": 60, "by_type": {"md": {"docs": 60}}},
        extra={"request_id": "r-1", "debug": {"spans": [1, [2, {"a": None}]]}},
    )  # fmt: skip


def test_absent_null_and_empty_are_told_apart():
    absent = answer_from_response({"answer": "x", "references": None, "debug": {"retrieved_chunks": None}}, "")
    assert (absent.references, absent.chunks, absent.trace) == (None, None, None)
    empty = answer_from_response({"answer": "", "references": [], "debug": {"retrieved_chunks": [], "trace": {}}}, "")
    assert (empty.text, empty.references, empty.chunks, empty.trace) == ("", (), (), Trace())


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"error": "overloaded"}, "'error' is 'overloaded'"),
        ({"tool_calls": [{"id": "1", "function": {"name": "search"}}]}, "'tool_calls' is"),
        ({"reasoning_content": "It is Paris."}, "'reasoning_content' is 'It is Paris.'"),
        ({"finish_reason": "length"}, "'finish_reason' is 'length'"),
        ({"done_reason": "load"}, "'done_reason' is 'load'"),
        ({"debug": {"finish_reason": "content_filter"}}, "'finish_reason' is 'content_filter'"),
    ],
)
def test_a_blank_answer_is_none_if_the_response_says_that_it_is_no_abstention(members: Any, said: str):
    for read in (answer_from_response, answer_from_record):
        with pytest.raises(TargetError, match="holds a blank answer") as raised:
            read({"answer": " ", **members}, "here")
        assert raised.value.kind == "no_answer"
        assert said in str(raised.value)
        assert read({"answer": " ", "abstained": True, **members}, "here").abstained
        assert read({"answer": "Paris", **members}, "here").text == "Paris"


@pytest.mark.parametrize(
    "members", [{}, {"error": None}, {"error": ""}, {"tool_calls": []}, {"finish_reason": "stop"}, {"thinking": " "}]
)
def test_a_blank_answer_is_an_abstention_if_nothing_says_otherwise(members: Any):
    assert answer_from_response({"answer": "", **members}, "here").text == ""


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("answer", 7, "is 7 (a number), expected a string"),
        ("references", "none", "is 'none' (a string), expected a list of objects"),
        ("references[0]", "x", "is 'x' (a string), expected an object"),
        ("abstained", "false", "is 'false' (a string), expected true or false"),
        ("abstained", 0, "is 0 (a number), expected true or false"),
        ("debug", [], "is a list, expected an object"),
        ("debug.retrieved_chunks", {}, "is an object, expected a list of objects"),
        ("debug.retrieved_chunks[0].rank", "one", "is 'one' (a string), expected a whole number"),
        ("debug.retrieved_chunks[0].rank", 1.5, "is 1.5 (a number), expected a whole number"),
        ("debug.retrieved_chunks[0].rank", True, "is true, expected a whole number"),
        ("debug.retrieved_chunks[0].chunk_id", 7, "is 7 (a number), expected a string"),
        ("debug.retrieved_chunks[0].score_final", "1", "is '1' (a string), expected a number"),
        ("debug.latency.retrieval_ms", "5 ms", "is '5 ms' (a string), expected a number"),
        ("debug.trace.entities[0]", {}, "has no id"),
        ("debug.trace.concepts[0]", None, "is null, expected a string"),
        ("debug.trace.inferences[0]", "x", "is 'x' (a string), expected an object"),
        (
            "debug.trace.kg_edges[1]",
            "a b",
            "is 'a b' (a string), expected an edge: 's -p-> o' or {subject, predicate, object}",
        ),
        ("debug.usage", 5, "is 5 (a number), expected an object"),
        ("debug.folder_selection.folders", "a", "is 'a' (a string), expected a list of strings"),
    ],
)
def test_a_wrong_type_is_named_by_its_path_and_value(path: str, value: Json, message: str):
    assert wrong(response_with(path, value)) == f"{path} {message}"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 10**400])
@pytest.mark.parametrize(
    "path", ["debug.retrieved_chunks[0].score_final", "debug.latency.retrieval_ms", "debug.usage.tokens"]
)
def test_a_number_that_no_record_can_hold_is_refused(path: str, number: float):
    assert wrong(response_with(path, number)).startswith(f"{path} is ")


@pytest.mark.parametrize(
    "path",
    ["answer", "debug.retrieved_chunks[0].text", "debug.trace.entity_types.e1", "debug.spans[0]", "request_id"],
)
def test_a_lone_surrogate_is_refused_wherever_it_stands(path: str):
    assert wrong(response_with(path, "a\ud800b")) == f"{path} is 'a\\ud800b', expected text without lone surrogates"


def test_a_lone_surrogate_in_a_name_is_refused_too():
    assert "lone surrogates" in wrong(RESPONSE | {"x\udfff": 1})
    assert "lone surrogates" in wrong(response_with("debug.usage", {"x\udfff": 1}))


def test_free_parts_nest_as_deep_as_a_record_can_hold_and_no_deeper():
    def nested(levels: int) -> Json:
        return {"answer": "x", "more": json.loads("[" * levels + "]" * levels)}

    assert answer_from_response(nested(60), "").extra
    assert "expected no more than 64 levels" in wrong(nested(100))
    for levels in (500, 100_000):
        with pytest.raises(TargetError) as caught:
            answer_from_body(b'{"answer": "x", "more": ' + b"[" * levels + b"]" * levels + b"}", "")
        assert caught.value.kind == "invalid_response"


def test_what_was_found_is_quoted_short_however_large_it_is():
    assert len(wrong(response_with("answer", [["x" * 10_000] * 10] * 100))) < 200


def test_an_answer_needs_a_text_or_chunks_or_to_say_that_it_abstained():
    assert wrong({"foo": 1}, "no_answer") == "the response holds neither 'answer' nor 'retrieved_chunks': {\"foo\": 1}"
    assert answer_from_response({"answer": None}, "") == Answer()
    assert answer_from_response(answer_to_response(Answer()), "") == Answer()
    assert wrong([]) == "the response is a list, expected an object"
    assert answer_from_response({"answer": None, "abstained": True}, "").text is None
    assert answer_from_response({"debug": {"retrieved_chunks": []}}, "").chunks == ()


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"", "empty", "no body"),
        (b" \r\n", "empty", "no body"),
        (
            b'data: {"choices": []}\n\ndata: [DONE]\n',
            "invalid_json",
            "a stream of events, not JSON; send `stream = false`",
        ),
        (b"event: message\ndata: hi\n\n", "invalid_json", "ask the server with a Python function"),
        (b"<html>502</html>", "invalid_json", "line 1, column 1: expecting value; the response begins with '<html>502"),
        (b'{"answer":\n "x"', "invalid_json", "line 2, column 5"),
        (b'{"answer": "\xff"}', "invalid_json", "byte 0xff at offset 12 is not UTF-8"),
        (b'{"answer": "x", "n": ' + b"9" * 5000 + b"}", "invalid_json", "thousands of digits"),
        (b'{"answer": "x", "answer": "y"}', "invalid_json", "answer stands twice in one object, first at column 2"),
        (b'{"answer": "x", "debug": {"n": 1, "n": 1}}', "invalid_json", "debug.n stands twice in one object"),
        (
            b'{"answer": "x", "n": "\\ud800"}',
            "invalid_response",
            "n is '\\ud800', expected text without lone surrogates",
        ),
        (b"null", "invalid_response", "the response is null, expected an object"),
        (b'{"answer": "x", "debug": {"usage": {"n": NaN}}}', "invalid_response", "debug.usage.n is nan"),
        (b'{"answer": "x", "debug": {"usage": {"n": 1e999}}}', "invalid_response", "debug.usage.n is inf"),
    ],
)
def test_a_body_that_is_no_response_says_what_it_is(body: bytes, kind: str, said: str):
    with pytest.raises(TargetError) as caught:
        answer_from_body(body, "here")
    assert caught.value.kind == kind
    assert said in str(caught.value)


def test_a_record_may_be_flat():
    debug = dict(RESPONSE["debug"])
    flat = RESPONSE | {"debug": {"spans": debug.pop("spans")}} | debug
    assert answer_from_record(flat, "") == answer_from_response(RESPONSE, "") == answer_from_record(RESPONSE, "")


def test_a_flat_record_names_places_as_they_are_written():
    with pytest.raises(TargetError, match=r"^a:1: retrieved_chunks\[0\]\.rank is 'x'"):
        answer_from_record({"retrieved_chunks": [{"rank": "x"}]}, "a:1")
    with pytest.raises(TargetError, match=r"one of retrieved_chunks and debug\.retrieved_chunks, not both"):
        answer_from_record({"retrieved_chunks": [], "debug": {"retrieved_chunks": []}}, "a:1")


def test_the_first_problem_is_named_and_the_others_are_counted():
    data = response_with("debug.retrieved_chunks[0].rank", "one") | {"answer": 7}
    assert wrong(data) == "answer is 7 (a number), expected a string (and 1 more)"


def test_names_of_our_own_mean_nothing_in_a_response():
    answer = answer_from_response({"answer": "x", "text": 1, "chunks": 2, "extra": {"extra": 3}}, "")
    assert answer == Answer(text="x", extra={"text": 1, "chunks": 2, "extra": {"extra": 3}})
    chunk = answer_from_response({"debug": {"retrieved_chunks": [{"extra": {"a": 1}}]}}, "").chunks
    assert chunk == (Chunk(extra={"extra": {"a": 1}}),)


def test_fields_of_debug_mean_nothing_at_the_top_of_a_response():
    answer = answer_from_response({"answer": "x", "latency": "12 ms", "trace": "abc"}, "")
    assert answer.extra == {"latency": "12 ms", "trace": "abc"}


UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
FREE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | WHOLE | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(TEXTS, FREE, max_size=3)
# Names of our own cannot be unknown; these prefixes keep them apart.
UNKNOWN = TEXTS.map("x-".__add__)
EXTRA = st.dictionaries(UNKNOWN, FREE, max_size=2)
PARTS = st.text("ab>-", min_size=1, max_size=4)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return maybe(st.lists(strategy, max_size=3).map(tuple))


TEXT, NUMBER, RANK = maybe(TEXTS), maybe(NUMBERS), maybe(WHOLE)
CHUNKS = st.builds(
    Chunk, TEXT, TEXT, TEXT, TEXT, TEXT, st.booleans(), RANK, NUMBER, NUMBER, NUMBER, RANK, RANK, RANK, EXTRA
)
REFERENCES = st.builds(Reference, TEXT, TEXT, TEXT, TEXT, TEXT, EXTRA)
TRACES = st.builds(
    Trace,
    entities=tuples(st.builds(Entity, TEXTS, TEXT, TEXT, EXTRA)),
    concepts=tuples(TEXTS),
    constraints=tuples(TEXTS),
    kg_entities=tuples(TEXTS),
    kg_edges=tuples(st.builds(Edge, PARTS, PARTS, PARTS)),
    inferences=tuples(OBJECTS),
    entity_types=maybe(OBJECTS),
    violations=tuples(FREE),
    extra=EXTRA,
)
ANSWERS = st.builds(
    Answer,
    text=TEXTS,
    references=tuples(REFERENCES),
    abstained=maybe(st.booleans()),
    abstain_reason=TEXT,
    chunks=tuples(CHUNKS),
    folder_selection=maybe(
        st.builds(FolderSelection, st.lists(TEXTS, max_size=2).map(tuple), TEXT, maybe(st.booleans()), EXTRA)
    ),
    trace=maybe(TRACES),
    latency=st.dictionaries(TEXTS, NUMBERS, max_size=3),
    usage=OBJECTS,
    versions=OBJECTS,
    indexing_coverage=maybe(OBJECTS),
    extra=EXTRA | st.dictionaries(UNKNOWN, FREE, min_size=1, max_size=2).map(lambda more: {"debug": more}),
)


@UNHURRIED
@given(ANSWERS)
def test_an_answer_written_and_read_again_is_the_same(answer: Answer):
    written = json.dumps(answer_to_response(answer), ensure_ascii=False, allow_nan=False).encode()
    assert answer_from_body(written, "") == answer
    assert answer_from_record(json.loads(written), "") == answer


@UNHURRIED
@given(st.dictionaries(st.sampled_from([*RESPONSE, "retrieved_chunks", "trace"]), FREE | st.just(RESPONSE["debug"])))
def test_whatever_comes_is_an_answer_or_a_typed_error(data: dict[str, Any]):
    for read in (answer_from_response, answer_from_record):
        answer = error = None
        try:
            answer = read(data, "here")
        except TargetError as raised:
            error = raised
        if answer is not None:
            json.dumps(answer_to_response(answer), ensure_ascii=False, allow_nan=False).encode()
        else:
            assert error is not None
            assert error.kind in ("invalid_response", "no_answer")
            assert "\n" not in str(error)
