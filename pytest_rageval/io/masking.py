"""Mask credentials in URLs, headers, parameters and replies before anything else sees them."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter
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
SHORTEST_SLICED = 20
"""Shortest secret whose pieces are masked in messages and logs; shorter ones may be two words."""
SHORTEST_SLICE = 12
_BLOCK = SHORTEST_SLICE // 2
MOST_ALIKE = 4
"""Equal blocks of a secret that are looked for: a dummy key such as sk-1111… has many, and nothing to hide in them."""
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
        masked = [(name, MASK if is_secret_field(name) else value) for name, value in query]
        query_text = "&".join(f"{name}={value}" for name, value in masked)
    # The last @: a password may hold one.
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, query_text, ""))


def public_target(spec: str) -> str:
    """Return a target's specification for display, with any URL in it as `public_url` shows it."""
    url = _URL.search(spec)
    if url is not None:
        return spec[: url.start()] + public_url(spec[url.start() :])
    misspelt = _MISSPELT_USERINFO.match(spec)
    if misspelt is not None:
        start, end = misspelt.span("password")
        return spec[:start] + MASK + spec[end:]
    return spec


def public_unknown(spec: str) -> str:
    """Return an unknown specification for display; it may be a URL without its scheme."""
    # From the beginning of a word: each of many colons would look to its end.
    return re.sub(r"(?<![^\s/])([^\s/:]*):[^\s/]*@", rf"\g<1>:{MASK}@", public_target(spec))


def secrets_of_url(url: str) -> list[str]:
    """Return a URL's password (a user alone counts as a token), its encoded forms, and the query's credentials."""
    try:
        parts = urlsplit(url)
        secrets = [value for name, value in parse_qsl(parts.query) if is_secret_field(name)]
    except ValueError:
        return []
    userinfo = parts.netloc.rpartition("@")[0]
    user, _, password = userinfo.partition(":")
    if user or password:
        secret = password or user
        # httpx sends user and password of a URL as a Basic header.
        basic = b64encode(unquote(userinfo).encode()).decode()
        secrets += [basic, secret, unquote(secret)]
    return secrets


