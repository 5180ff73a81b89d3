"""Errors of model servers, read from their bodies: message, parameters and status.

Sources: the error objects of OpenAI, Azure, Anthropic, Google, Mistral, OpenRouter, Ollama, vLLM, LiteLLM, Bedrock and
FastAPI; tests/data/provider_errors holds bodies of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.model import Json
from pytest_rageval.text import excerpt

_CODES = {
    402: "insufficient_quota billing_hard_limit_reached billing_not_active insufficient_balance",
    400: "invalid_request_error",
    401: "authentication_error invalid_api_key",
    403: "permission_error",
    404: "not_found_error model_not_found",
    429: "rate_limit_exceeded rate_limit_error too_many_requests resource_exhausted",
    500: "api_error server_error internal_error internal_server_error",
    503: "service_unavailable unavailable",
    504: "timeout_error deadline_exceeded",
    529: "overloaded_error",
}
_STATUS_OF_CODE = {code: status for status, codes in _CODES.items() for code in codes.split()}
_SPENT = 402
"""Status for used-up money: waiting does not help, whatever the reply's own status."""


class ServerError(NamedTuple):
    """A server's error. `params` are the parameters it names; `status` is implied by its codes, or None."""

    message: str
    params: tuple[str, ...] = ()
    status: int | None = None

    def names(self, parameters: str) -> bool:
        """Return True if the error is about a parameter that the pattern matches, by its fields or its own sentences.

        Text quoted from the request does not count. Of the sentences, the first counts, and any later one that says
        that something is wrong.
        """
        pattern = re.compile(rf"(?<![a-z0-9])(?:{parameters})(?![a-z0-9])")
        first, *others = re.split(r"(?<=[.!?])\s|\n", _QUOTED.sub(_without_input, self.message.strip().lower()))
        sentences = [first, *filter(_REFUSES.search, others)]
        return any(pattern.search(text) for text in (*map(str.lower, self.params), *sentences))


_FORMS_OF_JSON = "response_format|json_schema|json_object|(?:json )?schemas?|grammars?|structured outputs?"
FORMS = f"{_FORMS_OF_JSON}|tools?|tool_choice"
"""A pattern of the names by which servers call the form of a reply that they are asked for."""
_REFUSES_A_FORM = re.compile(
    r"not |un(?:support|know|recogni|able)|invalid|fail|cannot|can't|could not|error|empty|pars|conver|compil|must|only"
)
_QUOTED = re.compile(r'"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z)|(?<!\w)\'[^\']*(?:\'(?!\w)|\Z)')
_NAME = re.compile(r"[\w.$\[\]-]+")


def _without_input(quoted: re.Match[str]) -> str:
    """Keep a quoted name, which is the error's subject; replace anything longer, which is quoted from the request."""
    return quoted[0] if _NAME.fullmatch(quoted[0][1:-1]) else "…"


_REFUSES = re.compile(
    r"not (?:\w+ )?(?:support|permit|allow|recogni|accept|find|work|available|compatible)|unsupported|unknown|unrecogni"
    r"|invalid|extra|deprecated|cannot|can't|does not|doesn't|must|only|forbidden|unexpected"
)


def server_error(data: Json) -> ServerError | None:
    """Return the error in a body, in the format of any known provider, or None."""
    if isinstance(data, list):  # Google wraps it in a list
        return server_error(data[0]) if len(data) == 1 else None
    if not isinstance(data, Mapping):
        return None
    error = data.get("error")
    for choice in _mappings(data.get("choices"))[:1]:  # OpenRouter: the provider failed midway
        error = error or choice.get("error")
    if not error and str(data.get("object")).lower() == "error":  # Mistral, and vLLM before 0.10
        error = data
    if isinstance(error, Mapping):
        return _read(error)
    return _said(str(error)) if error else None


def refusal_in(body: str) -> ServerError:
    """Read the error in a refusal's body, in any format."""
    try:
        return _said(_parsed(body.strip())) or ServerError(_line(body))
    except RecursionError:
        return ServerError(_line(body))


