"""Judges without a model: a plain object with `score_groundedness` and `score_relevance`, and a constant."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Mapping
from typing import Any

from pytest_rageval.errors import JudgeError, SettingsError, ends_the_run
from pytest_rageval.io.abandoning import abandonable
from pytest_rageval.judges.judge import FREE, BaseJudge, JudgeSpec, check_rubric
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.model import NOTHING, Json, Judgement, JudgeRequest
from pytest_rageval.text import excerpt, printable

METHODS = {"groundedness": "score_groundedness", "relevance": "score_relevance"}
"""Rubric → coroutine: `score_groundedness(answer, context)`, `score_relevance(answer, question)`."""

SCALE = (0.0, 1.0)
"""Scale of both scores, unless the object has an attribute `scale`."""


class PlainJudge(BaseJudge):
    """An adapter of an object with one or both of the coroutines to `Judge`.

    It has the object's `model`, `heuristic` and `scale`. By default it is named after the class, counts as a model,
    and scores from 0 to 1. `context` is the texts of all contexts, joined by blank lines. An invalid scale raises
    SettingsError.
    """

    is_foreign = True

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        kind = type(plain)
        self.model = str(getattr(plain, "model", "") or f"{kind.__module__}.{kind.__qualname__}")
        self.heuristic = bool(getattr(plain, "heuristic", False))
        self.is_local = self.heuristic
        self.rubrics = frozenset(rubric for rubric, method in METHODS.items() if callable(getattr(plain, method, None)))
        stated = getattr(plain, "scale", None)
        self._scale = SCALE if stated is None else _checked_scale(self.model, stated)
        # Part of the cache key, since judgements on another scale are different.
        self.sampling: Mapping[str, Json] = NOTHING if stated is None else {"scale": list(self._scale)}

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Return the coroutine's number on the object's own scale; raise JudgeError for any other value."""
        check_rubric(self, request)
        rubric = rubric_of(request)
        method = METHODS[request.rubric]
        started = time.perf_counter()
        try:
            score = getattr(self._plain, method)(*_arguments(request))
            if inspect.isawaitable(score):
                score = await abandonable(score)
        except JudgeError:
            raise
        # A user's own code may raise anything, including pytest.skip(); the error belongs to this case.
        except BaseException as error:
            if ends_the_run(error) or isinstance(error, GeneratorExit | asyncio.CancelledError):
                raise
            raised = excerpt(f"{type(error).__name__}: {error}")
            raise JudgeError("exception", printable(f"judge {self.model!r}: {method} raised {raised}")) from error
        low, high = self._scale
        # True is an int to Python. NaN fails the comparison.
        if isinstance(score, bool) or not isinstance(score, int | float) or not low <= score <= high:
            has_own_scale = bool(self.sampling)
            remedy = "" if has_own_scale else "; if its scores go further, give it an attribute, as in scale = (0, 5)"
            raise JudgeError(
                "invalid_reply",
                f"judge {self.model!r}: {method} returned {excerpt(repr(score), 80)}, "
                f"expected a number from {low:g} to {high:g}{remedy}",
            )
        return Judgement(
            rubric=rubric.name,
            scores={rubric.name: float(score)},
            scale=self._scale,
            model=self.model,
            prompt_version=request.prompt_version,
            latency_ms=(time.perf_counter() - started) * 1000,
            heuristic=self.heuristic,
        )

    async def aclose(self) -> None:
        """Await the object's own `aclose`, if it has one."""
        aclose = getattr(self._plain, "aclose", None)
        if callable(aclose):
            await aclose()


def _arguments(request: JudgeRequest) -> tuple[str, str]:
    """Return the answer, and the text that it is compared with: its question or its contexts."""
    variables = request.variables
    compared = variables["question"] if request.rubric == "relevance" else None
    if compared is None:
        compared = "\n\n".join(context["text"] for context in variables["contexts"])
    return variables["answer"], compared


def _checked_scale(model: str, stated: object) -> tuple[float, float]:
    ends = list(stated) if isinstance(stated, tuple | list) else []
    if len(ends) == 2 and all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        low, high = map(float, ends)
        if low < high:
            return low, high
    shown = excerpt(repr(stated), 80)
    raise SettingsError(f"judge {model!r}: scale is {shown}, expected its lowest and highest score, as in (0, 5)")


STUB_SCORE = (
    "the score is a number of at least 0: up to 1 a share of each scale, as in stub:0.9, above it points, as in stub:4"
)


class StubJudge(BaseJudge):
    """A judge with a constant score: up to 1 a share of each scale, above it points, limited to the scale.

    It stands in for a model: gates and the cache treat it as one. It has no yes-or-no rubrics, such as the classifier
    of abstention: a constant would make all answers abstentions or none.
    """

    heuristic = False
    takes_own_rubrics = True
    rubrics = frozenset(rubric_names()) - {"abstention", "claim_split", "claim_support", "conflict_acknowledged"}

    def __init__(self, score: float) -> None:
        """Create the stub; raise SettingsError unless the score is a finite number of at least 0."""
        if not math.isfinite(score) or score < 0:
            raise SettingsError(STUB_SCORE)
        self.score = float(score)
        self.model = f"stub/{self.score:g}"

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Return the constant on the rubric's scale."""
        rubric = rubric_of(request)
        return Judgement(
            rubric=rubric.name,
            scores=dict.fromkeys(rubric.scores, self._score_on(rubric.scale)),
            scale=rubric.scale,
            reasoning="constant",
            model=self.model,
            prompt_version=request.prompt_version,
            **FREE,
        )

    def _score_on(self, scale: tuple[float, float]) -> float:
        low, high = scale
        if self.score <= 1:
            return low + self.score * (high - low)
        return min(max(self.score, low), high)

    async def aclose(self) -> None:
        """Do nothing: the judge holds no resources."""


def stub_judge(spec: JudgeSpec) -> StubJudge:
    """Create the judge of `stub:SCORE`."""
    try:
        return StubJudge(float(spec.rest))
    except ValueError:
        raise SettingsError(STUB_SCORE) from None
