"""Traces as OTLP, Phoenix and Langfuse write them, of one request each: root, retrieval, model."""

from __future__ import annotations

import json
from typing import Any

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
