"""Replies that were damaged on their way: never a score that the text does not state."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reliability import Tally

from pytest_rageval.judges.judge_reply import read_reply
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.json_exchange import UnreadableReply
from pytest_rageval.text import printable

pytestmark = pytest.mark.reliability("judge replies", "damaged replies", costs="false green")

MARKER = "fence-0123456789abcdef"
RUBRIC = load_rubric("correctness")

PIECES = ('"', "\\", "{", "}", "[", "]", ",", ":", "0", "5", "-", ".", "e", "/", " ", "\n", "null", "NaN", "\u200b",
          '"score": 5', '{"score": 1}', '{"score": 3, "reasoning": "x"}', "```", "\ud800", "true", "'")  # fmt: skip


def replies() -> list[tuple[str, float]]:
    """Valid ones of several kinds, with the score that each states."""
    reasonings = ["fine", 'it says {"score": 0}, I think', "[1] states: {x}\n\\", "근거 있음"]
    written = [
        (json.dumps({"reasoning": reasoning, "score": score}, ensure_ascii=False), score)
        for reasoning in reasonings
        for score in (0, 2, 4)
    ]
    written += [(f"\n```json\n{text}\n```\n", score) for text, score in written]
    return [*written, ('{"score": "4/5"}', 4), ('{"score": "2"}', 2), ('{"score": 3.0}', 3)]


def damaged(text: str, other: str, dice: random.Random) -> str:
    """One to three changes: characters inserted, deleted, replaced, doubled; stretches copied, moved, spliced in."""
    for _ in range(dice.randint(1, 3)):
        start, end = sorted((dice.randint(0, len(text)), dice.randint(0, len(text))))
        match dice.randrange(8):
            case 0:
                text = text[:start] + dice.choice(PIECES) + text[start:]
            case 1:
                text = text[:start] + text[start + dice.randint(1, 3) :]
            case 2:
                text = text[:start] + dice.choice(PIECES) + text[start + 1 :]
            case 3:
                text = text[: start + 1] + text[start:]
            case 4:
                text = text[:end] + text[start:]
            case 5:
                text = text[:start] + text[end:] + text[start:end]
            case 6:
                text = text[:start] + other[dice.randint(0, len(other)) :]
            case _:
                text = re.sub(r"\d", lambda _: str(dice.randint(0, 9)), text, count=dice.randint(1, 2))
    return text


def stated_in(text: str) -> Iterator[float]:
    """By other means than the reader's: the scores of all JSON objects that begin anywhere in a text.

    Line breaks in strings, and escapes that JSON does not have, are read as they are meant.
    """

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) < len(found):
            raise ValueError("a key twice")
        return dict(found)

    decoder = json.JSONDecoder(object_pairs_hook=pairs, strict=False)
    text = re.sub(
        r"\\(.)", lambda escape: escape[0] if escape[1] in '"\\/bfnrtu' else "\\" + escape[0], text, flags=re.S
    )
    for opening in re.finditer(r"\{", text):
        try:
            value = decoder.raw_decode(text, opening.start())[0].get("score")
        except ValueError:
            continue
        if isinstance(value, str):
            value = value.strip("\u200b \n").removesuffix("/5").strip()
        try:
            yield float(value)
        except (TypeError, ValueError):
            continue


def score_of(text: str) -> float | None:
    try:
        return read_reply(text, RUBRIC, MARKER).scores["correctness"]
    except UnreadableReply:
        return None


def test_ten_thousand_damaged_replies_never_give_a_wrong_score(tally: Tally):
    tally.tried(10_000)
    dice = random.Random(20)
    valid = replies()
    outcomes: Counter[str] = Counter()
    for number in range(10_000):
        original, score = valid[number % len(valid)]
        text = damaged(original, dice.choice(valid)[0], dice)
        found = score_of(text)
        if found is None:
            outcomes["unreadable"] += 1
            continue
        assert 0 <= found <= 5, text
        assert found in stated_in(text), text
        outcomes["as before" if found == score else "as it now states"] += 1
    # Otherwise the damage were too great, or too small, to say anything.
    assert min(outcomes.values()) > 300, outcomes
    assert len(outcomes) == 3


@given(st.lists(st.sampled_from([*PIECES, *(text for text, _ in replies())]) | st.text(st.characters(), max_size=5)))
def test_any_text_is_read_or_unreadable_and_the_reason_can_be_shown(pieces: list[str]):
    for rubric in ("correctness", "groundedness", "relevance", "abstention", "claim_split"):
        try:
            reply = read_reply("".join(pieces), load_rubric(rubric), MARKER)
        except UnreadableReply as unreadable:
            shown = unreadable.reason
        else:
            shown = " ".join(reply.flags)
            json.dumps([reply.scores, reply.reasoning, dict(reply.extra)], ensure_ascii=False, allow_nan=False).encode()
        assert printable(shown) == shown
