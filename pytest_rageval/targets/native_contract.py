"""The native response: converted to and from an `Answer` by the types of the model.

Types are strict, null is absent, unknown fields are kept. Values that a record cannot hold (NaN, lone surrogates, deep
nesting) and all other errors raise a `TargetError` that names path, value and what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import ValidationError

from pytest_rageval.errors import TargetError
from pytest_rageval.io.expected import EXTRA
from pytest_rageval.io.messages import Finding, Findings, Path, Unsound, describe, mistyped, shown_value
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.strict_json import StrictJsonError, limits_broken, parse, plain_json
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.matching.places import in_rank_order
from pytest_rageval.matching.spellings import heading_text
from pytest_rageval.model import NOTHING, Answer, Chunk, Entity, FolderSelection, Json, Reference, ToolCall, Trace
from pytest_rageval.model.versions import A_VERSION, VERSION_NAMES, is_version
from pytest_rageval.targets.blank_answers import sign_of_no_answer, without_thoughts
from pytest_rageval.targets.native_shapes import Debug, FlatResponse, NativeResponse
from pytest_rageval.targets.tool_calls import may_hold_calls, with_contract_calls

T = TypeVar("T")
R = TypeVar("R", bound=NativeResponse)


def get_ready() -> None:
    """Build the validators, if not done yet: 20 ms that the first answers need not wait for."""
    _RESPONSES.get_ready()


def answer_from_body(body: bytes, where: str) -> Answer:
    """Read the answer from the body of a native response. Kinds: empty, invalid_json, invalid_response, no_answer."""
    if not body or body.isspace():
        raise TargetError("empty", f"{where}: the response has no body")
    try:
        data = parse(body)
    except StrictJsonError:
        return answer_from_response(data_from_body(body, where), where)
    return _or_target_error(lambda: _read(data, _RESPONSES, body.decode("utf-8-sig")), where)


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
        # Python's parser accepts NaN and lone surrogates, which the strict one has just refused.
        data = json.loads(error.text)
        try:
            plain_json(data)
        except Unsound:
            return data
        raise TargetError("invalid_json", f"{where}: invalid JSON: {oddity.message}") from None


def answer_from_response(data: Json, where: str) -> Answer:
    """Convert a native response to an Answer."""
    return _or_target_error(lambda: read_response(plain_json(data)), where)


def answer_from_line(data: Json, where: str) -> Answer:
    """Convert a native response in a line that a run wrote, which is strict JSON already."""
    return _or_target_error(lambda: read_response(data), where)


def answer_from_record(data: Json, where: str) -> Answer:
    """Convert an answer record: a native response that may have the fields of `debug` at its top level."""
    return _or_target_error(lambda: _read(plain_json(data), _RECORDS), where)


def read_response(data: Json) -> Answer:
    """Convert a native response of strict JSON to an Answer; raise Unsound with all of its problems."""
    return _read(data, _RESPONSES)


def misplaced_fields(answer: Answer) -> list[str]:
    """Return fields at the top level that are only read under `debug`, and are not there."""
    if not answer.extra:
        return []
    named = [name for name in _FIELDS[Debug] if answer.extra.get(name) is not None]
    return [name for name in named if not getattr(answer, _NAMES.get(name, name))]


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


_NAMES = {"retrieved_chunks": "chunks"}
"""Fields of the model whose names differ."""
_OBJECTS: Mapping[str, type] = {
    "debug": Debug,
    "retrieved_chunks": Chunk,
    "references": Reference,
    "folder_selection": FolderSelection,
    "trace": Trace,
    "entities": Entity,
    "tool_calls": ToolCall,
}
"""The objects with unknown members, by the name of the member that holds one or several."""
_WHOLE = frozenset({"rank", "start_line", "end_line", "token_count"})


class ResponseReader(RecordReader[R]):
    """Reads one form of responses; unknown members of its objects are kept under `extra`."""

    def __init__(self, form: type[R]) -> None:
        super().__init__(form)
        self._form = form
        _FIELDS[form] = _names_of(form)

    def response(self, data: dict[str, Json], text: str | None = None) -> R:
        """Read a response; raise Unsound with all of its problems. `text`: its JSON, if it is at hand."""
        if may_hold_calls(data):
            data = with_contract_calls(data)
            text = None
        if text is None or '"extra"' in text:  # our own name, which means nothing in a response
            response = self.read(_apart(data, self._form))
        else:
            response = self.read(data, text=text)
        free = [(name, value) for name, value in data.items() if type(value) in (dict, list) and name not in _TYPED]
        if free or response.debug:
            problems = Findings()
            for path, value in _free_parts(free, data.get("debug"), response):
                if message := limits_broken(value):
                    problems.add(path, message)
            if problems:
                raise Unsound(problems)
        return response

    def checked(self, text: str | bytes) -> R:
        """Read a text that was found sound before; bytes hold no key `extra`."""
        try:
            if isinstance(text, bytes) or '"extra"' not in text:
                response: R = self._validate(text)
                # Calls may be in another form, and hold chunks in their results. `messages` are unknown to the form.
                if response.tool_calls is None:
                    return response
        except ValidationError:
            pass
        return self.read(_apart(with_contract_calls(parse(text)), self._form))

    def _mended(self, value: Json, _error: object) -> Json:
        return _apart(value, self._form)


_TYPED = frozenset({"debug", "retrieved_chunks", "references", "latency", "contexts"})
"""Members without free parts, or whose free parts are looked at by themselves."""


def _free_parts(free: list[tuple[str, Json]], debug: Any, response: NativeResponse) -> Iterator[tuple[Path, Json]]:
    """Yield the values without a declared type."""
    for name, value in free:
        yield (name,), value
    for name, value in (debug or NOTHING).items():
        if name not in _TYPED:
            yield ("debug", name), value
    # Chunks are many and mostly plain: a check of all of them costs as much as reading half of them.
    chunks = getattr(response, "retrieved_chunks", None)
    if not chunks and response.debug:
        chunks = response.debug.retrieved_chunks
    if extra_of_chunks := [chunk.extra for chunk in chunks or () if chunk.extra]:
        yield ("retrieved_chunks",), extra_of_chunks
    if extra_of_references := [reference.extra for reference in response.references or () if reference.extra]:
        yield ("references",), extra_of_references


def _apart(value: Json, kind: type) -> Json:
    """Return the value with the members unknown to a type under `extra`, without nulls and with 3.0 as 3."""
    if isinstance(value, list):
        return [_apart(each, kind) for each in value]
    if not isinstance(value, dict):
        return value
    names = _FIELDS[kind]
    members: dict[str, Json] = {}
    for name, inner in value.items():
        if name not in names:
            members.setdefault(EXTRA, {})[name] = inner
        elif name in _OBJECTS:
            members[name] = _apart(inner, _OBJECTS[name])
        elif name == "heading_path" and isinstance(inner, (list, dict)):
            members[name] = heading_text(inner)
        elif inner is not None:
            is_whole = name in _WHOLE and isinstance(inner, float) and inner % 1 == 0
            # JavaScript and some JSON libraries have no whole numbers and write 3.0.
            members[name] = int(inner) if is_whole else inner
    return members


def _read(data: Json, reader: ResponseReader[Any], text: str | None = None) -> Answer:
    if not isinstance(data, dict):
        raise mistyped(data, "an object")
    response = reader.response(data, text)
    answer = answer_in(response, response.extra)
    if answer.text is None and answer.chunks is None and not answer.abstained and "answer" not in data:
        found = f"holds neither 'answer' nor 'retrieved_chunks': {shown_value(data)}"
        raise LacksAnswer(Findings(Finding((), found)))
    if answer.text is not None and not answer.text.strip() and answer.abstained is None:
        # A blank answer counts as an abstention, and must not do so if the system failed.
        sign = sign_of_no_answer({**answer.extra, "tool_calls": data.get("tool_calls")})
        if sign is not None:
            raise LacksAnswer(Findings(Finding((), f"holds a blank answer, and {sign}")))
    return answer


def answer_in(response: NativeResponse, extra: Mapping[str, Json]) -> Answer:
    """Return the answer in a response; raise Unsound if it holds a member of `debug` twice."""
    debug = response.debug or _NO_DEBUG
    parts = _DEBUG_PARTS(debug)
    flat = _DEBUG_PARTS(response) if isinstance(response, FlatResponse) else _NO_PARTS
    if flat != _NO_PARTS and parts == _NO_PARTS:
        parts = flat
    elif flat != _NO_PARTS:
        pairs = list(zip(_FIELDS[Debug], flat, parts, strict=True))
        for name, part, other in pairs:
            if part is not None and other is not None:
                message = f"is {describe(other)}, expected one of {name} and debug.{name}, not both"
                raise Unsound(Findings(Finding((name,), message)))
        parts = tuple([other if part is None else part for _, part, other in pairs])
    chunks, selection, latency, trace, coverage, usage, versions = parts
    if versions:
        _check_versions(versions, ("versions",) if _has(response, "versions") else ("debug", "versions"))
    # A phase that is null was not measured: as 0 ms it would lower the mean.
    if latency and None in latency.values():
        latency = {phase: duration for phase, duration in latency.items() if duration is not None}
    if debug.extra:
        extra = {**extra, "debug": debug.extra}
    text, extra = without_thoughts(response.answer, extra)
    return Answer(
        text=text,
        references=response.references,
        abstained=response.abstained,
        abstain_reason=response.abstain_reason,
        tool_calls=response.tool_calls,
        chunks=chunks_of_searches(response.tool_calls) if chunks is None else chunks,
        folder_selection=selection,
        trace=None if trace is None else _to_trace(trace),
        latency=latency or {},
        usage=usage or {},
        versions=versions or {},
        indexing_coverage=coverage,
        extra=extra,
    )


def chunks_of_searches(calls: tuple[ToolCall, ...] | None) -> tuple[Chunk, ...] | None:
    """Return what all searches retrieved, each chunk once: the first one of each search, then the second ones.

    None without a search. It stands for the retrieved chunks of an agent that reports its searches alone.
    """
    searches = [call.retrieved_chunks for call in calls or () if call.retrieved_chunks is not None]
    if not searches:
        return None
    ranked: list[tuple[int, Chunk]] = []
    for retrieved in searches:
        ranked += enumerate(in_rank_order(retrieved))
    ranked.sort(key=lambda entry: entry[0])  # stable: of one rank, in the order of the searches
    chunks: dict[tuple[str | None, ...], Chunk] = {}
    for _, chunk in ranked:
        identity = (chunk.chunk_id, chunk.doc_id, chunk.rel_path, chunk.heading_path, chunk.text)
        # The rank within its search is none within all of them.
        chunks.setdefault(identity, replace(chunk, rank=None))
    return tuple(chunks.values())


def _to_trace(reported: Any) -> Trace:
    return Trace(**{name: getattr(reported, name) for name in (*_FIELDS[Trace], EXTRA)})


_NO_DEBUG = Debug()


def _has(response: NativeResponse, name: str) -> bool:
    """Return True if a response has this member of `debug` at its top level."""
    return getattr(response, name, None) is not None


def _check_versions(versions: Mapping[str, Json], place: Path) -> None:
    """Raise Unsound for a version that is none: all later readers count on a text or a number."""
    for name in VERSION_NAMES:
        version = versions.get(name)
        if version is not None and not is_version(version):
            raise Unsound(Findings(Finding((*place, name), f"is {describe(version)}, expected {A_VERSION}")))


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def answer_to_response(answer: Answer, *, keeps_objects: bool = False) -> dict[str, Json]:
    """Return the native response that reads back as this Answer.

    `keeps_objects` leaves chunks and references without members of their own to the writer: half of the time.
    """
    extra = dict(answer.extra)
    trace = answer.trace
    selection = answer.folder_selection
    debug = {
        "retrieved_chunks": _all_written(answer.chunks, keeps_objects=keeps_objects),
        "folder_selection": None if selection is None else _present(selection),
        "latency": answer.latency or None,
        "trace": None if trace is None else _from_trace(trace),
        "indexing_coverage": answer.indexing_coverage,
        "usage": answer.usage or None,
        "versions": answer.versions or None,
    }
    response = {
        "answer": answer.text,
        "references": _all_written(answer.references, keeps_objects=keeps_objects),
        "abstained": answer.abstained,
        "abstain_reason": answer.abstain_reason,
        "tool_calls": _all_written(answer.tool_calls, keeps_objects=False),
        "debug": _without_none(debug) | extra.pop("debug", NOTHING) or None,
    }
    members = _without_none(response) | extra
    if answer.text is None and answer.chunks is None:  # else nothing would show that it is an answer
        return {"answer": None, **members}
    return members


def _all_written(values: tuple[Any, ...] | None, *, keeps_objects: bool) -> tuple[Json, ...] | None:
    if values is None or (keeps_objects and not any(each.extra for each in values)):
        return values
    return tuple(map(_present, values))


def _without_none(members: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def _present(value: Any) -> dict[str, Json]:
    """Return the set fields of one value of the model, and its extra ones."""
    names = _names_of(value.__class__)
    members: dict[str, Json] = {name: member for name in names if (member := getattr(value, name)) is not None}
    if members.get("text_truncated") is False:
        del members["text_truncated"]
    if isinstance(value, ToolCall) and value.retrieved_chunks is not None:
        members["retrieved_chunks"] = _all_written(value.retrieved_chunks, keeps_objects=False)
    members |= value.extra
    return members


def _names_of(kind: type) -> Mapping[str, None]:
    return dict.fromkeys(member.name for member in fields(kind) if member.name != EXTRA)


_FIELDS: dict[type, Mapping[str, None]] = {
    kind: _names_of(kind) for kind in (Debug, Chunk, Reference, Entity, FolderSelection, Trace, ToolCall)
}
_DEBUG_PARTS: Callable[[Any], tuple[Any, ...]] = attrgetter(*_FIELDS[Debug])
_NO_PARTS = _DEBUG_PARTS(_NO_DEBUG)
_RESPONSES = ResponseReader(NativeResponse)
_RECORDS = ResponseReader(FlatResponse)
RECORD_FIELDS = _FIELDS[FlatResponse].keys()
"""Keys that an answer record may have at its top level."""


def _from_trace(trace: Trace) -> dict[str, Json]:
    written = _present(trace)
    if trace.entities is not None:
        written["entities"] = [*map(_present, trace.entities)]
    if trace.kg_edges is not None:
        written["kg_edges"] = [edge._asdict() for edge in trace.kg_edges]
    return written
