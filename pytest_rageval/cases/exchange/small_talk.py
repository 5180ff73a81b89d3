"""Turns of a chat that ask nothing, such as a greeting: marked, since the reply to them is no right answer."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_rageval.cases.names import name_words
from pytest_rageval.model import Json

_TALK = frozenset(
    [
        "hi", "hello", "hey", "hi there", "hello there", "hey there", "good morning", "good afternoon", "good evening",
        "thanks", "thank you", "thank you very much", "thanks a lot", "many thanks", "ok", "okay", "ok thanks", "great",
        "great thanks", "cool", "perfect", "bye", "goodbye", "good bye", "see you", "how are you",
        "hallo", "guten tag", "guten morgen", "guten abend", "moin", "servus", "gruezi", "danke", "vielen dank",
        "danke schon", "tschuss", "auf wiedersehen", "bonjour", "salut", "bonsoir", "merci", "merci beaucoup",
        "au revoir", "hola", "buenos dias", "buenas tardes", "gracias", "muchas gracias", "adios", "ciao", "buongiorno",
        "grazie", "arrivederci", "ola", "bom dia", "obrigado", "obrigada", "hoi", "dank je", "bedankt", "안녕하세요",
        "안녕", "감사합니다", "고맙습니다", "こんにちは", "ありがとう", "ありがとうございます", "你好", "您好", "谢谢",
        "謝謝", "再见",
    ]
)  # fmt: skip
"""What people say without asking anything, as the words of `name_words`."""
_AGREEMENT = frozenset(["ok", "okay", "ok thanks", "great", "great thanks", "cool", "perfect"])
"""What is small talk unless the assistant has asked something: then it is an answer, and the next reply acts on it."""
_LONGEST = 40


def without_small_talk(messages: Sequence[Json]) -> tuple[list[Json], int]:
    """Mark messages of the user that ask nothing, leave out the replies to them, and count them.

    With the reply as a right answer, every other greeting of a system would fail.
    """
    marked: list[Json] = []
    count = 0
    is_asked_back = False
    is_talk = False
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(message, dict) and role == "user":
            is_talk = is_small_talk(content, is_asked_back=is_asked_back)
            if is_talk:
                count += 1
                message = {**message, "conversational": True}
        if role == "assistant":
            is_asked_back = isinstance(content, str) and content.rstrip().endswith(("?", "？"))
        if not (is_talk and role == "assistant"):
            marked.append(message)
    return marked, count


def is_small_talk(said: Json, *, is_asked_back: bool = False) -> bool:
    """Return True for a turn that asks nothing: a greeting, thanks, a goodbye."""
    if not isinstance(said, str) or len(said) > _LONGEST:
        return False
    words = name_words(said)
    return words in _TALK and not (is_asked_back and words in _AGREEMENT)
