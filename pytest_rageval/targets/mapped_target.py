"""A JSON API with its own format: a template builds the request, expressions find the answer.

Expressions are JMESPath (jmespath.org/specification.html), checked before use. The user writes them; responses are only
searched, never executed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.expected import EXTRA, inner_type, is_object, known_keys
from pytest_rageval.io.jmespaths import compiled
from pytest_rageval.io.masking import public_url
from pytest_rageval.io.messages import Path, Unsound, not_fitting, shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.llm.credentials import with_target_token
from pytest_rageval.model import Answer, AskRequest, Json, Trace
from pytest_rageval.targets.blank_answers import sign_of_no_answer
from pytest_rageval.targets.native_contract import RECORD_FIELDS, answer_from_record, data_from_body
from pytest_rageval.targets.native_shapes import FlatResponse
from pytest_rageval.targets.target import USUAL, BaseTarget, Connection, conversation_id_of, messages_of_chat
from pytest_rageval.text import counted

if TYPE_CHECKING:
    from pytest_rageval.config.tables import TargetMapping


# `{name}`; `{{name}}` is a literal `{name}`; other braces are literal.
_PLACE = re.compile(r"\{(\{[A-Za-z_][\w.-]*\})\}|\{([A-Za-z_][\w.-]*)\}")
_ABSENT = object()
PARAMS = "params."


def template_problems(template: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield a template's problems, one line each: values outside JSON, unknown placeholders, a missing question."""
    used = set()
    for path, leaf in _leaves(template, place):
        if not isinstance(leaf, str | int | float) or (isinstance(leaf, float) and not math.isfinite(leaf)):
            yield f"{path} is {shown_value(leaf)}, expected what JSON can hold"
        for name in _placeholder_names(leaf):
            used.add(name)
            if name not in _VALUES and not name.startswith(PARAMS):
                remedy = f"; known are {', '.join(_VALUES)} and {PARAMS}NAME (for the text itself write {{{{{name}}}}})"
                yield f"{path}: {{{name}}} stands for nothing{did_you_mean(name, _VALUES, remedy)}"
    if not used & {"question", "messages"}:
        yield f"{place} sends no question; put '{{question}}' or '{{messages}}' where it belongs"


def filled(template: Mapping[str, Any], request: AskRequest) -> dict[str, Json]:
    """Return the body to send.

    A string that is one placeholder becomes its value of any type, or is left out if there is none; within a longer
    string the value becomes text. Parameters without a placeholder are set at the top level and override it.
    """
    placed = _placed(template)
    body: dict[str, Json] = _filled(template, request)
    return body | {name: value for name, value in request.params.items() if name not in placed}


def _placed(template: Mapping[str, Any]) -> set[str]:
    """Return the names of the parameters that have a placeholder."""
    placed: set[str] = set()
    for _, leaf in _leaves(template, ""):
        names = _placeholder_names(leaf)
        placed.update(name.removeprefix(PARAMS) for name in names if name.startswith(PARAMS))
    return placed


def history_gap(template: Mapping[str, Any]) -> str:
    """Return why this request sends no earlier turns, with the remedy; '' if it sends them."""
    if not _sent(template).isdisjoint(("history", "messages", "conversation_id")):
        return ""
    remedy = f'add one of them to {PLACE}.request, as in messages = "{{messages}}"'
    return f"the request sends neither {{history}} nor {{messages}}; {remedy}"


def _sent(template: Mapping[str, Any]) -> set[str]:
    """Return the names of all placeholders of a request."""
    names: set[str] = set()
    for _, leaf in _leaves(template, ""):
        names.update(_placeholder_names(leaf))
    return names


