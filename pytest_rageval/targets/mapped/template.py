"""The JSON template of what a mapped API is sent, filled with what is asked. Nothing in it is evaluated."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import AskRequest, Json

# `{name}`, or `{{name}}` for those very characters with one brace less; other braces stand for themselves.
_PLACE = re.compile(r"\{(\{[A-Za-z_][\w.-]*\})\}|\{([A-Za-z_][\w.-]*)\}")
PLACEHOLDER = re.compile(r"\{[A-Za-z_][\w.-]*\}")
"""A string that stands for one value as a whole."""
_ABSENT = object()
PARAMS = "params."


def template_problems(template: Mapping[str, Any], place: str) -> Iterator[str]:
    """What is wrong with a template, one line each: what JSON cannot hold, unknown placeholders, no question in it."""
    used = set()
    for path, leaf in _leaves(template, place):
        if not isinstance(leaf, str | int | float) or (isinstance(leaf, float) and not math.isfinite(leaf)):
            yield f"{path} is {shown_value(leaf)}, expected what JSON can hold"
        for name in _names(leaf):
            used.add(name)
            if name not in _VALUES and not name.startswith(PARAMS):
                remedy = f"; known are {', '.join(_VALUES)} and {PARAMS}NAME (for the text itself write {{{{{name}}}}})"
                yield f"{path}: {{{name}}} stands for nothing{did_you_mean(name, _VALUES, remedy)}"
    if not used & {"question", "messages"}:
        yield f"{place} sends no question; put '{{question}}' or '{{messages}}' where it belongs"


def filled(template: Mapping[str, Any], request: AskRequest) -> dict[str, Json]:
    """The body to send. A string that is one placeholder becomes its value, whatever its type, and is left out where
    there is none; within a longer string the value stands as text. Parameters that the template does not place come
    at the top level, over what stands there.
    """
    names = (name for _, leaf in _leaves(template, "") for name in _names(leaf))
    placed = {name.removeprefix(PARAMS) for name in names if name.startswith(PARAMS)}
    body: dict[str, Json] = _filled(template, request)
    return body | {name: value for name, value in request.params.items() if name not in placed}


def _leaves(part: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Path and value of everything that is neither object nor list."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _leaves(value, f"{path}.{key}")
    elif isinstance(part, list | tuple):
        for position, value in enumerate(part):
            yield from _leaves(value, f"{path}[{position}]")
    else:
        yield path, part


def _names(part: Any) -> list[str]:
    """The placeholders of a value."""
    return [match[2] for match in _PLACE.finditer(part) if match[2]] if isinstance(part, str) else []


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
        return [value for value in (_filled(item, request) for item in part) if value is not _ABSENT]
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


def _messages(request: AskRequest) -> list[dict[str, Json]]:
    turns = [{"role": turn.role, "content": turn.text} for turn in request.history or ()]
    return [*turns, {"role": "user", "content": request.question}]


_VALUES: Mapping[str, Callable[[AskRequest], Json]] = {
    "question": lambda request: request.question,
    "k": lambda request: request.k,
    "history": lambda request: None if request.history is None else [turn._asdict() for turn in request.history],
    "messages": _messages,
    "vaults": lambda request: list(request.vaults) or None,
    "folders": lambda request: list(request.folders) or None,
    "contexts": lambda request: None if request.contexts is None else list(request.contexts),
}
"""Placeholders by name. `history` is a list of `{role, text}`, `messages` of `{role, content}`, the question last."""
