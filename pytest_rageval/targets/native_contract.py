"""The native response: converted to and from an `Answer` by the types of the model.

Types are strict, null is absent, unknown fields are kept. Values that a record cannot hold (NaN, lone surrogates, deep
nesting) and all other errors raise a `TargetError` that names path, value and what was expected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from pytest_rageval.errors import TargetError
from pytest_rageval.io.expected import EXTRA
from pytest_rageval.io.messages import Finding, Findings, Path, Unsound, describe, mistyped, shown_value
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.strict_json import MAX_BITS, MAX_DEPTH, StrictJsonError, limits_broken, parse
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.matching.spellings import heading_text
from pytest_rageval.model import NOTHING, Answer, Chunk, Edge, Entity, FolderSelection, Json, Reference, Trace

T = TypeVar("T")


def get_ready() -> None:
    """Build the validators, if not done yet: 20 ms that the first answers need not wait for."""
    _ANSWERS.get_ready()


def answer_from_body(body: bytes, where: str) -> Answer:
    """Read the answer from the body of a native response. Kinds: empty, invalid_json, invalid_response, no_answer."""
    if not body or body.isspace():
        raise TargetError("empty", f"{where}: the response has no body")
    try:
        data = parse(body)
    except StrictJsonError:
        return answer_from_response(data_from_body(body, where), where)
    return _or_target_error(lambda: read_response(data), where)


def data_from_body(body: bytes, where: str) -> Json:
    """Parse a body as JSON in UTF-8, whatever its headers declare. Kinds: invalid_json, invalid_response.

    NaN and lone surrogates stay: not every part of a response is read, and the reader of one reports them.
    """
    try:
        return parse(body)
    except StrictJsonError as error:
        oddity = error.oddities[0]
        if error.kind == "encoding":
            raise TargetError("invalid_json", f"{where}: {error}") from None
        if error.kind == "syntax":
            line, column = error.place(oddity.offset)
            begin = f"the response begins with {shown_value(error.text)}"
            message = f"{where}: invalid JSON at line {line}, column {column}: {oddity.message}; {begin}"
            raise TargetError("invalid_json", message) from None
        if error.kind == "size":
            kind = "invalid_response" if "deep" in oddity.message else "invalid_json"
            raise TargetError(kind, f"{where}: the response {oddity.message}") from None
        data = json.loads(error.text)
        try:
            plain_json(data)
        except Unsound:
            return data
        raise TargetError("invalid_json", f"{where}: invalid JSON: {oddity.message}") from None


def answer_from_response(data: Json, where: str) -> Answer:
    """Convert a native response to an Answer; retrieved chunks and the like are under `debug`."""
    return _or_target_error(lambda: read_response(plain_json(data)), where)


def answer_from_record(data: Json, where: str) -> Answer:
    """Convert an answer record: a native response that may have the fields of `debug` at its top level."""
    return _or_target_error(lambda: read_record(plain_json(data)), where)


def read_response(data: Json) -> Answer:
    """Convert a native response of strict JSON to an Answer; raise Unsound with all of its problems."""
    return _read(data, _RESPONSE)


def read_record(data: Json) -> Answer:
    """Convert an answer record of strict JSON to an Answer; raise Unsound with all of its problems."""
    return _read(data, ANSWER_FIELDS)


def misplaced_fields(answer: Answer) -> list[str]:
    """Return fields at the top level that are only read under `debug`, and are not there."""
    named = [(name, getattr(answer, field)) for name, field in _DEBUG.items() if answer.extra.get(name) is not None]
    return [name for name, value in named if not value]


class LacksAnswer(Unsound):
    """The response lacks an answer altogether; even `"answer": null` would state that there is none."""


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _or_target_error(read: Callable[[], Answer], where: str) -> Answer:
    try:
        return read()
    except Unsound as unsound:
        kind = "no_answer" if isinstance(unsound, LacksAnswer) else "invalid_response"
        first, *others = unsound.findings.first
        subject = "" if first.path else "the response "
        more = f" ({and_more(len(others) + unsound.findings.more)})" if others else ""
        raise TargetError(kind, f"{where}: {subject}{first}{more}") from None


_ANSWERS: RecordReader[Answer] = RecordReader(Answer, takes_whole_floats=True)

_RESPONSE = {"answer": "text", "references": "references", "abstained": "abstained", "abstain_reason": "abstain_reason"}
_DEBUG = {"retrieved_chunks": "chunks"} | {
    name: name for name in ("folder_selection", "latency", "trace", "indexing_coverage", "usage", "versions")
}
ANSWER_FIELDS = _RESPONSE | _DEBUG
"""Field names in the model by their names at a response's top level, under `debug`, and in a record."""
RECORD_FIELDS = frozenset({*ANSWER_FIELDS, "debug"})
"""Keys that an answer record may have at its top level."""


