"""Calls of foreign code: with a time limit, off the event loop, its exceptions described in one line."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pytest_rageval.errors import TargetError, ends_the_run
from pytest_rageval.http.failures import retry_after_of, status_of
from pytest_rageval.io.abandoning import abandonable
from pytest_rageval.io.importing import described_exception

T = TypeVar("T")


async def call_foreign(
    call: Callable[[], Any],
    where: str,
    seconds: float,
    *,
    is_async: bool,
    kind_of: Callable[[BaseException], str] = lambda _: "exception",
) -> Any:
    """Return the result of `call`, awaited if possible; raise TargetError if it raises or takes too long.

    Unless `is_async`, it runs in its own daemon thread, so that a hanging call blocks neither the loop nor the exit.
    `kind_of` names the kind of an exception.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            result = call() if is_async else await _in_thread(call)
            return await abandonable(result) if inspect.isawaitable(result) else result
    # User code may raise anything, SystemExit and pytest.skip() included: it is an error of this case alone.
    except BaseException as error:
        if must_pass(error):
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            raise TargetError("timeout", f"{where}: no answer within {seconds:.6g} s (timeout)") from None
        raised = error.error if isinstance(error, _ThreadError) else error
        if isinstance(raised, TargetError) or ends_the_run(raised):
            raise raised from None
        kind = "connect" if _has_no_connection(raised) else kind_of(raised)
        message = f"{where}: {described_exception(raised)}"
        raise TargetError(kind, message, status=status_of(raised), retry_after=retry_after_of(raised)) from None


_NO_CONNECTION = frozenset(
    {"ConnectionRefusedError", "gaierror", "ConnectError", "NewConnectionError", "NameResolutionError"}
)
"""Names of exceptions of Python, httpx and urllib3; every client library wraps one of them."""


def _has_no_connection(error: BaseException) -> bool:
    """Return True if the exception or one of its causes means that the connection was refused or the host not found."""
    behind: BaseException | None = error
    # Bounded: chains of causes can be circular.
    for _ in range(10):
        if behind is None:
            return False
        if type(behind).__name__ in _NO_CONNECTION:
            return True
        behind = behind.__cause__ or behind.__context__
    return False


def too_large(where: str, most: int) -> str:
    """Return the message for an answer over the size limit."""
    return f"{where}: the answer is larger than {most:,} bytes (max_response_bytes)"


def must_pass(error: BaseException) -> bool:
    """Return True for the end of the program and the cancellation of the current task, which are not errors."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        # Foreign code may raise CancelledError by itself; then nobody asked for the end of this task.
        return task is not None and task.cancelling() > 0
    return ends_the_run(error) or isinstance(error, GeneratorExit)


class _ThreadError(Exception):
    """Carries exceptions out of a thread that cannot be raised across it, such as StopIteration."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _in_thread(call: Callable[[], T]) -> Awaitable[T]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    # A thread begins with an empty context: the tally and the clock of this call would be lost.
    context = contextvars.copy_context()

    def hand_over(result: Any, raised: BaseException | None) -> None:
        if future.done():  # no waiter is left
            return
        if raised is None:
            future.set_result(result)
        else:
            future.set_exception(_ThreadError(raised))

    def run() -> None:
        result: Any = None
        raised: BaseException | None = None
        try:
            result = context.run(call)
        except BaseException as error:  # noqa: BLE001 - passed on to the waiter
            raised = error
        try:
            loop.call_soon_threadsafe(hand_over, result, raised)
        # The loop may have been closed while the call hung: there is no waiter left, and nothing to report.
        except RuntimeError:
            if not loop.is_closed():
                raise

    # A daemon, and not an executor's thread: Python waits for those at exit, however long they hang.
    threading.Thread(target=run, name="rageval-call", daemon=True).start()
    return future
