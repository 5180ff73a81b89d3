"""What the controller of workers says and does before they start is what one process says and does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from project import Project, a_case, lines_with

from pytest_rageval.plugin.items import own_nodeid, without_group

pytestmark = pytest.mark.child_process
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


@pytest.mark.parametrize("how", [[], ["--continue-on-collection-errors"]])
def test_a_broken_file_is_reported_once(two_files: Project, how: list[str]):
    alone, divided = two_files.run(*how), two_files.run("-n", "2", *how)
    problem = "evalcases/bad.jsonl:1:1: case 'x': question is missing"
    assert len([line for line in divided.outlines if line == problem]) == 1
    for result in (alone, divided):
        assert len([line for line in result.outlines if line.startswith("ERROR evalcases/bad.jsonl")]) == 1
    assert divided.ret == alone.ret
    assert divided.parseoutcomes() == alone.parseoutcomes()


@pytest.mark.parametrize(
    "how", [["--ignore", "evalcases/bad.jsonl"], ["--ignore-glob", "*/bad*"], ["evalcases/a.jsonl"]]
)
def test_a_file_that_pytest_leaves_out_is_left_out(two_files: Project, how: list[str]):
    for workers in ([], ["-n", "1"]):
        two_files.run(*how, *workers).assert_outcomes(passed=3)


def test_where_every_case_is_deselected_no_target_is_needed(project: Project):
    project.configure("")
    project.cases([a_case("q")])
    project.write("test_own.py", "def test_own(): pass\n")
    for workers in ([], ["-n", "1"]):
        project.run("--deselect", "evalcases/a.jsonl", *workers).assert_outcomes(
            passed=1, deselected=1 - len(workers) // 2
        )


def test_a_folder_of_cases_that_is_a_link_is_collected(project: Project):
    project.cases([a_case("q0"), a_case("q1")], "elsewhere/a.jsonl")
    (project.path / "evalcases").symlink_to(project.path / "elsewhere", target_is_directory=True)
    for workers in ([], ["-n", "1"]):
        project.run("evalcases", *workers).assert_outcomes(passed=2)
        assert set(project.outcomes()) == {"q0", "q1"}


def test_options_are_checked_where_there_are_no_cases(project: Project):
    project.write("test_own.py", "def test_own(): pass\n")
    for workers in ([], ["-n", "1"]):
        result = project.run("--rageval-gate", "nonsense", *workers)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert lines_with(result, "--rageval-gate: gate 'nonsense' cannot be read")


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
    metrics, keys = project.stable_metrics(), _keys(project)
    result = project.run("-n", "2", "--dist", "loadgroup")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["rageval: --dist loadgroup waits for ever where a worker dies*"])
    assert _keys(project) == keys
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


def _keys(project: Project) -> set[str]:
    lines = (project.runs[-1] / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {line.split('"case_key":"')[1].split('"')[0] for line in lines}
