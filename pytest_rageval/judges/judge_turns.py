"""Turns for judges from outside this package: a call that their server refuses is made again later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pytest_rageval.errors import JudgeError
from pytest_rageval.http.attempts import AttemptCount, RetryRule, make_attempts
from pytest_rageval.http.call_limit import JUDGE, Limits, shared_limit
from pytest_rageval.http.failures import HttpFailure, is_refusal, retry_after_of, status_of
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.model import Judgement, JudgeRequest

MOST_CAUSES = 10


def judge_in_turns(judge: BaseJudge, limits: Limits, seconds: float) -> Callable[[JudgeRequest], Awaitable[Judgement]]:
    """Return the `judge` of a judge that knows of no turns, in turns of these limits.

    A server behind other code refuses a call with the status of its exception; all other exceptions pass.

    seconds  for one call, without the waits for a turn
    """
    limit_of = shared_limit(JUDGE, limits)
    rule = RetryRule(retries=0, timeout=seconds)  # other code retries failures by itself

    async def ask(request: JudgeRequest) -> Judgement:
        async def attempt(_seconds_left: float) -> Judgement:
            try:
                return await judge.judge(request)
            except Exception as error:
                refusal = _refusal_in(error)
                if refusal is None:
                    raise
                raise refusal from error

        limit = limit_of(judge.identity)
        name = f"judge {judge.model!r}"
        count = AttemptCount(is_http=False)
        try:
            return await make_attempts(attempt, limit, rule, name, count=count)
        except HttpFailure as failure:
            raise JudgeError(failure.kind, str(failure), status=failure.status) from failure

    return ask


def _refusal_in(error: BaseException) -> HttpFailure | None:
    """Return the refusal that an exception or one of its causes stands for, or None."""
    cause: BaseException | None = error
    # Bounded: exceptions can be chained in a circle.
    for _ in range(MOST_CAUSES):
        if cause is None:
            return None
        status = cause.status if isinstance(cause, JudgeError) else status_of(cause)
        retry_after = retry_after_of(cause)
        if is_refusal(status, retry_after, str(cause)):
            return HttpFailure("rate_limited", str(error), status=status, is_refusal=True, retry_after=retry_after)
        cause = cause.__cause__
    return None
