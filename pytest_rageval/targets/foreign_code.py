"""Call code that is not ours: in time, away from the event loop, its exceptions described in one line."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pytest_rageval.errors import TargetError, ends_the_run
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
    """What `call` gives, awaited if it can be; TargetError where it gives nothing in time or raises.

    Unless `is_async`, it is called in a daemon thread of its own: one that hangs blocks neither the loop nor the exit.
    `kind_of` names the kind of an exception.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            result = call() if is_async else await _in_thread(call)
            return await result if inspect.isawaitable(result) else result
    # Code of the user's may raise anything, SystemExit and pytest.skip() included: it is an error of this case alone.
    except BaseException as error:
        if must_pass(error):
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            raise TargetError("timeout", f"{where}: no answer within {seconds:.6g} s (timeout)") from None
        raised = error.error if isinstance(error, _Raised) else error
        if isinstance(raised, TargetError) or ends_the_run(raised):
            raise raised from None
        kind = "connect" if _has_no_connection(raised) else kind_of(raised)
        message = f"{where}: {described_exception(raised)}"
        raise TargetError(kind, message, status=_status_of(raised)) from None


_NO_CONNECTION = frozenset(
    {"ConnectionRefusedError", "gaierror", "ConnectError", "NewConnectionError", "NameResolutionError"}
)
"""Names of exceptions of Python, httpx and urllib3; whoever's client the code called wraps one of them."""


def _has_no_connection(error: BaseException) -> bool:
    """Was the connection refused, or the name of the host not found? Said by the exception, or one behind it."""
    behind: BaseException | None = error
    for _ in range(10):
        if behind is None:
            return False
        if type(behind).__name__ in _NO_CONNECTION:
            return True
        behind = behind.__cause__ or behind.__context__
    return False


def _status_of(error: BaseException) -> int | None:
    """The status that a client library's exception carries, as those of httpx, requests and model providers do."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def too_large(where: str, most: int) -> str:
    """What is said of an answer that passes the limit."""
    return f"{where}: the answer is larger than {most:,} bytes (max_response_bytes)"


def must_pass(error: BaseException) -> bool:
    """True for the end of the program and the cancelling of the current task: no failure of the code called."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return ends_the_run(error) or isinstance(error, GeneratorExit)


class _Raised(Exception):
    """Carries out of a thread what cannot be raised across it as it is, such as StopIteration."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _in_thread(call: Callable[[], T]) -> Awaitable[T]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def hand_over(result: Any, raised: BaseException | None) -> None:
        if future.done():  # nobody waits any more
            return
        if raised is None:
            future.set_result(result)
        else:
            future.set_exception(_Raised(raised))

    def run() -> None:
        result, raised = None, None
        try:
            result = context.run(call)
        except BaseException as error:  # noqa: BLE001 - handed to who waits for it
            raised = error
        try:
            loop.call_soon_threadsafe(hand_over, result, raised)
        except RuntimeError:
            if not loop.is_closed():
                raise

    threading.Thread(target=run, name="rageval-call", daemon=True).start()
    return future
