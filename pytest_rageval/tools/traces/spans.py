"""Traces of the three formats, read into spans: OTLP, OpenInference (as Phoenix exports it), Langfuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_rageval.errors import CaseError
from pytest_rageval.io.json_lines import json_rows
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report, found
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json
from pytest_rageval.tools.traces.trace_names import FEEDBACK_KEYS

LONGEST_LINE = 2**26
"""Bytes: a document is read at once."""
FORMATS = ("otlp", "openinference", "langfuse")


@dataclass(frozen=True, slots=True)
class Span:
    """One operation. `attributes` are flat, by dotted names; times are in seconds, None where not told.

    feedback  what people said of it: name and value of each score
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: float | None
    end: float | None
    attributes: Mapping[str, Json]
    feedback: tuple[tuple[str, Json], ...] = ()
    latency_ms: float | None = None


@dataclass(slots=True)
class TracedRequest:
    """The spans of one request, in the order of their starts; the root is the one without a parent among them."""

    trace_id: str
    spans: list[Span] = field(default_factory=list)

    @property
    def root(self) -> Span:
        ids = {span.span_id for span in self.spans}
        return next((span for span in self.spans if span.parent_id not in ids), self.spans[0])


def read_traces(path: Path, name: str, form: str) -> list[TracedRequest]:
    """The traces of a file, JSON or JSON lines; CaseError with every problem, one line each."""
    report = Report(name)
    spans = []
    for place, document in _documents(path, report):
        try:
            spans += list(_READERS[form](document))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            report.add_whole(f"{place}is no trace of {form}: {_reason(error)}")
    if not spans and not len(report):
        report.add_whole(f"holds no span of {form}; is --format right? Known: {', '.join(FORMATS)}")
    if len(report):
        raise CaseError(*report.problems)
    by_trace: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_trace[span.trace_id].append(span)
    return [
        TracedRequest(trace_id, sorted(listed, key=lambda span: (span.start is None, span.start or 0.0)))
        for trace_id, listed in by_trace.items()
    ]


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _documents(path: Path, report: Report) -> Iterator[tuple[str, Json]]:
    """The JSON documents of a file with the line that each one stands in: one, or one a line."""
    lines = list(read_lines(path, report, LONGEST_LINE))
    if len(report):
        return
    text = "".join(line for _, line, _ in lines)
    try:
        document = parse(text)
    except StrictJsonError:
        yield from ((f"line {row.line}: ", row.record) for row in json_rows(iter(lines), report))
        return
    yield from (("", member) for member in (document if isinstance(document, list) else [document]))


# ── OTLP ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _otlp_spans(document: Json) -> Iterator[Span]:
    """Spans of an export request as the protocol writes it in JSON (`resourceSpans`), or of one inside `batches`."""
    if not isinstance(document, dict):
        raise TypeError(f"it is {found(document)}, expected an object with resourceSpans")
    for resource in document.get("resourceSpans") or document.get("resource_spans") or document.get("batches") or ():
        scopes = (
            resource.get("scopeSpans") or resource.get("scope_spans") or resource.get("instrumentationLibrarySpans")
        )
        for scope in scopes or ():
            yield from map(_otlp_span, scope.get("spans") or ())


def _otlp_span(span: Mapping[str, Any]) -> Span:
    attributes = _key_values(span.get("attributes"))
    feedback = list(_feedback_of(attributes))
    for event in span.get("events") or ():
        of_event = _key_values(event.get("attributes"))
        if event.get("name") == "gen_ai.evaluation.result":
            value = of_event.get("gen_ai.evaluation.score.label", of_event.get("gen_ai.evaluation.score.value"))
            feedback.append((str(of_event.get("gen_ai.evaluation.name", "")), value))
        else:  # messages and documents may be recorded on events
            attributes = {**of_event, **attributes}
    return Span(
        str(span["traceId"]), str(span["spanId"]), span.get("parentSpanId") or None, str(span.get("name", "")),
        _nanoseconds(span.get("startTimeUnixNano")), _nanoseconds(span.get("endTimeUnixNano")), attributes,
        tuple(feedback),
    )  # fmt: skip


def _nanoseconds(written: Json) -> float | None:
    return int(written) / 1e9 if written not in (None, "", "0", 0) else None


def _key_values(listed: Json) -> dict[str, Json]:
    """`[{"key": …, "value": {"stringValue": …}}]` as an object; one that is an object already stays."""
    if isinstance(listed, dict):
        return _flat(listed)
    return {entry["key"]: _any_value(entry.get("value")) for entry in listed or ()}


