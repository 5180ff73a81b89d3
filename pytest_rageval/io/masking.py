"""Mask credentials in URLs, headers, parameters and replies before anything else sees them."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from html import escape
from json import dumps
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from pytest_rageval.io.secret_forms import SHORTEST_SECRET, without_forms
from pytest_rageval.io.secret_names import is_secret_field, is_secret_name

T = TypeVar("T")

MASK = "***"
SHORTEST_PIECE = 4
"""Shortest piece of a cut secret that is masked before or after a mark such as `…`."""
_CUT_BEHIND = re.compile(r"['\"]?(?:…|\.\.\.)")
_MARKS_BEFORE = tuple(mark + quotation for mark in ("…", "...") for quotation in ("", "'", '"'))
_URL = re.compile("[A-Za-z][A-Za-z0-9+-]{0,40}://")
_MISSPELT_USERINFO = re.compile(
    r"(?:h?t+ps?(?:/+|:/*)|/+)(?P<user>[^\s/:@]*):(?P<password>\S+)@(?!\S*://)", re.IGNORECASE
)
"""Misspelt URLs with credentials, such as `htp:/user:password@host`, but not `deepeval:faithfulness@judge`."""
_FILLED_IN = re.compile(r"\{[A-Za-z_][\w.-]*\}")
"""Placeholders of a mapping, such as `{question}`."""


# ── URLs, headers, parameters ─────────────────────────────────────────────────────────────────────────────────


def public_url(url: str) -> str:
    """Return the URL for display: without user, password and fragment, with credentials in its query masked."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", url.partition("?")[0].partition("#")[0])
    query_text = parts.query
    if any(is_secret_field(name) for name, _ in query):
        query_text = "&".join(f"{name}={MASK if is_secret_field(name) else value}" for name, value in query)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query_text, ""))


def public_target(spec: str) -> str:
    """Return a target's specification for display, with any URL in it as `public_url` shows it."""
    url = _URL.search(spec)
    if url is not None:
        return spec[: url.start()] + public_url(spec[url.start() :])
    misspelt = _MISSPELT_USERINFO.match(spec)
    return spec if misspelt is None else spec[: misspelt.start("password")] + MASK + spec[misspelt.end("password") :]


def public_unknown(spec: str) -> str:
    """Return an unknown specification for display; it may be a URL without its scheme."""
    return re.sub(r":[^\s/]*@", f":{MASK}@", public_target(spec))


def secrets_of_url(url: str) -> list[str]:
    """Return a URL's password (a user alone counts as a token), its encoded forms, and the query's credentials."""
    try:
        parts = urlsplit(url)
        secrets = [value for name, value in parse_qsl(parts.query) if is_secret_field(name)]
    except ValueError:
        return []
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        basic = b64encode(unquote(f"{user}{colon}{password}").encode()).decode()
        secrets += [basic, *([password, unquote(password)] if password else [user, unquote(user)])]
    return secrets


def secrets_of_target(spec: str) -> list[str]:
    """Return the credentials in the URL of a target's or judge's specification, even if the URL is misspelt."""
    url = _URL.search(spec)
    misspelt = _MISSPELT_USERINFO.match(spec) if url is None else None
    if misspelt is not None:
        spec = f"//{misspelt['user']}:{misspelt['password']}@{spec[misspelt.end() :]}"
    return secrets_of_url(spec[url.start() :] if url else spec)


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """Return values of secret headers, and their parts: `Bearer` token, `Basic` password, value of each cookie."""
    secrets = []
    for name, value in headers.items():
        if is_secret_field(name):
            scheme, _, token = value.partition(" ")
            secrets += [value, token]
            if scheme.lower() == "basic":
                secrets += _basic_parts(token)
            if "cookie" in name.lower():
                secrets += [cookie.partition("=")[2].strip() for cookie in value.split(";")]
    return secrets


def _basic_parts(token: str) -> list[str]:
    """Return `user:password` and the password of a valid Basic token."""
    try:
        userinfo = b64decode(token, validate=True).decode()
    except ValueError:
        return []
    return [userinfo, userinfo.partition(":")[2]]


