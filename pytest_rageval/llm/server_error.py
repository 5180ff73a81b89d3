"""Errors of model servers, read from their bodies: what is wrong, which parameter is meant, what status that is.

Sources: the error objects of OpenAI, Azure, Anthropic, Google, OpenRouter, Ollama, vLLM and FastAPI.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.model import Json
from pytest_rageval.text import excerpt

_STATUS_OF_CODE: Mapping[str, int] = {
    "insufficient_quota": 402,
    "billing_hard_limit_reached": 402,
    "billing_not_active": 402,
    "insufficient_balance": 402,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "unavailable": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "overloaded_error": 529,
}
_SPENT = 402
"""Money is used up: waiting does not help, whatever status it comes with."""


class ServerError(NamedTuple):
    """What a server says is wrong. `param` is the parameter that it names as such; `status` what the error amounts to
    by its own words, None where they do not tell."""

    message: str
    param: str | None = None
    status: int | None = None

    @property
    def first_sentence(self) -> str:
        return re.split(r"(?<=[.!?])\s|\n", self.message.strip(), maxsplit=1)[0]

    def names(self, parameters: str) -> bool:
        """Whether the error is about a parameter that the pattern matches: its `param`, or its first sentence."""
        pattern = re.compile(rf"(?<![a-z0-9])(?:{parameters})(?![a-z0-9])")
        return any(pattern.search(text.lower()) for text in (self.param or "", self.first_sentence))


def server_error(data: Json) -> ServerError | None:
    """The error that a body holds, or None."""
    if not isinstance(data, Mapping):
        return None
    error = data.get("error")
    if isinstance(error, Mapping):
        message = error.get("message", error)
        codes = [error.get(name) for name in ("code", "type", "status")]
        param = error.get("param")
        return ServerError(_line(message), param if isinstance(param, str) else None, _status_of(codes))
    if error:
        return ServerError(_line(error))
    return None


def refusal_in(body: str) -> ServerError:
    """What a refusal's body says is wrong, whatever its form."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    return server_error(data) or _failed_validation(data) or ServerError(_line(body))


def _failed_validation(data: Json) -> ServerError | None:
    """What failed FastAPI's validation, the first of it."""
    detail = data.get("detail") if isinstance(data, Mapping) else None
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        place = detail[0].get("loc")
        param = place[-1] if isinstance(place, list) and place and isinstance(place[-1], str) else None
        return ServerError(_line(detail[0].get("msg", detail)), param)
    return ServerError(_line(detail)) if detail else None


def status_in(status: int, body: bytes) -> int:
    """The status that a reply means: that of the error in it, where it has one that says more than its own."""
    # A reply of the usual size is not read twice: an error is short, and says so at once.
    if 300 <= status < 400 or b'"error"' not in body[:2000] or len(body) > 65_536:
        return status
    try:
        error = server_error(json.loads(body))
    except (ValueError, RecursionError):
        return status
    if error is None or error.status is None:
        return status
    return error.status if status < 300 or error.status == _SPENT else status


def _status_of(codes: list[Json]) -> int | None:
    statuses = [_STATUS_OF_CODE.get(code.lower()) for code in codes if isinstance(code, str)]
    statuses += [int(code) for code in codes if isinstance(code, int | str) and re.fullmatch("[45][0-9]{2}", str(code))]
    named = [status for status in statuses if status is not None]
    return _SPENT if _SPENT in named else named[0] if named else None


def _line(message: Json) -> str:
    return excerpt(str(message), 800)