def _read(error: Mapping[str, Json]) -> ServerError:
    """Read the fields of an error, and of another server's error inside it."""
    message = error.get("message", error.get("detail", error))
    nested = error.get("error") if message is error else message
    inner = (_said(nested) if nested else None) or ServerError(_line(message))
    status = _status_of([error.get(name) for name in ("code", "type", "status")])
    metadata = error.get("metadata")  # OpenRouter: the error of the provider behind it
    if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
        handed_on = refusal_in(metadata["raw"])
        inner = ServerError(_line(f"{inner.message}: {handed_on.message}"), handed_on.params, handed_on.status)
    params = [error["param"]] if isinstance(error.get("param"), str) else []
    for detail in _mappings(error.get("details")):  # Google
        for violation in _mappings(detail.get("fieldViolations")):
            params += [violation["field"]] if isinstance(violation.get("field"), str) else []
            params += re.findall(r'Unknown name "([^"]{1,100})"', str(violation.get("description")))
    return ServerError(inner.message, (*params, *inner.params), status or inner.status)


def _said(value: Json) -> ServerError | None:
    """Read what is known to be about an error: an error in it, a failed validation, or a message alone."""
    if isinstance(value, str):  # gateways write another server's error as JSON into theirs
        start = value.find("{")
        inner = _said(_parsed(value[start:])) if start >= 0 else None
        said = value if inner is None else value[:start] + inner.message
        return (inner or ServerError(""))._replace(message=_line(said))
    if (error := server_error(value)) is not None:
        return error
    detail = value.get("detail") if isinstance(value, Mapping) else value
    detail = detail.get("detail") if isinstance(detail, Mapping) else detail
    if failed := _mappings(detail):  # FastAPI: its first message and all its fields
        places = [entry["loc"] for entry in failed if isinstance(entry.get("loc"), list) and entry["loc"]]
        params = tuple(place[-1] for place in places if isinstance(place[-1], str))
        return ServerError(_line(failed[0].get("msg", detail)), params)
    names = ("message", "Message", "detail")  # Bedrock's and Azure's gateway
    message = next((value[name] for name in names if value.get(name)), None) if isinstance(value, Mapping) else None
    return ServerError(_line(message), (), _status_of([value.get("statusCode")])) if message is not None else None


def _parsed(text: str) -> Json:
    """Return the JSON value at the beginning of a text; None if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def status_in(status: int, body: bytes) -> int:
    """Return the status that a reply means: that of the error in its body if it is more specific than its own.

    Servers that make a grammar of the schema answer 500 where they cannot: that is a refusal, and asking again is vain.
    """
    if status == 500 and _is_form_refused(body[:65_536].decode("utf-8", "replace")):
        return 400
    # Normal replies are not parsed twice: an error is short, and has "error" near its beginning.
    if 300 <= status < 400 or b'"error"' not in body[:2000].lower() or len(body) > 65_536:
        return status
    try:
        error = server_error(json.loads(body))
    except (ValueError, RecursionError):
        return status
    if error is None or error.status is None:
        return status
    return error.status if status < 300 or error.status == _SPENT else status


def _is_form_refused(body: str) -> bool:
    """Return True if an error is about the form of a reply, such as a schema that makes no grammar."""
    error = refusal_in(body)
    return error.names(_FORMS_OF_JSON) and _REFUSES_A_FORM.search(error.message.lower()) is not None


def _status_of(codes: list[Json]) -> int | None:
    """Return the status that codes name; used-up money first, then numbers, then words."""
    named = [_STATUS_OF_CODE.get(code.lower()) for code in codes if isinstance(code, str)]
    numbers = [int(code) for code in codes if isinstance(code, int | str) and re.fullmatch("[45][0-9]{2}", str(code))]
    statuses = [*numbers, *(status for status in named if status is not None)]
    return _SPENT if _SPENT in statuses else statuses[0] if statuses else None


def _line(message: Json) -> str:
    return excerpt(str(message), 800)
