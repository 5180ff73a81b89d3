"""Secrets detected by the form of a text: URLs, connection strings, JSON, YAML, tokens of known providers.

Each pattern is linear: its parts are bounded or cannot overlap.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Any
from urllib.parse import unquote, unquote_plus

from pytest_rageval.io.secret_names import is_secret_name
from pytest_rageval.io.strict_json import StrictJsonError, parse

SHORTEST_SECRET = 8
"""Shorter ones look like words: masking "test" everywhere would change a system's answers."""
SHORTEST_UNSENT = 16
"""Minimum length of a secret that only the environment contains; shorter ones may be words, such as `postgres`."""

_FIELD = re.compile(r"(?<![\w.])(?P<name>[A-Za-z_][\w.-]{1,59})[\"']?[ \t]{0,3}(?P<sign>[=:])[ \t]{0,3}")
"""The beginning of a field of a connection string, a query, YAML or broken JSON: `Pwd=`, `token: `, `"token":`."""
_FIELD_VALUE = re.compile(
    r"(?:(?:Bearer|Basic|Token)[ \t]{1,3})?(?:\"(?P<double>[^\"\n]{1,4000})\"|'(?P<single>[^'\n]{1,4000})'"
    r"|(?P<bare>[^\s;&\"'{}\[\]]{1,4000}))",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)(?P<user>[^\s/?#@:\"']{0,200}):(?P<password>[^\s/?#@\"']{1,400})@")
_KNOWN = re.compile(
    r"(?<![\w-])(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|gh[opsu]_\w{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,255}"
    r"|xox[abprs]-[\w-]{10,255}|hf_[A-Za-z0-9]{20,255}|AIza[\w-]{30,255}|sk-(?=[A-Za-z_-]{0,255}\d)[\w-]{16,255}"
    r"|eyJ[\w-]{8,4000}\.[\w-]{8,4000}\.[\w-]{8,4000})"
)
"""Tokens recognised by their form: of AWS, GitHub, GitLab, Slack, Hugging Face, Google and OpenAI, and JWTs."""
_NUMBER = re.compile(r"[+-]?[\d.,_]+(e[+-]?\d+)?", re.IGNORECASE)
_PATH = re.compile(r"~?[/\\]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|file:")
_FILE = re.compile(r"[\w.-]+([/\\][\w.-]+)+\.\w{1,5}")
_LONGEST_PATH = 1_000
_ORDINARY = frozenset({"key", "keys", "session", "pass"})
"""Words of ordinary text, which any value may follow."""
_PLACEHOLDER = re.compile(r"[$<{%]|\*\*\*|env:")
"""The beginning of what stands in for a secret, such as `${TOKEN}` and `env:TOKEN`."""
_DEEPEST = 20
"""Levels of JSON within JSON, and of connection strings within it, that are looked through."""


def is_word(value: str) -> bool:
    """Return True if a value may be a word of ordinary text, such as `postgres`, or a number."""
    if len(value) < SHORTEST_SECRET:
        return True
    return len(value) < SHORTEST_UNSENT and re.fullmatch(r"[a-z]+|[A-Z]?[a-z]+|[A-Z]+|[0-9]+", value) is not None


def is_path_or_number(value: str) -> bool:
    if _NUMBER.fullmatch(value):
        return True
    is_path = _PATH.match(value) is not None
    # A longer text is no path: patterns over foreign texts are bounded.
    if not is_path and len(value) <= _LONGEST_PATH:
        is_path = _FILE.fullmatch(value) is not None
    # A key in base64 may begin with a slash; its parts are no words.
    return is_path and not any(map(_looks_random, re.split(r"[/\\]", value)))


def _looks_random(text: str) -> bool:
    if len(text) < SHORTEST_UNSENT:
        return False
    return all(re.search(kind, text) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


def is_value(value: str) -> bool:
    """Return True if the value of a secret field is one: no word, path, number or placeholder."""
    return not (is_word(value) or is_path_or_number(value) or _PLACEHOLDER.match(value))


# ── in a value, whose secrets are looked for everywhere ───────────────────────────────────────────────────────


def secrets_by_form(text: str, depth: int = 0) -> Iterator[str]:
    """Yield the secrets within a text of configuration, such as the value of an environment variable."""
    yield from (match[0] for match in _KNOWN.finditer(text))
    for match in _USERINFO.finditer(text):
        if not is_word(match["password"]):
            yield from (match["password"], unquote(match["password"]))
    json_value = _json(text)
    if json_value is not None:
        # A text of nested JSON may be made to exhaust the stack.
        if depth < _DEEPEST:
            yield from _of_members(json_value, depth + 1)
        return
    for start, end in _fields(text, "=:"):
        yield from _spellings(text[start:end])


def _json(text: str) -> Any:
    """Return the list or object that a text holds as JSON, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return parse(text)
    except StrictJsonError:
        return None


def _of_members(value: Any, depth: int, *, is_secret: bool = False) -> Iterator[str]:
    """Yield the strings under secret names, and the secrets within all others.

    A mapping below a secret name holds a secret in its `value`; its other members have names of their own.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for name, member in value.items():
            is_named = _is_secret_field(name) or (is_secret and name.lower() == "value")
            yield from _of_members(member, depth + 1, is_secret=is_named)
    elif isinstance(value, list):
        for member in value:
            yield from _of_members(member, depth + 1, is_secret=is_secret)
    elif isinstance(value, str):
        if is_secret and is_value(value):
            yield value
        yield from secrets_by_form(value, depth)


def _is_secret_field(name: str) -> bool:
    return name.lower() == "pwd" or is_secret_name(name)


def _fields(text: str, signs: str, but: Container[str] = ()) -> Iterator[tuple[int, int]]:
    """Yield where the values of secret fields begin and end. A value may hold fields of its own, as that of a URL."""
    for match in _FIELD.finditer(text):
        name = match["name"]
        if match["sign"] in signs and _is_secret_field(name) and name.lower() not in but:
            value = _FIELD_VALUE.match(text, match.end())
            if value is not None and value.lastgroup is not None:
                yield value.span(value.lastgroup)


def _spellings(value: str) -> Iterator[str]:
    """Yield a secret of a field as it may be meant: to its end or its first comma, decoded or not."""
    for meant in (value, value.partition(",")[0], unquote(value), unquote_plus(value)):
        if is_value(meant):
            yield meant


# ── in output, which may hold secrets that nothing else has ───────────────────────────────────────────────────


def without_forms(text: str, mask: str) -> str:
    """Return a log or message without passwords of URLs, values of secret fields (`name=value`) and known tokens."""
    if "://" in text:
        text = _USERINFO.sub(lambda match: match[0] if is_word(match["password"]) else f"{mask}@", text)
    parts: list[str] = []
    done = 0
    for start, end in _fields(text, "=", but=_ORDINARY):
        # Fields may lie within one another: one that is masked already is passed over.
        if start >= done and is_value(text[start:end]):
            parts += [text[done:start], mask]
            done = end
    parts.append(text[done:])
    return _KNOWN.sub(mask, "".join(parts))
