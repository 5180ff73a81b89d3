"""The one door for asking a system: with a time limit, output captured, failures as values, credentials masked.

Whatever asks a system goes through `ask_system`: runs, doctor, REPL, sweep, label and the web app. Nothing else calls a
target's `ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import replace

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import JudgeError, TargetError, ends_the_run, message_of
from pytest_rageval.http.call_tally import call_clock
from pytest_rageval.io.case_output import OUTPUT, Output
from pytest_rageval.io.masking import Mask
from pytest_rageval.model import Answer, AskRequest, Problem
from pytest_rageval.targets.in_turns import ask_in_turns
from pytest_rageval.targets.target import BaseTarget
from pytest_rageval.text import excerpt, printable

LONGEST_MESSAGE = 300
"""Characters kept of an exception's message, which may quote an answer of any length."""


Ask = Callable[[AskRequest], Awaitable[Answer]]


async def ask_system(
    target: BaseTarget,
    request: AskRequest,
    mask: Mask,
    limit: asyncio.Timeout | None = None,
    in_words: str = "",
    *,
    in_turns: Settings | None = None,
) -> Answer | Problem:
    """Ask a system one question; return its answer, or why there is none, both without credentials.

    Output of the system goes to the case under way (`OUTPUT`), and nowhere if there is none.

    limit     not yet entered; None only for a target that never waits
    in_words  the limit, for the message
    in_turns  the settings of the system's rate limit, where requests wait for their turn; the limit in time stands
              still then. None: the one question is asked at once
    """
    timed: AbstractAsyncContextManager[object] = nullcontext() if limit is None else limit
    ask: Ask = target.ask
    clock: AbstractContextManager[object] = nullcontext()
    if in_turns is not None and limit is not None:
        clock = call_clock(limit)
        if not target.takes_turns:
            ask = ask_in_turns(target, in_turns)
    try:
        with _captured():
            async with timed:
                with clock:
                    answer = await ask(request)
    except TimeoutError as error:
        if limit is None or not limit.expired():
            return Problem("exception", raised(error, mask))
        return Problem("timeout", f"no answer within {in_words}")
    except TargetError as error:
        return problem_of(error.kind, error, mask)
    except Exception as error:
        if ends_the_run(error):
            raise
        return Problem("exception", raised(error, mask))
    masked = mask.value(answer)
    # A text without credentials comes back as the same object.
    return masked if masked is answer else replace(masked, repeats_credential=True)


def _captured() -> AbstractContextManager[object]:
    """Keep the output of no case from the terminal."""
    return nullcontext() if OUTPUT.get() is not None else Output()


def problem_of(kind: str, error: TargetError | JudgeError, mask: Mask) -> Problem:
    """Return why asking or judging failed, without credentials."""
    raw = error.raw if isinstance(error, JudgeError) else None
    return Problem(kind, mask.message(str(error)), None if raw is None else mask.message(raw), error.status)


def raised(error: BaseException, mask: Mask) -> str:
    """Return type and message of an exception of user code, on one short line, without credentials."""
    name = printable(type(error).__name__)
    message = excerpt(mask.text(message_of(error)), LONGEST_MESSAGE)
    return f"{name}: {message}" if message else name
