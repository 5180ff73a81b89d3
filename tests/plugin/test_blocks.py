"""Under `-n` each worker knows its cases before they come, and asks ahead; all are asked once, and recorded once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project, a_case

from pytest_rageval.plugin.workers.blocks import block, worker_number
from pytest_rageval.plugin.workers.scheduling import BlockScheduling

PATIENT_BOT = """
import asyncio, bot, os
in_flight = 0
async def answer(question):
    global in_flight
    in_flight += 1
    with open("asked.jsonl", "a") as file:
        file.write('["%s", %d, %d]\\n' % (question, os.getpid(), in_flight))
    if question == "deadly" and not os.path.exists("died"):
        open("died", "w").close()
        os._exit(9)
    await asyncio.sleep(.05)
    in_flight -= 1
    return bot.answer("boiling")
"""
CASES = [a_case(f"q{n}", f"boiling {n}") for n in range(30)]
NEIGHBOUR = "import pytest\n@pytest.mark.parametrize('number', range(11))\ndef test_neighbour(number): pass\n"

pytestmark = pytest.mark.child_process


@pytest.fixture
def patient(project: Project) -> Project:
    project.write("patient.py", PATIENT_BOT)
    project.configure('target = "patient:answer"\nconcurrency = 8\nretries = 0')
    project.cases(CASES)
    return project


def asked(project: Project) -> list[tuple[str, int, int]]:
    """Question, process and calls in flight there, of each call."""
    lines = (project.path / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line)) for line in lines]


def most_in_flight(project: Project) -> dict[int, int]:
    return {process: max(n for _, own, n in asked(project) if own == process) for _, process, _ in asked(project)}


def test_each_worker_asks_ahead_and_everything_is_asked_once(patient: Project):
    patient.write("test_neighbour.py", NEIGHBOUR)
    patient.run("-n", "2", ".").assert_outcomes(passed=30 + 11)
    assert sorted(question for question, _, _ in asked(patient)) == sorted(f"boiling {n}" for n in range(30))
    assert list(most_in_flight(patient).values()) == [4, 4], "the half of `concurrency` on each of two"
    assert patient.outcomes().keys() == {f"q{n}" for n in range(30)}


@pytest.mark.parametrize("how", [["--dist", "load"], ["--maxschedchunk", "1"], ["--dist", "worksteal"]])
def test_who_says_how_tests_are_handed_out_is_heeded(patient: Project, how: list[str]):
    patient.run("-n", "2", *how).assert_outcomes(passed=30)
    assert set(most_in_flight(patient).values()) == {1}
    assert len(asked(patient)) == 30


def test_a_scheduler_of_the_project_is_heeded(patient: Project):
    patient.write(
        "conftest.py",
        "from xdist.scheduler import LoadFileScheduling\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return LoadFileScheduling(config, log)\n",
    )
    patient.run("-n", "2").assert_outcomes(passed=30)
    assert len(asked(patient)) == 30


def test_a_worker_that_dies_is_said_and_no_case_is_blamed_for_another(patient: Project):
    patient.cases([*CASES[:10], a_case("deadly", "deadly"), *CASES[10:]])
    result = patient.run("-n", "2")
    result.assert_outcomes(passed=31)
    result.stdout.fnmatch_lines(["*worker gw0 died; the * tests that it had left went to another*"])
    assert set(patient.outcomes().values()) == {"passed"}
    assert len(asked(patient)) <= 31 + 4 * 5, "hardly more than what was in flight is asked twice"


def test_fewer_cases_than_workers(patient: Project):
    patient.cases(CASES[:1])
    patient.write("test_neighbour.py", NEIGHBOUR)
    patient.run("-n", "3", ".").assert_outcomes(passed=1 + 11)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 6, 20])
def test_blocks_are_all_of_it_in_order(count: int, workers: int):
    things = list(range(count))
    blocks = [list(block(things, worker, workers)) for worker in range(workers)]
    assert [thing for own in blocks for thing in own] == things
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1


def test_a_worker_that_came_later_has_no_block():
    assert list(block([1, 2], worker_number("gw2"), 2)) == []
    assert list(block([1, 2], worker_number("mine"), 2)) == []


class TwoWorkers:
    """All of a configuration that a scheduler of xdist asks for."""

    def getvalue(self, name: str) -> Any:
        return {"tx": ["popen", "popen"], "maxschedchunk": None}[name]

    getoption = getvalue


def test_the_collection_of_a_worker_that_was_told_to_end_is_not_taken():
    """xdist takes it where another worker dies meanwhile, though it never added the worker: an internal error."""
    config: Any = TwoWorkers()
    session: Any = None
    scheduling = BlockScheduling(config, None, (), session)
    scheduling.add_node("gw3")
    scheduling.add_node_collection("gw2", ["a"])
    assert scheduling.nodes == ["gw3"]
    assert not scheduling.node2collection
