"""A judge of the project's own, with a value for every optional attribute."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_rageval.io.abandoning import abandonable
from pytest_rageval.judges.judge import BaseJudge, Judge
from pytest_rageval.model import Judgement, JudgeRequest


class OwnJudge(BaseJudge):
    """An object from outside this package that is a `Judge`; attributes that it lacks have their defaults.

    The one place that asks whether a judge has an attribute.
    """

    is_foreign = True

    def __init__(self, own: Judge) -> None:
        self._own = own
        self.model = own.model
        self.heuristic = own.heuristic
        self.rubrics = frozenset(own.rubrics)
        self.is_local = getattr(own, "is_local", own.heuristic)
        self.answers_at_once = getattr(own, "answers_at_once", False)
        self.takes_turns = getattr(own, "takes_turns", False)
        self.takes_own_rubrics = getattr(own, "takes_own_rubrics", False)
        self.compares_texts = getattr(own, "compares_texts", False)
        self.abstention_by_phrasing = getattr(own, "abstention_by_phrasing", False)
        self.judge_together = getattr(own, "judge_together", None)
        self.identity = str(getattr(own, "identity", own.model))
        self.sampling = getattr(own, "sampling", {})
        self.is_pinned = getattr(own, "is_pinned", None)
        self.options = getattr(own, "options", None)
        self.tariff = getattr(own, "tariff", None)

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override] # because the object may add notes until it is closed
        return getattr(self._own, "notes", ())

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Ask the object."""
        judging = self._own.judge(request)
        # What answers at once is run without a loop, in which another task could be left behind.
        return await (judging if self.answers_at_once else abandonable(judging))

    async def check(self) -> str | None:
        """Ask the object whether it can judge, if it has such a method."""
        check = getattr(self._own, "check", None)
        return None if check is None else await check()

    async def aclose(self) -> None:
        """Close the object."""
        await self._own.aclose()
