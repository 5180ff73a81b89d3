"""Judge by a plain object with the coroutines `score_groundedness` and `score_relevance`."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.model import Judgement, JudgeRequest
from pytest_rageval.text import excerpt, printable

METHODS = {"groundedness": "score_groundedness", "relevance": "score_relevance"}
"""Rubric → coroutine: `score_groundedness(answer, context)` on 0–5, `score_relevance(answer, question)` on 0–1."""


class PlainJudge:
    """An object with one or both of the coroutines, as a `Judge`.

    Its `model` and `heuristic` are taken over where it has them; else it is named by its class and taken for a model.
    `context` is the texts of all contexts, joined by blank lines.
    """

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self.model = str(getattr(plain, "model", "") or f"{type(plain).__module__}.{type(plain).__qualname__}")
        self.heuristic = bool(getattr(plain, "heuristic", False))
        self.rubrics = frozenset(rubric for rubric, method in METHODS.items() if callable(getattr(plain, method, None)))

    async def judge(self, request: JudgeRequest) -> Judgement:
        """The number that the coroutine returns, in the rubric's scale; anything else is a JudgeError."""
        if request.rubric not in self.rubrics:
            raise JudgeError("invalid_request", f"judge {self.model!r} has no rubric {request.rubric!r}")
        rubric, method = rubric_of(request), METHODS[request.rubric]
        started = time.perf_counter()
        score = await self._call(method, request)
        low, high = rubric.scale
        if isinstance(score, bool) or not isinstance(score, int | float) or not low <= score <= high:
            raise JudgeError(
                "invalid_reply",
                f"judge {self.model!r}: {method} returned {excerpt(repr(score), 80)}, "
                f"expected a number from {low:g} to {high:g}",
            )
        return Judgement(
            rubric=rubric.name,
            scores={rubric.name: float(score)},
            scale=rubric.scale,
            model=self.model,
            prompt_version=request.prompt_version,
            latency_ms=(time.perf_counter() - started) * 1000,
            heuristic=self.heuristic,
        )

    async def aclose(self) -> None:
        """Await the object's own `aclose`, where it has one."""
        aclose = getattr(self._plain, "aclose", None)
        if callable(aclose):
            await aclose()

    async def _call(self, method: str, request: JudgeRequest) -> object:
        variables = request.variables
        if request.rubric == "groundedness":
            second = "\n\n".join(context["text"] for context in variables["contexts"])
        else:
            second = variables["question"]
        try:
            score = getattr(self._plain, method)(variables["answer"], second)
            return await score if inspect.isawaitable(score) else score
        except JudgeError:
            raise
        # A user's own code may raise anything, pytest.skip() included; it is this case's error.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | GeneratorExit | asyncio.CancelledError):
                raise
            raised = excerpt(f"{type(error).__name__}: {error}")
            raise JudgeError("exception", printable(f"judge {self.model!r}: {method} raised {raised}")) from error
