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

T = TypeVar("T")

MASK = "***"
# Shorter ones cannot be told from words: masking "test" wherever it stands would change what a system answered.
SHORTEST_SECRET = 8
SHORTEST_PIECE = 4
"""Of a secret that was cut: what is left of it beside a mark such as `…`."""
_CUT_BEHIND = re.compile(r"['\"]?(?:…|\.\.\.)")
_MARKS_BEFORE = tuple(mark + quotation for mark in ("…", "...") for quotation in ("", "'", '"'))
_URL = re.compile("[A-Za-z][A-Za-z0-9+-]*://")
_MISSPELT_USERINFO = re.compile(
    r"(?:h?t+ps?(?:/+|:/*)|/+)(?P<user>[^\s/:@]*):(?P<password>\S+)@(?!\S*://)", re.IGNORECASE
)
"""Of what was meant as a URL and is none, such as `htp:/user:password@host`. `deepeval:faithfulness@judge` is none."""
_FILLED_IN = re.compile(r"\{[A-Za-z_][\w.-]*\}")
"""What a mapping fills in, such as `{question}`."""


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────

_SECRET_WORD = re.compile(
    r"(password|passwd|passphrase|passcode|pass|passw|pwd|secret|token|credential|cred|jwt|dsn|auth|authorization|sk|pat"
    r"|bearer|webhook|cookie|signature|sig|key|apikey|sessionid|session)s?"
)
"""The last word of a name: `DB_PASSWORD_2`, `x-api-key`, `accountKey`."""
_GLUED = re.compile(
    r"(password|passwd|passphrase|secret|token|credential|cookie|sessid|sessionid|authorization"
    r"|(?<!public)(?<!foreign)(?<!primary)(?<!sort)(api|access|secret|private|account|auth|license)key)s?$"
)
"""The end of a word without borders inside: `PGPASSWORD`, `secretkey`."""
_BEHIND = re.compile(r"access key id$|(secret|key) base$|webhooks? (url|uri)$|session id$")
_PUBLIC = re.compile(
    r"\b(public|primary|foreign|sort|partition|cache|case|idempotency|websocket) key$"
    r"|\b(max|min|num|n|prompt|completion|input|output|total|reasoning|stop|eos|bos|pad|unk|special) tokens?$"
    r"|\b(desktop|xdg|gdm) session( id)?$|^(old)?pwd$"
)
"""What ends so and is none: names of columns, counts of tokens, folders, sessions of a desktop."""
_BORDERS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Check whether an environment variable, header, option, parameter or field of this name usually holds a secret."""
    words = [word.lower() for word in _BORDERS.split(name) if word]
    while len(words) > 1 and words[-1].isdecimal():
        words.pop()
    if not words:
        return False
    last = words[-1] = words[-1].rstrip("0123456789") or words[-1]
    phrase = " ".join(words)
    if _PUBLIC.search(phrase) is not None:
        return False
    is_word = _SECRET_WORD.fullmatch(last) is not None or _GLUED.search(last) is not None
    return is_word or _BEHIND.search(phrase) is not None


# ── URLs, headers, parameters ─────────────────────────────────────────────────────────────────────────────────


def public_url(url: str) -> str:
    """The URL as it may be shown: without user, password and fragment, with credentials in its query masked."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", url.partition("?")[0].partition("#")[0])
    shown = parts.query
    if any(is_secret_name(name) for name, _ in query):
        shown = "&".join(f"{name}={MASK if is_secret_name(name) else value}" for name, value in query)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, shown, ""))


def public_target(spec: str) -> str:
    """The spelling of a target as it may be shown: the URL in it, if there is one, as `public_url` shows it."""
    url = _URL.search(spec)
    if url is not None:
        return spec[: url.start()] + public_url(spec[url.start() :])
    misspelt = _MISSPELT_USERINFO.match(spec)
    return spec if misspelt is None else spec[: misspelt.start("password")] + MASK + spec[misspelt.end("password") :]


def public_unknown(spec: str) -> str:
    """What is no known specification as it may be shown: it may be a URL without its scheme."""
    return re.sub(r":[^\s/]*@", f":{MASK}@", public_target(spec))


