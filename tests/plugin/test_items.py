"""Cases are test items: named, selected, deselected and reported like any others."""

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
            "*came*1 notes/water.md > # Water > ## Boiling",
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
    first.stdout.fnmatch_lines(["FAILED rageval-gates::recall_any@5 - recall_any@5 is 0.5, gate >= 0.9"])
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
