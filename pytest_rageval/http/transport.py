"""Which library carries requests: aiohttp where it is installed and can, else httpx."""

from __future__ import annotations

import importlib.metadata
import os
import re

from pytest_rageval.config.options import TRANSPORT_VARIABLE
from pytest_rageval.errors import SettingsError

_LEAST = (3, 13, 5)
"""The first aiohttp that bounds the number of header fields as it is told to."""


def transport_name() -> str:
    """`aiohttp` or `httpx`: what carries requests that go through no proxy."""
    wanted = os.environ.get(TRANSPORT_VARIABLE, "").strip()
    if wanted not in ("", "httpx", "aiohttp"):
        raise SettingsError(f"environment variable {TRANSPORT_VARIABLE}: {wanted!r} is not 'httpx' or 'aiohttp'")
    if wanted == "aiohttp" and not _has_aiohttp():
        raise SettingsError(f"{TRANSPORT_VARIABLE}: aiohttp is not installed; pip install 'pytest-rageval[fast]'")
    return wanted or ("aiohttp" if _has_aiohttp() else "httpx")


def _has_aiohttp() -> bool:
    """Whether it is installed, and new enough; nothing is imported."""
    try:
        version = importlib.metadata.version("aiohttp")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(map(int, re.findall(r"\d+", version)[:3])) >= _LEAST
