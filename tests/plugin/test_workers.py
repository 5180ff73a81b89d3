"""Runs with workers: each case asked and recorded once, the same results, and options of xdist heeded."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from project import ALONE_AND_WITH_WORKERS, SOME, Project, a_case, a_missed_case, lines_with

from pytest_rageval.plugin.block_scheduling import BlockScheduling, block, worker_number
from pytest_rageval.plugin.items import own_nodeid, without_group

MIXED = [
    *SOME,
    a_missed_case("missed"),
    a_case("broken", "boiling broken"),
    *(a_case(f"more-{n}", category="reasoning" if n % 2 else "factual") for n in range(12)),
]
BREAKING_BOT = """
import bot, os
def answer(question):
    if "broken" in question:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""


@pytest.fixture
def mixed(project: Project) -> Project:
    project.cases(MIXED[:9], "evalcases/a.jsonl")
    project.cases(MIXED[9:], "evalcases/b.jsonl")
    project.write("breaking.py", BREAKING_BOT)
    project.configure('target = "breaking:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.99"]')
    return project


@pytest.mark.parametrize("how", [["-n", "4"], ["-n", "2", "--dist", "loadfile"]])
def test_workers_make_no_difference(mixed: Project, how: list[str]):
    alone = mixed.run()
    alone.assert_outcomes(passed=16, failed=2, errors=1)
    metrics, outcomes = mixed.stable_metrics(), mixed.outcomes()
    mixed.run(*how).assert_outcomes(passed=16, failed=2, errors=1)
    assert mixed.stable_metrics() == metrics
    assert mixed.outcomes() == outcomes


@pytest.mark.child_process
def test_order_makes_no_difference(mixed: Project):
    mixed.run()
    metrics = mixed.stable_metrics()
    mixed.write("conftest.py", "def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    mixed.run()
    assert mixed.stable_metrics() == metrics
    mixed.run_process("-p", "randomly").assert_outcomes(passed=16, failed=2, errors=1)
    assert mixed.stable_metrics() == metrics


@pytest.mark.child_process
def test_a_crashed_worker_costs_one_case_and_is_said(project: Project):
    project.cases([a_case(f"q{n}") for n in range(19)] + [a_case("crash", "boiling crash")])
    project.write(
        "crashing.py",
        "import bot, os\ndef answer(question):\n"
        "    if 'crash' in question: os._exit(1)\n    return bot.answer(question)\n",
    )
    project.configure('target = "crashing:answer"')
    result = project.run("-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=19, errors=1)
    outcomes = project.outcomes()
    assert outcomes.pop("crash") == "error"
    assert list(outcomes.values()) == ["passed"] * 19
    assert project.records()["crash"]["error"]["kind"] == "crash"


@pytest.mark.child_process
def test_a_users_test_that_ends_the_process_loses_no_case(project: Project):
    project.cases([a_case(f"q{n}") for n in range(10)])
    project.write("test_exit.py", "import os\ndef test_exit():\n    os._exit(3)\n")
    result = project.run("-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.outcomes()) == 10


ODD_FIXTURE = "import pytest\n@pytest.fixture(autouse=True)\ndef odd():\n    raise ValueError('odd \\ud800 text')\n"


@ALONE_AND_WITH_WORKERS
@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("bot.py", "def answer(question):\n    return 'water \\ud800 boils'\n", "invalid_response"),
        ("conftest.py", ODD_FIXTURE, None),
    ],
    ids=["in an answer", "in a message of the user's own"],
)
def test_a_lone_surrogate_fails_the_run_and_is_not_lost(
    project: Project, name: str, text: str, kind: str | None, how: list[str]
):
    project.cases([a_case("boil")])
    project.write(name, text)
    result = project.run(*how)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=1)
    assert project.outcomes() == {"boil": "error"}
    assert kind in (None, project.records()["boil"]["error"]["kind"])


GROUPED = """
import pytest
def pytest_itemcollected(item):
    item.add_marker(pytest.mark.xdist_group("one@two"))
"""


