"""Conversations under way: their turns are asked in order, each with what was said before it.

With `history = "live"` a turn waits for the answer to the turn before. A turn that this process has no case of (`-k`,
`--lf`, a worker that died) is asked all the same, and neither judged nor scored, so that every turn has the same
history however it was selected. With `history = "gold"` the references stand for the answers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pytest_rageval.cases.conversations import said_before
from pytest_rageval.http.call_limit import CallPlaces
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.matching import passages
from pytest_rageval.model import BLOCKED, Answer, Dialogue, EvalCase, Observation, Problem, Trial
from pytest_rageval.run.engine import TimedAnswer, ask_once, ask_request, observe_answer, observe_case
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.rewrites import asks_rewrite, with_rewrite
from pytest_rageval.run.scoring import AskFailure, Observed, score_case
from pytest_rageval.targets.target import BaseTarget

T = TypeVar("T")
Asked = TimedAnswer | AskFailure
Find = Callable[[Trial], Observed | None]
"""Returns the observation of a trial from the interrupted run that is resumed, if any."""


class _Awaited(Generic[T]):
    """A value that others wait for; the first one that is set counts. One that is there is returned without a loop."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._waiting: list[asyncio.Future[None]] = []

    def set(self, value: T) -> None:
        if not self._values:
            self._values.append(value)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def get(self) -> T:
        if not self._values:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        return self._values[0]


@dataclass(slots=True)
class _TurnUnderWay:
    """One turn that is asked or was.

    answer        its answer
    stop          why the conversation stops after it although it was answered, if it does
    is_selected   whether it is a case of the run, and not asked for the sake of later turns alone
    """

    answer: _Awaited[Asked] = field(default_factory=_Awaited)
    stop: _Awaited[Problem | None] = field(default_factory=_Awaited)
    is_selected: bool = False


class _Thread:
    """One conversation in one trial, as the system knows it."""

    def __init__(self) -> None:
        self.conversation_id = uuid.uuid4().hex
        self.turns: dict[int, _TurnUnderWay] = {}


_ThreadKey = tuple[str, int, str | None]
"""Conversation, number of the trial, and the function of the project's own test, if that asks."""
MOST_THREADS = 1_000
"""How many conversations are remembered beyond those under way; of an older one the earlier turns are asked again."""


@dataclass(slots=True)
class Opening:
    """What a turn is asked after: what was said before, or why it cannot be asked.

    turn         where its answer is awaited; None with the references as history
    is_answered  whether it was asked for the sake of a later turn already
    """

    said: Dialogue | AskFailure
    turn: _TurnUnderWay | None = None
    is_answered: bool = False


