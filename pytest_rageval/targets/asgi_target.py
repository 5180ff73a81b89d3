"""A RAG system that is an ASGI application, asked in this process by the native contract."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from pytest_rageval.errors import TargetError
from pytest_rageval.io.importing import described_exception
from pytest_rageval.model import Answer, AskRequest, Chunk, Json
from pytest_rageval.targets.foreign_code import must_pass, too_large
from pytest_rageval.targets.http_target import HttpTarget
from pytest_rageval.targets.target import USUAL, Connection

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

SHUTDOWN_TIMEOUT = 5.0
"""Seconds that an application may take to shut down before it is cancelled."""


class AsgiTarget:
    """Asks an application through httpx's ASGI transport. Its lifespan starts before the first question.

    It stands in for the `app` of the connection. What the application raises is the error of that case, of kind
    `exception`; if it does not start up, every case has the same error.
    """

    def __init__(self, app: App, name: str | None = None, connection: Connection = USUAL) -> None:
        self.name = name or f"asgi:{type(app).__module__}.{type(app).__qualname__}"
        self._app = app
        self._timeout = connection.timeout
        self._max_bytes = connection.max_bytes
        self._lifespan = _Lifespan(app, self.name)
        self._starting: asyncio.Future[None] | None = None
        self._http = HttpTarget("http://localhost", replace(connection, app=self._guarded), name=self.name)

    async def ask(self, request: AskRequest) -> Answer:
        """One question; raises TargetError where no usable answer comes."""
        await self._started()
        try:
            return await self._http.ask(request)
        except AssertionError:  # of the transport; those of the application come as TargetError
            message = f"{self.name}: the application ended without one complete response"
            raise TargetError("invalid_response", message) from None

    async def index_stats(self) -> dict[str, Json] | None:
        """What the application says of its index; None where it does not offer that."""
        await self._started()
        return await self._http.index_stats()

    async def index_chunks(self) -> list[Chunk] | None:
        """All chunks of the application's index; None where it does not list them."""
        await self._started()
        return await self._http.index_chunks()

    async def aclose(self) -> None:
        """Shut the application down."""
        if self._starting is not None:
            self._starting.cancel()
            await self._lifespan.stop()
        await self._http.aclose()

    async def _started(self) -> None:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._lifespan.start(self._timeout))
        # Shielded: the first case may be cancelled while others wait for the same start.
        await asyncio.shield(self._starting)

    async def _guarded(self, scope: Message, receive: Any, send: Any) -> None:
        scope["state"] = dict(self._lifespan.state)
        size = 0

        async def send_bounded(message: Message) -> None:
            # The transport keeps all that comes before anybody else can count it.
            nonlocal size
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                raise TargetError("too_large", too_large(self.name, self._max_bytes))
            await send(message)

        try:
            await self._app(scope, receive, send_bounded)
        # Said here already: further out an httpx error of the application's would look like one of ours.
        except BaseException as error:
            if must_pass(error) or isinstance(error, TargetError):
                raise
            raise TargetError("exception", f"{self.name}: {described_exception(error)}") from None


class _Lifespan:
    """Startup and shutdown by the lifespan protocol, for applications that have it."""

    def __init__(self, app: App, name: str) -> None:
        self.state: dict[str, Any] = {}
        self._app = app
        self._name = name
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self, seconds: float) -> None:
        """Raises TargetError if the application says that it cannot start, or does not say anything in time."""
        self._task = asyncio.create_task(self._run())
        await self._to_app.put({"type": "lifespan.startup"})
        try:
            async with asyncio.timeout(seconds):
                message = await self._from_app.get()
        except TimeoutError:
            await _cancelled(self._task)
            raise TargetError("timeout", f"{self._name}: not started up within {seconds:.6g} s (timeout)") from None
        if message["type"] == "lifespan.startup.failed":
            raise TargetError("exception", f"{self._name}: startup failed: {_last_line(message.get('message', ''))}")

    async def stop(self) -> None:
        """Ask the application to shut down and wait for it, though not for ever."""
        if self._task is None:
            return
        await self._to_app.put({"type": "lifespan.shutdown"})
        await asyncio.wait([self._task], timeout=SHUTDOWN_TIMEOUT)
        await _cancelled(self._task)

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        # An application without lifespan raises whatever it likes at this scope; servers take that for a no.
        with contextlib.suppress(Exception, SystemExit):
            await self._app(scope, self._to_app.get, self._from_app.put)
        await self._from_app.put({"type": "ended"})


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and let it end, which its loop may not live to see otherwise."""
    task.cancel()
    await asyncio.wait([task], timeout=1)


def _last_line(message: str) -> str:
    """Frameworks send a whole traceback; its last line says what it was."""
    lines = message.strip().splitlines() or ["the application does not say why"]
    return lines[-1]