@pytest.fixture
def two_files(project: Project) -> Project:
    project.cases([a_case(f"q{n}") for n in range(3)])
    project.write("evalcases/bad.jsonl", '{"id": "x"}\n')
    return project


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["--continue-on-collection-errors"]])
def test_a_broken_file_is_reported_once(two_files: Project, how: list[str]):
    alone, divided = two_files.run(*how), two_files.run("-n", "2", *how)
    problem = "evalcases/bad.jsonl:1:1: case 'x': question is missing"
    assert len([line for line in divided.outlines if line == problem]) == 1
    for result in (alone, divided):
        assert len([line for line in result.outlines if line.startswith("ERROR evalcases/bad.jsonl")]) == 1
    assert divided.ret == alone.ret
    assert divided.parseoutcomes() == alone.parseoutcomes()


@pytest.mark.child_process
@pytest.mark.parametrize("how", [["--ignore-glob", "*/bad*"], ["evalcases/a.jsonl"]])
def test_a_file_that_pytest_leaves_out_is_left_out(two_files: Project, how: list[str]):
    two_files.run(*how, "-n", "1").assert_outcomes(passed=3)


@pytest.mark.child_process
def test_where_every_case_is_deselected_no_target_is_needed(project: Project):
    project.configure("")
    project.cases([a_case("q")])
    project.write("test_own.py", "def test_own(): pass\n")
    project.run("--deselect", "evalcases/a.jsonl").assert_outcomes(passed=1, deselected=1)
    project.run("--deselect", "evalcases/a.jsonl", "-n", "1").assert_outcomes(passed=1)


@pytest.mark.child_process
def test_a_folder_of_cases_that_is_a_link_is_collected(project: Project):
    project.cases([a_case("q0"), a_case("q1")], "elsewhere/a.jsonl")
    (project.path / "evalcases").symlink_to(project.path / "elsewhere", target_is_directory=True)
    for workers in ([], ["-n", "1"]):
        project.run("evalcases", *workers).assert_outcomes(passed=2)
        assert set(project.outcomes()) == {"q0", "q1"}


@pytest.mark.child_process
def test_options_are_checked_where_there_are_no_cases(project: Project):
    project.write("test_own.py", "def test_own(): pass\n")
    for workers in ([], ["-n", "1"]):
        result = project.run("--rageval-gate", "nonsense", *workers)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert lines_with(result, "--rageval-gate: gate 'nonsense' cannot be read")


@pytest.mark.child_process
def test_groups_draw_a_warning_and_do_not_change_keys(project: Project):
    project.cases([a_case(f"q{n}@home") for n in range(4)])
    project.write("conftest.py", GROUPED)
    project.write(
        "test_own.py",
        """
import pytest
@pytest.mark.rageval("evalcases/a.jsonl", select="q1")
def test_own(rageval, eval_case):
    rageval.evaluate(eval_case).assert_gates()
""",
    )
    project.run().assert_outcomes(passed=5)
    metrics, keys = project.stable_metrics(), {record["case_key"] for record in project.results()}
    result = project.run("-n", "2", "--dist", "loadgroup")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["rageval: --dist loadgroup waits for ever where a worker dies*"])
    assert {record["case_key"] for record in project.results()} == keys
    assert project.stable_metrics() == metrics


class _Grouped:
    """An item whose id bears its group, as xdist writes it where pytest lets it (before 9.2)."""

    nodeid = "test_own.py::test_own[q1@home]@a@b_one"

    def __init__(self, *, is_grouped: bool) -> None:
        self.config = SimpleNamespace(getoption=lambda *_: is_grouped)

    def iter_markers(self, _name: str) -> list[pytest.Mark]:
        return [pytest.mark.xdist_group("one").mark, pytest.mark.xdist_group(name="a@b").mark]


def test_a_group_behind_a_node_id_is_no_part_of_the_key():
    grouped: Any = _Grouped(is_grouped=True)
    alone: Any = _Grouped(is_grouped=False)
    assert own_nodeid(grouped) == "test_own.py::test_own[q1@home]"
    assert own_nodeid(alone) == _Grouped.nodeid
    assert "a.jsonl::q1@home" in without_group("a.jsonl::q1@home@a@b_one")


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


