"""A RAG system that is a Python function, sync or async: takes a question, returns a str, a dict or an Answer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.foreign_code import call_foreign, too_large
from pytest_rageval.targets.native_contract import (
    answer_from_record,
    answer_from_response,
    answer_to_response,
)


class CallableTarget:
    """Calls a function with the question.

    A parameter named `request` that is not the first one receives the whole `AskRequest`. A function that is not
    async runs in a daemon thread. Its exception is the error of that case, of kind `exception`; a call longer than
    `timeout` seconds is a `timeout` (a hanging thread is left behind). A dict is an answer record. A result of more
    than `max_bytes` as JSON is `too_large`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        *,
        timeout: float = 120.0,
        max_bytes: int = 16 * 2**20,
    ) -> None:
        self.name = name or _name_of(function)
        self._function = function
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - of an object, __call__ says whether it is async
        )
        self.takes_params = _takes_request(function, self.name)

    async def ask(self, request: AskRequest) -> Answer:
        """Call the function once; raise TargetError if it fails or returns another type."""

        def call() -> Any:
            named = {"request": request} if self.takes_params else {}
            return self._function(request.question, **named)

        result = await call_foreign(call, self.name, self._timeout, is_async=self._is_async)
        if _size(result) > self._max_bytes:
            raise TargetError("too_large", too_large(self.name, self._max_bytes))
        return answer_of(result, self.name)

    async def aclose(self) -> None:
        """Do nothing: the target holds no resources."""


def answer_of(result: Any, where: str) -> Answer:
    """Convert a function's result to an Answer, checked as strictly as a response over the network."""
    if isinstance(result, str):
        return answer_from_response({"answer": result}, where)
    if isinstance(result, dict):
        return answer_from_record(result, where)
    if isinstance(result, Answer):
        try:
            response = answer_to_response(result)
        except (AttributeError, TypeError, ValueError) as error:
            raise TargetError("invalid_response", f"{where}: the Answer holds wrong types: {error}") from None
        return answer_from_response(response, where)
    written = "None" if result is None else f"{shown_value(result)} ({type(result).__name__})"
    message = f"{where}: returned {written}, expected str, dict or Answer"
    raise TargetError("no_answer" if result is None else "invalid_response", message)


def _size(result: Any) -> int:
    """Return the size of a function's result in bytes of JSON; 0 if it is not JSON, which reading it will report."""
    try:
        data = answer_to_response(result) if isinstance(result, Answer) else result
        return len(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (AttributeError, TypeError, ValueError, RecursionError):
        return 0


def _name_of(function: Callable[..., Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _takes_request(function: Callable[..., Any], name: str) -> bool:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some built-in callables have none
        return False
    parameters = list(signature.parameters)
    takes_request = "request" in parameters[1:]
    try:
        signature.bind("", **({"request": None} if takes_request else {}))
    except TypeError as error:
        raise SettingsError(f"{name} cannot be called with a question alone: {error}") from None
    return takes_request
