"""Conversations of other tools, a record with turns each: MTRAG, DeepEval, Ragas, messages of chats.

What the assistant says in them is read as the right answer of its turn, as in case files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.cases.conversations import cases_from_record
from pytest_rageval.cases.exchange.case_rows import PlacedRow
from pytest_rageval.cases.exchange.exchange import EXTRA_PARTS, OtherTestSet
from pytest_rageval.cases.exchange.expected_calls import with_calls_of_turns, with_expected_tools
from pytest_rageval.cases.exchange.small_talk import is_small_talk, without_small_talk
from pytest_rageval.cases.exchange.tables import RowReport
from pytest_rageval.cases.keys import OF_CASE
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Finding, Unsound
from pytest_rageval.model import NOWHERE, Json
from pytest_rageval.model.case import turn_id
from pytest_rageval.text import counted

Record = dict[str, Json]

MTRAG = "mtrag"
TURNS = "conversations"
_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "agent": "assistant",
    "assistant": "assistant",
    "gpt": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
}
_MESSAGES = ("user_input", "messages", "conversations", "turns", "goldens")
"""The members that hold the messages of a conversation, or its turns."""
_IDS = ("id", "conversation_id", "name", "session_id")
_OUTCOMES = ("expected_outcome", "expectedOutcome")
_GOLD = ("reference", "ideal", "expected_output", "expected", "answer", "response", "ground_truth", "expected_answer")
"""Members beside the messages that are gold of the last question alone: such a row is one case with its history."""
_OF_TURN = {
    "relevant": "relevant_ids",
    "relevant_passages": "relevant_ids",
    "reference_answer": "reference",
    "input": "question",
    "expected_output": "reference",
    "expectedOutput": "reference",
    "context": "contexts",
}
"""Names of a turn's members in other tools, with ours."""
_FROM = {"user_input": "ragas", "messages": "messages", "conversations": "sharegpt", "turns": "deepeval"}


def conversations_in(rows: Sequence[PlacedRow], form: str | None, report: RowReport) -> OtherTestSet | None:
    """Read the conversations of a file; None if its rows are single questions. Raise CaseError with every problem."""
    if not rows:
        return None
    if form in (None, MTRAG) and _is_task(rows[0][1]):
        return _checked(_of_tasks(rows), report, MTRAG)
    if form not in (None, TURNS, *_FROM.values()) or not any(_is_conversation(row) for _, row in rows):
        return None
    records = [(place, _of_row(row), list[Record]()) for place, row in rows]
    found = next((name for name in _MESSAGES if name in rows[0][1]), "turns")
    return _checked(records, report, _FROM.get(found, TURNS))


_NO_TURNS = (
    "has no turns, so that nothing is asked; a scenario alone needs a simulated user: write the turns of a conversation"
)
_Placed = tuple[int | str, Record, list[Record]]
"""A conversation with the place of its row, and what a system answered in it."""


def _checked(conversations: Iterable[_Placed], report: RowReport, form: str) -> OtherTestSet:
    records: dict[str, Record] = {}
    answers: list[Record] = []
    kept: dict[str, None] = {}
    repeated = 0
    small_talk = 0
    for place, written, given in conversations:
        record = dict(written)
        talked = 0
        if isinstance(messages := written.get("messages"), list):
            record["messages"], talked = without_small_talk(messages)
        name = record.get("id")
        if record.get("turns") == []:
            report.add_row(place, [Finding((), _NO_TURNS)], name)
            continue
        try:
            cases = cases_from_record(record, NOWHERE)
        except Unsound as unsound:
            report.add_row(place, unsound.findings.first, name)
            continue
        unit = cases[0][0].conversation or cases[0][0].id
        if unit in records:
            repeated += 1
            # An exact repetition loses nothing; another conversation under this id would.
            if records[unit] != record:
                twice = "id already used by an earlier row for another conversation; ids are unique in a file"
                report.add_row(place, [Finding((), twice)], name)
            continue
        if form == "ragas":  # its samples hold what a system said
            given = _replies(written, unit)
        small_talk += talked
        records[unit] = {"id": unit, **{key: value for key, value in record.items() if key != "id"}}
        answers += given
        for case, _ in cases:
            kept |= dict.fromkeys(case.metadata)
    if len(report):
        raise CaseError(*report.problems)
    notes = [*report.notes]
    if form != MTRAG:
        notes.append(f"{report.file}: replies of the assistant are read as the right answers of their turns")
    if small_talk:
        turns = counted(small_talk, "turn")
        notes.append(f"{report.file}: {turns} of small talk, such as a greeting: marked as conversational, not gated")
    return OtherTestSet(
        list(records.values()), answers, repeated=repeated, kept=tuple(kept), form=form, notes=tuple(notes)
    )


