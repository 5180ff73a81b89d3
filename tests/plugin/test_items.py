"""Cases are test items, named, selected and reported like any others; what is left out is said."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with


def test_every_case_is_an_item_under_its_file_and_id(project: Project):
    project.cases(SOME)
    result = project.run("--co", "-q")
    assert result.outlines[:4] == [
        "evalcases/a.jsonl::boil",
        "evalcases/a.jsonl::freeze",
        "evalcases/a.jsonl::남산-높이",
        "evalcases/a.jsonl::unknown",
    ]
    assert result.ret == 0
    assert not (project.path / "reports").exists()


@pytest.mark.parametrize("id", ["남산-높이", "two words", "a/b", "x#1", 'q"1"'])
def test_a_single_case_is_selected_by_its_id(project: Project, id: str):
    project.cases([a_case(id), a_case("other")])
    result = project.run(f"evalcases/a.jsonl::{id}")
    result.assert_outcomes(passed=1)
    assert list(project.outcomes()) == [id]


@pytest.mark.parametrize(
    ("id", "shown"),
    [("a::b", r"a\x3a\x3ab"), ("a[1]", r"a\x5b1]"), ("tab\there", r"tab\x09here"), (r"back\x41", r"back\x5cx41")],
)
def test_what_a_node_id_cannot_carry_is_escaped_visibly(project: Project, id: str, shown: str):
    project.cases([a_case(id)])
    assert project.run("--co", "-q").outlines[0] == f"evalcases/a.jsonl::{shown}"
    project.run(f"evalcases/a.jsonl::{shown}").assert_outcomes(passed=1)
    assert list(project.outcomes()) == [id]


@pytest.mark.parametrize(
    ("select", "ids"),
    [
        (["-k", "multi_hop"], ["freeze"]),
        (["-k", "cold or unanswerable"], ["freeze", "unknown"]),
        (["-k", "not unanswerable and not cold"], ["boil", "남산-높이"]),
        (["-k", "남산"], ["남산-높이"]),
        (["-m", "rageval(category='multi_hop')"], ["freeze"]),
        (["-m", "rageval(answerable=False)"], ["unknown"]),
    ],
)
def test_keywords_and_marks_select(project: Project, select: list[str], ids: list[str]):
    project.cases(SOME)
    project.run(*select)
    assert list(project.outcomes()) == ids
    assert project.metrics()["partial"] is True


def test_a_failing_case_says_what_was_expected_and_what_came_without_a_traceback(project: Project):
    project.cases([a_missed_case("missed")])
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*recall_any@5 is 0, gate >= 1 (L2_doc_retrieval_fail)",
            "*question*What is the boiling point of water?",
            "*expected*notes/elsewhere.md*",
            "*retrieved*1. notes/water.md > # Water > ## Boiling",
            '*answer*"Water boils at 100 degrees at sea level."',
            "*evalcases/a.jsonl:1",
            "FAILED evalcases/a.jsonl::missed - recall_any@5 is 0, gate >= 1 (L2_doc_ret*",
        ]
    )
    assert not lines_with(result, "Traceback")
    assert not lines_with(result, "assert_gates")


def test_a_case_in_which_nothing_can_be_scored_is_skipped_with_the_reason(project: Project):
    project.configure('target = "bot:answer"\n[tool.rageval.metrics]\nenabled = ["kg_edge_f1"]')
    project.cases([a_case("boil")])
    project.run("-rs").stdout.fnmatch_lines(["SKIPPED*nothing in it could be scored*"])
    assert project.outcomes() == {"boil": "skipped"}


def test_last_failed_runs_the_failed_case_again_and_knows_no_gates(project: Project):
    project.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.9"]')
    project.cases([a_case("boil"), a_missed_case("missed")])
    first = project.run()
    first.assert_outcomes(passed=1, failed=2)
    first.stdout.fnmatch_lines(["FAILED rageval-gates::recall_any@5 - recall_any@5 is 0.5, gate >= 0.9*"])
    again = project.run("--lf")
    again.assert_outcomes(failed=1, deselected=0)
    assert project.outcomes() == {"missed": "failed"}


def test_stepwise_stops_at_the_failed_case_and_goes_on_from_it(project: Project):
    project.cases([a_case("one"), a_missed_case("two"), a_case("three")])
    project.run("--sw").assert_outcomes(passed=1, failed=1)
    project.run("--sw").assert_outcomes(failed=1, deselected=1)


def test_a_module_scoped_autouse_fixture_of_the_user_runs_once_a_file(project: Project):
    project.cases(SOME)
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(autouse=True, scope='module')\ndef around():\n    print('ONCE'); yield\n",
    )
    result = project.run("-s")
    result.assert_outcomes(passed=4)
    assert str(result.stdout).count("ONCE") == 1


def test_marks_that_a_conftest_adds_to_items_count(project: Project):
    project.cases([a_missed_case("missed"), a_case("boil")])
    project.write(
        "conftest.py",
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    items[0].add_marker(pytest.mark.xfail(reason='known'))\n"
        "    items[1].add_marker(pytest.mark.skip(reason='later'))\n",
    )
    project.run().assert_outcomes(xfailed=1, skipped=1)
    assert project.outcomes() == {"missed": "xfailed", "boil": "skipped"}


def test_junit_holds_the_scores_and_the_gates(project: Project):
    project.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.9"]')
    project.cases(SOME)
    project.run("--junitxml=junit.xml")
    xml = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="recall_any@5" value="1.0" />' in xml
    assert 'classname="rageval-gates" name="recall_any@5"' in xml
    assert 'name="남산-높이"' in xml


def test_a_file_outside_the_globs_is_taken_when_it_is_named(project: Project):
    project.cases([a_case("boil")], "elsewhere/mine.jsonl")
    project.write("elsewhere/data.jsonl", '{"text": "not a case"}\n')
    project.run("--co", "elsewhere").assert_outcomes()
    project.run("elsewhere/mine.jsonl").assert_outcomes(passed=1)
    assert project.metrics()["partial"] is False
    assert project.run("elsewhere/data.jsonl").ret != 0


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
    assert f"{project.path} (by pytest.ini); run `pytest --rootdir .` in that folder" in said[0]


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
