"""Calls of the HTTP client to their end: a reply, or the failure that came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure

T = TypeVar("T")
YES = {"answer": "yes"}
QUICK = 0.01


def with_client(use: Callable[[SlottedClient], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def run() -> T:
        client = SlottedClient(**{"backoff": QUICK, "timeout": 20.0} | options)
        try:
            return await use(client)
        finally:
            await client.aclose()

    return asyncio.run(run())


def get(url: str, **options: Any) -> HttpReply:
    return with_client(lambda client: client.request("GET", url), **options)


def failure_of(url: str, **options: Any) -> HttpFailure:
    with pytest.raises(HttpFailure) as caught:
        get(url, **options)
    assert "\n" not in str(caught.value)
    return caught.value
