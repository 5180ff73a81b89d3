"""Which key of the environment goes with a question to a judge, and to whom?"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError

OPENAI_KEY = "OPENAI_API_KEY"
"""Sent to api.openai.com, and to no other host."""
ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
"""Sent to api.anthropic.com, and to no other host."""
TOKEN = "RAGEVAL_JUDGE_TOKEN"  # noqa: S105 - the name of the variable, not what it holds
"""Sent to any other server of a judge, where set."""


def bearer(address: str, variable: str, home: str) -> tuple[dict[str, str], str]:
    """The key as a bearer token, where there is one, and the variable that it is taken from."""
    key, name = _key_for(address, variable, home)
    return ({"authorization": f"Bearer {key}"} if key else {}), name


def x_api_key(address: str, variable: str, home: str) -> tuple[dict[str, str], str]:
    """The same as the header `x-api-key`."""
    key, name = _key_for(address, variable, home)
    return ({"x-api-key": key} if key else {}), name


def _key_for(address: str, variable: str, home: str) -> tuple[str | None, str]:
    """A provider's key goes to its own host over TLS alone: the owner of any other server could read and use it.

    SettingsError where that host would get none. Other servers get what was set for them, or nothing.
    """
    parts = urlsplit(address)
    if (parts.scheme, parts.hostname, parts.port or 443) != ("https", urlsplit(home).hostname, 443):
        return os.environ.get(TOKEN) or None, TOKEN
    if key := os.environ.get(variable):
        return key, variable
    raise SettingsError(f"the environment variable {variable} is not set; {urlsplit(home).hostname} needs it")
