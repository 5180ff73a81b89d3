"""Traces of a system in use: as recorded answers of cases, and as drafts of cases where people disliked the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import Project, a_case, lines_with

from pytest_rageval.make.trace_answer import traced_answer
from pytest_rageval.make.trace_spans import read_traces

START = 1_790_000_000_000_000_000


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(member) for member in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": otlp_value(member)} for key, member in value.items()]}}
    return {"stringValue": value}


def otlp_span(trace: str, span: str, parent: str, name: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    """A span; `start` and `end` are milliseconds, `attributes` a plain object."""
    attributes = [{"key": key, "value": otlp_value(value)} for key, value in more.pop("attributes", {}).items()]
    return {
        "traceId": trace, "spanId": span, "parentSpanId": parent, "name": name, "kind": 1, "status": {},
        "startTimeUnixNano": str(START + start * 10**6), "endTimeUnixNano": str(START + end * 10**6),
        "attributes": attributes, **more,
    }  # fmt: skip


def otlp(*spans: dict[str, Any]) -> str:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop-bot"}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]})


def messages(role: str, text: str) -> str:
    """Messages as OpenTelemetry's conventions write them."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def otlp_trace(trace: str, question: str, answer: str, documents: Any = None, **more: Any) -> list[dict[str, Any]]:
    """A request of 250 ms with a retrieval (where documents are told) and a chat."""
    chat = {
        "gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-4.1-2025-04-14",
        "gen_ai.input.messages": messages("user", question), "gen_ai.output.messages": messages("assistant", answer),
    }  # fmt: skip
    retrieval = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": question.lower()}
    if documents is not None:
        retrieval["gen_ai.retrieval.documents"] = documents
    return [
        otlp_span(trace, f"{trace}-1", "", "POST /ask", 0, 250, **more),
        otlp_span(trace, f"{trace}-2", f"{trace}-1", "retrieval notes", 10, 60, attributes=retrieval),
        otlp_span(trace, f"{trace}-3", f"{trace}-1", "chat gpt-4.1", 60, 240, attributes=chat),
    ]


def phoenix_spans(trace: str, question: str, answer: str, annotations: Any = ()) -> list[dict[str, Any]]:
    """Spans as Phoenix exports them."""
    return [
        {
            "name": "query", "span_kind": "CHAIN", "parent_id": None,
            "context": {"trace_id": trace, "span_id": f"{trace}a"},
            "start_time": "2026-11-22T08:00:00.000+00:00", "end_time": "2026-11-22T08:00:01.500+00:00",
            "attributes": {"openinference.span.kind": "CHAIN", "input.value": question, "output.value": answer},
            "annotations": list(annotations),
        },
        {
            "name": "retrieve", "span_kind": "RETRIEVER", "parent_id": f"{trace}a",
            "context": {"trace_id": trace, "span_id": f"{trace}b"},
            "start_time": "2026-11-22T08:00:00.100+00:00", "end_time": "2026-11-22T08:00:00.200+00:00",
            "attributes": {
                "openinference.span.kind": "RETRIEVER", "input.value": question,
                "retrieval.documents.0.document.id": "c1", "retrieval.documents.0.document.score": 0.92,
                "retrieval.documents.0.document.content": "Water boils at 100 degrees at sea level.",
                "retrieval.documents.0.document.metadata":
                    '{"source": "notes/water.md", "section": "# Water > ## Boiling"}',
                "retrieval.documents.1.document.content": "Water freezes at 0 degrees.",
            },
        },
        {
            "name": "llm", "span_kind": "LLM", "parent_id": f"{trace}a",
            "context": {"trace_id": trace, "span_id": f"{trace}c"},
            "start_time": "2026-11-22T08:00:00.200+00:00", "end_time": "2026-11-22T08:00:01.400+00:00",
            "attributes": {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4.1-mini"},
        },
    ]  # fmt: skip


def langfuse_trace(trace: str, question: str, answer: str, score: Any = None) -> dict[str, Any]:
    """A trace as Langfuse's API gives it in full."""
    scores = [] if score is None else [{"id": "s", "name": "user-feedback", "value": score, "dataType": "NUMERIC"}]
    return {
        "id": trace, "timestamp": "2026-11-22T08:00:00.000Z", "name": "ask", "input": {"question": question},
        "output": {"answer": answer}, "latency": 0.75, "scores": scores, "metadata": {"release": "v4"},
        "observations": [
            {"id": "o1", "traceId": trace, "type": "RETRIEVER", "name": "search", "parentObservationId": None,
             "startTime": "2026-11-22T08:00:00.010Z", "endTime": "2026-11-22T08:00:00.050Z", "input": question,
             "output": [{"id": "c1", "page_content": "Water boils at 100 degrees.", "score": 0.8}]},
            {"id": "o2", "traceId": trace, "type": "GENERATION", "name": "chat", "model": "claude-sonnet-4-5",
             "startTime": "2026-11-22T08:00:00.050Z", "endTime": "2026-11-22T08:00:00.700Z",
             "input": [{"role": "user", "content": "Context: …"}], "output": {"role": "assistant", "content": answer}},
        ],
    }  # fmt: skip


BOILING = "What is the boiling point of water?"
RIGHT = "Water boils at 100 degrees at sea level."
DOCUMENTS = json.dumps([{"id": "c1", "score": 0.95}, {"id": "c2", "score": 0.5, "content": "Ice."}])


def answers(project: Project, content: str, form: str, *arguments: str) -> Any:
    project.write("traces.json", content)
    return project.rageval("answers", "from-traces", "traces.json", "--format", form, *arguments)


def records(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.path / "traces.answers.jsonl").read_text("utf-8").splitlines()]


