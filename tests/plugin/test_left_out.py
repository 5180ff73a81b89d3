"""Cases that are not run are said: a green run of half the cases looks like one of all."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, lines_with


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
    result = project.run(*arguments)
    assert result.ret == 0
    assert not lines_with(result, "outside of what was collected")


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
    unread = f"rageval: the configuration table in {project.path} is not read"
    assert lines_with(result, f"{unread}: pytest's root directory is {inner} (by pytest.ini)")


def two_projects(project: Project) -> None:
    for name in ("a", "b"):
        project.write(f"{name}/pyproject.toml", '[tool.rageval]\ntarget = "demo"\n')
        project.write(f"{name}/evalcases/c.jsonl", '{"id": "q", "question": "Why?"}\n')
    (project.path / "pyproject.toml").unlink()


@pytest.mark.parametrize("how", [[], ["-n", "1"]], ids=["alone", "with workers"])
@pytest.mark.parametrize("named", [["a", "b"], ["a/evalcases/c.jsonl", "b"]], ids=" ".join)
def test_two_projects_on_the_command_line_are_a_usage_error_that_names_both(
    project: Project, named: list[str], how: list[str]
):
    two_projects(project)
    result = project.run(*named, *how)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = lines_with(result, "configuration tables of their own")
    assert f"{project.path / 'a'} and {project.path / 'b'} are projects" in line


def test_one_of_two_projects_runs_alone(project: Project):
    two_projects(project)
    result = project.run("a", "--rageval-dry-run")
    assert result.ret == 0
    assert not lines_with(result, "tables of their own")
    assert not lines_with(result, "is not read")


@pytest.mark.parametrize("arguments", [["a"], ["."]], ids=["named", "nothing collected"])
def test_a_table_below_the_root_directory_is_said_not_to_be_read(project: Project, arguments: list[str]):
    two_projects(project)
    project.write("pytest.ini", "[pytest]\n")
    said = lines_with(project.run(*arguments), f"table in {project.path / 'a'} is not read: pytest's root directory is")
    assert len(said) == 1
    assert f"{project.path} (by pytest.ini); run pytest with --rootdir {project.path / 'a'}" in said[0]


@pytest.mark.parametrize("how", [[], ["-n", "1"]], ids=["alone", "with workers"])
def test_an_empty_list_of_globs_is_a_usage_error(project: Project, how: list[str]):
    project.cases(SOME)
    project.configure('target = "bot:answer"\ncases = []')
    result = project.run(*how)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(lines_with(result, "cases is empty, so that no case would be run")) == 1


def test_a_file_in_testpaths_leaves_the_others_out_and_that_is_said(project: Project):
    project.cases(SOME)
    project.cases([a_case("other")], "evalcases/b.jsonl")
    project.write("pytest.ini", "[pytest]\ntestpaths = evalcases/b.jsonl\n")
    assert lines_with(project.run(), "1 case file is outside of what was collected")
    assert not lines_with(project.run("evalcases/b.jsonl"), "outside of what was collected")
