"""A case takes no longer than its attempts may, plus ten seconds, whatever hangs."""

from __future__ import annotations

import time

import pytest
from project import Project, a_case
from reliability import Tally

BOT = """
import asyncio, bot, time
async def hang(question):
    await asyncio.sleep(600)
def block(question):
    time.sleep(600)
async def swallow(question):
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass
answer = bot.answer
"""
ATTEMPT_S = 0.3
RETRIES = 1
LONGEST_S = ATTEMPT_S * (RETRIES + 1) + 10


@pytest.mark.reliability("time", "a system that hangs, blocks its thread, or swallows its end")
@pytest.mark.parametrize("bot", ["hang", "block", pytest.param("swallow", marks=pytest.mark.torture)])
def test_a_run_of_a_system_that_hangs_ends(project: Project, bot: str, tally: Tally):
    project.write("hanging.py", BOT)
    project.configure(f'target = "hanging:{bot}"\ntimeout = {ATTEMPT_S}\nretries = {RETRIES}')
    project.cases([a_case(f"q{number}") for number in range(3)])
    tally.tried(3)
    began = time.monotonic()
    result = project.run()
    assert time.monotonic() - began < 2 * LONGEST_S  # all cases are asked at once; the rest is for the machine
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {record["error"]["kind"] for record in project.results()} == {"timeout"}
