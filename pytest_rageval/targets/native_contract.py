"""What does a response say, and is it what the contract allows? The native response to and from `Answer`.

Types are strict, null is absent, unknown fields are kept, and nothing gets in that a record could not hold: no NaN, no
lone surrogates, no endless nesting. Anything else is a `TargetError` that names path, value and what was expected.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pytest_rageval.errors import TargetError
from pytest_rageval.model import NOTHING, Answer, Chunk, Edge, Entity, FolderSelection, Json, Reference, Trace
from pytest_rageval.targets.values import (
    Reader,
    Wrong,
    an_object,
    claim,
    fields,
    free,
    list_of,
    number,
    object_of,
    plain_json,
    shown_value,
    text,
    whole,
)

T = TypeVar("T")


def answer_from_body(body: bytes, where: str) -> Answer:
    """The answer in the body of a native response. Kinds: empty, invalid_json, invalid_response."""
    if not body or body.isspace():
        raise TargetError("empty", f"{where}: the response has no body")
    return answer_from_response(data_from_body(body, where), where)


def data_from_body(body: bytes, where: str) -> Json:
    """A body as JSON, in UTF-8 whatever its headers claim."""
    try:
        return json.loads(body.removeprefix(BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise TargetError("invalid_json", f"{where}: the response is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        message = f"{where}: invalid JSON at {place}: {error.msg}; the response begins with {shown_value(error.doc)}"
        raise TargetError("invalid_json", message) from None
    except RecursionError:
        raise TargetError("invalid_response", f"{where}: the response is nested too deep") from None
    except ValueError:
        raise TargetError("invalid_json", f"{where}: invalid JSON: it holds a number of thousands of digits") from None


def answer_from_response(data: Json, where: str) -> Answer:
    """A native response as an Answer: what the system found stands under `debug`."""
    return _checked(lambda: _answer(data, _RESPONSE), where)


def answer_from_record(data: Json, where: str) -> Answer:
    """An answer record: the native response, where the fields of `debug` may also stand at the top level."""
    return _checked(lambda: _answer(data, _RECORD), where)


def answer_from_text(written: str, where: str) -> Answer:
    """An answer of which nothing but its text is known."""
    return _checked(lambda: Answer(text=text(written, "answer")), where)


def answer_to_response(answer: Answer) -> dict[str, Json]:
    """The native response that reads back as this Answer."""
    extra = dict(answer.extra)
    trace, selection = answer.trace, answer.folder_selection
    debug = {
        "retrieved_chunks": _listed(answer.chunks, _from_chunk),
        "folder_selection": None if selection is None else _present(selection, _FOLDERS, selection.extra),
        "latency": dict(answer.latency) or None,
        "trace": None if trace is None else _from_trace(trace),
        "indexing_coverage": answer.indexing_coverage,
        "usage": dict(answer.usage) or None,
        "versions": dict(answer.versions) or None,
    }
    response = {
        "answer": answer.text,
        "references": _listed(answer.references, lambda one: _present(one, _REFERENCE, one.extra)),
        "abstained": answer.abstained,
        "abstain_reason": answer.abstain_reason,
        "debug": _without_none(debug) | dict(extra.pop("debug", NOTHING)) or None,
    }
    return _without_none(response) | extra


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _checked(read: Callable[[], Answer], where: str) -> Answer:
    try:
        answer = read()
    except Wrong as wrong:
        raise TargetError("invalid_response", f"{where}: {wrong}") from None
    if answer.text is None and answer.chunks is None and not answer.abstained:
        raise TargetError("invalid_response", f"{where}: holds neither 'answer' nor 'retrieved_chunks'")
    return answer


def _answer(data: Json, readers: Mapping[str, Reader[Any]]) -> Answer:
    found = fields(data, readers)
    debug: dict[str, Any] = found.pop("debug", {})
    if twice := [name for name in debug if name in found and name != "extra"]:
        name = twice[0]
        raise Wrong(name, data[name], f"one of {name} and debug.{name}, not both")
    if more := debug.pop("extra", NOTHING):
        found["extra"] = {**found["extra"], "debug": more}
    found |= debug
    for ours, theirs in _RENAMED.items():
        if theirs in found:
            found[ours] = found.pop(theirs)
    return Answer(**({"latency": NOTHING, "usage": NOTHING, "versions": NOTHING} | found))


def _edge(data: Json) -> Edge:
    try:
        edge = Edge.parse(data)
    except ValueError:
        raise Wrong("", data, "an edge: 's -p-> o' or {subject, predicate, object}") from None
    return Edge(*map(text, edge))


def _entity(data: Json) -> Entity:
    found = fields(data, _ENTITY)
    if "id" not in found:
        raise Wrong("id", None, "a string")
    return Entity(**found)


def _latency(data: dict[str, Json]) -> dict[str, float]:
    return {text(name): number(value, name) for name, value in data.items() if value is not None}


_RENAMED = {"text": "answer", "chunks": "retrieved_chunks"}

_CHUNK: dict[str, Reader[Any]] = {
    "chunk_id": text, "doc_id": text, "rel_path": text, "heading_path": text, "text": text, "text_truncated": claim,
    "rank": whole, "score_vector": number, "score_lexical": number, "score_final": number,
    "start_line": whole, "end_line": whole, "token_count": whole,
}  # fmt: skip
_REFERENCE: dict[str, Reader[Any]] = {
    "chunk_id": text, "rel_path": text, "heading_path": text, "doc_id": text, "text": text,
}  # fmt: skip
_ENTITY: dict[str, Reader[Any]] = {"id": text, "type": text, "text": text}
_FOLDERS: dict[str, Reader[Any]] = {"folders": list_of(text), "reasoning": text, "fallback": claim}
_TRACE: dict[str, Reader[Any]] = {
    "entities": list_of(_entity),
    "concepts": list_of(text),
    "constraints": list_of(text),
    "kg_entities": list_of(text),
    "kg_edges": list_of(_edge),
    "inferences": list_of(lambda one: free(an_object(one))),
    "entity_types": object_of(free),
    "violations": list_of(plain_json),
}
_DEBUG: dict[str, Reader[Any]] = {
    "retrieved_chunks": list_of(lambda one: Chunk(**fields(one, _CHUNK))),
    "folder_selection": object_of(lambda one: FolderSelection(**fields(one, _FOLDERS))),
    "latency": object_of(_latency),
    "trace": object_of(lambda one: Trace(**fields(one, _TRACE))),
    "indexing_coverage": object_of(free),
    "usage": object_of(free),
    "versions": object_of(free),
}
_RESPONSE: dict[str, Reader[Any]] = {
    "answer": text,
    "references": list_of(lambda one: Reference(**fields(one, _REFERENCE))),
    "abstained": claim,
    "abstain_reason": text,
    "debug": object_of(lambda one: fields(one, _DEBUG)),
}
_RECORD = _RESPONSE | _DEBUG
RECORD_FIELDS = frozenset(_RECORD)
"""What an answer record may hold at its top level."""


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def _without_none(fields: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _present(value: object, names: Iterable[str], extra: Mapping[str, Json]) -> dict[str, Json]:
    found = _without_none({name: getattr(value, name) for name in names})
    return {name: list(part) if isinstance(part, tuple) else part for name, part in found.items()} | dict(extra)


def _listed(values: tuple[T, ...] | None, write: Callable[[T], Json]) -> list[Json] | None:
    return None if values is None else [write(value) for value in values]


def _from_chunk(chunk: Chunk) -> dict[str, Json]:
    written = _present(chunk, _CHUNK, chunk.extra)
    if not chunk.text_truncated:
        del written["text_truncated"]
    return written


def _from_trace(trace: Trace) -> dict[str, Json]:
    written = _present(trace, _TRACE, trace.extra)
    if trace.entities is not None:
        written["entities"] = [_present(one, _ENTITY, one.extra) for one in trace.entities]
    if trace.kg_edges is not None:
        written["kg_edges"] = [edge._asdict() for edge in trace.kg_edges]
    return written