# ── messages and turns ────────────────────────────────────────────────────────────────────────────────────────


def _is_conversation(row: Mapping[str, Json]) -> bool:
    """Return True if a row has turns, or messages with several questions and no gold of the last one alone."""
    if EXTRA_PARTS in row:  # a case of ours, which an export has written
        return False
    if "scenario" in row and "input" not in row:
        return True
    name = next((name for name in _MESSAGES if isinstance(row.get(name), list)), None)
    if name is None:
        return False
    if name in ("turns", "goldens"):
        return bool(row[name])
    members = [member for member in row[name] if isinstance(member, dict)]
    questions = sum(_role(member) == "user" for member in members)
    is_of_whole = name == "user_input"  # the reference of a Ragas sample is that of the conversation
    return questions > 1 and (is_of_whole or not any(row.get(gold) for gold in _GOLD))


def _role(message: Mapping[str, Json]) -> str | None:
    written = message.get("role") or message.get("type") or message.get("from") or message.get("speaker")
    return _ROLES.get(str(written).lower())


def _of_row(row: Mapping[str, Json]) -> Record:
    """Return the record of a conversation: its turns, and what has no meaning here as metadata."""
    record: Record = {}
    others = with_expected_tools(row)
    for name in _IDS:
        if isinstance(row.get(name), str | int):
            record["id"] = str(others.pop(name))
            break
    for name in _OUTCOMES:
        if isinstance(row.get(name), str):
            record["expected_outcome"] = others.pop(name)
    name = next((name for name in _MESSAGES if isinstance(row.get(name), list)), "turns")
    written = others.pop(name, None)
    if name == "user_input" and isinstance(row.get("reference"), str):
        record.setdefault("expected_outcome", others.pop("reference"))
    for key in ("category", "difficulty", "domain", "tags", "history", "vaults", "folders"):
        if others.get(key) is not None:
            record[key] = others.pop(key)
    calls = others.pop("expected_tools", None)
    if isinstance(written, list) and any(isinstance(member, dict) and _role(member) for member in written):
        messages = [_message(member) for member in written]
        last = _last_question(messages)
        if isinstance(calls, list) and last is not None:
            messages = with_calls_of_turns(messages, written, calls, last)
            calls = None
        record["messages"] = messages
    else:
        # A scenario alone is played by a simulated user, and asks nothing by itself.
        record["turns"] = [_turn(member) for member in written] if isinstance(written, list) else []
    others["expected_tools"] = calls
    metadata = {key: value for key, value in others.items() if value not in (None, [], {}, "")}
    if metadata:
        record["metadata"] = metadata
    return record


def _last_question(messages: Sequence[Json]) -> int | None:
    """Return the position of the last message of the user that asks something; None without any."""
    last = None
    for position, message in enumerate(messages):
        is_asked = isinstance(message, dict) and message.get("role") == "user"
        if is_asked and (last is None or not is_small_talk(message["content"])):
            last = position
    return last


def _message(member: Json) -> Json:
    if not isinstance(member, dict):
        return member
    content = member.get("content", member.get("value", member.get("text")))
    return {"role": _role(member) or member.get("role"), "content": content}


def _replies(record: Mapping[str, Any], unit: str) -> list[Record]:
    """Return the last reply to each question as a record of an answers file."""
    replies: dict[int, Record] = {}
    number = 0
    for message in record.get("messages", ()):
        if message["role"] == "user":
            number += 1
        elif message["role"] == "assistant" and number and message["content"]:
            name = turn_id(unit, number)
            replies[number] = {"id": name, "answer": message["content"]}
    return list(replies.values())


def _turn(member: Json) -> Json:
    """Return a turn by the names that its members have here; others go into its metadata."""
    if not isinstance(member, dict):
        return member
    turn: Record = {}
    metadata: Record = {}
    for name, value in member.items():
        ours = str(_OF_TURN.get(name, name))
        if value is None or (value == [] and ours != "relevant_ids"):
            continue
        if name in ("answerability", "Answerability"):
            turn |= _answerability(value)
        elif ours in OF_CASE or ours in ("standalone", "question", "gold"):
            turn.setdefault(ours, value)
        else:
            metadata[name] = value
    return _without_gold(turn, metadata)


def _answerability(written: Json) -> Record:
    """Return what a label such as `["UNANSWERABLE"]` says of a turn."""
    first = written[0] if isinstance(written, list) and written else written
    word = str(first).lower()
    if word == "unanswerable":
        return {"answerable": False}
    return {"conversational": True} if word == "conversational" else {}


