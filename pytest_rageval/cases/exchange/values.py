"""What foreign members hold, read as parts of a case: texts, right answers, chunks, places, turns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pytest_rageval.cases.exchange.gold_objects import place_of_chunk
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.refusal_golds import is_blank_gold, is_none_word
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json

TEXTS_OF_OBJECTS = (
    "text",
    "content",
    "page_content",
    "pageContent",
    "passage_text",
    "paragraph_text",
    "value",
    "answer",
    "output",
    "response",
    "fact",
    "point",
    "claim",
    "statement",
    "keyword",
    "term",
)


_BETWEEN_VALUES = re.compile(r"[,;|\n，、；｜،؛]")


def listed_values(value: Json) -> list[Json]:
    if isinstance(value, str):
        return [part.strip() for part in _BETWEEN_VALUES.split(value) if part.strip()]
    return value if isinstance(value, list) else [value]


def _text(value: Json) -> str | None:
    """Return the text of an object such as a passage or a message."""
    if isinstance(value, dict):
        value = next((value[name] for name in TEXTS_OF_OBJECTS if isinstance(value.get(name), str)), None)
    return value if isinstance(value, str) else None


def texts_of(values: list[Json]) -> list[str] | None:
    """Return the texts of values; None unless each is a text, a number or an object that holds a text."""
    texts: list[str] = []
    for each in values:
        is_number = isinstance(each, (int, float)) and not isinstance(each, bool)
        text = json.dumps(each) if is_number else _text(each)
        if text is None:
            return None
        texts.append(text)
    return texts


_BETWEEN_FACTS = re.compile(r"[|;\n；｜؛]")
_COMMA = re.compile(r"[,，،]\s+|(?<!\d)[,，،]|[,，،](?!\d)|、")
"""A comma between facts, also of another script, not one within a number such as 50,000."""


def listed_facts(value: Json) -> list[str] | None:
    """Return what must stand in an answer: of a list, or of a text with bars, semicolons, lines or commas between."""
    if isinstance(value, str):
        parts = _BETWEEN_FACTS.split(value)
        listed = parts if len(parts) > 1 else _COMMA.split(value)
        value = [part.strip() for part in listed]
    values = value if isinstance(value, list) else [value]
    texts = texts_of([each for each in values if not is_nothing(each)])
    if texts is None:
        return None
    return list(dict.fromkeys(text.strip() for text in texts if text.strip()))


def reference_of(value: Json) -> dict[str, Json] | None:
    """Return right answers: a text, several, spans of SQuAD, messages; empty spans mean that there is none.

    None for objects that hold no text: their JSON is nobody's answer.
    """
    if isinstance(value, dict) and "answer_start" in value:
        value = value.get("text")
        if not value:
            return {"answerable": False}
    if isinstance(value, bool):
        return {"reference": value}  # no text, which is reported
    if not isinstance(value, list):
        texts = texts_of([value])
        is_gold = texts is not None and not _says_nothing(texts[0])
        return {"reference": texts[0]} if texts and is_gold else None
    texts = texts_of([each for each in value if not is_nothing(each)])
    texts = [text for text in texts or () if not _says_nothing(text)]
    if not texts:
        return None
    if isinstance(value[-1], dict) and "role" in value[-1]:
        # Of a conversation the last message is the answer.
        texts = texts[-1:]
    texts = list(dict.fromkeys(texts))
    return {"reference": texts[0]} if len(texts) == 1 else {"expected_answers": texts}


def _says_nothing(text: str) -> bool:
    """Return True for a mark of a blank cell; of words such as "None" the question decides."""
    return is_blank_gold(text) and not is_none_word(text)


def retrieved_chunk(value: Json, rank: int) -> dict[str, Json] | None:
    """Return a retrieved passage as a chunk; None for an object without a text, a path or an id."""
    if not isinstance(value, dict):
        return {"text": str(value), "rank": rank}
    text = _text(value)
    place = place_of_chunk(value)
    if text is None and not place:
        return None
    chunk: dict[str, Json] = {"rank": rank} | place
    return chunk if text is None else {"text": text} | chunk


def with_headings(places: Any, headings: Json) -> list[Json]:
    """Return gold places with their headings, one each, also of a text with semicolons; empty if they do not fit."""
    written = headings if isinstance(headings, list) else [headings]
    if len(written) != len(places or ()) and isinstance(headings, str):
        written = [part.strip() for part in headings.split(";")]
    if not places or len(written) != len(places):
        return []
    return [{"heading_path": heading} | place for place, heading in zip(places, written, strict=True)]


def as_object(extra: Json) -> Json:
    """Return the extra parts; a CSV cell contains them as JSON."""
    if not isinstance(extra, str):
        return extra
    try:
        return parse(extra)
    except StrictJsonError:
        return None


_ROLES = {"human": "user", "user": "user", "ai": "assistant", "gpt": "assistant", "assistant": "assistant"}


def turns_of(messages: Json) -> list[dict[str, Json]]:
    """Return the messages of users and assistants that hold a text, as turns."""
    turns: list[dict[str, Json]] = []
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict):
            continue
        written_role = message.get("type") or message.get("role")
        role = _ROLES.get(str(written_role).lower())
        text = message.get("content")
        if role is not None and isinstance(text, str) and text.strip():
            turns.append({"role": role, "text": text})
    return turns


def conversation_of(messages: Sequence[Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return keys of the case and of the answer: the last user message is the question, earlier ones the history.

    The last text after the question is the answer. Tool calls and their results are left out. Without a user message
    the list itself becomes the question, which is then reported as no text.
    """
    turns = turns_of(messages)
    asked = next((at for at in reversed(range(len(turns))) if turns[at]["role"] == "user"), None)
    if asked is None:
        return {"question": list(messages)}, {}
    keys: dict[str, Json] = {"question": turns[asked]["text"]}
    if asked:
        keys["history"] = turns[:asked]
    is_answered = asked + 1 < len(turns)
    return keys, {"answer": turns[-1]["text"]} if is_answered else {}
