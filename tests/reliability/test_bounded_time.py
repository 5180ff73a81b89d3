"""A case takes no longer than its attempts may, plus ten seconds, whatever hangs."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Container, Iterable

import pytest
from _pytest.mark import ParameterSet
from fault_server import Behaviour, Connection, FaultServer, drips, gives, hangs
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
CASES = 12
BOUND_S = LONGEST_S + 50
"""All cases are asked at once; the rest is for a slow machine. One after the other, they would take twice as long."""
TABLE = f"timeout = {ATTEMPT_S}\nretries = {RETRIES}\nmetric_timeout = {ATTEMPT_S}"
WAYS = {"alone": (), "-n 2": ("-n", "2"), "--workers 2": ("--workers", "2")}


@pytest.mark.reliability("time", "a system that hangs, blocks its thread, or swallows its end")
@pytest.mark.child_process
@pytest.mark.parametrize("bot", ["hang", "block", "swallow"])
def test_a_run_of_a_system_that_hangs_ends(project: Project, bot: str, tally: Tally):
    project.write("hanging.py", BOT)
    project.configure(f'target = "hanging:{bot}"\n{TABLE}')
    assert set(kinds_after_a_run(project, "alone", tally)) == {"timeout"}


def kinds_after_a_run(
    project: Project, way: str, tally: Tally, ends: pytest.ExitCode = pytest.ExitCode.TESTS_FAILED
) -> list[str]:
    """Run some cases in this way, in time; return the kind of error of each, in the order of their names."""
    project.cases([a_case(f"q{number}", f"boiling {number}") for number in range(CASES)])
    tally.tried(CASES)
    began = time.monotonic()
    if way == "--workers 2":
        result = project.process(sys.executable, "-m", "pytest_rageval", "run", *WAYS[way])
    else:
        result = project.run_process(*WAYS[way])
    assert time.monotonic() - began < BOUND_S
    assert result.ret == ends
    by_id = project.records()
    return [(by_id[name]["error"] or {"kind": ""})["kind"] for name in sorted(by_id)]


NEVER_CLOSES = """
import asyncio
from pytest_rageval.model import Answer

class Bot:
    name = "never-closes"
    async def ask(self, request):
        return Answer(text="at 100 degrees")
    async def aclose(self):
        while True:
            try:
                await asyncio.sleep(600)
            except BaseException:
                pass

target = Bot()
"""


@pytest.mark.child_process
@pytest.mark.reliability("time", "a system that never closes")
def test_a_run_of_a_system_that_never_closes_ends(project: Project, tally: Tally):
    project.write("never.py", NEVER_CLOSES)
    project.configure(f'target = "never:target"\n{TABLE}')
    assert set(kinds_after_a_run(project, "alone", tally)) == {""}


OWN_JUDGE = """
import asyncio, time

class Judge:
    model = "slow/1"

    async def hang(self):
        await asyncio.sleep(600)

    async def block(self):
        time.sleep(600)

    async def swallow(self):
        while True:
            try:
                await asyncio.sleep(600)
            except BaseException:
                pass

    async def score_groundedness(self, answer, context):
        await self.{how}()
        return 1.0

judge = Judge()
"""


def ways_of(kinds: Iterable[str], usual: Container[tuple[str, str]]) -> list[ParameterSet]:
    """Return each kind in each way; those that are not usual are for the long form."""
    return [
        pytest.param(kind, way, marks=() if (kind, way) in usual else pytest.mark.torture)
        for kind, way in itertools.product(kinds, WAYS)
    ]


@pytest.mark.child_process
@pytest.mark.reliability("time", "a judge of the project's own that hangs, blocks the loop, or swallows its end")
@pytest.mark.parametrize(("how", "way"), ways_of(["hang", "block", "swallow"], [("hang", "-n 2")]))
def test_a_run_whose_own_judge_hangs_ends(project: Project, how: str, way: str, tally: Tally):
    project.write("judging.py", OWN_JUDGE.replace("{how}", how))
    project.configure(f'target = "bot:answer"\njudge = "judging:judge"\n{TABLE}')
    kinds = kinds_after_a_run(project, way, tally)
    assert set(kinds) <= {"judge_timeout", "timeout"}, kinds


BEHAVIOURS: dict[str, Behaviour] = {"hang": hangs, "drip": drips}


def after_the_list_of_models(behaviour: Behaviour) -> Behaviour:
    """Return a behaviour of a server that seems well until it is asked to judge."""

    async def behave(connection: Connection) -> None:
        if connection.request.method == "GET":
            await gives({"data": [{"id": "m"}]})(connection)
        else:
            await behaviour(connection)

    return behave


@pytest.mark.child_process
@pytest.mark.reliability("time", "a judge's server that never answers, or a byte at a time")
@pytest.mark.parametrize(("how", "way"), ways_of(BEHAVIOURS, [("drip", "--workers 2")]))
def test_a_run_whose_judge_on_a_server_hangs_ends(project: Project, how: str, way: str, tally: Tally):
    with FaultServer(after_the_list_of_models(BEHAVIOURS[how])) as server:
        project.configure(f'target = "bot:answer"\njudge = "openai:m@{server.url}/v1"\n{TABLE}')
        kinds = kinds_after_a_run(project, way, tally)
    assert set(kinds) == {"judge_timeout"}


OWN_METRIC = """
import time
from pytest_rageval import metric

def forever():
    while True:
        pass

def sleep():
    time.sleep(600)

def swallow():
    while True:
        try:
            time.sleep(600)
        except Exception:
            pass

def backtrack():
    import re
    re.match("(a*)*b", "a" * 40)

def wait_for_a_lock():
    import threading
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

@metric(layer="L5", better="higher")
def slow(obs):
    \"""Take very long.\"""
    {how}()
    return 1.0
"""


def install_metric(project: Project, how: str) -> None:
    """Write the metric as an installed package has it, which `rageval run` and its workers find as well."""
    project.write("slow_metric.py", OWN_METRIC.replace("{how}()", how))
    project.write("own-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    project.write("own-1.dist-info/entry_points.txt", "[rageval.metrics]\nslow = slow_metric:slow\n")


@pytest.mark.child_process
@pytest.mark.reliability("time", "a metric of the project's own that never returns")
@pytest.mark.parametrize(
    ("how", "way"),
    ways_of(
        ["forever", "sleep", "swallow", "backtrack", "wait_for_a_lock"], [("forever", "--workers 2"), ("sleep", "-n 2")]
    ),
)
def test_a_run_whose_own_metric_never_returns_ends(project: Project, how: str, way: str, tally: Tally):
    install_metric(project, f"{how}()")
    project.configure(f'target = "bot:answer"\n{TABLE}')
    assert set(kinds_after_a_run(project, way, tally)) == {"metric"}


@pytest.mark.child_process
@pytest.mark.reliability("time", "a metric of the project's own that takes its time")
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[] if way == "--workers 2" else [pytest.mark.torture]) for way in WAYS]
)
def test_a_metric_that_sleeps_within_its_limit_scores(project: Project, way: str, tally: Tally):
    install_metric(project, f"time.sleep({ATTEMPT_S / 3})")
    project.configure(f'target = "bot:answer"\n{TABLE}')
    assert kinds_after_a_run(project, way, tally, pytest.ExitCode.OK) == [""] * CASES
    assert {record["scores"]["slow"] for record in project.results()} == {1}
