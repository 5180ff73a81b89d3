"""Credentials in environment variables, detected by the variables' names and the forms of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.io.masking import secrets_of_params, secrets_of_url
from pytest_rageval.io.secret_forms import (
    SHORTEST_SECRET,
    SHORTEST_UNSENT,
    is_path_or_number,
    is_word,
    secrets_by_form,
)
from pytest_rageval.io.secret_names import is_secret_name
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.providers import KEYS

SENT_FROM_ENVIRONMENT = ("RAGEVAL_TARGET_TOKEN", "RAGEVAL_JUDGE_TOKEN", *KEYS)
WEB_TOKEN = "RAGEVAL_WEB_TOKEN"  # noqa: S105 because it is the name of a variable
"""The variable with the token that a browser sends to `rageval web`; it is sent nowhere else."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}://[^\s'\"]+")
_COMMON = re.compile(
    r"[A-Za-z]+[-_ ]?v?[0-9]{1,4}([._-][0-9]{1,4})*|v?[0-9]+([._-][0-9A-Za-z]{1,3})*|[0-9]{1,4}[- ]?[A-Za-z]+"
)
"""Short values that texts hold as well: `python3.11`, `session-12`, `2024-01-31T10`, `v1.2.3-rc1`, `12 months`."""
_USER_AT_HOST = re.compile(r"[^\s/@:]+:[^\s/@]+@[^\s/@]+")
"""Proxies without a scheme."""
_PEM = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]*)-----(?P<body>.*?)(?:-----END|\Z)", re.DOTALL)
_PEM_BREAK = re.compile(r"(?:\\r|\\n|\s)+")


def secrets_of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield values of variables with names of secrets, passwords in URLs, and private keys.

    Libraries send some unasked; a user's own system may repeat others in an error.
    """
    for name, value in environment.items():
        is_named = is_secret_name(name)
        # We send these ourselves: they are secrets whatever their form.
        if name in SENT_FROM_ENVIRONMENT:
            yield value
        elif is_named and _is_secret_value(value):
            yield from _secrets_of_named(value)
        yield from _secrets_by_form(value, is_named=is_named)


def _is_secret_value(value: str) -> bool:
    """Return True for a value that no ordinary text holds by chance: long, or with letters and figures."""
    if is_path_or_number(value):
        return False
    if len(value) >= SHORTEST_UNSENT:
        return True
    is_mixed = re.search("[A-Za-z]", value) is not None and re.search("[0-9]", value) is not None
    return len(value) >= SHORTEST_SECRET and is_mixed and _COMMON.fullmatch(value) is None


def _secrets_of_named(value: str) -> Iterator[str]:
    """Yield the whole value, the value on one line, and each long enough part (lines, or a list with commas)."""
    yield value
    # In logs a value of several lines stands on one.
    yield " ".join(value.split())
    yield from (word for word in re.split(r"[\s,;]+", value) if SHORTEST_UNSENT <= len(word) < len(value))


def _secrets_by_form(value: str, *, is_named: bool) -> Iterator[str]:
    """Yield the credentials within a value, and those that no variable name reveals."""
    yield from secrets_by_form(value)
    for url in _URL.findall(value):
        yield from _secrets_of_userinfo(url)
    if _USER_AT_HOST.fullmatch(value):
        yield from _secrets_of_userinfo(f"//{value}")
    yield from _secrets_of_pem(value, is_named=is_named)
    # As the key of a service account is kept: JSON in one variable.
    if is_named and value.lstrip().startswith("{"):
        try:
            members: Any = parse(value)
        except StrictJsonError:
            return
        for secret in secrets_of_params(members):
            yield secret
            yield from _secrets_of_pem(secret, is_named=True)


def _secrets_of_userinfo(url: str) -> Iterator[str]:
    """Yield the password of a URL and its encoded forms; a user alone (`git@`) only if it is long."""
    userinfo = re.sub(r"^[^/]*//", "", url).partition("/")[0].rpartition("@")[0]
    _, colon, password = userinfo.partition(":")
    # A password that is a plain word ("postgres") would be masked in every sentence.
    if (colon and not is_word(password)) or (not colon and len(userinfo) >= SHORTEST_UNSENT):
        yield from secrets_of_url(url)


def _secrets_of_pem(value: str, *, is_named: bool) -> Iterator[str]:
    """Yield private keys line by line, because logs may indent or join the lines."""
    for block in _PEM.finditer(value):
        if is_named or "PRIVATE KEY" in block["kind"]:
            lines = [line for line in _PEM_BREAK.split(block["body"]) if len(line) >= SHORTEST_SECRET]
            yield from lines
            yield "".join(lines)
