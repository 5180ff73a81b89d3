"""One question to a server without a mapping: where its reply holds answer and chunks, and what is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pytest_rageval.cases.names import QUESTION, field_of
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.call_limit import IMPATIENT
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.io.suggestions import listed
from pytest_rageval.matching.spellings import read_headings, read_path
from pytest_rageval.model import Chunk, Json
from pytest_rageval.targets.reply_mapping import response_mapping, shown_keys
from pytest_rageval.targets.target import Connection
from pytest_rageval.text import counted, cut, printable

NATIVE = "/api/v1/ask"
MESSAGES = "messages"
"""The key of a chat: a list of messages in place of one question."""
_PLACES = (NATIVE, "/ask", "/query", "/chat", "/api/ask", "/api/query", "/api/chat", "", "/v1/chat/completions")
_KEYS = ("question", "query", "message", "input", "prompt", "text", "q", MESSAGES)
_COMPLETIONS = "/chat/completions"
_MOST_TRIES = 24
CONTACT_QUESTION = "What do you know?"
REFUSED = (401, 403)
"""Statuses of a server that wants a key, or another one."""
CONTACT_S = 30.0
"""Seconds for one attempt at the first question."""


class FirstContact(NamedTuple):
    """What a server made of one question.

    findings  what was found, a line each
    mapping   `target.mapping` of the configuration; None for the native contract, or without a usable reply
    is_answered  whether it replied at all
    is_refused  whether it wants a key (status 401 or 403)
    is_native  whether it speaks the native contract, which needs no mapping
    is_path_missing  whether nothing tells where it takes a question
    url       where it was asked, without the path of the mapping; empty if nothing was
    """

    findings: tuple[str, ...]
    mapping: Mapping[str, Any] | None = None
    is_answered: bool = False
    url: str = ""
    is_refused: bool = False
    is_native: bool = False
    is_path_missing: bool = False

    @property
    def is_usable(self) -> bool:
        """Return True if a run can read the server's replies."""
        return self.is_native or self.mapping is not None


async def first_contact(url: str, question: str, connection: Connection, key: str = "") -> FirstContact:
    """Ask a server one question in the ways that servers usually take one, until it replies.

    `url`: of the server, of its path, or of its OpenAPI description in JSON. `key`: of the question, if it is known.
    """
    # Most tries are expected to fail: repeating each of them would take minutes.
    impatient = replace(connection, retries=0, limits=IMPATIENT)
    client = SlottedClient(headers=connection.headers, **impatient.of_client)
    try:
        return await _contact(client, url, question, key)
    finally:
        await client.aclose()


async def _contact(client: SlottedClient, url: str, question: str, known: str) -> FirstContact:
    described = await _described(client, url)
    if _is_description(url):
        url = _origin(url)
    problem = ""
    tries = 0
    is_refused = False
    for path in dict.fromkeys([*(path for path, _ in described), *_paths(url)]):
        named = [key for place, key in described if place == path]
        keys = [known]
        if not known:
            keys = [*named, *(key for key in _KEYS if key not in named)]
        address = endpoint(url, path)
        model: dict[str, Json] = {}
        if address.endswith(_COMPLETIONS):
            model = await _model(client, address)
            keys = [MESSAGES]
        while keys and tries < _MOST_TRIES:
            tries += 1
            key = keys.pop(0)
            asked: Json = [{"role": "user", "content": question}] if key == MESSAGES else question
            body: dict[str, Json] = {key: asked, **model}
            try:
                reply = await client.request("POST", address, json=body)
            except HttpFailure as failure:
                is_refused = is_refused or failure.status in REFUSED
                if not problem or failure.status not in (404, 405):  # those only say that the path is another one
                    problem = str(failure)
                # Only these say that the path is right and the body is not.
                if failure.status not in (400, 422):
                    break
                # FastAPI and its like name the field that they miss: `"loc": ["body", "query"]`.
                keys = _missed_first(keys, failure.body)
                continue
            status = f"status {reply.status} of POST {public_url(address)} with {json.dumps(body, ensure_ascii=False)}"
            found = _read(reply.body, status, path, key, question)._replace(url=url)
            if found.mapping is None or not model:
                return found
            return found._replace(mapping={**found.mapping, "request": found.mapping["request"] | model})
    return FirstContact((problem or f"{public_url(url)}: no reply",), url=url, is_refused=is_refused)


async def _model(client: SlottedClient, address: str) -> dict[str, Json]:
    """Return what a chat completion names beside its messages: the first model of the server."""
    try:
        reply = await client.request("GET", f"{address.removesuffix(_COMPLETIONS)}/models")
        models = parse(reply.body)
        return {"model": models["data"][0]["id"]}
    except (HttpFailure, StrictJsonError, LookupError, TypeError):
        return {"model": "default"}


