"""Lines with the turns of a conversation, read into a case for each turn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_rageval.cases.canonical import IS_LAST, case_content, written_small
from pytest_rageval.cases.conversion import LINES, Converted, case_from_record
from pytest_rageval.cases.keys import CONVERSATION, OF_CASE
from pytest_rageval.io.messages import Findings, Path, Unsound, shown_value
from pytest_rageval.model import EarlierTurn, EvalCase, Json, Source, Turn, turn_id

ASKED = "user"
REPLY = "assistant"
"""The role of the reference of what is asked."""
INSTRUCTIONS = ("system", "developer")
"""The roles of what comes before all turns."""
UNASKED = ("tool", "function")
"""The roles of what is left out."""
_QUESTIONS = ("question", "query", "rewrite", "standalone", "conversational")
"""Keys that say what one turn asks, which a conversation as a whole does not."""


MOST_TURNS = 500
"""The longest conversation: each turn knows all that is asked before it, in memory and in its record."""


class _WrittenTurn(NamedTuple):
    """One turn as written: its own keys, its place in the line, and the places of keys that stand elsewhere."""

    record: Mapping[str, Json]
    place: Path
    places: Mapping[str, Path]


def is_conversation(record: Mapping[str, Json]) -> bool:
    """Return True if a line has turns."""
    return any(record.get(key) is not None for key in CONVERSATION)


def cases_from_record(record: dict[str, Json], source: Source, text: str | None = None) -> list[Converted]:
    """Read one record of a case file: a case, or one for each turn. Raise Unsound with all of its problems."""
    if not is_conversation(record):
        return [case_from_record(record, source, text)]
    return _Reading(record, source).cases()


class _Reading:
    """Reads one line with turns, and collects its problems."""

    def __init__(self, record: Mapping[str, Json], source: Source) -> None:
        self._source = source
        self._findings = Findings()
        self._record = record
        self._defaults = {name: value for name, value in record.items() if name not in CONVERSATION and name != "id"}
        self._id = record.get("id")
        if self._id is None:
            # A hash of the content: it stays when the line moves within its file.
            self._id = hashlib.sha256(written_small(record).encode()).hexdigest()[:12]

    def cases(self) -> list[Converted]:
        """Return the case of each turn; raise Unsound with all problems of the line."""
        self._check_whole()
        turns = list(self._written_turns())
        is_named = isinstance(self._id, str)
        name = str(self._id) if is_named else "?"
        converted: list[Converted] = []
        own_ids: dict[str, int] = {}
        for number, turn in enumerate(turns, start=1):
            own_id = turn.record.get("id")
            if isinstance(own_id, str) and own_id in own_ids:
                problem = f"is already used by turn {own_ids[own_id]} of the conversation"
                self._findings.add((*turn.place, "id"), problem)
            elif isinstance(own_id, str):
                own_ids[own_id] = number
            if (read := self._case(turn, turn_id(name, number))) is not None:
                case, spelling = read
                converted.append((replace(case, conversation=name, turn=number), spelling))
        if self._findings:
            raise Unsound(self._findings)
        cases = linked([case for case, _ in converted])
        return [(case, spelling) for case, (_, spelling) in zip(cases, converted, strict=True)]

    def _check_whole(self) -> None:
        """Check the keys of the conversation itself: they are defaults of its turns, and golds are never that."""
        present = [name for name in CONVERSATION if self._record.get(name) is not None]
        if len(present) > 1:
            self._findings.add(("messages",), "stands beside 'turns'; write the turns in one of them")
        for name, value in self._record.items():
            if value is None or name not in OF_CASE:
                continue
            if name in _QUESTIONS:
                problem = f"stands beside '{present[0]}', which hold the questions; remove it, or make it a turn"
                self._findings.add((name,), problem)
            elif self._is_misplaced(name):
                problem = "is gold of no turn; write it into its turn, or say it as 'expected_outcome'"
                self._findings.add((name,), problem)
        named = {} if self._record.get("id") is None else {"id": self._record["id"]}
        asks = {name: value for name, value in self._defaults.items() if not self._is_misplaced(name)}
        try:
            LINES.read({"question": "?", **named, **asks})
        except Unsound as unsound:
            self._findings.include((), unsound.findings)

    def _is_misplaced(self, name: str) -> bool:
        if name in _QUESTIONS or name in ("gold", "assert", "expected_tools", "tools_match"):
            return True
        return name in OF_CASE and OF_CASE[name].is_gold

    def _written_turns(self) -> Iterator[_WrittenTurn]:
        for key in CONVERSATION:
            written = self._record.get(key)
            if written is None:
                continue
            if not isinstance(written, list) or not written:
                self._findings.add((key,), f"is {shown_value(written)}, expected a list with a turn or more")
            elif len(written) > MOST_TURNS:
                self._findings.add((key,), f"has {len(written):,} members, more than {MOST_TURNS}; divide it")
            elif key == "messages" or _are_messages(written):
                yield from self._turns_of_messages(written, key)
            else:
                yield from self._turns_of_objects(written, key)
            return

    def _turns_of_objects(self, written: Sequence[Json], key: str) -> Iterator[_WrittenTurn]:
        for position, turn in enumerate(written):
            place = (key, position)
            if not isinstance(turn, dict):
                expected = 'an object such as {"question": …}'
                self._findings.add(place, f"is {shown_value(turn)}, expected {expected}")
                continue
            misplaced = [name for name in ("history", "expected_outcome", *CONVERSATION) if turn.get(name) is not None]
            for name in misplaced:
                self._findings.add((*place, name), f"is of the whole conversation; write it beside '{key}'")
            yield _WrittenTurn({name: value for name, value in turn.items() if name not in misplaced}, place, {})

    def _turns_of_messages(self, messages: Sequence[Json], key: str) -> Iterator[_WrittenTurn]:
        """Yield a turn for each message of the user, with the last reply to it as its reference."""
        opening: list[Json] = []
        asked: _WrittenTurn | None = None
        for position, message in enumerate(messages):
            place = (key, position)
            role = message.get("role") if isinstance(message, dict) else None
            if not isinstance(message, dict) or role not in (ASKED, REPLY, *INSTRUCTIONS, *UNASKED):
                roles = "system, user, assistant or tool"
                self._findings.add(place, f"is {shown_value(message)}, expected an object with a role ({roles})")
                continue
            text = _text_of(message.get("content"))
            if role == ASKED:
                if asked is not None:
                    yield asked
                # A turn may have labels beside its message; what else chat services put there is theirs.
                known = message.keys() - {"role", "content"}
                if key == "messages":
                    known &= OF_CASE.keys()
                others = {name: message[name] for name in message if name in known}
                content = (*place, "content")
                asked = _WrittenTurn({**others, "question": text}, place, {"question": content})
            elif role == REPLY and asked is not None and text:
                record = {**asked.record, "reference": text}
                asked = _WrittenTurn(record, asked.place, {**asked.places, "reference": (*place, "content")})
            elif asked is None and text and role not in UNASKED:
                opening.append({"role": role, "text": text})
        if opening and self._defaults.get("history") is None:
            self._defaults["history"] = opening
        if asked is not None:
            yield asked
        else:
            self._findings.add((key,), "holds no message of the role 'user', so that nothing is asked")

    def _case(self, turn: _WrittenTurn, case_id: str) -> Converted | None:
        """Read the turn over the defaults; None with the problems collected."""
        record = self._with_defaults(turn.record)
        own_id = turn.record.get("id")
        if own_id is not None:
            metadata = record.get("metadata")
            record["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "id": own_id}
        try:
            return case_from_record({**record, "id": case_id}, self._source)
        except Unsound as unsound:
            for finding in unsound.findings.first:
                path = finding.path
                if not path:
                    path = turn.place
                elif str(path[0]) in turn.places:
                    path = turn.places[str(path[0])]
                elif path[0] in turn.record and path[0] != "id":
                    path = (*turn.place, *path)
                if not any(known.path == path and known.message == finding.message for known in self._findings.first):
                    self._findings.include((), Findings(finding._replace(path=path)))
            return None

    def _with_defaults(self, own: Mapping[str, Json]) -> dict[str, Json]:
        """Return a turn's keys over the conversation's, without ids."""
        defaults = {name: value for name, value in self._defaults.items() if not self._is_misplaced(name)}
        return {**defaults, **{name: value for name, value in own.items() if name != "id"}}

    def turn(self, number: int) -> TurnRecord:
        turn = list(self._written_turns())[number - 1]
        return TurnRecord(self._with_defaults(turn.record), turn.record, turn.place)


class TurnRecord(NamedTuple):
    """One turn of a line: its record as a case, with the conversation's defaults; its own keys, and their place."""

    record: Mapping[str, Json]
    own: Mapping[str, Json]
    place: Path


