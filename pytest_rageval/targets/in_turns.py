"""Turns for targets that know of none: a function, another client, an object of the user's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import TargetError
from pytest_rageval.http.attempts import AttemptCount, RetryRule, make_attempts
from pytest_rageval.http.call_limit import SYSTEM, in_places, shared_limit
from pytest_rageval.http.failures import HttpFailure, is_refusal
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.target import BaseTarget, limits_of_system


def ask_in_turns(target: BaseTarget, settings: Settings) -> Callable[[AskRequest], Awaitable[Answer]]:
    """Return the `ask` of a target that knows of no turns, in turns of the system's limit.

    A system behind other code refuses a call with the status of its exception.
    """
    limit = shared_limit(SYSTEM, limits_of_system(settings))(target.name)

    async def ask(question: AskRequest) -> Answer:
        async def attempt(_seconds_left: float) -> Answer:
            try:
                # The turn holds the place of this call already: requests inside it must not wait for another one.
                with in_places(None):
                    return await target.ask(question)
            except TargetError as error:
                if not is_refusal(error.status, error.retry_after, str(error)):
                    raise
                raise HttpFailure(
                    error.kind, str(error), status=error.status, is_refusal=True, retry_after=error.retry_after
                ) from None

        # Other code retries by itself, and its calls are limited in time from outside.
        rule = RetryRule(retries=0, timeout=settings.longest_call)
        try:
            return await make_attempts(attempt, limit, rule, target.name, count=AttemptCount(is_http=False))
        except HttpFailure as failure:
            raise TargetError(failure.kind, str(failure), status=failure.status) from None

    return ask
