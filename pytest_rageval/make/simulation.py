"""Simulated conversations: persons of scenarios talk with the system, and what they asked becomes drafts."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import ModelFailure, RagevalError
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.io.masking import Mask
from pytest_rageval.make.asked_once import Spent, StoredReplies, key_of, why_stopped
from pytest_rageval.make.scenarios import Scenario
from pytest_rageval.make.simulated_person import NoMessage, Said, SimulatedPerson
from pytest_rageval.model import Answer, AskRequest, Json, Problem, Turn
from pytest_rageval.run.ask import ask_system
from pytest_rageval.targets.target import BaseTarget
from pytest_rageval.text import cut

VERSION = "simulation/1"
LONGEST_NOTE = 8_000
"""Characters of an answer that a draft keeps as a note."""
MOST_PLACES = 20
"""Places that a draft keeps as a note for one answer."""
LASTING = ("connect", "budget")
"""Failures of a model that end everything: each further request would fail in the same way."""
LASTING_STATUS = (401, 403, 404)


class SystemGone(RagevalError):
    """The system cannot be asked any more, so that no further conversation is begun."""


class NotedAnswer(NamedTuple):
    """What the system answered in one turn: its text, and where it found it."""

    text: str
    places: Sequence[str] = ()


class PlayedTurn(NamedTuple):
    """One turn: what the person said, and the answer."""

    question: str
    answer: NotedAnswer

    def record(self) -> dict[str, Json]:
        """Return it as a turn of a draft, with the answer as a note: it is not the right one by that."""
        note: dict[str, Json] = {"answer": cut(self.answer.text, LONGEST_NOTE)}
        if self.answer.places:
            note["cited"] = list(self.answer.places[:MOST_PLACES])
        return {"question": self.question, "metadata": {"draft": note}}


@dataclass(frozen=True, slots=True)
class Played:
    """A conversation as it went. `problem`: why it broke; it is no draft then."""

    scenario: Scenario
    turns: Sequence[PlayedTurn] = ()
    is_done: bool = False
    """The person ended it, before the most turns of the scenario."""
    problem: str | None = None

    def record(self, target: str, user: str) -> dict[str, Json]:
        """Return it as a line of a file of drafts."""
        origin = {
            "from": "simulated person",
            "target": target,
            "user": user,
            "scenario": self.scenario.content,
            "ended": "by the person" if self.is_done else "at max_turns",
        }
        draft: dict[str, Json] = {"id": self.scenario.conversation}
        if self.scenario.expected_outcome is not None:
            draft["expected_outcome"] = self.scenario.expected_outcome
        turns = [turn.record() for turn in self.turns]
        return {**draft, "turns": turns, "tags": ["draft", "simulated"], "metadata": {"draft": origin}}


class TalkedTo:
    """The system that persons talk with.

    Its answers are stored, each by all that was said before it, and so are the ids of conversations: after an
    interruption a conversation goes on where it was. A system in this process that remembers conversations itself has
    lost them by then: it is asked from the first turn.
    """

    def __init__(self, target: BaseTarget, spec: str, settings: Settings, mask: Mask, replies: StoredReplies) -> None:
        self.target = target
        self.mask = mask
        self._spec = spec
        self._settings = settings
        self._replies = replies
        self._forgets = target.keeps_conversations and target.url is None

    def conversation_id(self, scenario: Scenario) -> str:
        """Return the id of a scenario's conversation: that of before, if it was interrupted."""
        key = self._key(scenario, (), "")
        stored = None if self._forgets else self._replies.get(key)
        if stored is not None:
            return stored
        conversation_id = uuid.uuid4().hex
        if not self._forgets:
            self._replies.put(key, conversation_id)
        return conversation_id

    async def answer(
        self, scenario: Scenario, said: Sequence[Turn], question: str, conversation_id: str
    ) -> NotedAnswer | Problem:
        """Return the answer to what the person says, stored or new."""
        key = self._key(scenario, said, question)
        stored = None if self._forgets else self._replies.get(key)
        if stored is not None:
            return NotedAnswer(*json.loads(stored))
        settings = self._settings
        # Chat services refuse a blank reply.
        history = tuple(turn for turn in said if turn.text.strip())
        request = AskRequest(
            question=question,
            k=settings.k,
            history=history or None,
            params=settings.ask_params,
            conversation_id=conversation_id,
        )
        limit = asyncio.timeout(settings.longest_call)
        words = settings.longest_call_in_words
        answer = await ask_system(self.target, request, self.mask, limit, words, in_turns=settings)
        if isinstance(answer, Problem):
            return answer
        noted = NotedAnswer(answer.text or "", _places(answer))
        if not self._forgets:
            self._replies.put(key, json.dumps([noted.text, list(noted.places)]))
        return noted

    def _key(self, scenario: Scenario, said: Sequence[Turn], question: str) -> str:
        settings = self._settings
        how = json.dumps([self._spec, settings.k, settings.ask_params], default=str, sort_keys=True)
        return key_of(VERSION, how, scenario.conversation, json.dumps([*said, question]))


