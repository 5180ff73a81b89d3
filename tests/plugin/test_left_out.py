"""Cases that are not run are said, and duplicates of one case have one record."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, lines_with


def test_testpaths_that_leave_out_case_files_are_said_with_their_number(project: Project):
    project.cases(SOME)
    project.cases(SOME, "evalcases/b.jsonl")
    project.configure('target = "bot:answer"', '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    project.write("tests/test_theirs.py", "def test_one():\n    pass\n")
    result = project.run()
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


@pytest.mark.parametrize(("named", "how"), [(["a", "b"], ["-n", "1"]), (["a/evalcases/c.jsonl", "b"], [])], ids=str)
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


@pytest.fixture
def linked(project: Project) -> Project:
    """A project whose only case can be reached through two links as well."""
    project.cases([a_case("boil")], "evalcases/sub/a.jsonl")
    (project.path / "evalcases/alias").symlink_to("sub")
    (project.path / "evalcases/b.jsonl").symlink_to("sub/a.jsonl")
    return project


def recorded(project: Project) -> list[tuple[str, int]]:
    """Key and trial of each line, in the order of the file."""
    return [(record["case_key"], record["trial"]) for record in project.results()]


FILE = "evalcases/sub/a.jsonl"


@pytest.mark.parametrize(
    "how",
    [
        [],
        [FILE, FILE],
        ["evalcases", FILE],
        ["--keep-duplicates", FILE, FILE],
        ["--keep-duplicates", "evalcases", "evalcases", f"{FILE}::boil"],
        ["--keep-duplicates", "-n", "2", "evalcases", "evalcases"],
        ["evalcases/b.jsonl", FILE],
    ],
    ids=" ".join,
)
def test_a_case_that_is_reached_twice_has_one_record(linked: Project, how: list[str]):
    linked.configure('target = "bot:answer"\ncases = ["evalcases/**/*.jsonl", "evalcases/*/*.jsonl"]')
    linked.run(*how).assert_outcomes(passed=1)
    assert len(recorded(linked)) == 1
    assert linked.metrics()["partial"] == (how[:1] == ["evalcases/b.jsonl"])


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=str)
def test_items_that_a_plugin_multiplies_are_left_out_and_said(project: Project, how: list[str]):
    project.cases([a_case("boil"), a_case("again")])
    project.write(
        "conftest.py",
        "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items for _ in range(3)]\n",
    )
    result = project.run(*how)
    result.assert_outcomes(passed=2)
    assert len(recorded(project)) == 2
    assert lines_with(result, "left out 4 duplicate items of cases; --rageval-repeat N asks each case N times")


REPEATING = """
import pytest
from _pytest.runner import runtestprotocol
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        runtestprotocol(item, nextitem=nextitem)
    return True
"""


def test_a_plugin_that_runs_each_test_twice_leaves_one_line_a_case(project: Project):
    project.cases([a_case("boil"), a_case("again")])
    project.write("conftest.py", REPEATING)
    project.run().assert_outcomes(passed=4)
    assert sorted(recorded(project)) == [("evalcases/a.jsonl::again", 0), ("evalcases/a.jsonl::boil", 0)]
    assert project.metrics()["total_tests"] == 2


def test_a_project_without_a_case_file_is_told_where_they_are_looked_for(project: Project):
    result = project.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["rageval: no file holds cases: nothing matches evalcases/[*][*]/[*].jsonl, *"])
