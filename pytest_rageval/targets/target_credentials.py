"""Which credential of the environment goes with a question, and to whom?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError

TOKEN = "RAGEVAL_TARGET_TOKEN"  # noqa: S105 - the name of the variable, not what it holds
"""The environment variable whose value is sent to the target as a bearer token."""
OPENAI_KEY = "OPENAI_API_KEY"
"""The environment variable whose value is sent to api.openai.com, and to no other host."""


def with_token(headers: Mapping[str, str] | None, token: str | None = None) -> dict[str, str]:
    """Headers in lower case with the bearer token of the environment, else `token`; their own `authorization` wins."""
    told = {name.lower(): value for name, value in (headers or {}).items()}
    token = os.environ.get(TOKEN) or token
    return ({"authorization": f"Bearer {token}"} if token else {}) | told


def with_openai_key(headers: Mapping[str, str] | None, address: str) -> dict[str, str]:
    """As `with_token`, and OpenAI's key where the address is OpenAI's; SettingsError where it would get none.

    The key goes to that host over TLS alone: the owner of any other server could read and use it.
    """
    parts = urlsplit(address)
    if (parts.scheme, parts.hostname, parts.port or 443) != ("https", "api.openai.com", 443):
        return with_token(headers)
    told = with_token(headers, os.environ.get(OPENAI_KEY))
    if "authorization" not in told:
        raise SettingsError(f"the environment variable {OPENAI_KEY} is not set")
    return told
