from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.asgi_target import AsgiTarget
from pytest_rageval.targets.callable_target import CallableTarget
from pytest_rageval.targets.target import Connection

QUESTION = AskRequest("What?", 5, case_key="a.jsonl::q1", params={"lang": "en"})


def ask(function: Callable[..., Any], **options: Any) -> Answer:
    return asyncio.run(CallableTarget(function, **options).ask(QUESTION))


def failure_of(function: Callable[..., Any], **options: Any) -> TargetError:
    with pytest.raises(TargetError) as caught:
        ask(function, **{"name": "bot:ask"} | options)
    assert str(caught.value).startswith("bot:ask: ")
    assert str(caught.value).isprintable()
    return caught.value


def test_what_a_function_returned_may_change_later_without_harm():
    shared: dict[str, Any] = {"answer": "x", "usage": {"calls": [1]}}
    answer = ask(lambda _: shared)
    shared["usage"]["calls"].append(2)
    assert answer.usage == {"calls": [1]}


def test_async_functions_and_objects_are_awaited():
    async def function(question: str) -> str:
        await asyncio.sleep(0)
        return question

    class Bot:
        async def __call__(self, question: str) -> str:
            return question

    for one in (function, Bot(), lambda question: function(question)):
        assert ask(one).text == "What?"


def test_a_parameter_named_request_receives_everything_that_is_asked():
    def function(question: str, *, request: AskRequest) -> str:
        return f"{question} {request.k} {request.params['lang']}"

    assert ask(function).text == "What? 5 en"


def test_a_function_that_needs_more_than_a_question_is_refused():
    with pytest.raises(SettingsError, match=r"^bot:ask cannot be called with a question alone: .*'index'"):
        CallableTarget(lambda question, index: "", "bot:ask")


def test_a_function_is_named_by_its_module():
    assert CallableTarget(json.dumps, "x").name == "x"
    assert CallableTarget(json.dumps).name == "json:dumps"


def test_a_sync_function_sees_the_context_of_its_caller():
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def run() -> Answer:
        variable.set("set")
        return await CallableTarget(lambda _: variable.get(), "x").ask(QUESTION)

    assert asyncio.run(run()).text == "set"


def test_sync_functions_run_side_by_side():
    meeting = threading.Barrier(3, timeout=20)

    def function(question: str) -> str:
        meeting.wait()
        return question

    async def run() -> list[Answer]:
        target = CallableTarget(function)
        return await asyncio.gather(*(target.ask(QUESTION) for _ in range(3)))

    assert len(asyncio.run(run())) == 3


class Skipped(BaseException):
    """As pytest's own outcomes: no Exception."""


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), StopIteration(3), SystemExit(1), Skipped("later"), asyncio.CancelledError(), TimeoutError()],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_function_raises_is_the_error_of_that_case(error: BaseException, is_async: bool):
    def function(question: str) -> str:
        raise error

    async def async_function(question: str) -> str:
        raise error

    failure = failure_of(async_function if is_async else function)
    assert failure.kind == "exception"
    if not (is_async and isinstance(error, StopIteration)):  # Python itself makes that a RuntimeError
        assert type(error).__name__ in str(failure)


def test_an_exception_is_told_in_one_line_with_its_place_in_the_users_code():
    def function(question: str) -> str:
        return str(json.loads("{\x1b[31m\n"))

    message = str(failure_of(function))
    assert message.startswith("bot:ask: JSONDecodeError: Expecting property name")
    assert "tests/targets/test_python_targets.py:" in message


def test_a_function_may_raise_a_target_error_of_its_own():
    def function(question: str) -> str:
        raise TargetError("rate_limited", "bot:ask: slow down")

    assert failure_of(function).kind == "rate_limited"


WRONG, NONE = "invalid_response", "no_answer"


@pytest.mark.parametrize(
    ("result", "kind", "said"),
    [
        (["x"], WRONG, 'returned ["x"] (list), expected str, dict or Answer'),
        ("a\ud800", WRONG, "answer is 'a\\ud800', expected text without lone surrogates"),
        ({"answer": "x", "usage": {"n": {1, 2}}}, WRONG, "usage.n is {1, 2}, expected what JSON can hold"),
        (Answer(text="x", latency={"a": float("nan")}), WRONG, "debug.latency.a is nan, expected a finite number"),
        (Answer(text="x", chunks=("c1",)), WRONG, "the Answer holds wrong types"),  # type: ignore[arg-type] # on purpose
        (None, NONE, "returned None, expected str, dict or Answer"),
        ({"usage": {}}, NONE, "expected str, dict or Answer; of usage nothing is an answer: return {'answer': …"),
    ],
)
def test_what_a_function_returns_is_checked_like_a_response(result: Any, kind: str, said: str):
    failure = failure_of(lambda _: result)
    assert (failure.kind, said in str(failure)) == (kind, True), failure


