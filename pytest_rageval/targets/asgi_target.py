"""A RAG system that is an ASGI application, called in this process by the native contract."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from pytest_rageval.config.options import is_target
from pytest_rageval.errors import TargetError
from pytest_rageval.io.abandoning import abandonable
from pytest_rageval.io.importing import described_exception
from pytest_rageval.model import Answer, AskRequest, Chunk, Json
from pytest_rageval.targets.foreign_code import must_pass, too_large
from pytest_rageval.targets.target import USUAL, BaseTarget, Connection, Surroundings, imported_target

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

SHUTDOWN_TIMEOUT = 5.0
"""Seconds that an application may take to shut down before it is cancelled."""


def from_spec(spec: str, given: Surroundings) -> AsgiTarget | None:
    """Make the target of `asgi:package.module:app`, or the demo system."""
    if spec == "demo":
        from pytest_rageval.demo.app import create_app  # here, because the demo is another program

        return AsgiTarget(create_app(), "demo", given.connection)
    if not is_target(spec):
        return None
    return AsgiTarget(imported_target(spec.partition(":")[2], given.root), spec, given.connection)


class AsgiTarget(BaseTarget):
    """Queries an application through httpx's ASGI transport. Its lifespan starts before the first question.

    It replaces the `app` of the connection. An exception of the application is the error of that case, of kind
    `exception`; if startup fails, every case has the same error.
    """

    takes_turns = True

    def __init__(self, app: App, name: str | None = None, connection: Connection = USUAL) -> None:
        from pytest_rageval.targets.http_target import HttpTarget

        self.name = name or f"asgi:{type(app).__module__}.{type(app).__qualname__}"
        self._app = app
        self._timeout = connection.timeout
        self._max_bytes = connection.max_bytes
        self._lifespan = _Lifespan(app, self.name)
        self._starting: asyncio.Future[None] | None = None
        # The transport needs an address; no connection is made to it.
        self._http = HttpTarget("http://localhost", replace(connection, app=self._guarded), name=self.name)

    async def ask(self, request: AskRequest) -> Answer:
        """Answer one question; raise TargetError if no usable answer arrives."""
        await self._started()
        try:
            return await self._http.ask(request)
        except AssertionError:  # of the transport; the application's arrive as TargetError
            message = f"{self.name}: the application ended without one complete response"
            raise TargetError("invalid_response", message) from None

    async def index_stats(self) -> dict[str, Json] | None:
        """Return the application's statistics of its index; None if it does not offer them."""
        await self._started()
        return await self._http.index_stats()

    async def index_chunks(self) -> list[Chunk] | None:
        """Return all chunks of the application's index; None if it does not list them."""
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
            # Here and not in the constructor: the lifespan belongs to the loop that asks.
            self._starting = asyncio.ensure_future(self._lifespan.start(self._timeout))
        # Shielded: the first case may be cancelled while others wait for the same start.
        await asyncio.shield(self._starting)

    async def _guarded(self, scope: Message, receive: Any, send: Any) -> None:
        # A copy for each request, as the ASGI specification asks for.
        scope["state"] = dict(self._lifespan.state)
        size = 0

        async def send_bounded(message: Message) -> None:
            # The transport keeps the whole reply before any other code can measure it.
            nonlocal size
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                raise TargetError("too_large", too_large(self.name, self._max_bytes))
            await send(message)

        try:
            await abandonable(self._app(scope, receive, send_bounded))
        # Converted here already: further out the application's httpx errors would look like ours.
        except BaseException as error:
            if must_pass(error) or isinstance(error, TargetError):
                raise
            raise TargetError("exception", f"{self.name}: {described_exception(error)}") from None


class _Lifespan:
    """Startup and shutdown by the lifespan protocol, for applications that support it."""

    def __init__(self, app: App, name: str) -> None:
        self.state: dict[str, Any] = {}
        self._app = app
        self._name = name
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self, seconds: float) -> None:
        """Start the application; raise TargetError if it reports a failure or does not respond in time."""
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
        """Ask the application to shut down and wait for it, up to a limit."""
        if self._task is None:
            return
        await self._to_app.put({"type": "lifespan.shutdown"})
        await asyncio.wait([self._task], timeout=SHUTDOWN_TIMEOUT)
        await _cancelled(self._task)

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        # An application without lifespan may raise any exception for this scope; servers take that as unsupported.
        with contextlib.suppress(Exception, SystemExit):
            await self._app(scope, self._to_app.get, self._from_app.put)
        # An application without lifespan sends nothing: the start must not wait for its time limit.
        await self._from_app.put({"type": "ended"})


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end, which its loop might otherwise not run."""
    task.cancel()
    await asyncio.wait([task], timeout=1)


def _last_line(message: str) -> str:
    """Return the last line of a traceback, which frameworks send whole; it names the exception."""
    lines = message.strip().splitlines() or ["the application does not say why"]
    return lines[-1]
