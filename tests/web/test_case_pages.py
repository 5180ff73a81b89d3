"""What a case's page leads to: a draft of a bad answer, and no command that is of no use in a browser."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from project import Project, a_case, a_missed_case
from stored_runs import change_lines
from web_app import WebApp, served

from pytest_rageval.web.pages.case import OTHER_DRAFTS


def saved(app: WebApp, run: str, case: str) -> dict[str, list[str]]:
    """What the address says that a saved draft leads to."""
    response = app.post(f"/runs/{run}/draft", {"case": case})
    assert response.status_code == 303, response.text
    return parse_qs(urlsplit(response.headers["location"]).query)


@pytest.fixture
def run(project: Project) -> str:
    project.cases([a_case("a"), a_missed_case("b", question="What is <b>boiling</b>?")])
    project.rageval("run", "--run-id", "bad")
    return "bad"


def test_a_bad_answer_is_kept_without_gold_and_opened_for_labelling(project: Project, run: str):
    with served(project.path) as app:
        page = app.page(f"/runs/{run}/cases/evalcases/a.jsonl::b")
        key = re.search(r'name="case" value="([^"]*)"', page)
        assert key
        where = saved(app, run, html.unescape(key[1]))
        assert where["file"] == ["evalcases/a.drafts.jsonl"]
        (draft,) = map(json.loads, (project.path / "evalcases/a.drafts.jsonl").read_text().splitlines())
        assert (draft["id"], draft["question"]) == (where["case"][0], "What is <b>boiling</b>?")
        assert draft["metadata"]["draft"]["run"] == run
        assert "gold" not in draft
        assert saved(app, run, html.unescape(key[1])) == where  # a second time nothing is added
        assert len((project.path / "evalcases/a.drafts.jsonl").read_text().splitlines()) == 1
        assert draft["id"] in app.page(f"/label/cases?file={where['file'][0]}&case={draft['id']}")
        assert app.post(f"/runs/{run}/draft", {"case": "nothing"}).status_code in (404, 409)
        assert app.post("/runs/nothing/draft", {"case": "b"}).status_code == 404


@pytest.mark.parametrize("file", ["../outside.jsonl", "/etc/x.jsonl", "no/such/folder/x.jsonl"])
def test_a_run_cannot_name_a_place_outside_of_the_project(project: Project, run: str, file: str, tmp_path: Path):
    folder = project.path / "reports/runs" / run
    for name in ("results.jsonl", "observations.jsonl"):
        change_lines(folder / name, lambda line: line.replace('"evalcases/a.jsonl"', json.dumps(file)))
    with served(project.path) as app:
        where = saved(app, run, "evalcases/a.jsonl::b")
    assert where["file"] == [OTHER_DRAFTS]
    assert (project.path / OTHER_DRAFTS).is_file()


COMMANDS = re.compile(r"--rageval|rageval (?:calibrate|judge|cases|explain|report)")


@pytest.fixture
def judged_run(project: Project) -> str:
    """A judged run without observations whose answer is cut, and with golds that its notes lack."""
    project.write("notes/other.md", "# Other\n")
    project.configure('target = "bot:answer"\nnotes = "notes"')
    project.write("bot.py", 'def answer(question):\n    return {"answer": "Water boils. " * 500}\n')
    project.cases([a_case("boil")])
    project.run("--rageval-judge", "lexical")
    folder = project.runs[-1]
    (folder / "observations.jsonl").unlink()
    return folder.name


def test_a_run_and_a_case_name_what_is_missing_without_the_command_of_a_terminal(project: Project, judged_run: str):
    with served(project.path) as app:
        pages = [app.page(f"/runs/{judged_run}"), app.page(f"/runs/{judged_run}/cases/evalcases/a.jsonl::boil")]
    assert "1 of 1 case cannot be won" in pages[0]
    assert "<td>not measured</td>" in pages[0]
    assert "cut as the run stored it</p>" in pages[1]
    assert "<i>save as draft case</i> above adds it" in pages[1]
    assert [COMMANDS.findall(html.unescape(page)) for page in pages] == [[], []]


def test_a_run_from_the_browser_leads_to_its_dataset_s_audit_and_offers_no_command(project: Project, judged_run: str):
    config = project.runs[-1] / "config.json"
    origin = {"agent": "bot", "agent_version": 1, "dataset": "sums", "dataset_version": 2, "source": "connector"}
    config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")) | {"origin": origin}), encoding="utf-8")
    with served(project.path) as app:
        assert '<a href="/datasets/sums/versions/2/audit">' in app.page(f"/runs/{judged_run}")
        assert "copy command" not in app.page(f"/runs/{judged_run}/cases/evalcases/a.jsonl::boil")
