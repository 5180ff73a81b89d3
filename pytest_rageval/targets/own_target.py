"""A target of the project's own, with a value for every optional member and its answers checked."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_rageval.io.abandoning import abandonable
from pytest_rageval.model import Answer, AskRequest, EvalCase
from pytest_rageval.targets.callable_target import answer_of
from pytest_rageval.targets.target import BaseTarget, Target


class OwnTarget(BaseTarget):
    """An object from outside this package that is a `Target`; members that it lacks have their defaults.

    The one place that asks whether a target has a member.
    """

    def __init__(self, own: Target) -> None:
        self.own = own
        self.name = own.name
        self.is_called = getattr(own, "is_called", True)
        # It has the whole request, and so may remember conversations by their ids.
        self.keeps_conversations = getattr(own, "keeps_conversations", True)
        self.answers_at_once = getattr(own, "answers_at_once", False)
        self.takes_turns = getattr(own, "takes_turns", False)
        self.url = getattr(own, "url", None)

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override] # because the object may add notes until it is closed
        return getattr(self.own, "notes", ())

    async def ask(self, request: AskRequest) -> Answer:
        """Ask the object; raise TargetError if what it returns is no sound answer."""
        asking = self.own.ask(request)
        # What answers at once is run without a loop, in which another task could be left behind.
        answer = await (asking if self.answers_at_once else abandonable(asking))
        # An Answer is a plain dataclass: code from outside may have put anything into its fields.
        return answer_of(answer, self.name)

    def params_problem(self, names: Sequence[str]) -> str:
        """Return why the object cannot be given these parameters, if it knows."""
        problem = getattr(self.own, "params_problem", None)
        return "" if problem is None else problem(names)

    def check_coverage(self, cases: Sequence[EvalCase], *, is_partial_allowed: bool = False) -> Sequence[str]:
        """Return what the object says of these cases, if it has such a method."""
        check = getattr(self.own, "check_coverage", None)
        return () if check is None else check(cases, is_partial_allowed=is_partial_allowed)

    async def aclose(self) -> None:
        """Close the object."""
        await self.own.aclose()
