"""Mask credentials in URLs, headers, parameters and replies before anything else sees them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

T = TypeVar("T")

MASK = "***"
# Shorter ones cannot be told from words: masking "test" wherever it stands would change what a system answered.
SHORTEST_SECRET = 8
SHORTEST_UNSENT = 16
"""Of what only the environment holds: a shorter value there may be a word, such as a password `postgres`."""
SENT_FROM_ENVIRONMENT = ("RAGEVAL_TARGET_TOKEN", "RAGEVAL_JUDGE_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_VARIABLE_OF_SECRET = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET)$", re.IGNORECASE)
_URL = re.compile("[A-Za-z][A-Za-z0-9+-]*://")
_FILLED_IN = re.compile(r"\{[A-Za-z_][\w.-]*\}")
"""What a mapping fills in, such as `{question}`."""
_SECRET_NAME = re.compile(r"auth|key|token|secret|passw|cookie|credential|session|signature|^sig$", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """True if a header, a parameter or a query key of this name holds a credential."""
    return _SECRET_NAME.search(name) is not None


def public_url(url: str) -> str:
    """The URL as it may be shown: without user, password and fragment, with credentials in its query masked."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", url.partition("?")[0].partition("#")[0])
    shown = parts.query
    if any(_SECRET_NAME.search(name) for name, _ in query):
        shown = "&".join(f"{name}={MASK if _SECRET_NAME.search(name) else value}" for name, value in query)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, shown, ""))


def public_target(spec: str) -> str:
    """The spelling of a target as it may be shown: the URL in it, if there is one, as `public_url` shows it."""
    url = _URL.search(spec)
    return spec if url is None else spec[: url.start()] + public_url(spec[url.start() :])


def secrets_of_url(url: str) -> list[str]:
    """The password (a user without one is taken for a token), also as it is sent, and the credentials in the query."""
    try:
        parts = urlsplit(url)
        secrets = [value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)]
    except ValueError:
        return []
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        basic = b64encode(unquote(f"{user}{colon}{password}").encode()).decode()
        secrets += [basic, *([password, unquote(password)] if password else [user, unquote(user)])]
    return secrets


def secrets_of_target(spec: str) -> list[str]:
    """The credentials in the URL that is or stands in the spelling of a target or a judge."""
    url = _URL.search(spec)
    return secrets_of_url(spec[url.start() :] if url else spec)


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """The values of headers that by their name hold credentials, and the bare token of `Bearer TOKEN`."""
    secrets = []
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            secrets += [value, value.partition(" ")[2]]
    return secrets


def secrets_of_params(params: Mapping[str, Any]) -> Iterator[str]:
    """The strings that stand, at any depth, under a name of a credential."""
    for name, value in params.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Mapping):
                yield from secrets_of_params(part)
            elif isinstance(part, str) and _holds_secret(name, part):
                yield part


def public_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Without credentials at any depth. Only strings are: `max_tokens` is a number, and can change results."""
    return {name: _public_value(name, value) for name, value in params.items()}


def _public_value(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return MASK if _holds_secret(name, value) else value
    if isinstance(value, Mapping):
        return public_params(value)
    if isinstance(value, list | tuple):
        return [_public_value(name, part) for part in value]
    return value


def _holds_secret(name: str, value: str) -> bool:
    return is_secret_name(name) and not _FILLED_IN.fullmatch(value)


def secrets_of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """What is sent from there unasked, and whatever else its name calls a key, a token or a secret: a system of the
    user's own may have it, and say it in an error."""
    for name, value in environment.items():
        is_long = len(value) >= SHORTEST_UNSENT and not re.search(r"\s", value)
        if name in SENT_FROM_ENVIRONMENT or (is_long and _VARIABLE_OF_SECRET.search(name)):
            yield value


class Mask:
    """Replaces known credentials wherever somebody repeats them, as they are or as JSON and URLs spell them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        long_secrets = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        spelt = {spelling for secret in long_secrets for spelling in _spellings(secret)}
        self._secrets = sorted(spelt, key=lambda secret: (-len(secret), secret))

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def message(self, text: str) -> str:
        """A text that was cut, at its end or at a `…`, with secrets masked, and what is left of one at the cut, too."""
        pieces = self.text(text).split("…") if self._secrets else [text]
        return "…".join(map(self._without_beginning, pieces))

    def _without_beginning(self, text: str) -> str:
        for secret in self._secrets:
            at = text.rfind(secret[:SHORTEST_SECRET])
            if at >= 0 and secret.startswith(text[at:]):
                return text[:at] + MASK
        return text

    def bytes(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), MASK.encode())
        return body

    def value(self, value: T) -> T:
        """The value with every text in it masked: in mappings, sequences and dataclasses, at any depth.

        What holds no secret comes back as it is, the same object.
        """
        return self._masked(value) if self._secrets else value

    def _masked(self, value: Any) -> Any:
        if value is None or isinstance(value, int | float):  # most fields of an answer: they cost the least
            return value
        if isinstance(value, str):
            return self.text(value)
        if names := _field_names(value.__class__):
            named = [(name, getattr(value, name)) for name in names]
            changed = {name: new for name, member in named if (new := self._masked(member)) is not member}
            return replace(value, **changed) if changed else value
        if isinstance(value, Mapping):
            pairs = {self._masked(name): self._masked(member) for name, member in value.items()}
            is_same = all(name in pairs and pairs[name] is member for name, member in value.items())
            return value if is_same else pairs
        if isinstance(value, list | tuple):
            parts = [self._masked(member) for member in value]
            if all(new is old for new, old in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value


@lru_cache(maxsize=64)
def _field_names(kind: Any) -> tuple[str, ...]:
    """What a value of a dataclass is made of; nothing for other classes."""
    return tuple(field.name for field in fields(kind) if field.init) if is_dataclass(kind) else ()


_WRITTEN_AS_NUMBERS = re.compile(r"""[+&<>='"]""")


def _spellings(secret: str) -> Iterator[str]:
    """As it is; percent-encoded; and as JSON writers spell it that escape more than they need."""
    yield secret
    yield quote(secret, safe="")
    yield secret.replace("/", "\\/")
    for digits in ("04x", "04X"):
        yield _WRITTEN_AS_NUMBERS.sub(lambda match: "\\u" + format(ord(match[0]), digits), secret)  # noqa: B023 - used at once