def _places(answer: Answer) -> tuple[str, ...]:
    """Return the places that an answer cites, else those that were retrieved for it, each once."""
    places: dict[str, None] = {}
    for passage in answer.references or answer.chunks or ():
        place = passage.rel_path or passage.doc_id or passage.chunk_id
        if place:
            heading = f" > {passage.heading_path}" if passage.heading_path else ""
            places[cut(f"{place}{heading}", 500)] = None
    return tuple(places)


class Simulation:
    """The conversations of all scenarios. `finished` gets each as soon as it has ended, so that none is lost."""

    def __init__(
        self, person: SimulatedPerson, system: TalkedTo, spent: Spent, finished: Callable[[Played], object]
    ) -> None:
        self._person = person
        self._system = system
        self._spent = spent
        self._finished = finished
        self.played: list[Played] = []

    def play(self, scenarios: Sequence[Scenario], concurrency: int) -> None:
        """Play all scenarios, so many at the same time.

        Ctrl-C or a lasting failure ends it, with the reason in `spent`.
        """
        talks = at_once(self._play, scenarios, concurrency, close=self._close, watch=lambda _: None)
        try:
            list(talks)
        except ModelFailure as failure:
            self._spent.stopped = why_stopped(failure)
        except SystemGone as gone:
            self._spent.stopped = str(gone)
        except KeyboardInterrupt:
            self._spent.is_interrupted = True

    async def _play(self, scenario: Scenario) -> None:
        turns: list[PlayedTurn] = []
        try:
            is_done = await self._talk(scenario, turns)
            played = Played(scenario, turns, is_done=is_done)
        except _Broken as broken:
            played = Played(scenario, turns, problem=str(broken))
        self.played.append(played)
        self._finished(played)

    async def _talk(self, scenario: Scenario, turns: list[PlayedTurn]) -> bool:
        """Lead one conversation, adding its turns; return whether the person ended it. Raise _Broken."""
        conversation_id = self._system.conversation_id(scenario)
        said: list[Turn] = []
        while len(turns) < scenario.max_turns:
            message = await self._message(scenario, said)
            if not message.text:
                return True
            answer = await self._system.answer(scenario, said, message.text, conversation_id)
            if isinstance(answer, Problem):
                problem = f"turn {len(turns) + 1}: the system failed: {answer.kind}: {answer.message}"
                if answer.is_lasting:
                    raise SystemGone(problem)
                raise _Broken(problem)
            turns.append(PlayedTurn(message.text, answer))
            said += [Turn("user", message.text), Turn("assistant", answer.text)]
            if message.is_last:
                return True
        return False

    async def _message(self, scenario: Scenario, said: Sequence[Turn]) -> Said:
        """Return what the person says next: the opening as it is written, then what the model says."""
        if not said and scenario.opening is not None:
            return Said(scenario.opening, is_last=False)
        try:
            message = await self._person.next(scenario, said)
        except NoMessage as failure:
            raise _Broken(f"turn {len(said) // 2 + 1}: {failure}") from None
        except ModelFailure as failure:
            if failure.kind in LASTING or failure.status in LASTING_STATUS:
                raise
            raise _Broken(f"turn {len(said) // 2 + 1}: the model that plays the person failed: {failure}") from None
        return message._replace(text=self._system.mask.text(message.text))

    async def _close(self) -> None:
        await self._person.aclose()
        await self._system.target.aclose()


class _Broken(RagevalError):
    """Why one conversation cannot go on."""