def _read(data: Json, top: Mapping[str, str]) -> Answer:
    members, extra = _members(data, top)
    try:
        answer = _ANSWERS.read(_prepared(members))
    except Unsound as unsound:
        raise Unsound(_as_written(unsound.findings, members, data, top)) from None
    problems = Findings()
    for name, value in _free_parts(answer, members, extra):
        if message := limits_broken(value):
            problems.add((name,), message)
    if problems:
        raise Unsound(_as_written(problems, members, data, top))
    if answer.text is None and answer.chunks is None and not answer.abstained and "answer" not in data:
        raise LacksAnswer(Findings(Finding((), "holds neither 'answer' nor 'retrieved_chunks'")))
    return replace(answer, extra=extra) if extra else answer


def _free_parts(answer: Answer, members: Mapping[str, Json], extra: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield the values without a declared type, by field."""
    yield from extra.items()
    for name in ("folder_selection", "trace", "indexing_coverage", "usage", "versions"):
        if name in members:
            yield name, members[name]
    # Chunks are many and mostly plain: a check of all of them costs as much as reading half of them.
    for name, values in (("chunks", answer.chunks), ("references", answer.references)):
        if extra_ones := [value.extra for value in values or () if value.extra]:
            yield name, extra_ones


def _members(data: Json, top: Mapping[str, str]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the answer's fields, from the top level and `debug`, by their names in the model; and all others."""
    if not isinstance(data, dict):
        raise mistyped(data, "an object")
    debug = data.get("debug")
    if not (debug is None or isinstance(debug, dict)):
        raise Unsound(Findings(Finding(("debug",), f"is {describe(debug)}, expected an object")))
    members = {top[name]: value for name, value in data.items() if value is not None and name in top}
    extra = {name: value for name, value in data.items() if name not in top and name != "debug"}
    others = {}
    for name, value in (debug or NOTHING).items():
        if name not in _DEBUG:
            others[name] = value
        elif value is not None and _DEBUG[name] in members:
            message = f"is {describe(members[_DEBUG[name]])}, expected one of {name} and debug.{name}, not both"
            raise Unsound(Findings(Finding((name,), message)))
        elif value is not None:
            members[_DEBUG[name]] = value
    if others:
        extra["debug"] = others
    latency = members.get("latency")
    if isinstance(latency, dict) and None in latency.values():
        members["latency"] = {phase: duration for phase, duration in latency.items() if duration is not None}
    return members, extra


def _prepared(members: dict[str, Json]) -> dict[str, Json]:
    """Move unknown members of the model's objects under `extra`, and convert edges to objects."""
    prepared = {**members}
    for name, kind in (("chunks", Chunk), ("references", Reference)):
        if isinstance(objects := members.get(name), list):
            prepared[name] = [_apart(each, kind) for each in objects]
    if "folder_selection" in members:
        prepared["folder_selection"] = _apart(members["folder_selection"], FolderSelection)
    if isinstance(members.get("trace"), dict):
        trace = prepared["trace"] = {**_apart(members["trace"], Trace)}
        if isinstance(trace.get("entities"), list):
            trace["entities"] = [_apart(each, Entity) for each in trace["entities"]]
        if isinstance(trace.get("kg_edges"), list):
            trace["kg_edges"] = list(map(_edge, trace["kg_edges"]))
    return prepared


def _apart(value: Json, kind: type) -> Json:
    """Return an object without nulls, with the members unknown to this type under `extra`."""
    if not isinstance(value, dict):
        return value
    names = _FIELDS[kind]
    if isinstance(value.get("heading_path"), (list, dict)) and "heading_path" in names:
        value = {**value, "heading_path": heading_text(value["heading_path"])}
    if value.keys() <= names.keys() and None not in value.values():
        return value
    members = {name: inner for name, inner in value.items() if inner is not None and name in names}
    if others := {name: inner for name, inner in value.items() if name not in names}:
        members[EXTRA] = others
    return members


def _edge(value: Json) -> Json:
    try:
        return Edge.parse(value)._asdict()
    except ValueError:
        return None  # refused later, with a message about the written value


_AN_EDGE = "an edge: 's -p-> o' or {subject, predicate, object}"


def _as_written(
    findings: Findings, members: Mapping[str, Any], data: Mapping[str, Json], top: Mapping[str, str]
) -> Findings:
    """Move findings about members to their places in the response."""
    written = Findings()
    written.more = findings.more
    for path, message, at_key in findings.first:
        if path[:2] == ("trace", "kg_edges") and len(path) == 3:
            message = f"is {describe(members['trace']['kg_edges'][path[2]])}, expected {_AN_EDGE}"
        written.first.append(Finding(_place(path, data, top), message, at_key))
    return written


def _place(path: Path, data: Mapping[str, Json], top: Mapping[str, str]) -> Path:
    name = _NAMES.get(str(path[0]), path[0])
    is_in_debug = name in _DEBUG and (name not in top or data.get(name) is None)
    return ("debug", name, *path[1:]) if is_in_debug else (name, *path[1:])


_NAMES = {ours: theirs for theirs, ours in ANSWER_FIELDS.items()}


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def answer_to_response(answer: Answer) -> dict[str, Json]:
    """Return the native response that reads back as this Answer."""
    extra = dict(answer.extra)
    trace, selection = answer.trace, answer.folder_selection
    debug = {
        "retrieved_chunks": _listed(answer.chunks, _from_chunk),
        "folder_selection": None if selection is None else _present(selection, FolderSelection),
        "latency": dict(answer.latency) or None,
        "trace": None if trace is None else _from_trace(trace),
        "indexing_coverage": answer.indexing_coverage,
        "usage": dict(answer.usage) or None,
        "versions": dict(answer.versions) or None,
    }
    response = {
        "answer": answer.text,
        "references": _listed(answer.references, lambda reference: _present(reference, Reference)),
        "abstained": answer.abstained,
        "abstain_reason": answer.abstain_reason,
        "debug": _without_none(debug) | dict(extra.pop("debug", NOTHING)) or None,
    }
    is_empty = answer.text is None and answer.chunks is None
    return ({"answer": None} if is_empty else {}) | _without_none(response) | extra


def _without_none(members: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def _present(value: Any, kind: type) -> dict[str, Json]:
    """Return the set fields of one value of the model, and its extra ones."""
    members = {
        name: list(member) if type(member) is tuple else member
        for name, member in zip(_FIELDS[kind], _VALUES[kind](value), strict=True)
        if member is not None
    }
    return members | dict(value.extra) if value.extra else members


_FIELDS: Mapping[type, Mapping[str, None]] = {
    kind: dict.fromkeys(field.name for field in fields(kind) if field.name != EXTRA)
    for kind in (Chunk, Reference, Entity, FolderSelection, Trace)
}
_VALUES: Mapping[type, Callable[[Any], tuple[Json, ...]]] = {
    kind: attrgetter(*names) for kind, names in _FIELDS.items()
}


def _listed(values: tuple[T, ...] | None, write: Callable[[T], Json]) -> list[Json] | None:
    return None if values is None else [write(value) for value in values]


def _from_chunk(chunk: Chunk) -> dict[str, Json]:
    written = _present(chunk, Chunk)
    if not chunk.text_truncated:
        del written["text_truncated"]
    return written


def _from_trace(trace: Trace) -> dict[str, Json]:
    written = _present(trace, Trace)
    if trace.entities is not None:
        written["entities"] = [_present(entity, Entity) for entity in trace.entities]
    if trace.kg_edges is not None:
        written["kg_edges"] = [edge._asdict() for edge in trace.kg_edges]
    return written


# ── values that Python code hands over ──────────────────────────────────────────────────────────────────────────


def plain_json(value: Json, path: Path = ()) -> Json:
    """Copy any value as JSON: finite numbers, clean text, at most MAX_DEPTH levels; else raise Unsound."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if not isinstance(value, (int, float, dict, list, tuple)):
        raise not_fitting(path, value, "what JSON can hold")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise not_fitting(path, value, "a number of at most 300 digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise not_fitting(path, value, "a finite number")
    if isinstance(value, (int, float)):
        return value
    if len(path) >= MAX_DEPTH:
        raise not_fitting(path, value, f"no more than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {_text(name, path): plain_json(inner, (*path, name)) for name, inner in value.items()}
    return [plain_json(item, (*path, position)) for position, item in enumerate(value)]


def _text(value: Json, path: Path) -> str:
    """Return the string if UTF-8 can encode it."""
    if not isinstance(value, str):
        raise not_fitting(path, value, "a string")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise not_fitting(path, value, "text without lone surrogates")
    return value


def not_fitting(path: Path, value: object, expected: str) -> Unsound:
    """Return the error for an unexpected value at a path."""
    quoted = "missing" if value is None else shown_value(value)
    return Unsound(Findings(Finding(path, f"is {quoted}, expected {expected}")))