def secrets_of_target(spec: str) -> list[str]:
    """Return the credentials in the URL of a target's or judge's specification, even if the URL is misspelt."""
    url = _URL.search(spec)
    if url is not None:
        return secrets_of_url(spec[url.start() :])
    misspelt = _MISSPELT_USERINFO.match(spec)
    if misspelt is not None:
        spec = f"//{misspelt['user']}:{misspelt['password']}@{spec[misspelt.end() :]}"
    return secrets_of_url(spec)


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """Return values of secret headers, and their parts: `Bearer` token, `Basic` password, value of each cookie."""
    secrets: list[str] = []
    for name, value in headers.items():
        if not is_secret_field(name):
            continue
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
        parts = value if isinstance(value, list | tuple) else [value]
        for part in parts:
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
        spellings: set[str] = set()
        self._sliced: list[str] = []
        for secret in secrets:
            if len(secret) >= SHORTEST_SECRET:
                spellings.update(_spellings(secret))
            # With a space it may be a sentence, whose pieces stand in others.
            if len(secret) >= SHORTEST_SLICED and " " not in secret:
                self._sliced.append(secret)
        # The longest first: a secret may be a part of another one.
        self._secrets = sorted(spellings, key=lambda secret: (-len(secret), secret))

    @property
    def is_empty(self) -> bool:
        """Return True if there are no secrets."""
        return not self._secrets

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        # Most texts are whole: the search for pieces is for the others alone.
        is_cut = "…" in text or "..." in text
        if is_cut and self._secrets:
            return _replaced(text, sorted(set(self._pieces(text))))
        return text

    def message(self, text: str) -> str:
        """Mask a text that may have been cut at its end without a mark, including the rest of a secret there."""
        text = without_forms(self._without_slices(self.text(text)), MASK)
        for secret in self._secrets:
            at = text.rfind(secret[:SHORTEST_SECRET])
            if at >= 0 and secret.startswith(text[at:]):
                return text[:at] + MASK
        return text

    def output(self, text: str) -> str:
        """Mask a log, a traceback or captured output: also headers and secret fields in it, unknown beforehand."""
        masked = _without_headers(_PRINTED_HEADER, without_forms(self._without_slices(self.text(text)), MASK))
        return _without_headers(_HEADER_LINE, masked)

    def _without_slices(self, text: str) -> str:
        """Mask pieces of long secrets, wherever a program cut them: `key[4:20]` in a message."""
        spans: list[tuple[int, int]] = []
        for secret in self._sliced:
            looked_for: Counter[str] = Counter()
            # A piece of `SHORTEST_SLICE` characters holds at least one of these blocks as a whole.
            for start in range(0, len(secret) - _BLOCK + 1, _BLOCK):
                block = secret[start : start + _BLOCK]
                looked_for[block] += 1
                if looked_for[block] <= MOST_ALIKE:
                    spans += _spans_around(secret, start, text)
        return _replaced(text, sorted(set(spans))) if spans else text

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the span of each beginning of a secret before a cut mark, or end of one after it."""
        for secret in self._secrets:
            for start in _places(secret[:SHORTEST_PIECE], text):
                end = start + _common(secret, text[start : start + len(secret)])
                if _CUT_BEHIND.match(text, end):
                    yield start, end
            for at in _places(secret[-SHORTEST_PIECE:], text):
                end = at + SHORTEST_PIECE
                before = text[max(0, end - len(secret)) : end]
                start = end - _common(secret[::-1], before[::-1])
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
            changed: dict[str, Any] = {}
            for name in names:
                member = getattr(value, name)
                masked = self._masked(member)
                if masked is not member:
                    changed[name] = masked
            return replace(value, **changed) if changed else value
        if isinstance(value, Mapping):
            pairs = {self._masked(name): self._masked(member) for name, member in value.items()}
            is_same = all(name in pairs and pairs[name] is member for name, member in value.items())
            return value if is_same else pairs
        if isinstance(value, list | tuple):
            parts = [self._masked(member) for member in value]
            if all(masked is member for masked, member in zip(parts, value, strict=True)):
                return value
            # A named tuple takes its members one by one, not as one list.
            is_named_tuple = hasattr(value, "_fields")
            return type(value)(*parts) if is_named_tuple else type(value)(parts)
        return value


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _spans_around(secret: str, start: int, text: str) -> Iterator[tuple[int, int]]:
    """Yield where pieces of a secret stand in a text that hold its block from `start` on.

    The search goes on at the end of a piece: in a text such as 1111… the pieces of 1111… would be as many as letters.
    """
    block = secret[start : start + _BLOCK]
    at = text.find(block)
    while at >= 0:
        before = _common(secret[:start][::-1], text[max(0, at - start) : at][::-1])
        behind = _common(secret[start:], text[at : at + len(secret) - start])
        further = at + 1
        if before + behind >= SHORTEST_SLICE:
            yield at - before, at + behind
            further = max(further, at + behind - _BLOCK + 1)
        at = text.find(block, further)


def _common(text: str, other: str) -> int:
    """Return the length of the common prefix."""
    length = 0
    for left, right in zip(text, other, strict=False):
        if left != right:
            break
        length += 1
    return length


def _replaced(text: str, pieces: Iterable[tuple[int, int]]) -> str:
    """Return the text with these spans masked; they are sorted and may overlap."""
    parts: list[str] = []
    done = 0
    for start, end in pieces:
        if end > done:
            parts += [text[done:start], MASK]
            done = end
    parts.append(text[done:])
    return "".join(parts)


@lru_cache(maxsize=64)
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass; empty for other classes."""
    if not is_dataclass(kind):
        return ()
    return tuple(field.name for field in fields(kind) if field.init)


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
    parts: list[str] = []
    done = 0
    while match := header.search(text, done):
        name = match["name"]
        if is_secret_name(name) and name.lower() not in _NO_HEADERS:
            parts += [text[done : match.start("value")], MASK]
            done = match.end()
        else:
            # Go on behind the name: its value may hold a header.
            parts.append(text[done : match.end("name")])
            done = match.end("name")
    parts.append(text[done:])
    return "".join(parts)


_WRITTEN_AS_NUMBERS = re.compile(r"""[+&<>='"]""")


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is, percent-encoded, and as any of JSON, HTML and Python's repr, one in the other."""
    yield quote(secret, safe="")
    # As PHP and some other writers of JSON do.
    yield secret.replace("/", "\\/")
    spellings = {secret, dumps(secret)[1:-1]}
    # Some writers of JSON escape more than they must, in lower or upper case.
    spellings.add(_WRITTEN_AS_NUMBERS.sub(lambda match: f"\\u{ord(match[0]):04x}", secret))
    spellings.add(_WRITTEN_AS_NUMBERS.sub(lambda match: f"\\u{ord(match[0]):04X}", secret))
    in_html = {escape(text) for text in spellings} | {escape(text, quote=False) for text in spellings}
    spellings |= in_html
    spellings |= {text.replace("\\", "\\\\") for text in spellings}
    yield from spellings
    yield from (text.replace("'", "\\'") for text in spellings)
