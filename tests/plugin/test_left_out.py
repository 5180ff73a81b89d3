"""Cases that are not run are said: a green run of half the cases looks like one of all."""

from __future__ import annotations

import pytest
from project import SOME, Project, lines_with


@pytest.mark.parametrize("how", [[], ["-n", "1"]])
def test_testpaths_that_leave_out_case_files_are_said_with_their_number(project: Project, how: list[str]):
    project.cases(SOME)
    project.cases(SOME, "evalcases/b.jsonl")
    project.configure('target = "bot:answer"', '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    project.write("tests/test_theirs.py", "def test_one():\n    pass\n")
    result = project.run(*how)
    assert lines_with(result, "rageval: 2 case files are outside of what was collected, such as evalcases/a.jsonl; ")


@pytest.mark.parametrize("arguments", [[], ["evalcases"], ["."], ["evalcases/a.jsonl"], ["evalcases/a.jsonl::boil"]])
def test_nothing_is_said_where_all_were_meant_or_some_were_named(project: Project, arguments: list[str]):
    project.cases(SOME)
    project.write("tests/test_theirs.py", "def test_one():\n    pass\n")
    assert not lines_with(project.run(*arguments), "outside of what was collected")


def test_a_folder_on_the_command_line_leaves_out_the_others(project: Project):
    project.cases(SOME)
    project.write("tests/test_theirs.py", "def test_one():\n    pass\n")
    assert lines_with(project.run("tests"), "rageval: 1 case file is outside of what was collected")


def test_a_table_that_is_not_read_is_said_with_both_places(project: Project):
    project.cases(SOME)
    inner = project.path / "inner"
    project.write("inner/pytest.ini", "[pytest]\n")
    project.write("inner/test_theirs.py", "def test_one():\n    pass\n")
    result = project.run("inner", "-c", "inner/pytest.ini")
    assert lines_with(
        result, f"rageval: the configuration table in {project.path} is not read: pytest's root directory is {inner}"
    )
