"""The report page counts as the verdict does: added, changed and renamed cases that fail, and gates added since."""

from __future__ import annotations

import re

from project import Project, a_case, a_missed_case


def page_of(project: Project, run_id: str) -> str:
    return (project.path / "reports" / "runs" / run_id / "report.html").read_text(encoding="utf-8")


def heading(page: str) -> str:
    """The heading of the newly failing cases, with the lines under it."""
    [section] = re.findall(r'<section class="flips".*?</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", section).split())


def accepted(project: Project, *cases: dict) -> None:
    project.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    project.cases(cases)
    project.run("--rageval-update-baseline")


def test_added_cases_that_fail_are_newly_failing(project: Project):
    accepted(project, a_case("one"), a_missed_case("old"))
    project.cases([a_case("one"), a_missed_case("old"), a_missed_case("new"), a_missed_case("newer")])
    project.run("--rageval-run-id", "r")
    assert "2 added cases fail" in project.metrics()["verdict"]["sentence"]
    page = page_of(project, "r")
    assert heading(page).startswith("Newly failing 2 2 added ")
    # The share of four cases stands beside none of two.
    assert "was 50 %" not in page


def test_a_case_that_fails_only_by_an_added_gate_does_not_fail_as_before(project: Project):
    accepted(project, a_case("one"), a_missed_case("old"), a_case("two"))
    project.run("--rageval-run-id", "r", "--rageval-gate", "mrr <= 0.5")
    shown = heading(page_of(project, "r"))
    assert "1 case fails as before. 2 cases fail only by a gate added since." in shown
