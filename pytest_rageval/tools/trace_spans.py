"""Traces read into spans by one table of names: OTLP, OpenInference (as Phoenix exports it), Langfuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.errors import CaseError
from pytest_rageval.io.lines import json_rows, read_lines
from pytest_rageval.io.messages import Report, describe
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json

LONGEST_LINE = 2**26
"""Bytes of a document, which is read as a whole."""


class TraceFormat(NamedTuple):
    """The keys of one format, the surest first.

    lists       keys of lists of spans, or of what holds such lists
    attributes  keys of a record that count as attributes
    """

    lists: tuple[str, ...]
    trace_id: tuple[str, ...]
    span_id: tuple[str, ...] = ("spanId", "context.span_id", "span_id", "id")
    parent_id: tuple[str, ...] = ("parentSpanId", "parent_id", "parentObservationId")
    attributes: tuple[str, ...] = ()
    is_span_in_list: bool = False


OTLP = (
    "resourceSpans",
    "resource_spans",
    "batches",
    "scopeSpans",
    "scope_spans",
    "instrumentationLibrarySpans",
    "spans",
)
FORMATS = {
    "otlp": TraceFormat(OTLP, ("traceId",), is_span_in_list=True),
    "openinference": TraceFormat((*OTLP, "data"), ("context.trace_id", "trace_id", "traceId", "context.traceId")),
    "langfuse": TraceFormat(("data", "traces"), ("id",), attributes=("input", "output", "model", "type")),
}
START = ("startTimeUnixNano", "start_time", "startTime", "timestamp")
END = ("endTimeUnixNano", "end_time", "endTime")
FEEDBACK_LISTS = ("annotations", "span_annotations", "scores")
FEEDBACK_VALUES = ("label", "stringValue", "score", "value")
FEEDBACK_KEYS = ("user.feedback", "user_feedback", "feedback", "feedback.score", "feedback.value", "feedback.label")
"""Attributes that hold a person's feedback on an answer."""


@dataclass(frozen=True, slots=True)
class Span:
    """One operation. `attributes` are flat, by dotted names; times are in seconds, None if unknown.

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
    """Read the traces of a file, JSON or JSON lines; CaseError with every problem, one line each."""
    report = Report(name)
    spans = []
    for place, document in _documents(path, report):
        try:
            spans += list(_spans(document, FORMATS[form]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            report.add_whole(f"{place}is no trace of {form}: {reason}")
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


def _documents(path: Path, report: Report) -> Iterator[tuple[str, Json]]:
    """Return the JSON documents of a file, one or one a line, each with its line."""
    lines = list(read_lines(path, report, LONGEST_LINE))
    if len(report):
        return
    try:
        document = parse("".join(line.text for line in lines))
    except StrictJsonError:
        yield from ((f"line {row.line}: ", row.record) for row in json_rows(iter(lines), report))
        return
    yield from (("", member) for member in (document if isinstance(document, list) else [document]))


def _spans(document: Json, form: TraceFormat, *, is_listed: bool = False) -> Iterator[Span]:
    """Return the spans of a document: those of its lists, or the document itself with its observations."""
    if not isinstance(document, dict):
        expected = "an object with resourceSpans" if form.is_span_in_list else "an object"
        raise TypeError(f"it is {describe(document)}, expected {expected}")
    lists = [document[key] for key in form.lists if isinstance(document.get(key), list)]
    for member in (member for listed in lists for member in listed):
        yield from _spans(member, form, is_listed=True)
    has_id = any(key in document for key in form.trace_id)
    if not lists and (has_id if form.is_span_in_list and is_listed else not form.is_span_in_list):
        trace = _span(document, form)
        yield trace
        for entry in document.get("observations") or ():
            if isinstance(entry, dict):
                yield _span(entry, form, trace.trace_id)


def _span(record: Mapping[str, Any], form: TraceFormat, trace_id: str | None = None) -> Span:
    """Return one record as a span; `trace_id` is that of the trace around it, which is its parent by default."""
    flat = _flat({name: value for name, value in record.items() if name != "attributes"})
    attributes = {name.removeprefix("attributes."): flat[name] for name in flat if name.startswith("attributes.")}
    attributes |= _key_values(record.get("attributes"))
    attributes |= {name: value for name, value in flat.items() if name.startswith("metadata.")}
    attributes |= {name: record[name] for name in form.attributes if record.get(name) is not None}
    feedback = [("feedback", attributes[name]) for name in FEEDBACK_KEYS if name in attributes]
    for event in record.get("events") or ():
        of_event = _key_values(event.get("attributes"))
        if event.get("name") == "gen_ai.evaluation.result":
            value = of_event.get("gen_ai.evaluation.score.label", of_event.get("gen_ai.evaluation.score.value"))
            feedback.append((str(of_event.get("gen_ai.evaluation.name", "")), value))
        else:  # messages and documents may be recorded on events
            attributes = {**of_event, **attributes}
    feedback += (_score(score) for name in FEEDBACK_LISTS for score in record.get(name) or () if score)
    seconds = record.get("latency")
    return Span(
        trace_id or str(_first(flat, form.trace_id)),
        str(_first(flat, form.span_id)),
        next((str(flat[name]) for name in form.parent_id if flat.get(name)), trace_id),
        str(flat.get("name") or ""),
        _instant(flat, START),
        _instant(flat, END),
        attributes,
        tuple(feedback),
        latency_ms=seconds * 1000 if isinstance(seconds, (int, float)) else None,
    )


def _first(flat: Mapping[str, Json], names: Sequence[str]) -> Json:
    return next((flat[name] for name in names if flat.get(name)), None) or flat[names[-1]]


def _score(score: Mapping[str, Any]) -> tuple[str, Json]:
    result = score.get("result") or score
    value = next((result[name] for name in FEEDBACK_VALUES if result.get(name) is not None), None)
    return str(score.get("name", "")), value


def _instant(flat: Mapping[str, Json], names: Sequence[str]) -> float | None:
    """Return seconds of the first of these times: nanoseconds, an ISO time, or milliseconds as pandas writes them."""
    name = next((name for name in names if flat.get(name) not in (None, "", 0, "0")), None)
    written = None if name is None else flat[name]
    if name is None or written is None:
        return None
    if name.endswith("UnixNano"):
        return int(written) / 1e9
    if isinstance(written, (int, float)):
        return float(written) / (1e9 if written > 1e16 else 1e3 if written > 1e11 else 1.0)
    return datetime.fromisoformat(written).timestamp()


def _key_values(listed: Json) -> dict[str, Json]:
    """Return `[{"key": …, "value": {"stringValue": …}}]` as an object; one that is an object already stays."""
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


def _flat(value: Mapping[str, Any], above: str = "") -> dict[str, Json]:
    """Return nested objects as dotted names; lists stay as they are."""
    flat: dict[str, Json] = {}
    for name, member in value.items():
        if isinstance(member, dict) and member:
            flat |= _flat(member, f"{above}{name}.")
        elif member is not None:
            flat[f"{above}{name}"] = member
    return flat
