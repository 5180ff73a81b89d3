"""A RAG system behind an HTTP client of the user's own, such as httpx.Client or a framework's TestClient."""

from __future__ import annotations

import inspect
from typing import Any

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.ask_body import ASK_PATH, ask_body
from pytest_rageval.targets.foreign_code import call_foreign, too_large
from pytest_rageval.targets.native_contract import answer_from_body


class ClientTarget:
    """Speaks the native contract through anything with a `base_url` and a `post`, sync or async.

    Time-outs other than the total one, retries and credentials are the client's own business, and so is closing it.
    """

    def __init__(
        self, client: Any, name: str | None = None, *, timeout: float = 120.0, max_bytes: int = 16 * 2**20
    ) -> None:
        base = getattr(client.base_url, "host", client.base_url)
        if not base:
            raise SettingsError(f"rag_client: the {type(client).__name__} has no base URL; give it one")
        self.name = name or f"{type(client).__module__.partition('.')[0]}.{type(client).__name__}"
        self._client = client
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._is_async = inspect.iscoroutinefunction(client.post)

    async def ask(self, request: AskRequest) -> Answer:
        """One question, sent once."""
        question = {"params": {"debug": "true"}, "json": ask_body(request)}

        def post() -> tuple[int, bytes]:
            response = self._client.post(ASK_PATH, **question)
            return int(response.status_code), bytes(response.content)

        async def post_async() -> tuple[int, bytes]:
            response = await self._client.post(ASK_PATH, **question)
            return int(response.status_code), bytes(response.content)

        status, body = await call_foreign(
            post_async if self._is_async else post,
            self.name,
            self._timeout,
            is_async=self._is_async,
            kind_of=_kind_of,
        )
        if len(body) > self._max_bytes:
            raise TargetError("too_large", too_large(self.name, self._max_bytes))
        if 200 <= status < 300:
            return answer_from_body(body, self.name)
        kind = "rate_limited" if status == 429 else "http_4xx" if 400 <= status < 500 else "http_5xx"
        message = f"{self.name}: status {status}: {shown_value(body.decode('utf-8', 'replace'))}"
        raise TargetError(kind if status >= 400 else "invalid_response", message, status=status)

    async def aclose(self) -> None:
        """The client belongs to who made it."""


_KINDS = {
    "ConnectError": "connect",
    "ConnectTimeout": "connect",
    "ConnectionRefusedError": "connect",
    "TimeoutException": "timeout",
    "Timeout": "timeout",
    "NetworkError": "reset",
    "RemoteProtocolError": "reset",
    "ConnectionError": "reset",
}


def _kind_of(error: BaseException) -> str:
    """The kind by the names of the exception's classes: the client's library need not be imported to know them."""
    return next((_KINDS[base.__name__] for base in type(error).__mro__ if base.__name__ in _KINDS), "exception")