def _leaves(part: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of everything that is neither object nor list."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _leaves(value, f"{path}.{key}")
    elif isinstance(part, list | tuple):
        for position, value in enumerate(part):
            yield from _leaves(value, f"{path}[{position}]")
    else:
        yield path, part


def _placeholder_names(part: Any) -> list[str]:
    if not isinstance(part, str):
        return []
    return [match[2] for match in _PLACE.finditer(part) if match[2]]


def _filled(part: Any, request: AskRequest) -> Any:
    if isinstance(part, str):
        placeholder = _PLACE.fullmatch(part)
        if placeholder and placeholder[2]:
            return _value(placeholder[2], request)
        return _PLACE.sub(lambda match: _as_text(match, request), part)
    if isinstance(part, Mapping):
        values = ((key, _filled(value, request)) for key, value in part.items())
        return {key: value for key, value in values if value is not _ABSENT}
    if isinstance(part, list | tuple):
        items = (_filled(item, request) for item in part)
        return [value for value in items if value is not _ABSENT]
    return part


def _as_text(match: re.Match[str], request: AskRequest) -> str:
    if match[1]:
        return match[1]
    value = _value(match[2], request)
    if value is _ABSENT:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(name: str, request: AskRequest) -> Any:
    if name.startswith(PARAMS):
        return request.params.get(name.removeprefix(PARAMS), _ABSENT)
    value = _VALUES[name](request)
    return _ABSENT if value is None else value


_VALUES: Mapping[str, Callable[[AskRequest], Json]] = {
    "question": lambda request: request.question,
    "k": lambda request: request.k,
    "history": lambda request: None if request.history is None else [turn._asdict() for turn in request.history],
    "messages": messages_of_chat,
    "conversation_id": conversation_id_of,
    "vaults": lambda request: list(request.vaults) or None,
    "folders": lambda request: list(request.folders) or None,
    "contexts": lambda request: None if request.contexts is None else list(request.contexts),
}
"""Placeholders by name. `history` is a list of `{role, text}`, `messages` of `{role, content}`, the question last."""


PLACE = "target.mapping"
# Only an abstaining answer has it.
_OFTEN_ABSENT = frozenset({"abstain_reason"})


def checked_mapping(mapping: TargetMapping) -> Table:
    """Return the response's compiled expressions; SettingsError names every problem of the mapping, one line each."""
    problems = list(template_problems(mapping.request, f"{PLACE}.request"))
    try:
        table = response_table(mapping.response, f"{PLACE}.response")
    except SettingsError as error:
        raise SettingsError(*problems, *error.problems) from None
    if problems:
        raise SettingsError(*problems)
    return table


class MappedTarget(BaseTarget):
    """Queries a server by its mapping. `name` is its URL without credentials.

    The mapping's path is appended to the URL, whose own path and query are kept.
    """

    takes_turns = True

    def __init__(self, url: str, mapping: TargetMapping, connection: Connection = USUAL) -> None:
        self.name = public_url(url)
        self.url = url
        self._mapping = mapping
        self._response = checked_mapping(mapping)
        self.keeps_conversations = "conversation_id" in _sent(mapping.request)
        self.without_history = history_gap(mapping.request)
        self._without_history = 0
        # Without a path in the mapping the URL is used up to its last slash: servers distinguish /ask from /ask/.
        last_slash = "/" if urlsplit(url).path.endswith("/") else ""
        self._address = endpoint(url, mapping.path or last_slash)
        self._where = f"{mapping.method} {public_url(self._address)}"
        self._answers = 0
        self._found: set[str] = set()
        self._unfound_parts = dict(self._response.parts())
        self._client = SlottedClient(
            headers=with_target_token(connection.headers, connection.environment), **connection.of_client
        )

    @property
    def notes(self) -> list[str]:  # type: ignore[override] # because it is known at the end
        """Return mapped fields that were never found; their metrics are not applicable, perhaps because of a typo."""
        if not self._answers:
            return []
        notes: list[str] = []
        if self._without_history:
            many = counted(self._without_history, "question was", "questions were")
            notes.append(f"{many} asked without what was said before: {self.without_history}")
        unfound = self._response.fields.keys() - self._found - _OFTEN_ABSENT
        nowhere = f"found nothing in any of {self._answers} responses"
        # Each item has a part that was found: a field of which none was found had only empty lists.
        mapped = dict(self._response.parts())
        with_items = {field for name, field in mapped.items() if name not in self._unfound_parts}
        parts = [name for name, field in self._unfound_parts.items() if field in with_items]
        names = sorted([*unfound, *parts])
        return [*notes, *(f"{PLACE}.response.{name} {nowhere}" for name in names)]

    async def ask(self, request: AskRequest) -> Answer:
        """Answer one question; raise TargetError if no usable answer arrives."""
        if request.history and self.without_history:
            self._without_history += 1
        body = filled(self._mapping.request, request)
        try:
            reply = await self._client.request(self._mapping.method, self._address, json=body)
        except HttpFailure as failure:
            raise TargetError(failure.kind, str(failure), status=failure.status) from None
        if not reply.body.strip():
            raise TargetError("empty", f"{self._where}: the response has no body")
        return self._answer(data_from_body(reply.body, self._where))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _answer(self, data: Json) -> Answer:
        try:
            values: dict[str, Any] = self._response.find(data, ()) or {}
        except Unsound as unsound:
            raise TargetError("invalid_response", f"{self._where}: mapped {unsound}") from None
        self._answers += 1
        self._found |= values.keys()
        if self._unfound_parts:
            for name in found_parts(self._response, values):
                self._unfound_parts.pop(name, None)
        answer = self._response.fields.get("answer")
        holds_none = values.keys().isdisjoint(("answer", "retrieved_chunks")) and values.get("abstained") is not True
        # A reply without the mapped answer is a wrong mapping or a failed system, and no abstention.
        if isinstance(answer, Expression) and holds_none:
            message = f"{self._where}: {PLACE}.response.answer {answer.written!r} finds nothing in the response"
            raise TargetError("no_answer", message)
        # A tool call or an error also leaves the text blank: taken for an abstention, it would pass unanswerable cases.
        is_blank = isinstance(values.get("answer"), str) and not values["answer"].strip()
        if is_blank and values.get("abstained") is None and (sign := sign_of_no_answer(data)) is not None:
            raise TargetError("no_answer", f"{self._where}: the mapped answer is blank, and {sign}")
        return answer_from_record(values, f"{self._where}: mapped")


# ── expressions ───────────────────────────────────────────────────────────────────────────────────────────────────────

EACH = "each"
"""The key of a table whose value finds a list; the table's other expressions then apply to each item."""


class Expression:
    """One JMESPath expression. Raises SettingsError if it is invalid."""

    def __init__(self, written: str, place: str) -> None:
        self.written = written
        try:
            self._compiled = compiled(written)
        except ValueError as error:
            raise SettingsError(f"{place} is {shown_value(written)}, no JMESPath expression: {error}") from None

    def find(self, data: Json, path: Path) -> Json:
        """Return the value found, None if nothing is; raise Unsound if the response has an unsuitable type."""
        try:
            return self._compiled.search(data)
        except Exception as error:  # noqa: BLE001 - a library's interpreter over any data: it concerns this case alone
            reason = str(error).splitlines() or [type(error).__name__]
            raise not_fitting(path, self.written, f"an expression that fits the response: {reason[0][:200]}") from None


@dataclass(frozen=True, slots=True)
class Table:
    """An object, or one for each item of a list, with the values that its expressions find."""

    fields: Mapping[str, Expression | Table]
    each: Expression | None = None

    def parts(self) -> Iterator[tuple[str, str]]:
        """Yield the parts of mapped fields, such as `retrieved_chunks.rel_path`, each with its field."""
        for field, part in self.fields.items():
            if isinstance(part, Table):
                yield from ((f"{field}.{name}", field) for name in part.fields)

    def find(self, data: Json, path: Path) -> Json:
        """Return the values found; None if there are none."""
        if self.each is None:
            return self._object(data, path)
        items = self.each.find(data, path)
        if not isinstance(items, list):
            return items
        objects = []
        for position, item in enumerate(items):
            place = (*path, position)
            members = self._object(item, place)
            if members is None:
                raise not_fitting(place, item, f"an item in which one of {', '.join(self.fields)} is found as mapped")
            objects.append(members)
        return objects

    def _object(self, data: Json, path: Path) -> dict[str, Json] | None:
        members = {name: part.find(data, (*path, name)) for name, part in self.fields.items()}
        return {name: value for name, value in members.items() if value is not None} or None


def found_parts(table: Table, values: Mapping[str, Json]) -> Iterator[str]:
    """Yield the parts of mapped fields that stand in the values found, such as `retrieved_chunks.rel_path`."""
    for field, part in table.fields.items():
        value = values.get(field)
        if not isinstance(part, Table) or value is None:
            continue
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Mapping):
                yield from (f"{field}.{name}" for name in item)


