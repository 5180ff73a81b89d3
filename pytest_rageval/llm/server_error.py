"""Errors of model servers, read from their bodies: message, parameters and status.

Sources: the error objects of OpenAI, Azure, Anthropic, Google, Mistral, OpenRouter, Ollama, vLLM, LiteLLM, Bedrock and
FastAPI; tests/data/provider_errors holds bodies of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
        if any(pattern.search(param.lower()) for param in self.params):
            return True
        own_words = _QUOTED.sub(_without_input, self.message.strip().lower())
        first, *others = re.split(r"(?<=[.!?])\s|\n", own_words)
        if pattern.search(first):
            return True
        return any(pattern.search(sentence) for sentence in others if _REFUSES.search(sentence))


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
    is_name = _NAME.fullmatch(quoted[0][1:-1]) is not None
    return quoted[0] if is_name else "…"


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
    return _error_in_text(str(error)) if error else None


def refusal_in(body: str) -> ServerError:
    """Read the error in a refusal's body, in any format."""
    try:
        error = _error_within(_parsed(body.strip()))
    except RecursionError:
        error = None
    return ServerError(_line(body)) if error is None else error


def _read(error: Mapping[str, Json]) -> ServerError:
    """Read the fields of an error, and of another server's error inside it."""
    message = error.get("message", error.get("detail", error))
    nested = error.get("error") if message is error else message
    inner = _error_within(nested) if nested else None
    if inner is None:
        inner = ServerError(_line(message))
    metadata = error.get("metadata")  # OpenRouter: the error of the provider behind it
    if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
        handed_on = refusal_in(metadata["raw"])
        inner = handed_on._replace(message=_line(f"{inner.message}: {handed_on.message}"))
    params = [error["param"]] if isinstance(error.get("param"), str) else []
    params += _violated_fields(error)
    status = _status_of([error.get(name) for name in ("code", "type", "status")])
    return ServerError(inner.message, (*params, *inner.params), status or inner.status)


def _violated_fields(error: Mapping[str, Json]) -> list[str]:
    """Return the fields that Google's errors name, in details of their own."""
    fields: list[str] = []
    for detail in _mappings(error.get("details")):
        for violation in _mappings(detail.get("fieldViolations")):
            if isinstance(violation.get("field"), str):
                fields.append(violation["field"])
            fields += re.findall(r'Unknown name "([^"]{1,100})"', str(violation.get("description")))
    return fields


def _error_within(value: Json) -> ServerError | None:
    """Read a value that is known to be about an error: an error in it, a failed validation, or a message alone."""
    if isinstance(value, str):
        return _error_in_text(value)
    error = server_error(value)
    if error is not None:
        return error
    detail = value.get("detail") if isinstance(value, Mapping) else value
    if isinstance(detail, Mapping):
        detail = detail.get("detail")
    failed = _mappings(detail)
    if failed:
        return _failed_validation(failed, detail)
    if not isinstance(value, Mapping):
        return None
    for name in ("message", "Message", "detail"):  # Bedrock's and Azure's gateway
        if value.get(name):
            return ServerError(_line(value[name]), (), _status_of([value.get("statusCode")]))
    return None


def _error_in_text(text: str) -> ServerError:
    """Read a message; gateways write another server's error into it as JSON."""
    start = text.find("{")
    inner = _error_within(_parsed(text[start:])) if start >= 0 else None
    if inner is None:
        return ServerError(_line(text))
    return inner._replace(message=_line(text[:start] + inner.message))


def _failed_validation(failed: Sequence[Mapping[str, Json]], detail: Json) -> ServerError:
    """Read FastAPI's list of failed validations: its first message and all its fields."""
    params: list[str] = []
    for failure in failed:
        place = failure.get("loc")
        if isinstance(place, list) and place and isinstance(place[-1], str):
            params.append(place[-1])
    return ServerError(_line(failed[0].get("msg", detail)), tuple(params))


def _parsed(text: str) -> Json:
    """Return the JSON value at the beginning of a text; None if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, Mapping)]


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
    is_more_specific = status < 300 or error.status == _SPENT
    return error.status if is_more_specific else status


def _is_form_refused(body: str) -> bool:
    """Return True if an error is about the form of a reply, such as a schema that makes no grammar."""
    error = refusal_in(body)
    return error.names(_FORMS_OF_JSON) and _REFUSES_A_FORM.search(error.message.lower()) is not None


def _status_of(codes: list[Json]) -> int | None:
    """Return the status that codes name; used-up money first, then numbers, then words."""
    numbers: list[int] = []
    named: list[int] = []
    for code in codes:
        if isinstance(code, int | str) and re.fullmatch("[45][0-9]{2}", str(code)):
            numbers.append(int(code))
        elif isinstance(code, str) and code.lower() in _STATUS_OF_CODE:
            named.append(_STATUS_OF_CODE[code.lower()])
    statuses = numbers + named
    if _SPENT in statuses:
        return _SPENT
    return statuses[0] if statuses else None


def _line(message: Json) -> str:
    return excerpt(str(message), 800)