def turn_record(record: Mapping[str, Json], number: int, source: Source) -> TurnRecord:
    """Return a turn of a sound conversation, counted from 1."""
    return _Reading(record, source).turn(number)


def linked(cases: Iterable[EvalCase]) -> list[EvalCase]:
    """Return cases in their order, each turn with what the turns before it in its conversation ask."""
    known = list(cases)
    last_turns = {case.unit: case.turn for case in known}
    earlier: dict[str, tuple[EarlierTurn, ...]] = {}
    result: list[EvalCase] = []
    for case in known:
        if case.turn is None:
            result.append(case)
            continue
        before = earlier.get(case.unit, ())
        is_last = case.turn == last_turns[case.unit]
        is_linked = case.earlier == before and case.is_last == is_last
        result.append(case if is_linked else replace(case, earlier=before, is_last=is_last))
        reference = (case.gold.answers or (None,))[0]
        asked = EarlierTurn(case.question, reference, case.vaults, case.folders, case.contexts)
        earlier[case.unit] = (*before, asked)
    return result


def said_before(case: EvalCase, replies: Iterable[str | None]) -> tuple[Turn, ...]:
    """Return what was said before a turn; a blank reply is left out, since chat services refuse one."""
    said = list(case.history or ())
    for before, reply in zip(case.earlier, replies, strict=True):
        said.append(Turn(ASKED, before.question))
        if reply is not None and reply.strip():
            said.append(Turn(REPLY, reply))
    return tuple(said)