class Conversations:
    """The conversations that this process asks."""

    def __init__(self, plan: Plan, find: Find) -> None:
        self._plan = plan
        self._find = find
        self._is_live = plan.settings.history == "live"
        self._stops = plan.settings.on_turn_failure == "stop"
        self._threads: dict[_ThreadKey, _Thread] = {}

    def recorded(self, trial: Trial, target: BaseTarget) -> Observed | None:
        """Return the observation of a trial from the interrupted run, if it counts.

        A system that keeps conversations itself has lost those of a run that ended: it is asked again.
        """
        if trial.case.turn is not None and target.keeps_conversations:
            return None
        observed = self._find(trial)
        if trial.case.turn is not None and self._is_live and isinstance(observed, Observation):
            turn = self._thread(trial).turns.setdefault(trial.case.turn, _TurnUnderWay())
            turn.answer.set(TimedAnswer(observed.answer, observed.timings))
            turn.stop.set(self._why_stopped(trial.case, observed))
        return observed

    async def opening(self, trial: Trial, target: BaseTarget, places: CallPlaces | None) -> Opening | None:
        """Return what a turn is asked after, once the turns before are answered; None for a single case."""
        case = trial.case
        if case.turn is None:
            return None
        if not self._is_live:
            references = [turn.reference for turn in case.earlier]
            history = said_before(case, references)
            return Opening(Dialogue(uuid.uuid4().hex, history, is_gold=True))
        # Before anything is awaited, so that later turns wait for this one and do not ask it themselves.
        thread = self._thread(trial)
        turn = thread.turns.get(case.turn)
        if turn is not None and turn.is_selected:  # it is asked once more: by a rerun, say, which is a new conversation
            del self._threads[_key(trial)]
            thread = self._thread(trial)
            turn = None
        is_answered = turn is not None
        if turn is None:
            turn = thread.turns[case.turn] = _TurnUnderWay()
        turn.is_selected = True
        try:
            said = await self._said_before(trial, thread, target, places)
        except BaseException as error:
            _give_up(turn, error)
            raise
        return Opening(said, turn, is_answered)

    async def _said_before(
        self, trial: Trial, thread: _Thread, target: BaseTarget, places: CallPlaces | None
    ) -> Dialogue | AskFailure:
        """Return what was said before a turn, after asking what no case of the run asks."""
        case = trial.case
        answers: list[Answer] = []
        for number in range(1, len(case.earlier) + 1):
            if number not in thread.turns:
                await self._ask_unselected(trial, thread, answers, target, places)
            turn = thread.turns[number]
            asked = await turn.answer.get()
            if isinstance(asked, AskFailure):
                return AskFailure(_blocked(asked.problem, number))
            if self._stops and (why := await turn.stop.get()) is not None:
                return AskFailure(why)
            answers.append(asked.answer)
        return self._dialogue(case, thread, answers)

    def _dialogue(self, case: EvalCase, thread: _Thread, answers: Sequence[Answer]) -> Dialogue:
        history = said_before(case, [answer.text for answer in answers])
        return Dialogue(thread.conversation_id, history, _passages(case, answers, self._plan.settings.k))

    async def _ask_unselected(
        self, trial: Trial, thread: _Thread, answers: Sequence[Answer], target: BaseTarget, places: CallPlaces | None
    ) -> None:
        """Ask the turn after these answers, which is not under way, or take its answer from the interrupted run."""
        case = trial.case.earlier_case(len(answers) + 1)
        if trial.test is None and self.recorded(Trial(case, trial.number), target) is not None:
            return
        turn = thread.turns[len(answers) + 1] = _TurnUnderWay()
        turn.stop.set(None)
        await self._ask(case, trial.number, turn, self._dialogue(case, thread, answers), target, places)

    async def observe(
        self,
        trial: Trial,
        opening: Opening | None,
        target: BaseTarget,
        judge: BaseJudge | None,
        *,
        submitted: float,
        places: CallPlaces | None = None,
    ) -> Observed:
        """Ask and judge one trial, a turn after its opening."""
        case = trial.case
        number = trial.number
        plan = self._plan
        if opening is None:
            return await observe_case(case, target, judge, plan, submitted=submitted, trial=number, places=places)
        turn = opening.turn or _TurnUnderWay()
        said = opening.said
        try:
            if isinstance(said, AskFailure):
                turn.answer.set(said)
                return said
            if opening.is_answered:
                asked = await turn.answer.get()
            else:
                asked = await self._ask(case, number, turn, said, target, places, submitted)
                opening.is_answered = True  # whoever observes once more judges this answer
            observed = await observe_answer(
                case, asked, target, judge, plan, trial=number, places=places, dialogue=said
            )
            turn.stop.set(self._why_stopped(case, observed))
            return observed
        finally:
            turn.stop.set(None)  # no effect if it is set

    async def with_rewrite(
        self,
        trial: Trial,
        observed: Observed,
        target: BaseTarget,
        judge: BaseJudge | None,
        places: CallPlaces | None,
    ) -> Observed:
        """Return an observation with that of the rewrite; later turns do not wait for it."""
        plan = self._plan
        if not asks_rewrite(trial, plan):
            return observed
        # Also where the turn itself is asked again, since the system has lost its thread.
        return await with_rewrite(trial, observed, target, judge, plan, places, earlier=self._find(trial))

    async def _ask(
        self,
        case: EvalCase,
        number: int,
        turn: _TurnUnderWay,
        dialogue: Dialogue,
        target: BaseTarget,
        places: CallPlaces | None,
        submitted: float | None = None,
    ) -> Asked:
        """Ask a turn and let those that wait for its answer go on."""
        question = ask_request(case, self._plan, number, dialogue)
        try:
            asked = await ask_once(question, target, self._plan, places, submitted)
        except BaseException as error:
            _give_up(turn, error)
            raise
        turn.answer.set(asked)
        return asked

    def _why_stopped(self, case: EvalCase, observed: Observed) -> Problem | None:
        """Return why no later turn is asked, where a failed gate ends the conversation."""
        if not self._stops or score_case(case, observed, self._plan).outcome != "failed":
            return None
        message = f"turn {case.turn} fails a gate, so this turn was not asked (on_turn_failure is 'stop')"
        return Problem(BLOCKED, message, turn=case.turn)

    def _thread(self, trial: Trial) -> _Thread:
        key = _key(trial)
        if key not in self._threads:
            while len(self._threads) >= MOST_THREADS + self._plan.settings.window:
                del self._threads[next(iter(self._threads))]
            self._threads[key] = _Thread()
        return self._threads[key]


def _give_up(turn: _TurnUnderWay, error: BaseException) -> None:
    """Let nobody wait for a turn whose task ended by an exception."""
    turn.answer.set(AskFailure(Problem("exception", type(error).__name__)))
    turn.stop.set(None)


def _key(trial: Trial) -> _ThreadKey:
    # The tests of all turns are one function with other parameters.
    function = None if trial.test is None else trial.test.partition("[")[0]
    return trial.case.unit, trial.number, function


def _blocked(problem: Problem, number: int) -> Problem:
    """Return the error of a turn that cannot be asked after this error of an earlier one."""
    if problem.kind == BLOCKED:
        return problem
    message = f"turn {number} ended in an error, so this turn was not asked: {problem.kind}: {problem.message}"
    return Problem(BLOCKED, message, turn=number)


MOST_PASSAGES = 200
"""How many passages of earlier turns a turn keeps, the latest: each turn adds some, to all records after it."""


def _passages(case: EvalCase, answers: Iterable[Answer], k: int) -> tuple[tuple[str | None, str], ...]:
    """Return the passages that were retrieved for the turns before, each once."""
    found: dict[tuple[str | None, str], None] = {}
    for number, answer in enumerate(answers, start=1):
        for passage in passages.contexts(case.earlier_case(number), answer, k):
            found[passage.chunk_id, passage.text] = None
    return tuple(found)[-MOST_PASSAGES:]
