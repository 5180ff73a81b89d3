"""A judge whose judgements are checked and masked before anybody reads them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.http.call_limit import Limits
from pytest_rageval.http.call_tally import call_clock, current_clock
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.judge import BaseJudge, identity_of, served_model
from pytest_rageval.judges.judge_turns import judge_in_turns
from pytest_rageval.model import Json, Judgement, JudgeRequest
from pytest_rageval.text import excerpt

NO_MASK = Mask(())


class TimeLimit(NamedTuple):
    """The seconds that a judgement may take, the words for them in messages, and the limits on calls at once."""

    seconds: float
    in_words: str
    calls: Limits = Limits()


class CheckedJudge(BaseJudge):
    """A judge whose judgements are checked and masked before they are returned.

    served  model names that the server reported
    """

    def __init__(self, judge: BaseJudge, mask: Mask = NO_MASK, limit: TimeLimit | None = None) -> None:
        """Wrap a judge; a limit is for judges from outside this package."""
        self.model = judge.model
        self.heuristic = judge.heuristic
        self.rubrics = judge.rubrics
        self.identity = identity_of(judge)
        self.is_local = judge.is_local
        self.is_pinned = judge.is_pinned
        self.options = judge.options
        self.tariff = judge.tariff
        # A time limit needs a loop that runs.
        self.answers_at_once = limit is None and judge.answers_at_once
        self.takes_turns = judge.takes_turns
        self.takes_own_rubrics = judge.takes_own_rubrics
        self.compares_texts = judge.compares_texts
        self.abstention_by_phrasing = judge.abstention_by_phrasing
        self.judge_together = self.judgements if judge.judge_together is not None else None
        self.sampling = _checked_sampling(judge)
        self.served: set[str] = set()
        self._judge = judge
        self._mask = mask
        self._limit = limit
        self._ask: Callable[[JudgeRequest], Awaitable[Judgement]] = judge.judge
        # One that takes turns by itself would wait twice.
        if limit is not None and not judge.takes_turns:
            self._ask = judge_in_turns(judge, limit.calls, limit.seconds)

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Return the judgement; raise JudgeError of kind invalid_reply if it is none."""
        return self._checked(request, await self._asked(request))

    async def judgements(self, requests: Sequence[JudgeRequest]) -> list[Judgement | JudgeError]:
        """Return the judgement or the error of each request, asked together if the judge can do so."""
        results: list[Judgement | JudgeError] = []
        if self._judge.judge_together is not None and len(requests) > 1:
            results = await self._judge.judge_together(requests)
            return [self._checked_result(*pair) for pair in zip(requests, results, strict=True)]
        for request in requests:
            try:
                results.append(self._checked(request, await self._asked(request)))
            except JudgeError as error:
                results.append(error)
        return results

    async def check(self) -> str | None:
        """Return why the judge cannot be asked, in one line, or None."""
        return await self._judge.check()

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()

    def _checked_result(self, request: JudgeRequest, result: Judgement | JudgeError) -> Judgement | JudgeError:
        if isinstance(result, JudgeError):
            return result
        try:
            return self._checked(request, result)
        except JudgeError as error:
            return error

    def _checked(self, request: JudgeRequest, judgement: Judgement) -> Judgement:
        problem = judgement_problem(judgement)
        if problem is not None:
            raise JudgeError("invalid_reply", f"judge {self.model!r}, rubric {request.rubric!r}: {problem}")
        self._note_served(judgement)
        masked: Judgement = self._mask.value(judgement)
        return masked

    def _note_served(self, judgement: Judgement) -> None:
        if (served := served_model(judgement)) is not None:
            self.served.add(served)

    async def _asked(self, request: JudgeRequest) -> Judgement:
        """Return what the judge returned, in time if there is a limit."""
        if self._limit is None:
            return await self._judge.judge(request)
        clock_of_case = current_clock()
        try:
            async with asyncio.timeout(self._limit.seconds) as timeout:
                with call_clock(timeout) as clock:
                    try:
                        return await self._ask(request)
                    finally:
                        if clock_of_case is not None:
                            # What the judge waited for is no time of the case either.
                            clock_of_case.waited_s += clock.waited_s
        except TimeoutError:
            if not timeout.expired():
                # One of the judge's own, which is an error of its code.
                raise
            message = f"judge {self.model!r}, rubric {request.rubric!r}: no judgement within {self._limit.in_words}"
            raise JudgeError("timeout", message) from None