def is_rewritten_follow_up(case: EvalCase) -> bool:
    """Return True if a case has a rewrite, and a person said something before it."""
    if case.rewrite is None or not case.rewrite.strip():
        return False
    said_in_history = [turn for turn in case.history or () if turn.role not in INSTRUCTIONS]
    return bool(case.earlier or said_in_history)


def as_rewrite(case: EvalCase) -> EvalCase:
    """Return a follow-up as the question that stands alone: of what came before, only instructions are left."""
    instructions = tuple(turn for turn in case.history or () if turn.role in INSTRUCTIONS)
    question = case.rewrite or case.question
    return replace(
        case, question=question, history=instructions or None, rewrite=None, conversation=None, turn=None, earlier=()
    )


def alone(case: EvalCase) -> EvalCase:
    """Return a turn as a single case, for what knows no conversations: its history is made of the references."""
    if case.turn is None:
        return case
    # A turn is then asked as if the system had given the references: no label depends on its answers.
    history = said_before(case, [turn.reference for turn in case.earlier]) or None
    return replace(case, history=history, conversation=None, turn=None, is_last=False, earlier=())


def records_of_file(cases: Iterable[EvalCase]) -> list[dict[str, Json]]:
    """Return the records of a case file that reads back as these cases: the turns of a conversation are one."""
    records: list[dict[str, Json]] = []
    conversations: dict[str, dict[str, Json]] = {}
    for case in cases:
        content = case_content(case)
        if case.turn is None:
            records.append(content)
            continue
        if case.unit not in conversations:
            whole = {name: content[name] for name in _OF_THE_WHOLE if name in content}
            conversations[case.unit] = {"id": case.conversation, **whole, "turns": []}
            records.append(conversations[case.unit])
        own = {name: value for name, value in content.items() if name not in (*_OF_THE_WHOLE, *OF_THE_PLACE)}
        conversations[case.unit]["turns"].append(own)
    return records


_OF_THE_WHOLE = ("history", "expected_outcome")
OF_THE_PLACE = ("id", "conversation", "turn", IS_LAST, "earlier")
"""What a turn has by its place in the conversation: no case file says it."""


def _are_messages(written: Sequence[Json]) -> bool:
    """Return True if the turns are messages of a chat."""
    return all(isinstance(turn, dict) and "role" in turn and "question" not in turn for turn in written)


def _text_of(content: Json) -> str | None:
    """Return the text of a message, which may come in parts; None without any."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None
