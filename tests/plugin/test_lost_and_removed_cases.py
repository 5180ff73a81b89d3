"""The verdict says that a record was lost, and that cases of the baseline are not there any more."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_missed_case


def test_a_deleted_case_is_a_reservation(project: Project):
    project.cases(SOME)
    project.cases([SOME[0] | {"id": "again"}], "evalcases/b.jsonl")
    project.run("--rageval-update-baseline")
    (project.path / "evalcases" / "b.jsonl").unlink()
    assert project.run().ret == 0
    verdict = project.metrics()["verdict"]
    assert (verdict["tone"], verdict["word"]) == ("amber", "Partly comparable")
    assert "1 case of the baseline was removed" in verdict["sentence"]


@pytest.mark.parametrize("lost", ["::missed", "all"])
def test_a_lost_record_is_the_reason_in_the_sentence(project: Project, lost: str):
    project.cases([*SOME, a_missed_case("missed")])
    project.run("--rageval-run-id", "one")
    path = project.runs[0] / "results.jsonl"
    kept = [line for line in path.read_text("utf-8").splitlines(keepends=True) if lost not in line and lost != "all"]
    path.write_text("".join(kept), encoding="utf-8")
    shown = " ".join(project.rageval("gate", "one").stdout.str().split())
    number = 5 if lost == "all" else 1
    has = "have" if lost == "all" else "has"
    assert f"{number} of 5 cases {has} no record in results.jsonl" in shown
    assert "Fails the build: run one" not in shown


SKIPS = {
    "mark": "    for item in items[:2]:\n        item.add_marker(pytest.mark.skip(reason='not today'))\n",
    "call": (
        "    pass\ndef pytest_runtest_setup(item):\n    if 'boil' in item.nodeid:\n        pytest.skip('not today')\n"
    ),
}


@pytest.mark.parametrize("how", SKIPS)
def test_a_skip_says_its_reason(project: Project, how: str):
    project.cases(SOME)
    project.write("conftest.py", f"import pytest\ndef pytest_collection_modifyitems(items):\n{SKIPS[how]}")
    number = "2 cases" if how == "mark" else "1 case"
    assert f"{number} skipped: not today" in project.run("-q").stdout.str()