def secrets_of_params(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the strings under secret names, at any depth."""
    for name, value in params.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Mapping):
                yield from secrets_of_params(part)
            elif isinstance(part, str) and _holds_secret(name, part):
                yield part


def public_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Mask credentials at any depth. Only strings are masked: `max_tokens` is a number and can change results."""
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
    return is_secret_field(name) and not _FILLED_IN.fullmatch(value)


class Mask:
    """Masks known credentials in any text, also in JSON, HTML and URL encoding.

    Pieces of a secret before or after a cut (`…`, `...`) are masked too: pytest and other libraries cut texts before
    they can be masked.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        long_secrets = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        spelt = {spelling for secret in long_secrets for spelling in _spellings(secret)}
        self._secrets = sorted(spelt, key=lambda secret: (-len(secret), secret))

    @property
    def is_empty(self) -> bool:
        """Return True if there are no secrets."""
        return not self._secrets

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        if self._secrets and ("…" in text or "..." in text):
            return _replaced(text, sorted({*self._pieces(text)}))
        return text

    def message(self, text: str) -> str:
        """Mask a text that may have been cut at its end without a mark, including the rest of a secret there."""
        text = without_forms(self.text(text), MASK)
        for secret in self._secrets:
            at = text.rfind(secret[:SHORTEST_SECRET])
            if at >= 0 and secret.startswith(text[at:]):
                return text[:at] + MASK
        return text

    def output(self, text: str) -> str:
        """Mask a log, a traceback or captured output: also headers and secret fields in it, unknown beforehand."""
        masked = _without_headers(_PRINTED_HEADER, without_forms(self.text(text), MASK))
        return _without_headers(_HEADER_LINE, masked)

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the span of each beginning of a secret before a cut mark, or end of one after it."""
        for secret in self._secrets:
            for start in _places(secret[:SHORTEST_PIECE], text):
                end = start + _common(secret, text[start : start + len(secret)])
                if _CUT_BEHIND.match(text, end):
                    yield start, end
            for at in _places(secret[-SHORTEST_PIECE:], text):
                end = at + SHORTEST_PIECE
                start = end - _common(secret[::-1], text[max(0, end - len(secret)) : end][::-1])
                if text.endswith(_MARKS_BEFORE, max(0, start - 4), start):
                    yield start, end

    def bytes(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), MASK.encode())
        return body

    def value(self, value: T) -> T:
        """Return the value with every text masked, in mappings, sequences and dataclasses at any depth.

        A value without secrets is returned as the same object.
        """
        return self._masked(value) if self._secrets else value

    def _masked(self, value: Any) -> Any:
        if value is None or isinstance(value, int | float):  # most fields of an answer, and the cheapest check
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


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _common(text: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(text), len(other)))


def _replaced(text: str, pieces: Iterable[tuple[int, int]]) -> str:
    """Return the text with these spans masked; they are sorted and may overlap."""
    parts, done = [], 0
    for start, end in pieces:
        if end > done:
            parts += [text[done:start], MASK]
            done = end
    return "".join([*parts, text[done:]])


@lru_cache(maxsize=64)
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass; empty for other classes."""
    return tuple(field.name for field in fields(kind) if field.init) if is_dataclass(kind) else ()


_PRINTED_HEADER = re.compile(
    r"""(?P<quote>['"])(?P<name>[\w.-]{2,60})(?P=quote)\s{0,9}[:,]\s{0,9}b?(?P<open>['"])"""
    r"""(?P<value>(?:[^\\'"]|\\.|(?!(?P=open))['"]){8,}?)(?=(?P=open))"""
)
"""`(b'Set-Cookie', b'…')`, as httpcore logs it, and `'authorization': '…'`, as Python prints it."""
_HEADER_LINE = re.compile(
    r"""\b(?P<name>\w{1,40}-[\w-]{1,40}|n?(?:authorization|cookie2?)):[ ]{0,9}(?P<value>[^\s\\'"][^\r\n\\'"]{7,})""",
    re.IGNORECASE,
)
"""`Set-Cookie: …`, also after a line end in Python's repr."""
_NO_HEADERS = frozenset({"key", "keys", "session", "pass"})
"""Words of ordinary text, which any value may follow."""


def _without_headers(header: re.Pattern[str], text: str) -> str:
    """Return the text without the values of headers with secret names."""
    parts, done = [], 0
    while match := header.search(text, done):
        is_secret = is_secret_name(match["name"]) and match["name"].lower() not in _NO_HEADERS
        end = match.end() if is_secret else match.end("name")
        parts += [text[done : match.start("value")], MASK] if is_secret else [text[done:end]]
        done = end
    return "".join([*parts, text[done:]])


_WRITTEN_AS_NUMBERS = re.compile(r"""[+&<>='"]""")


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is, percent-encoded, and as any of JSON, HTML and Python's repr, one in the other."""
    yield quote(secret, safe="")
    yield secret.replace("/", "\\/")
    spelt = {secret, dumps(secret)[1:-1]}
    for digits in ("04x", "04X"):
        spelt.add(_WRITTEN_AS_NUMBERS.sub(lambda match: "\\u" + format(ord(match[0]), digits), secret))  # noqa: B023 - used at once
    spelt |= {escape(text, quote=is_quoted) for text in spelt for is_quoted in (True, False)}
    spelt |= {text.replace("\\", "\\\\") for text in spelt}
    yield from spelt
    yield from (text.replace("'", "\\'") for text in spelt)
