"""Duplicate items of one case: one record of it, however often it was named, found, linked or multiplied."""

from __future__ import annotations

import json

import pytest
from project import Project, a_case, lines_with


@pytest.fixture
def linked(project: Project) -> Project:
    """A project whose only case can be reached through two links as well."""
    project.cases([a_case("boil")], "evalcases/sub/a.jsonl")
    (project.path / "evalcases/alias").symlink_to("sub")
    (project.path / "evalcases/b.jsonl").symlink_to("sub/a.jsonl")
    return project


def recorded(project: Project) -> list[tuple[str, int]]:
    """Key and trial of each line, in the order of the file."""
    lines = (project.runs[-1] / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [(record["case_key"], record["trial"]) for record in map(json.loads, lines)]


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


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=str)
def test_a_plugin_that_runs_each_test_twice_leaves_one_line_a_case(project: Project, how: list[str]):
    project.cases([a_case("boil"), a_case("again")])
    project.write("conftest.py", REPEATING)
    project.run(*how).assert_outcomes(passed=4)
    assert sorted(recorded(project)) == [("evalcases/a.jsonl::again", 0), ("evalcases/a.jsonl::boil", 0)]
    assert project.metrics()["total_tests"] == 2
