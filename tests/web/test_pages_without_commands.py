"""Pages of a run and of its cases are for people without a terminal: they name no command that is of no use there."""

from __future__ import annotations

import html
import json
import re

import pytest
from project import Project, a_case
from web_app import served

COMMANDS = re.compile(r"--rageval|rageval (?:calibrate|judge|cases|explain|report)")


@pytest.fixture
def run(project: Project) -> str:
    """A judged run without observations whose answer is cut, and with golds that its notes lack."""
    project.write("notes/other.md", "# Other\n")
    project.configure('target = "bot:answer"\nnotes = "notes"')
    project.write("bot.py", 'def answer(question):\n    return {"answer": "Water boils. " * 500}\n')
    project.cases([a_case("boil")])
    project.run("--rageval-judge", "lexical")
    folder = project.runs[-1]
    (folder / "observations.jsonl").unlink()
    return folder.name


def test_a_run_and_a_case_name_what_is_missing_without_the_command_of_a_terminal(project: Project, run: str):
    with served(project.path) as app:
        pages = [app.page(f"/runs/{run}"), app.page(f"/runs/{run}/cases/evalcases/a.jsonl::boil")]
    assert "1 of 1 case cannot be won" in pages[0]
    assert "<td>not measured</td>" in pages[0]
    assert "cut as the run stored it</p>" in pages[1]
    assert "<i>save as draft case</i> above adds it" in pages[1]
    assert [COMMANDS.findall(html.unescape(page)) for page in pages] == [[], []]


def test_a_run_from_the_browser_leads_to_its_dataset_s_audit_and_offers_no_command(project: Project, run: str):
    config = project.runs[-1] / "config.json"
    origin = {"agent": "bot", "agent_version": 1, "dataset": "sums", "dataset_version": 2, "source": "connector"}
    config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")) | {"origin": origin}), encoding="utf-8")
    with served(project.path) as app:
        assert '<a href="/datasets/sums/versions/2/audit">' in app.page(f"/runs/{run}")
        assert "copy command" not in app.page(f"/runs/{run}/cases/evalcases/a.jsonl::boil")
