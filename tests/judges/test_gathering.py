"""Several judgements asked one after the other, where none of them waits."""

from __future__ import annotations

import asyncio

import pytest

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judging import ask_together
from pytest_rageval.model import Judgement


def test_in_turn_the_rest_is_asked_as_well_before_the_first_error_is_raised():
    asked: list[str] = []

    async def judge(name: str) -> Judgement:
        asked.append(name)
        if name.startswith("bad"):
            raise JudgeError("cache_miss", name)
        return Judgement(name, {})

    with pytest.raises(JudgeError, match="bad1"):
        asyncio.run(ask_together(map(judge, ("good", "bad1", "bad2", "last")), in_turn=True))
    assert asked == ["good", "bad1", "bad2", "last"]


def test_in_turn_the_judgements_come_in_the_order_in_which_they_were_asked_for():
    async def judge(name: str) -> Judgement:
        return Judgement(name, {})

    judgements = asyncio.run(ask_together(map(judge, "abc"), in_turn=True))
    assert [judgement.rubric for judgement in judgements] == ["a", "b", "c"]