def response_table(response: Mapping[str, Any], place: str) -> Table:
    """Return the compiled expressions of a mapping; SettingsError names every problem, one line each."""
    problems: list[str] = []
    table = _table(response, place, _RESPONSE, problems, is_list=False)
    if not response.keys() & {"answer", "retrieved_chunks"}:
        problems.append(f"{place} finds neither 'answer' nor 'retrieved_chunks'; map one of them")
    if problems:
        raise SettingsError(*problems)
    return table


# ── what may be mapped ────────────────────────────────────────────────────────────────────────────────────────


_RESPONSE: Mapping[str, Any] = {name: inner_type(FlatResponse, name) for name in RECORD_FIELDS if name != "debug"} | {
    "trace": Trace
}


def _inner_fields(of: Any) -> Mapping[str, Any] | None:
    """Return the fields that a table may map for a value of this type, with their types; None if any are allowed."""
    names = known_keys(of)
    return {name: inner_type(of, name) for name in names if name != EXTRA} if names else None


def _table(
    written: Mapping[str, Any], place: str, names: Mapping[str, Any] | None, problems: list[str], *, is_list: bool
) -> Table:
    """Compile a table that may map these fields, or any, of an object or of each object of a list."""
    compiled: dict[str, Expression | Table] = {}
    each = None
    if is_list and EACH not in written:
        problems.append(f"{place}.{EACH} is missing: the expression that finds the list")
    if not written.keys() - {EACH}:
        problems.append(f"{place} maps nothing")
    for name, part in written.items():
        here = f"{place}.{name}"
        of = names.get(name, str) if names is not None else Any
        item = inner_type(of, 0)
        try:
            if name == EACH and is_list:
                each = _expression(part, here)
            elif names is not None and name not in names:
                fields = f"; fields are {', '.join(sorted(names))}"
                problems.append(f"{here} is not a field of an answer{did_you_mean(name, sorted(names), fields)}")
            elif isinstance(part, Mapping) and is_object(item):
                compiled[name] = _table(part, here, _inner_fields(item), problems, is_list=True)
            elif isinstance(part, Mapping) and (of is Any or is_object(of)):
                compiled[name] = _table(part, here, _inner_fields(of), problems, is_list=False)
            else:
                compiled[name] = _expression(part, here)
        except SettingsError as error:
            problems += error.problems
    return Table(compiled, each)


def _expression(written: Any, place: str) -> Expression:
    if not isinstance(written, str):
        raise SettingsError(f"{place} is {shown_value(written)}, expected a JMESPath expression, as in 'result.text'")
    return Expression(written, place)