def _without_gold(turn: Record, metadata: Record) -> Record:
    """Move the gold of a turn without an answer into its metadata."""
    if turn.get("answerable") is False or turn.get("conversational") is True:
        for name in ("reference", "relevant_ids"):
            value = turn.pop(name, None)
            if value:
                metadata[name] = value
    if not turn.get("relevant_ids", True):
        del turn["relevant_ids"]
    if metadata:
        turn["metadata"] = metadata
    return turn


# ── MTRAG ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_task(row: Mapping[str, Json]) -> bool:
    """Return True for a task of MTRAG: a turn with all that was said before it."""
    said = row.get("input")
    is_said = isinstance(said, list) and bool(said) and isinstance(said[0], dict) and "speaker" in said[0]
    return is_said and "task_id" in row and "conversation_id" in row


def _of_tasks(rows: Sequence[PlacedRow]) -> Iterator[_Placed]:
    """Yield a conversation for the tasks with the same id, in the order of their turns."""
    tasks: dict[str, list[tuple[int | str, Mapping[str, Any]]]] = {}
    for place, row in rows:
        tasks.setdefault(str(row.get("conversation_id")), []).append((place, row))
    for name, of_one in tasks.items():
        turns: dict[int, Record] = {}
        answers: list[Record] = []
        for _, task in of_one:
            # A turn without a task of its own is known from what later tasks say of it.
            for number, turn in enumerate(_said(task), start=1):
                turns.setdefault(number, turn)
        for _, task in of_one:
            number = len(_said(task))
            if number:
                turns[number] = _labelled(task, _said(task)[-1])
                answers += _given(task, turn_id(name, number))
        place, first = of_one[0]
        record: Record = {"id": name, "turns": [turns[number] for number in sorted(turns)]}
        collection = first.get("Collection") or first.get("collection")
        if collection:
            record["metadata"] = {"collection": collection}
        yield place, record, answers


def _said(task: Mapping[str, Any]) -> list[Record]:
    """Return the turns of a task's input, each question with the reply to it."""
    turns: list[Record] = []
    said = task.get("input")
    for message in said if isinstance(said, list) else ():
        role = _role(message) if isinstance(message, dict) else None
        if role == "user":
            turns.append({"question": message.get("text")})
        elif role == "assistant" and turns:
            turns[-1]["reference"] = message.get("text")
    return turns


def _labelled(task: Mapping[str, Any], asked: Record) -> Record:
    """Return the turn of a task with its labels."""
    turn = dict(asked)
    targets = task.get("targets")
    if isinstance(targets, list) and targets and isinstance(targets[0], dict):
        turn["reference"] = targets[0].get("text")
    relevant = [str(context.get("document_id")) for context in _contexts(task) if _is_relevant(context)]
    if relevant:
        turn["relevant_ids"] = list(dict.fromkeys(relevant))
    turn |= _answerability(task.get("answerability", task.get("Answerability")))
    metadata: Record = {}
    for name in ("Question Type", "Multi-Turn", "answerability", "Answerability", "task_id"):
        if task.get(name):
            metadata[name] = task[name]
    return _without_gold(turn, metadata)


def _contexts(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    contexts = task.get("contexts")
    return [context for context in contexts if isinstance(context, dict)] if isinstance(contexts, list) else []


def _is_relevant(context: Mapping[str, Any]) -> bool:
    """Return True if people said that a passage is relevant; others were retrieved by a system."""
    feedback = context.get("feedback")
    said = feedback.get("relevant") if isinstance(feedback, dict) else None
    if not isinstance(said, dict):
        return False
    return any(isinstance(each, dict) and each.get("value") == "yes" for each in said.values())


def _given(task: Mapping[str, Any], name: str) -> Iterator[Record]:
    """Yield what a system retrieved and answered, if the task holds any of it."""
    answer: Record = {}
    predictions = task.get("predictions")
    if isinstance(predictions, list) and predictions and isinstance(predictions[0], dict):
        answer["answer"] = predictions[0].get("text")
    retrieved = [context for context in _contexts(task) if not isinstance(context.get("feedback"), dict)]
    chunks: list[Record] = []
    for rank, context in enumerate(retrieved, start=1):
        chunk: Record = {"rank": rank, "chunk_id": str(context.get("document_id"))}
        if isinstance(context.get("text"), str):
            chunk["text"] = context["text"]
        chunks.append(chunk)
    if chunks:
        answer["retrieved_chunks"] = chunks
    if answer:
        yield {"id": name, **answer}