def test_a_function_that_hangs_is_left_behind():
    done = threading.Event()

    def function(question: str) -> str:
        done.wait(60)
        return "late"

    async def async_function(question: str) -> str:
        await asyncio.sleep(60)
        return "late"

    try:
        for one in (function, async_function):
            failure = failure_of(one, timeout=0.2)
            assert failure.kind == "timeout"
            assert str(failure) == "bot:ask: no answer within 0.2 s (timeout)"
    finally:
        done.set()


def test_cancelling_a_question_is_no_error_of_the_function():
    async def run() -> None:
        async def function(question: str) -> str:
            await asyncio.sleep(60)
            return ""

        task = asyncio.create_task(CallableTarget(function).ask(QUESTION))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


class App:
    """A small ASGI application that answers with what its lifespan knows; steps can be replaced."""

    def __init__(self, **steps: Any) -> None:
        self.events: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.steps = steps

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.steps.get("lifespan", self.lifespan)(scope, receive, send)
        else:
            await self.steps.get("http", self.http)(scope, receive, send)

    async def lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        while True:
            event = (await receive())["type"]
            self.events.append(event)
            scope["state"]["greeting"] = "hello"
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def http(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        self.requests.append(json.loads(body or b"null"))
        answer = {"answer": scope["state"].get("greeting", "no state"), "path": scope["path"]}
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def ask_app(app: App, times: int = 1, **options: Any) -> list[Answer | TargetError]:
    async def run() -> list[Answer | TargetError]:
        target = AsgiTarget(app, "asgi:bot:app", Connection(**options))
        try:
            outcomes = await asyncio.gather(*(target.ask(QUESTION) for _ in range(times)), return_exceptions=True)
        finally:
            await target.aclose()
        for outcome in outcomes:
            assert isinstance(outcome, Answer | TargetError)
        return outcomes  # type: ignore[return-value] # asserted just above

    return asyncio.run(run())


def test_an_application_is_asked_in_the_native_contract_and_started_once():
    app = App()
    answers = ask_app(app, times=5)
    assert {answer.text for answer in answers if isinstance(answer, Answer)} == {"hello"}
    assert app.requests == [{"question": "What?", "k": 5, "lang": "en"}] * 5
    assert app.events == ["lifespan.startup", "lifespan.shutdown"]


def test_an_application_without_lifespan_is_asked_all_the_same():
    async def no_lifespan(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(scope["type"])

    (answer,) = ask_app(App(lifespan=no_lifespan))
    assert isinstance(answer, Answer)
    assert answer.text == "no state"


def test_a_startup_that_fails_is_one_error_for_all_cases():
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "Traceback...\nOSError: no index\n"})

    app = App(lifespan=failing)
    outcomes = ask_app(app, times=3)
    assert {str(outcome) for outcome in outcomes} == {"asgi:bot:app: startup failed: OSError: no index"}
    assert app.requests == []


def test_a_startup_that_hangs_has_ended_when_that_is_said():
    async def hanging(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # closes what it had opened

    async def run() -> set[asyncio.Task[Any]]:
        with pytest.raises(TargetError, match="not started up"):
            await AsgiTarget(App(lifespan=hanging), "x", Connection(timeout=0.05)).ask(QUESTION)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(run()) == set()


@pytest.mark.parametrize("error", [ValueError("bad"), httpx.ConnectError("its own backend"), SystemExit(1)])
def test_what_an_application_raises_is_the_error_of_that_case_and_not_retried(error: BaseException):
    calls = []

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        calls.append(1)
        raise error

    (outcome,) = ask_app(App(http=failing))
    assert isinstance(outcome, TargetError)
    assert outcome.kind == "exception"
    assert str(outcome).startswith(f"asgi:bot:app: {type(error).__name__}")
    assert len(calls) == 1


@pytest.mark.parametrize(("seconds", "kind"), [(60, "timeout"), (0, "invalid_response")])
def test_an_application_that_hangs_is_a_timeout_and_one_that_does_not_reply_wrong(seconds: float, kind: str):
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(seconds)

    (outcome,) = ask_app(App(http=silent), timeout=0.2)
    assert isinstance(outcome, TargetError)
    assert outcome.kind == kind


def test_a_shutdown_is_asked_for_even_if_nobody_asked_a_question_since():
    async def run() -> None:
        target = AsgiTarget(app, "x")
        assert await target.index_stats() == {"answer": "hello", "path": "/api/v1/index/stats"}
        await target.aclose()

    app = App()
    asyncio.run(run())
    assert app.events == ["lifespan.startup", "lifespan.shutdown"]