def _any_value(value: Json) -> Json:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, content),) = value.items()
    if kind == "intValue":
        return int(content)
    if kind == "arrayValue":
        return [_any_value(member) for member in content.get("values") or ()]
    if kind == "kvlistValue":
        return {member["key"]: _any_value(member.get("value")) for member in content.get("values") or ()}
    return content if kind in ("stringValue", "doubleValue", "boolValue") else value


# ── OpenInference ─────────────────────────────────────────────────────────────────────────────────────────────


def _openinference_spans(document: Json) -> Iterator[Span]:
    """A span as Phoenix and the SDKs' exporters write it, a list of them under `spans` or `data`, or OTLP."""
    if not isinstance(document, dict):
        raise TypeError(f"it is {found(document)}, expected an object")
    if "resourceSpans" in document:
        yield from _otlp_spans(document)
    elif isinstance(listed := document.get("spans", document.get("data")), list):
        for member in listed:
            yield from _openinference_spans(member)
    else:
        yield _openinference_span(document)


def _openinference_span(record: Mapping[str, Any]) -> Span:
    flat = _flat(record)
    attributes = {
        name.removeprefix("attributes."): value for name, value in flat.items() if name.startswith("attributes.")
    }
    trace_id = flat.get("context.trace_id") or flat.get("trace_id") or flat["context.traceId"]
    span_id = flat.get("context.span_id") or flat.get("span_id") or flat.get("id")
    feedback = list(_feedback_of(attributes))
    for annotation in record.get("annotations") or record.get("span_annotations") or ():
        result = annotation.get("result") or annotation
        value = result.get("label") if result.get("label") is not None else result.get("score")
        feedback.append((str(annotation.get("name", "")), value))
    return Span(
        str(trace_id), str(span_id), flat.get("parent_id") or None, str(flat.get("name", "")),
        _instant(flat.get("start_time")), _instant(flat.get("end_time")), attributes, tuple(feedback),
    )  # fmt: skip


def _instant(written: Json) -> float | None:
    """Seconds of an ISO time, or of a number of milliseconds as pandas writes it."""
    if isinstance(written, (int, float)):
        return float(written) / (1e9 if written > 1e16 else 1e3 if written > 1e11 else 1.0)
    return datetime.fromisoformat(written).timestamp() if isinstance(written, str) and written else None


def _flat(value: Mapping[str, Any], above: str = "") -> dict[str, Json]:
    """Nested objects as dotted names; lists stay as they are."""
    flat: dict[str, Json] = {}
    for name, member in value.items():
        if isinstance(member, dict) and member:
            flat |= _flat(member, f"{above}{name}.")
        elif member is not None:
            flat[f"{above}{name}"] = member
    return flat


# ── Langfuse ──────────────────────────────────────────────────────────────────────────────────────────────────


def _langfuse_spans(document: Json) -> Iterator[Span]:
    """A trace with its observations and scores as the API and the export give it, or a list of them under `data`."""
    if not isinstance(document, dict):
        raise TypeError(f"it is {found(document)}, expected an object")
    if isinstance(listed := document.get("data", document.get("traces")), list):
        for member in listed:
            yield from _langfuse_spans(member)
        return
    trace_id = str(document["id"])
    scores = [score for score in document.get("scores") or () if isinstance(score, dict)]
    seconds = document.get("latency")
    yield Span(
        trace_id, trace_id, None, str(document.get("name") or ""), _instant(document.get("timestamp")), None,
        _langfuse_attributes(document), tuple((str(score.get("name", "")), _score(score)) for score in scores),
        latency_ms=seconds * 1000 if isinstance(seconds, (int, float)) else None,
    )  # fmt: skip
    for entry in document.get("observations") or ():
        if isinstance(entry, dict):
            yield Span(
                trace_id, str(entry["id"]), str(entry.get("parentObservationId") or trace_id),
                str(entry.get("name") or ""), _instant(entry.get("startTime")), _instant(entry.get("endTime")),
                _langfuse_attributes(entry),
            )  # fmt: skip


def _langfuse_attributes(record: Mapping[str, Any]) -> dict[str, Json]:
    """Input and output as they are; metadata by dotted names."""
    metadata = record.get("metadata")
    attributes = _flat({"metadata": metadata}) if isinstance(metadata, dict) else {}
    names = ("input", "output", "model", "type")
    return attributes | {name: record[name] for name in names if record.get(name) is not None}


def _score(score: Mapping[str, Any]) -> Json:
    return score["stringValue"] if score.get("stringValue") is not None else score.get("value")


def _feedback_of(attributes: Mapping[str, Json]) -> Sequence[tuple[str, Json]]:
    return [("feedback", attributes[name]) for name in FEEDBACK_KEYS if name in attributes]


_READERS = {"otlp": _otlp_spans, "openinference": _openinference_spans, "langfuse": _langfuse_spans}
