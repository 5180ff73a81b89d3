"""Cases in the page of pytest-html: columns, details, and what stays as pytest-html has it."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any, NamedTuple

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with

from pytest_rageval.plugin.display import html_table
from pytest_rageval.render.html import table_parts

PAGE = ("--html", "page/tests.html")
ALONE = (*PAGE, "--self-contained-html")


class Table(NamedTuple):
    """The page of pytest-html as its script will read it."""

    text: str
    heads: list[str]
    tests: dict[str, list[dict[str, Any]]]

    def row(self, id: str) -> dict[str, Any]:
        (row,) = self.tests[f"evalcases/a.jsonl::{id}"]
        return row

    def cells(self, id: str) -> dict[str, str]:
        """The texts of a case's row, by what stands above them."""
        texts = [re.sub(r"<[^>]*>", "", cell) for cell in self.row(id)["resultsTableRow"]]
        return dict(zip(self.heads, texts, strict=True))

    def details(self, id: str) -> str:
        (details,) = (extra["content"] for extra in self.row(id)["extras"] if extra["format_type"] == "html")
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", details)).split())


def table_of(project: Project) -> Table:
    text = (project.path / "page" / "tests.html").read_text(encoding="utf-8")
    blob = re.search(r'data-jsonblob="([^"]*)"', text)
    assert blob is not None
    heads = re.findall(r"<th[^>]*>(.*?)</th>", text[text.index('id="results-table-head"') :])
    return Table(text, heads, json.loads(unescape(blob[1]))["tests"])


@pytest.fixture
def project(project: Project) -> Project:
    project.cases([*SOME, a_missed_case("missed")])
    project.write("test_own.py", "def test_own():\n    pass\n")
    return project


@pytest.mark.parametrize("how", [ALONE, PAGE, (*ALONE, "-n", "2")], ids=["alone", "with assets", "workers"])
def test_a_case_has_its_category_its_main_scores_and_its_details(project: Project, how: tuple[str, ...]):
    project.run(*how)
    table = table_of(project)
    cells = table.cells("freeze")
    assert cells["Category"] == "multi_hop"
    assert cells["recall_any@5"] == "1.000"
    assert table.cells("missed")["recall_any@5"] == "0.000"
    assert table.cells("unknown")["recall_any@5"] == "–"
    details = table.details("missed")
    for text in ("FAILED", "Question What is the boiling point", "Expected Water boils at 100", "Answer Water boils",
                 "notes/water.md > # Water > ## Boiling",
                 "missed gold 1 of 1", "recall_any@5 is 0, needs >= 1"):  # fmt: skip
        assert text in details
    assert table.row("missed")["log"] == ""


def test_a_known_failure_shows_its_case_and_no_traceback(project: Project):
    project.run(*ALONE, "--rageval-known-failures", "report")
    table = table_of(project)
    row = table.row("missed")
    assert row["result"] == "XFailed"
    assert row["log"] == ""
    assert "known failure" in table.details("missed")


def test_tests_of_the_project_have_blank_cells_and_stay_as_they_are(project: Project):
    project.run(*ALONE)
    table = table_of(project)
    (row,) = table.tests["test_own.py::test_own"]
    assert len(row["resultsTableRow"]) == len(table.heads)
    assert row["log"] == "No log output captured."
    assert row["extras"] == []


def test_a_suite_without_cases_has_the_table_of_pytest_html(project: Project):
    project.run(*ALONE, "test_own.py")
    assert table_of(project).heads == ["Result", "Test", "Duration", "Links"]
    assert (
        "rageval"
        not in (project.path / "page" / "tests.html")
        .read_text(encoding="utf-8")
        .replace("<li>rageval", "")
        .partition('id="results-table-head"')[2]
        .partition("data-jsonblob")[0]
    )


def test_what_a_bot_prints_stays_beside_the_case(project: Project):
    project.write("bot.py", "def answer(question):\n    print('looked <b>up</b>')\n    return 'Water'\n")
    project.run(*ALONE, "-k", "boil")
    log = table_of(project).row("boil")["log"]
    assert "looked &lt;b&gt;up&lt;/b&gt;" in log
    assert "recall_any" not in log


def test_a_large_run_shows_its_worst_cases_and_says_where_the_others_are(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_parts, "MOST_ROWS", 3)
    project.cases([*(a_case(f"case-{number}") for number in range(6)), a_missed_case("missed")])
    project.run(*ALONE)
    table = table_of(project)
    ids = [nodeid.partition("::")[2] for nodeid in table.tests if nodeid.startswith("evalcases")]
    assert "missed" in ids
    assert len(ids) == 3
    assert "3 of 7 cases stand in the table, the worst first." in table.text
    assert "7 Passed" in table.text, "the counts are of all: six cases and a test"


def test_the_page_says_the_verdict_and_links_to_the_report_of_the_run(project: Project):
    project.run(*ALONE)
    text = table_of(project).text
    assert f'href="../reports/runs/{project.runs[-1].name}/report.html"' in text
    assert "1 case fails" in text
    project.configure('target = "bot:answer"\nreport = false')
    project.run(*ALONE)
    text = table_of(project).text
    assert "report.html" not in text.partition('data-jsonblob="')[0]
    assert "writes the report with every case" in text


def test_without_details_a_case_shows_what_pytest_shows(project: Project, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ValueError("no page")

    monkeypatch.setattr(html_table, "CaseTable", broken)
    result = project.run(*ALONE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lines_with(result, "pytest-html: no details of cases: ValueError: no page")
    table = table_of(project)
    assert table.heads == ["Result", "Test", "Duration", "Links"]
    assert "recall_any@5 is 0" in unescape(table.row("missed")["log"])


def test_a_case_that_was_run_again_has_its_details_once(project: Project):
    project.run(*ALONE, "-p", "rerunfailures", "--reruns", "1", "-k", "missed")
    table = table_of(project)
    rows = table.tests["evalcases/a.jsonl::missed"]
    assert [row["result"] for row in rows].count("Rerun") >= 0
    assert sum("rageval" in str(extra["content"]) for row in rows for extra in row["extras"]) == 1
