"""Spans of traces as OTLP, OpenInference (as Phoenix exports it) and Langfuse write them, by one table of names."""

from __future__ import annotations

import re
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
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
    """The keys of lists of spans (or of what holds such lists), and of a trace's id."""

    lists: tuple[str, ...]
    trace_id: tuple[str, ...]
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
    "langfuse": TraceFormat(("data", "traces"), ("id",)),
}
SPAN_ID = ("spanId", "context.span_id", "span_id", "id")
PARENT_ID = ("parentSpanId", "parent_id", "parentObservationId")
START = ("startTimeUnixNano", "start_time", "startTime", "timestamp")
END = ("endTimeUnixNano", "end_time", "endTime")
OF_LANGFUSE = ("input", "output", "model", "type")
"""Keys of a record that count as attributes."""
FEEDBACK_LISTS = ("annotations", "span_annotations", "scores")
FEEDBACK_VALUES = ("label", "stringValue", "score", "value")
FEEDBACK_KEYS = ("user.feedback", "user_feedback", "feedback", "feedback.score", "feedback.value", "feedback.label")
"""Attributes that hold a person's feedback on an answer."""
KIND = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "type")
RETRIEVAL_KINDS = frozenset({"retriever", "retrieval", "reranker"})


class Span(NamedTuple):
    """One operation. Times are in seconds, None if unknown.

    attributes  by dotted names, those in JSON parsed and numbered ones joined to lists
    feedback    people's verdicts on it: name and value of each score
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: float | None
    end: float | None
    seconds: float | None
    attributes: Mapping[str, Json]
    feedback: Sequence[tuple[str, Json]]

    @property
    def is_retrieval(self) -> bool:
        return any(str(self.attributes.get(name, "")).lower() in RETRIEVAL_KINDS for name in KIND)


def read_traces(path: Path, name: str, form: str) -> list[list[Span]]:
    """Read the spans of each trace of a file, in the order of their starts.

    Raises CaseError with every problem, one line each.
    """
    report = Report(name)
    by_trace: defaultdict[str, list[Span]] = defaultdict(list)
    for place, document in _documents(path, report):
        try:
            for span in _spans(document, FORMATS[form]):
                by_trace[span.trace_id].append(span)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            report.add_whole(f"{place}is no trace of {form}: {reason}")
    if not by_trace and not len(report):
        report.add_whole(f"holds no span of {form}; is --format right? Known: {', '.join(FORMATS)}")
    if len(report):
        raise CaseError(*report.problems)
    for spans in by_trace.values():
        spans.sort(key=lambda span: (span.start is None, span.start or 0.0))
    return list(by_trace.values())


def _documents(path: Path, report: Report) -> Iterator[tuple[str, Json]]:
    """Return the JSON documents of a file, one or one a line, each with its line."""
    lines = list(read_lines(path, report, LONGEST_LINE))
    if len(report):
        return
    try:
        document = parse("".join(line.text for line in lines))
    except StrictJsonError:
        for row in json_rows(iter(lines), report):
            yield f"line {row.line}: ", row.record
        return
    members = document if isinstance(document, list) else [document]
    for member in members:
        yield "", member


def _spans(document: Json, form: TraceFormat, *, is_listed: bool = False) -> Iterator[Span]:
    """Return the spans of a document: those of its lists, or the document itself with its observations."""
    if not isinstance(document, dict):
        expected = "an object with resourceSpans" if form.is_span_in_list else "an object"
        raise TypeError(f"it is {describe(document)}, expected {expected}")
    lists = [document[key] for key in form.lists if isinstance(document.get(key), list)]
    for member in chain.from_iterable(lists):
        yield from _spans(member, form, is_listed=True)
    if lists:
        return
    if form.is_span_in_list:
        has_id = any(key in document for key in form.trace_id)
        is_span = is_listed and has_id
    else:
        is_span = True
    if is_span:
        trace = _span(document, form)
        yield trace
        for entry in document.get("observations") or ():
            if isinstance(entry, dict):
                yield _span(entry, form, trace.trace_id)


def _span(record: Mapping[str, Any], form: TraceFormat, trace_id: str | None = None) -> Span:
    """Return one record as a span; `trace_id` is that of the trace around it, which is its parent by default."""
    flat = _flat({name: value for name, value in record.items() if name != "attributes"})
    events = [_Event.of(event) for event in record.get("events") or ()]
    attributes = _attributes(record, flat, events, form)
    seconds = record.get("latency")
    return Span(
        trace_id=trace_id or _id_in(flat, form.trace_id),
        span_id=_id_in(flat, SPAN_ID),
        parent_id=str(_first(flat, *PARENT_ID) or "") or trace_id,
        name=str(flat.get("name") or ""),
        start=_instant(flat, START),
        end=_instant(flat, END),
        seconds=seconds if isinstance(seconds, int | float) else None,
        attributes=_joined(attributes),
        feedback=list(_feedback(record, attributes, events)),
    )


class _Event(NamedTuple):
    name: str
    attributes: Mapping[str, Json]

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> _Event:
        return cls(str(event.get("name")), _key_values(event.get("attributes")))

    @property
    def is_evaluation(self) -> bool:
        return self.name == "gen_ai.evaluation.result"


def _attributes(
    record: Mapping[str, Any], flat: Mapping[str, Json], events: Iterable[_Event], form: TraceFormat
) -> Mapping[str, Json]:
    """Return a record's attributes by dotted names; if several places hold a name, the first counts."""
    of_langfuse: dict[str, Json] = {}
    if form is FORMATS["langfuse"]:
        of_langfuse = {name: record[name] for name in OF_LANGFUSE if record.get(name) is not None}
    metadata = {name: value for name, value in flat.items() if name.startswith("metadata.")}
    flattened: dict[str, Json] = {}
    for name, value in flat.items():
        if name.startswith("attributes."):
            flattened[name.removeprefix("attributes.")] = value
    # Messages and documents may be recorded on events.
    of_events = [dict(event.attributes) for event in events if not event.is_evaluation]
    return ChainMap(of_langfuse, metadata, _key_values(record.get("attributes")), flattened, *of_events)


