"""A RAG system that is Python code: a function of a question, or an object with a method such as `invoke`."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.http.call_tally import note_first_token
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.foreign_code import call_foreign, too_large
from pytest_rageval.targets.foreign_results import DOCUMENTS, Call, call_of, foreign_record, member_names
from pytest_rageval.targets.native_contract import (
    answer_from_record,
    answer_from_response,
    answer_to_response,
)
from pytest_rageval.targets.streams import stream_of, whole
from pytest_rageval.targets.target import BaseTarget, conversation_id_of, messages_of_chat
from pytest_rageval.targets.tool_calls import calls_of_framework
from pytest_rageval.text import counted


class CallableTarget(BaseTarget):
    """Calls a function, or the method of a framework's object, with the question.

    A parameter named `request` that is not the first one receives the whole `AskRequest`; one named `history`,
    `messages` or `conversation_id` receives that part of it. A function that is not
    async runs in a daemon thread. Its exception is the error of that case, of kind `exception`; a call longer than
    `timeout` seconds is a `timeout` (a hanging thread is left behind). A dict is an answer record. A generator or
    stream is read to its end, in as many seconds again. A result of more than `max_bytes` as JSON is `too_large`.
    """

    def __init__(
        self,
        function: Any,
        name: str | None = None,
        *,
        timeout: float = 120.0,
        max_bytes: int = 16 * 2**20,
    ) -> None:
        self.name = name or _name_of(function)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._chunks = 0
        self._unplaced = 0
        call = call_of(function)
        parts = () if call is not None else _parts_taken(function, self.name)
        self._takes_params = "request" in parts
        self._takes_history = not {"request", "history", "messages", "conversation_id"}.isdisjoint(parts)
        self.keeps_conversations = not {"request", "conversation_id"}.isdisjoint(parts)
        self._without_history = 0
        if not self._takes_history:
            remedy = "add a parameter named history, messages, conversation_id or request to the function"
            self.without_history = f"{self.name} takes a question alone; {remedy}"
        self._call = call or _call_of_function(function, parts)

    async def ask(self, request: AskRequest) -> Answer:
        """Call the function once; raise TargetError if it fails or returns another type."""
        call = self._call
        self._without_history += bool(request.history) and not self._takes_history
        started = time.perf_counter()
        result = await call_foreign(lambda: call.ask(request), self.name, self._timeout, is_async=call.is_async)
        if stream_of(result) is not None:
            # A function that returns a generator has returned before it did the work, so the time limit begins again.
            result, first_text_at = await whole(result, self.name, self._timeout, self._max_bytes, _size)
            if first_text_at is not None:
                note_first_token(round((first_text_at - started) * 1000, 3))
        if not isinstance(result, Answer) and not _is_native(result):
            record = foreign_record(result) or _meaningless(result, self.name)
            calls = calls_of_framework(result)
            result = {**record, "tool_calls": calls} if calls else record
        # The limit that a reply over the network has: a record of any size would fill memory and disk.
        if _size(result) > self._max_bytes:
            raise TargetError("too_large", too_large(self.name, self._max_bytes))
        answer = answer_of(result, self.name)
        chunks = answer.chunks or ()
        self._chunks += len(chunks)
        placed = [chunk for chunk in chunks if chunk.rel_path or chunk.chunk_id or chunk.doc_id]
        self._unplaced += len(chunks) - len(placed)
        return answer

    @property
    def notes(self) -> list[str]:  # type: ignore[override] # because it is known at the end
        """Return one line about all chunks that name no place, and one about questions asked without their history."""
        notes: list[str] = []
        if self._unplaced:
            many = f"{self._unplaced} of {counted(self._chunks, 'chunk')}"
            read = "source, file_path, file_name, path or url"
            notes.append(f"{many} name no place: their metadata has none of {read}")
        if self._without_history:
            many = counted(self._without_history, "question was", "questions were")
            notes.append(f"{many} asked without what was said before: {self.without_history}")
        return notes

    def params_problem(self, names: Sequence[str]) -> str:
        """Return why the function cannot be given these parameters; empty if it can."""
        if self._takes_params or not names:
            return ""
        return (
            f"{self.name} takes a question alone and cannot be given {', '.join(names)}; "
            "add a parameter named request to the function, whose params hold them"
        )

    async def aclose(self) -> None:
        """Do nothing: the target holds no resources."""


_PARTS: Mapping[str, Callable[[AskRequest], Any]] = {
    "request": lambda request: request,
    "history": lambda request: [turn._asdict() for turn in request.history or ()],
    "messages": messages_of_chat,
    "conversation_id": conversation_id_of,
}
"""What a function receives besides the question, by the name of its parameter."""


def _call_of_function(function: Any, parts: Collection[str]) -> Call:
    def ask(request: AskRequest) -> Any:
        given = {name: _PARTS[name](request) for name in parts}
        return function(request.question, **given)

    own = getattr(function, "__call__", None)  # noqa: B004 - of an object, __call__ says whether it is async
    return Call(ask, inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(own))


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
    expected = "expected str, dict or Answer"
    if result is None:
        raise TargetError("no_answer", f"{where}: returned None, {expected}")
    raise TargetError("invalid_response", f"{where}: returned {shown_value(result)}, {expected}")


def _meaningless(result: Any, where: str) -> NoReturn:
    message = f"{where}: returned {shown_value(result)} ({type(result).__name__}), expected str, dict or Answer"
    if members := list(member_names(result)):
        message += f"; of {listed(members)} nothing is an answer: return {{'answer': …, 'retrieved_chunks': […]}}"
    raise TargetError("no_answer" if isinstance(result, dict) else "invalid_response", message)


def _is_native(result: Any) -> bool:
    """Return True if a result is an answer record already, or nothing that a framework returns."""
    if not isinstance(result, dict):
        return result is None or isinstance(result, str)
    if not result.keys().isdisjoint(("retrieved_chunks", "debug", "references")):
        return True
    if "answer" not in result:
        return False
    # An answer of a wrong type is a problem of the record; an object with `content` is a message of a framework.
    is_message = hasattr(result["answer"], "content")
    return not is_message and result.keys().isdisjoint(DOCUMENTS)


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


def _parts_taken(function: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Return the names of `_PARTS` that the function has parameters for, besides its first."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some built-in callables have none
        return ()
    parameters = list(signature.parameters)
    # Taken from its class, the method would receive the question as `self`.
    if parameters[:1] == ["self"]:
        raise SettingsError(f"{name}: is the method of a class; give that of an instance")
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [each for each in parameters[1:] if signature.parameters[each].kind in by_name]
    parts = tuple(part for part in _PARTS if part in named)
    try:
        # A function that needs more than it is given would fail with the same TypeError in each case.
        signature.bind("", **dict.fromkeys(parts))
    except TypeError as error:
        raise SettingsError(f"{name} cannot be called with a question alone: {error}") from None
    return parts