@pytest.mark.child_process
def test_each_worker_asks_ahead_and_everything_is_asked_once(patient: Project):
    patient.write("test_neighbour.py", NEIGHBOUR)
    patient.run("-n", "2", ".").assert_outcomes(passed=30 + 11)
    assert sorted(question for question, _, _ in asked(patient)) == sorted(f"boiling {n}" for n in range(30))
    assert list(most_in_flight(patient).values()) == [4, 4], "the half of `concurrency` on each of two"
    assert patient.outcomes().keys() == {f"q{n}" for n in range(30)}


@pytest.mark.child_process
@pytest.mark.parametrize("how", [["--maxschedchunk", "1"], ["--dist", "worksteal"]])
def test_who_says_how_tests_are_handed_out_is_heeded(patient: Project, how: list[str]):
    patient.run("-n", "2", *how).assert_outcomes(passed=30)
    assert set(most_in_flight(patient).values()) == {1}
    assert len(asked(patient)) == 30


@pytest.mark.child_process
def test_a_scheduler_of_the_project_is_heeded(patient: Project):
    patient.write(
        "conftest.py",
        "from xdist.scheduler import LoadFileScheduling\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return LoadFileScheduling(config, log)\n",
    )
    patient.run("-n", "2").assert_outcomes(passed=30)
    assert len(asked(patient)) == 30


@pytest.mark.child_process
def test_a_worker_that_dies_is_said_and_no_case_is_blamed_for_another(patient: Project):
    patient.cases([*CASES[:10], a_case("deadly", "deadly"), *CASES[10:]])
    result = patient.run("-n", "2")
    result.assert_outcomes(passed=31)
    result.stdout.fnmatch_lines(["*worker gw? died; others take the * tests that it had left*"])
    assert set(patient.outcomes().values()) == {"passed"}
    assert len(asked(patient)) <= 31 + 4 * 5, "hardly more than what was in flight is asked twice"


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


def test_the_collection_of_a_worker_that_was_told_to_end_is_not_taken():
    """A worker may report what it has collected though it was never added: another died meanwhile."""
    none: Any = None
    scheduling = BlockScheduling(none, (), none)
    scheduling.add_node("gw3")
    scheduling.add_node_collection("gw2", ["a"])
    assert scheduling.nodes == ["gw3"]
    assert not scheduling.collection_is_completed


def test_a_worker_that_dies_before_it_is_handed_more_keeps_nothing(pytestconfig: pytest.Config):
    """Its end is told a moment after the pipe to it broke."""

    class Worker:
        def __init__(self, name: str, *, is_dead: bool = False) -> None:
            self.gateway, self.workerinput, self.shutting_down = SimpleNamespace(id=name), {"workercount": 2}, False
            self.handed, self.is_dead = list[int](), is_dead

        def send_runtest_some(self, indices: list[int]) -> None:
            if self.is_dead:
                raise OSError("cannot send (already closed?)")
            self.handed += indices

        def shutdown(self) -> None:
            self.shutting_down = True

    dead, living = Worker("gw0", is_dead=True), Worker("gw1")
    nothing: Any = None
    scheduling = BlockScheduling(pytestconfig, (), nothing)
    for worker in (dead, living):
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, [f"test_{number}" for number in range(8)])
    scheduling.schedule()
    assert scheduling.remove_node(dead) == "test_0"
    for number in living.handed:  # which grows meanwhile
        scheduling.mark_test_complete(living, number)
    assert living.shutting_down
    assert sorted([*living.handed, 0]) == [*range(8)]


@pytest.mark.child_process
def test_workers_that_collect_different_tests_are_an_error(patient: Project):
    patient.write("conftest.py", "import os\ndef pytest_collection_modifyitems(items):\n"
                  "    if os.environ.get('PYTEST_XDIST_WORKER') == 'gw1': items.pop()\n")  # fmt: skip
    result = patient.run("-n", "2")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*Different tests were collected between gw* and gw*"])