AT = {"start_time": 1_704_067_200_000, "end_time": 1_704_067_202_000, "context.trace_id": "t1"}
DATA_FRAME = [  # as `get_spans_dataframe().to_json(orient="records")` writes it
    AT | {"name": "ask", "parent_id": None, "context.span_id": "a", "attributes.output.value": RIGHT,
          "attributes.llm.input_messages": [{"message.role": "system", "message.content": "Be brief."},
                                            {"message.role": "user", "message.content": BOILING}]},
    AT | {"name": "search", "parent_id": "a", "context.span_id": "b", "attributes.retrieval.documents": [
        {"document.id": "c1", "document.content": RIGHT, "document.score": 0.8,
         "document.metadata": {"file_path": "notes/water.md"}}]},
]  # fmt: skip
RERANKED = [
    otlp_span("t1", "a", "", "query", 0, 100, attributes={"input.value": BOILING, "output.value": RIGHT}),
    otlp_span("t1", "b", "a", "retrieve", 5, 50, attributes={
        "openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": "c1",
        "retrieval.documents.0.document.score": 0.5}),
    otlp_span("t1", "c", "a", "rerank", 50, 60, attributes={
        "reranker.output_documents.0.document.id": "c9", "reranker.output_documents.0.document.content": "[1, 2]"}),
]  # fmt: skip
# Observations of LangChain and of decorated functions were of type SPAN before there was one for retrievers.
NAMED = langfuse_trace("t1", BOILING, RIGHT) | {"observations": [
    {"id": "o1", "type": "SPAN", "name": "retrieve_documents",
     "output": [{"page_content": RIGHT, "metadata": {"source": "notes/water.md"}}]},
]}  # fmt: skip
OF_LANGFUSE = {"latency": {"total_ms": 750.0}, "model_name": "claude-sonnet-4-5", "retrieved_chunks": [
    {"chunk_id": "c1", "text": "Water boils at 100 degrees.", "score_final": 0.8, "rank": 1}]}  # fmt: skip
TRACES = {
    "spans of OpenTelemetry": (otlp(*otlp_trace("t1", BOILING, RIGHT, DOCUMENTS)), "otlp", {
        "id": "boil", "answer": RIGHT, "latency": {"total_ms": 250.0}, "model_name": "gpt-4.1-2025-04-14",
        "meta": {"trace_id": "t1"}, "retrieved_chunks": [
            {"chunk_id": "c1", "score_final": 0.95, "rank": 1},
            {"chunk_id": "c2", "text": "Ice.", "score_final": 0.5, "rank": 2}]}),
    "spans of Phoenix, one a line": (
        "\n".join(json.dumps(span) for span in phoenix_spans("t1", BOILING, RIGHT)), "openinference", {
            "latency": {"total_ms": 1500.0}, "model_name": "gpt-4.1-mini", "retrieved_chunks": [
                {"chunk_id": "c1", "text": RIGHT, "rel_path": "notes/water.md",
                 "heading_path": "# Water > ## Boiling", "score_final": 0.92, "rank": 1},
                {"text": "Water freezes at 0 degrees.", "rank": 2}]}),
    "a data frame of Phoenix": (json.dumps(DATA_FRAME), "openinference", {"answer": RIGHT, "retrieved_chunks": [
        {"chunk_id": "c1", "text": RIGHT, "rel_path": "notes/water.md", "score_final": 0.8, "rank": 1}]}),
    "attributes of OpenInference in OTLP, and a reranker": (otlp(*RERANKED), "openinference", {"retrieved_chunks": [
        {"chunk_id": "c9", "text": "[1, 2]", "rank": 1}]}),
    "no documents": (otlp(*otlp_trace("t1", BOILING, RIGHT, [])), "otlp", {"retrieved_chunks": []}),
    "documents that cannot be read are not none": (
        otlp(*otlp_trace("t1", BOILING, RIGHT, [{"bytes": 7}])), "otlp", {"retrieved_chunks": None}),
    "a span of Langfuse that is named for retrieving": (json.dumps(NAMED), "langfuse", {"retrieved_chunks": [
        {"text": RIGHT, "rel_path": "notes/water.md", "rank": 1}]}),
    **{f"traces of Langfuse as {kind}": (json.dumps(content), "langfuse", OF_LANGFUSE) for kind, content in (
        ("a list", [langfuse_trace("t1", BOILING, RIGHT)]), ("data", {"data": [langfuse_trace("t1", BOILING, RIGHT)]}),
        ("one", langfuse_trace("t1", BOILING, RIGHT)))},
}  # fmt: skip