def secrets_of_url(url: str) -> list[str]:
    """The password (a user without one is taken for a token), also as it is sent, and the credentials in the query."""
    try:
        parts = urlsplit(url)
        secrets = [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
    except ValueError:
        return []
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        basic = b64encode(unquote(f"{user}{colon}{password}").encode()).decode()
        secrets += [basic, *([password, unquote(password)] if password else [user, unquote(user)])]
    return secrets


def secrets_of_target(spec: str) -> list[str]:
    """The credentials in the URL that is or stands in the spelling of a target or a judge, misspelt ones included."""
    url = _URL.search(spec)
    misspelt = _MISSPELT_USERINFO.match(spec) if url is None else None
    if misspelt is not None:
        spec = f"//{misspelt['user']}:{misspelt['password']}@{spec[misspelt.end() :]}"
    return secrets_of_url(spec[url.start() :] if url else spec)


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """The values of headers that by their name hold credentials, and what of them a server may repeat alone: the token
    of `Bearer TOKEN`, the password of `Basic …`, the value of each cookie."""
    secrets = []
    for name, value in headers.items():
        if is_secret_name(name):
            scheme, _, token = value.partition(" ")
            secrets += [value, token]
            if scheme.lower() == "basic":
                secrets += _basic_parts(token)
            if "cookie" in name.lower():
                secrets += [cookie.partition("=")[2].strip() for cookie in value.split(";")]
    return secrets


def _basic_parts(token: str) -> list[str]:
    """`user:password` and the password, where the token is what it should be."""
    try:
        userinfo = b64decode(token, validate=True).decode()
    except ValueError:
        return []
    return [userinfo, userinfo.partition(":")[2]]


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


class Mask:
    """Replaces known credentials wherever somebody repeats them, as they are or as JSON and URLs spell them.

    Where a text was cut, at `…` or `...`, what is left of one there goes as well: pytest and other libraries cut texts
    before anybody can mask them.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        long_secrets = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        spelt = {spelling for secret in long_secrets for spelling in _spellings(secret)}
        self._secrets = sorted(spelt, key=lambda secret: (-len(secret), secret))

    @property
    def is_empty(self) -> bool:
        """Is there nothing to hide?"""
        return not self._secrets

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        if self._secrets and ("…" in text or "..." in text):
            return _replaced(text, sorted({*self._pieces(text)}))
        return text

    def message(self, text: str) -> str:
        """A text that may have been cut at its end without a mark: what is left of a secret there goes, too."""
        text = self.text(text)
        for secret in self._secrets:
            at = text.rfind(secret[:SHORTEST_SECRET])
            if at >= 0 and secret.startswith(text[at:]):
                return text[:at] + MASK
        return text

    def shown(self, text: str) -> str:
        """A log, a traceback or captured output, also without the credentials in headers that somebody printed there:
        those of a reply are nobody's secret before it comes."""
        return _without_headers(_HEADER_LINE, _without_headers(_PRINTED_HEADER, self.text(text)))

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the beginning of a secret stands before a mark of cutting, or the end of one behind it."""
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


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _common(text: str, other: str) -> int:
    """How many first characters are the same."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(text), len(other)))


def _replaced(text: str, pieces: Iterable[tuple[int, int]]) -> str:
    """The text with each of these pieces masked; they come in order, and may overlap."""
    parts, done = [], 0
    for start, end in pieces:
        if end > done:
            parts += [text[done:start], MASK]
            done = end
    return "".join([*parts, text[done:]])


@lru_cache(maxsize=64)
def _field_names(kind: Any) -> tuple[str, ...]:
    """What a value of a dataclass is made of; nothing for other classes."""
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
"""`Set-Cookie: …`, also behind a line's end as Python prints it."""
_NO_HEADERS = frozenset({"key", "keys", "session", "pass"})
"""Words of ordinary text: beside one of them may stand anything."""


def _without_headers(header: re.Pattern[str], text: str) -> str:
    """The text without the values of headers that by their names hold a secret."""
    parts, done = [], 0
    while match := header.search(text, done):
        is_secret = is_secret_name(match["name"]) and match["name"].lower() not in _NO_HEADERS
        end = match.end() if is_secret else match.end("name")
        parts += [text[done : match.start("value")], MASK] if is_secret else [text[done:end]]
        done = end
    return "".join([*parts, text[done:]])


_WRITTEN_AS_NUMBERS = re.compile(r"""[+&<>='"]""")


def _spellings(secret: str) -> Iterator[str]:
    """As it is; percent-encoded; as HTML; and as JSON writers spell it that escape more than they need."""
    yield secret
    yield quote(secret, safe="")
    yield escape(secret)
    yield escape(secret, quote=False)
    yield secret.replace("/", "\\/")
    yield dumps(secret)[1:-1]
    for digits in ("04x", "04X"):
        yield _WRITTEN_AS_NUMBERS.sub(lambda match: "\\u" + format(ord(match[0]), digits), secret)  # noqa: B023 - used at once