def judgement_problem(judgement: object) -> str | None:
    """Return why this is no valid judgement, or None: wrong type, number not finite or off its scale, bad text."""
    if not isinstance(judgement, Judgement):
        return f"returned {shown_value(judgement)}, expected a Judgement"
    is_pair = isinstance(judgement.scale, tuple | list) and len(judgement.scale) == 2
    if not is_pair or not all(map(_is_number, judgement.scale)) or judgement.scale[0] >= judgement.scale[1]:
        return f"its scale is {shown_value(judgement.scale)}, expected two finite numbers, the lower one first"
    if not isinstance(judgement.scores, Mapping):
        return f"its scores are {shown_value(judgement.scores)}, expected a mapping"
    low, high = judgement.scale
    for name, score in judgement.scores.items():
        if not _is_number(score):
            return f"{name} is {shown_value(score)}, expected a finite number"
        if not low <= score <= high:
            return f"{name} is {score:g}, outside its scale {low:g} to {high:g}"
    for name in ("tokens_in", "tokens_out", "cost_usd", "latency_ms"):
        spent = getattr(judgement, name)
        if spent is not None and not (_is_number(spent) and spent >= 0):
            return f"{name} is {shown_value(spent)}, expected a number of at least 0, or None"
    for name, kind in _KINDS.items():
        if not isinstance(value := getattr(judgement, name), kind):
            return f"its {name} is {shown_value(value)}, expected {_KINDS_IN_WORDS[kind]}"
    return _text_problem(judgement)


_KINDS: Mapping[str, type] = {
    "rubric": str,
    "prompt_version": str,
    "heuristic": bool,
    "cached": bool,
    "unscored": tuple,
}
_KINDS_IN_WORDS: Mapping[type, str] = {str: "a text", bool: "True or False", tuple: "a tuple"}


def _text_problem(judgement: Judgement) -> str | None:
    texts = (judgement.reasoning, judgement.model, *judgement.supported_claims, *judgement.unsupported_claims)
    # Joined, so that one check serves all texts: this runs for each judgement.
    try:
        whole_text = "".join(texts)
    except TypeError:
        return "its reasoning or claims are not all strings"
    try:
        whole_text.encode()
        if judgement.flags != () or judgement.extra != {}:
            _JSON_TEXT.encode([judgement.flags, dict(judgement.extra)]).encode()
    except UnicodeEncodeError:
        return "its text holds a lone surrogate"
    except (TypeError, ValueError, RecursionError) as error:
        return f"cannot be written as JSON: {excerpt(str(error), 120)}"
    return None


def _is_number(value: Any) -> bool:
    kind = type(value)
    is_plain = kind is float or kind is int  # the usual case, tested a dozen times per judgement
    if not is_plain and (kind is bool or not isinstance(value, int | float)):
        return False
    return bool(abs(value) <= sys.float_info.max)


def _checked_sampling(judge: BaseJudge) -> dict[str, Json]:
    """Return the judge's sampling after a round trip through JSON, as the cache returns it."""
    try:
        written = _JSON_TEXT.encode([judge.model, dict(judge.sampling)])
        written.encode()
    except (TypeError, ValueError) as error:
        place = f"judge {excerpt(repr(judge.model), 80)}: model and sampling become part of a cache key"
        raise SettingsError(f"{place}, but are no JSON text: {excerpt(str(error), 120)}") from None
    found: dict[str, Json] = json.loads(written)[1]
    return found


_JSON_TEXT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
