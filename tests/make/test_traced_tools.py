"""Tool calls of traces: spans of tools with what a retriever within them found, as recorded answers that are scored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project


def otlp_span(span: str, parent: str, start: int, attributes: dict[str, str]) -> dict[str, Any]:
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    times = {"startTimeUnixNano": str(10**18 + start), "endTimeUnixNano": str(10**18 + start + 5)}
    return {"traceId": "t", "spanId": span, "parentSpanId": parent, "name": span, "attributes": listed, **times}


FOUND = json.dumps([{"id": "c1", "content": "6 euros.", "metadata": {"path": "islands.md"}}])
OTLP = [
    otlp_span("root", "", 0, {"rageval.question": "What of Jeju?", "rageval.answer": "6 euros."}),
    otlp_span(
        "execute_tool search",
        "root",
        10,
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": '{"query": "jeju"}'},
    ),
    otlp_span(
        "retrieval", "execute_tool search", 11, {"gen_ai.operation.name": "retrieval", "retrieval.documents": FOUND}
    ),
    otlp_span(
        "pay",
        "root",
        20,
        {"openinference.span.kind": "TOOL", "tool.name": "pay", "input.value": '{"sum": 6}', "error.type": "refused"},
    ),
]
LANGFUSE = {
    "id": "t",
    "timestamp": "2026-11-22T08:00:00.000Z",
    "name": "ask",
    "input": {"question": "What of Jeju?"},
    "output": {"answer": "6 euros."},
    "observations": [
        {
            "id": "o1",
            "type": "TOOL",
            "name": "search",
            "startTime": "2026-11-22T08:00:01.000Z",
            "input": {"query": "jeju"},
            "output": [{"id": "c1", "page_content": "6 euros.", "metadata": {"source": "islands.md"}}],
        },
        {
            "id": "o2",
            "type": "TOOL",
            "name": "pay",
            "startTime": "2026-11-22T08:00:02.000Z",
            "input": {"sum": 6},
            "output": {"is_paid": True},
        },
    ],
}


@pytest.mark.parametrize(
    ("form", "trace", "failed"),
    [("otlp", {"resourceSpans": [{"scopeSpans": [{"spans": OTLP}]}]}, 0.5), ("langfuse", LANGFUSE, 0.0)],
)
def test_the_tools_of_a_trace_are_scored(project: Project, form: str, trace: Any, failed: float):
    project.write("traces.jsonl", json.dumps(trace) + "\n")
    tools = [{"name": "search", "args": {"query": "jeju"}}, {"name": "pay", "args": {"sum": 6}}]
    gold = [{"rel_path": "islands.md"}]
    project.cases([{"id": "one", "question": "What of Jeju?", "gold_supports": gold, "expected_tools": tools}])
    written = project.rageval("answers", "from-traces", "traces.jsonl", "--format", form)
    assert written.ret == 0
    project.run("--rageval-target", "answers:traces.answers.jsonl")
    scores = project.records()["one"]["scores"]
    assert (scores["tool_call_f1"], scores["tools_as_expected"]) == (1.0, 1.0)
    assert (scores["search_recall@5"], scores["searches_to_gold"]) == (1.0, 1.0)
    assert scores["tool_error_rate"] == failed


def test_a_trace_without_tools_reports_none(project: Project):
    project.write("traces.jsonl", json.dumps({**LANGFUSE, "observations": []}) + "\n")
    project.cases([{"id": "one", "question": "What of Jeju?"}])
    project.rageval("answers", "from-traces", "traces.jsonl", "--format", "langfuse")
    answer = json.loads((project.path / "traces.answers.jsonl").read_text(encoding="utf-8"))
    assert "tool_calls" not in answer