def contact_of_sample(body: bytes, name: str) -> FirstContact:
    """Return what a sample reply says, without asking; that the question is sent as `question` is a guess."""
    model = _model_of_completion(body)
    key = _KEYS[0] if model is None else MESSAGES
    contact = _read(body, f"{name}: a sample reply, nothing was asked", "", key)
    if contact.mapping is None:
        return contact
    request = contact.mapping["request"]
    shown = {key: "…"}
    if model is not None:
        request = {**request, "model": model}
        shown["model"] = model
    shown_request = printable(json.dumps(shown, ensure_ascii=False))
    guess = f"guess: {shown_request} as the request, which no reply shows; correct it in rageval.toml"
    return contact._replace(mapping={**contact.mapping, "request": request}, findings=(*contact.findings, guess))


def _model_of_completion(body: bytes) -> str | None:
    """Return the model that a chat completion of OpenAI's interface names; None for another reply."""
    try:
        data = parse(body)
    except StrictJsonError:
        return None
    if not isinstance(data, dict) or data.get("object") != "chat.completion":
        return None
    return str(data.get("model") or "default")


def _missed_first(keys: Sequence[str], refusal: str) -> list[str]:
    """Return the keys with those first that a refusal names."""
    return sorted(keys, key=lambda key: f'"{key}"' not in refusal)


def _origin(url: str) -> str:
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"


def _is_description(url: str) -> bool:
    return urlsplit(url).path.endswith(".json")


def _paths(url: str) -> tuple[str, ...]:
    return ("",) if urlsplit(url).path not in ("", "/") else _PLACES


async def _described(client: SlottedClient, url: str) -> list[tuple[str, str]]:
    """Return the paths and question keys of a server's OpenAPI description, if it has one."""
    is_description = _is_description(url)
    address = url if is_description else f"{_origin(url)}/openapi.json"
    try:
        reply = await client.request("GET", address)
        document = parse(reply.body)
    except (HttpFailure, StrictJsonError):
        return []
    paths = document.get("paths") if isinstance(document, dict) else None
    asked_path = urlsplit(url).path
    described: list[tuple[str, str]] = []
    for path, methods in (paths or {}).items():
        is_meant = is_description or asked_path in ("", "/", path)
        if not is_meant or not isinstance(methods, dict) or "post" not in methods:
            continue
        below_url = "" if asked_path == path else path
        keys = _body_keys(methods["post"], document)
        described += [(below_url, key) for key in keys if field_of(key) == QUESTION or key in _KEYS]
    return described


def _body_keys(operation: Any, document: Any) -> list[str]:
    """Return the keys of all schemas that the body of an operation refers to."""
    body = json.dumps(operation.get("requestBody") or {})
    keys: list[str] = []
    for name in re.findall(r'"#/components/schemas/([^"]+)"', body):
        schema = document["components"]["schemas"].get(name, {})
        keys += schema.get("properties", ())
    return keys


# ── the reply ─────────────────────────────────────────────────────────────────────────────────────────────────


def _read(body: bytes, status: str, path: str, key: str, question: str = "") -> FirstContact:
    try:
        data = parse(body)
    except StrictJsonError as error:
        return FirstContact((status, f"the reply is no JSON: {error}"), is_answered=True)
    keys = f"keys of the reply: {listed(shown_keys(data), 16)}"
    # Other contracts have an `answer` too; `debug` tells ours apart.
    if isinstance(data, dict) and "answer" in data and "debug" in data and path in (NATIVE, ""):
        findings = (status, keys, "it speaks the native contract: no mapping is needed")
        return FirstContact(findings, is_answered=True, is_native=True)
    response, missing = response_mapping(data, question)
    if not response:
        return FirstContact((status, keys, "no text looks like an answer, and no list like chunks"), is_answered=True)
    request = {key: "{messages}" if key == MESSAGES else "{question}"}
    mapping: dict[str, Any] = {"path": path} if path else {}
    mapping |= {"request": request, "response": response}
    found = ", ".join(_shown_mapping(response))
    lines = [status, keys, f"mapping: {found}"]
    if missing:
        lines.append(f"missing: {', '.join(missing)}")
    return FirstContact(tuple(map(printable, lines)), mapping, is_answered=True)


def _shown_mapping(response: Mapping[str, Any]) -> Iterator[str]:
    for field, expression in response.items():
        if isinstance(expression, Mapping):
            yield from (f"{field}.{name} = {part}" for name, part in expression.items())
        else:
            yield f"{field} = {expression}"


def are_places_named(chunks: Sequence[Chunk]) -> bool:
    """Return True if a chunk has a path: without one, no gold place can match."""
    return any(chunk.rel_path for chunk in chunks)


def places_line(chunks: Sequence[Chunk]) -> str:
    """Return how a system names the places of its chunks."""
    paths = [chunk.rel_path for chunk in chunks if chunk.rel_path]
    headings = [chunk.heading_path for chunk in chunks if chunk.heading_path]
    if not paths:
        return f"places: {counted(len(chunks), 'chunk')} without a path; only ids can be matched"
    rooted = " (absolute)" if read_path(paths[0]).is_rooted else ""
    if not headings:
        return f"places: paths such as {cut(paths[0], 60)!r}{rooted}, no headings: golds are matched by document"
    one = max(headings, key=lambda heading: len(read_headings(heading).parts))
    whole = "" if len(read_headings(one).parts) > 1 else ", the last heading alone"
    return f"places: paths such as {cut(paths[0], 60)!r}{rooted}, headings such as {cut(one, 60)!r}{whole}"