def _feedback(
    record: Mapping[str, Any], attributes: Mapping[str, Json], events: Iterable[_Event]
) -> Iterator[tuple[str, Json]]:
    """Yield name and value of each score that a person or an evaluator gave: an attribute, an event, or in a list."""
    for name in FEEDBACK_KEYS:
        if name in attributes:
            yield "feedback", attributes[name]
    for event in events:
        if event.is_evaluation:
            value = _first(event.attributes, "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value")
            yield str(event.attributes.get("gen_ai.evaluation.name", "")), value
    for name in FEEDBACK_LISTS:
        for score in record.get(name) or ():
            if score:
                value = _first(score.get("result") or score, *FEEDBACK_VALUES)
                yield str(score.get("name", "")), value


def _id_in(flat: Mapping[str, Json], names: Sequence[str]) -> str:
    """Return the first of these ids; KeyError with the last name if there is none."""
    return str(_first(flat, *names) or flat[names[-1]])


def _first(members: Mapping[str, Json], *names: str) -> Json:
    return next((members[name] for name in names if members.get(name) is not None), None)


def _instant(flat: Mapping[str, Json], names: Sequence[str]) -> float | None:
    """Return seconds of the first of these times: nanoseconds, an ISO time, or milliseconds as pandas writes them."""
    name = next((name for name in names if flat.get(name) not in (None, "", 0, "0")), None)
    if name is None:
        return None
    written: Any = flat[name]
    if name.endswith("UnixNano"):
        return int(written) / 1e9
    if not isinstance(written, int | float):
        return datetime.fromisoformat(written).timestamp()
    # 1e11 seconds are the year 5138, and 1e16 milliseconds are further still: larger numbers have a smaller unit.
    if written > 1e16:
        return written / 1e9
    if written > 1e11:
        return written / 1e3
    return float(written)


def _key_values(listed: Json) -> dict[str, Json]:
    """Return `[{"key": …, "value": {"stringValue": …}}]` as an object; one that is an object already stays."""
    if isinstance(listed, dict):
        return _flat(listed)
    return {entry["key"]: _any_value(entry.get("value")) for entry in listed or ()}


def _any_value(value: Json) -> Json:
    match value:
        case {"intValue": content}:
            return int(content)
        case {"arrayValue": content}:
            return [_any_value(member) for member in content.get("values") or ()]
        case {"kvlistValue": content}:
            return _key_values(content.get("values"))
        case {"stringValue": content} | {"doubleValue": content} | {"boolValue": content}:
            return content
    return value


def _flat(value: Mapping[str, Any], above: str = "") -> dict[str, Json]:
    flat: dict[str, Json] = {}
    for name, member in value.items():
        if isinstance(member, dict) and member:
            flat |= _flat(member, f"{above}{name}.")
        elif member is not None:
            flat[f"{above}{name}"] = member
    return flat


_NUMBERED = re.compile(r"(.+?)\.(\d{1,6})\.(.+)")


def _joined(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return attributes with JSON in strings parsed, and `documents.0.document.id` … as a list of objects."""
    numbered: dict[str, dict[int, dict[str, Json]]] = {}
    for name, value in attributes.items():
        spread = _NUMBERED.fullmatch(name) if isinstance(name, str) else None
        if spread is not None:
            list_name = spread[1]
            number = int(spread[2])
            member = spread[3]
            objects = numbered.setdefault(list_name, {})
            objects.setdefault(number, {})[member] = value
    joined: dict[str, Json] = {}
    for name, objects in numbered.items():
        joined[name] = [objects[number] for number in sorted(objects)]
    return joined | {name: parsed(value) for name, value in attributes.items()}


def parsed(value: Json) -> Json:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse(value)
        except StrictJsonError:
            return value
    return value