@pytest.mark.parametrize(("content", "form", "expected"), TRACES.values(), ids=TRACES)
def test_a_trace_becomes_an_answer(tmp_path: Path, content: str, form: str, expected: dict[str, Any]):
    (tmp_path / "traces.json").write_text(content, encoding="utf-8")
    (trace,) = read_traces(tmp_path / "traces.json", "traces.json", form)
    record = traced_answer(trace).record("boil")
    assert {name: record.get(name) for name in expected} == expected


def test_the_attribute_that_names_the_case_comes_before_the_question(project: Project):
    project.cases([a_case("boil"), a_case("named", "Something else?")])
    spans = otlp_trace("t1", BOILING, RIGHT, attributes={"rageval.case_id": "named"})
    answers(project, otlp(*spans), "otlp")
    assert [record["id"] for record in records(project)] == ["named"]


def test_a_prompt_with_passages_in_it_is_matched_by_the_query_of_the_retrieval(project: Project):
    project.cases([a_case("boil")])
    spans = otlp_trace("t1", BOILING, RIGHT)
    spans[2] = otlp_span("t1", "t1-3", "t1-1", "chat", 60, 240, attributes={
        "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": f"Answer from these notes: … {BOILING}",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": RIGHT})  # fmt: skip
    answers(project, otlp(*spans), "otlp")
    assert [(record["id"], record["answer"]) for record in records(project)] == [("boil", RIGHT)]


def test_what_came_to_nothing_is_listed_and_missing_documents_are_said_once(project: Project):
    project.cases([a_case("boil"), a_case("freeze", "What is the freezing point?")])
    spans = [*otlp_trace("t1", f"  {BOILING.upper()} ", RIGHT), *otlp_trace("t2", "Who won?", "Nobody.")]
    spans += [*otlp_trace("t4", BOILING, "A later answer."), otlp_span("t3", "x", "", "GET /health", 0, 1)]
    result = answers(project, otlp(*spans), "otlp")
    assert list(result.errlines) == [
        "trace t2: no case asks 'Who won?'",
        "trace t3: holds no question, or neither answer nor documents",
        "case evalcases/a.jsonl::freeze: no trace",
        "1 trace left out for a later one of the same case",
        "1 answer comes without retrieved documents: retrieval metrics are not applicable to them",
    ]
    assert records(project)[0]["answer"] == "A later answer."
    assert "retrieved_chunks" not in records(project)[0]
    assert lines_with(result, "--rageval-allow-partial")


def test_the_answers_are_scored_and_retrieval_is_not_applicable_without_documents(project: Project):
    project.cases([a_case("boil")])
    answers(project, otlp(*otlp_trace("t1", BOILING, RIGHT)), "otlp")
    project.run("--rageval-target", "answers:traces.answers.jsonl")
    record = project.records()["boil"]
    assert record["answer"] == RIGHT
    assert "recall_any@5" in record["skipped_metrics"]
    assert record["scores"]["token_f1"] == 1.0


def test_an_id_of_two_files_is_answered_by_its_key(project: Project):
    for name in ("a", "b"):
        project.cases([a_case("boil")], f"evalcases/{name}.jsonl")
    answers(project, otlp(*otlp_trace("t1", BOILING, RIGHT)), "otlp")
    assert [record["id"] for record in records(project)] == ["evalcases/a.jsonl::boil", "evalcases/b.jsonl::boil"]


@pytest.mark.parametrize(
    ("content", "form", "problem"),
    [
        ("", "otlp", "traces.json: holds no span of otlp"),
        ("{}", "otlp", "traces.json: holds no span of otlp; is --format right?"),
        ("[1]", "langfuse", "traces.json: is no trace of langfuse: it is 1 (a number), expected an object"),
        ('{"name": "x"}', "langfuse", "traces.json: is no trace of langfuse: 'id' is missing"),
        ('{"name": "x"}\n{"name"\n', "openinference", "traces.json:2:8: not valid JSON"),
        (otlp(*otlp_trace("t1", "Who?", "Me.")), "otlp", "traces.json: none of 1 trace belongs to a case"),
    ],
)
def test_what_cannot_be_read_gets_a_line_and_nothing_is_written(
    project: Project, content: str, form: str, problem: str
):
    project.cases([a_case("boil")])
    result = answers(project, content, form)
    assert result.ret == 2
    assert lines_with(result, problem)
    assert not lines_with(result, "Traceback")
    assert not (project.path / "traces.answers.jsonl").exists()


def test_an_answers_file_that_is_there_is_not_replaced(project: Project):
    project.cases([a_case("boil")])
    content = otlp(*otlp_trace("t1", BOILING, RIGHT))
    assert answers(project, content, "otlp").ret == 0
    assert answers(project, content, "otlp").ret == 2
    assert answers(project, content, "otlp", "--force").ret == 0


def drafts(project: Project, content: str, form: str, *arguments: str) -> Any:
    project.write("evalcases/live.json", content)
    return project.rageval("cases", "from-traces", "evalcases/live.json", "--format", form, *arguments)


def drafted(project: Project) -> list[dict[str, Any]]:
    lines = (project.path / "evalcases/live.drafts.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_disliked_answer_becomes_a_draft_without_gold(project: Project):
    traces = [
        langfuse_trace("t1", BOILING, "At 90.", 0),
        langfuse_trace("t2", "Who?", "Me.", 1),
        langfuse_trace("t3", "Why?", "So."),
    ]
    result = drafts(project, json.dumps(traces), "langfuse")
    assert result.ret == 0
    assert result.outlines[0] == "3 traces, 2 with feedback, 1 question down"
    (draft,) = drafted(project)
    assert draft["question"] == BOILING
    assert draft["metadata"]["draft"]["answer"] == "At 90."
    assert draft["metadata"]["draft"]["cited"] == [{"chunk_id": "c1", "text": "Water boils at 100 degrees."}]
    assert "gold" not in draft
    assert "reference" not in draft


@pytest.mark.parametrize("annotation", [{"name": "user feedback", "result": {"label": "thumbs-down", "score": 0}},
                                        {"name": "user_rating", "result": {"score": 0}}])  # fmt: skip
def test_annotations_of_phoenix_are_feedback(project: Project, annotation: Any):
    drafts(project, json.dumps(phoenix_spans("t1", BOILING, "At 90.", [annotation])), "openinference")
    assert [draft["question"] for draft in drafted(project)] == [BOILING]


def test_evaluation_events_of_opentelemetry_are_feedback_if_a_person_gave_them(project: Project):
    def event(name: str) -> dict[str, Any]:
        attributes = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": "down"}
        listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        return {"name": "gen_ai.evaluation.result", "attributes": listed}

    spans = [*otlp_trace("t1", BOILING, "At 90.", events=[event("user_feedback")]),
             *otlp_trace("t2", "Who?", "Me.", events=[event("toxicity")])]  # fmt: skip
    drafts(project, otlp(*spans), "otlp")
    assert [draft["question"] for draft in drafted(project)] == [BOILING]


def test_drafts_are_added_once_and_what_is_there_stays(project: Project):
    project.write("evalcases/live.drafts.jsonl", '{"id":"mine",  "question":"Mine?"}')
    traces = json.dumps([langfuse_trace("t1", BOILING, "At 90.", 0), langfuse_trace("t2", BOILING.upper(), "No.", -1)])
    for _ in range(2):
        assert drafts(project, traces, "langfuse").ret == 0
    lines = (project.path / "evalcases/live.drafts.jsonl").read_text("utf-8").splitlines()
    assert lines[0] == '{"id":"mine",  "question":"Mine?"}'
    assert len(lines) == 2


def test_no_run_asks_a_draft(project: Project):
    project.cases([a_case("boil")])
    drafts(project, json.dumps([langfuse_trace("t1", "Draft?", "At 90.", 0)]), "langfuse")
    for arguments in (), ("evalcases",), ("evalcases/a.jsonl", "evalcases/live.drafts.jsonl"):
        project.run(*arguments)
        assert [*project.records()] == ["boil"]
    project.configure('target = "bot:answer"\ncases = ["**/*.jsonl"]')
    project.run()
    assert [*project.records()] == ["boil"]
