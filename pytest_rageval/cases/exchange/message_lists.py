"""Conversations written as lists of messages, as in Ragas' multi-turn samples: history, question, answer."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_rageval.model import Json

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}


def conversation(messages: Sequence[Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Keys of the case and of the answer: a person's last message is the question, what came before it the history.

    The last text after the question is the answer. Calls of tools and what these gave are left out. Where nobody asks,
    the list itself stands as the question, which is then said to be no text.
    """
    turns = [
        {"role": role, "text": message["content"]}
        for message in messages
        if isinstance(message, dict)
        and (role := _ROLES.get(str(message.get("type") or message.get("role")).lower()))
        and isinstance(message.get("content"), str)
        and message["content"].strip()
    ]
    asked = next((at for at in reversed(range(len(turns))) if turns[at]["role"] == "user"), None)
    if asked is None:
        return {"question": list(messages)}, {}
    keys: dict[str, Json] = {"question": turns[asked]["text"]}
    if asked:
        keys["history"] = turns[:asked]
    return keys, ({"answer": turns[-1]["text"]} if asked + 1 < len(turns) else {})
