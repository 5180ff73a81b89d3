"""Hostile texts in conversations, tool calls, assertions, flaky cases and models without a price stand as text."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from hostile import HOSTILE
from project import Project
from reliability import Tally
from test_hostile_text import OURS, OWN_ANNOTATION, elements_of, harmful  # type: ignore[import-not-found]
from web_app import served

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.render.html.page_run import read_page
from pytest_rageval.render.html.report_page import fragments
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.web.rendering import path_to

pytestmark = pytest.mark.reliability("injection", "conversations, tool calls, assertions and flaky cases", costs="leak")

BOT = """
import itertools, json, pathlib
HOSTILE = json.loads(pathlib.Path("hostile.json").read_text())
COUNT = itertools.count()

def answer(question, history):
    name = question.split(":")[0]
    text = HOSTILE[name]
    call = {"name": text[:60] or "x", "arguments": {text: [text, {text: text}]}, "result": text, "error": text}
    found = text if next(COUNT) % 2 else "Water boils at 100 degrees at sea level."
    return {"answer": found, "tool_calls": [call], "versions": {"llm": text}, "usage": {text: 1, "model": text},
            "debug": {"retrieved_chunks": [{"rel_path": text, "heading_path": text, "text": text}]}}
"""


def cases() -> Iterator[dict[str, Any]]:
    for name, text in HOSTILE.items():
        gold = {"answer": "Water boils at 100 degrees at sea level."}
        yield {
            "id": f"{name} {text[:40]}",
            "turns": [{"question": f"{name}: {text}", "gold": gold}, {"question": f"{name}: and {text}", "gold": gold}],
        }
        asserted = [
            {"icontains": text, "metric": "prices"},
            {"regex": re.escape(text[:20]) + "never"},
            {"equals": text},
        ]
        calls = {"name": text[:40], "args": {"a": text}}
        yield {"id": f"asserted {name}", "question": f"{name}: {text}", "assert": asserted, "expected_tools": [calls]}


@pytest.fixture
def run(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.write("hostile.json", json.dumps(HOSTILE))
    project.write("agent.py", BOT)
    project.cases(cases())
    project.configure('target = "agent:answer"\nrepeat = 2')
    result = project.run("-v", "--junitxml", "junit.xml", "--rageval-run-id", "one")
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED, shown
    assert harmful(OWN_ANNOTATION.sub("", shown)) == []
    return project


def test_no_face_of_such_a_run_obeys_them(run: Project, tally: Tally):
    tally.tried(len(HOSTILE))
    folder = run.path / "reports" / "runs" / "one"
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert harmful(summary) == []
    assert elements_of(summary) <= OURS
    assert harmful((folder / "run.log").read_text(encoding="utf-8")) == []
    ElementTree.fromstring((run.path / "junit.xml").read_text(encoding="utf-8"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    stored = open_stored_run(run.path / "reports", "one")
    content = read_page(side_of_run(stored), None, load_settings(run.path))
    for part in (page, *fragments(content, content.cases)):
        assert "<script>alert" not in part
        assert "<img src=x" not in part
    for record in run.results("one"):
        explained = run.rageval("explain", "one", record["case_key"])
        assert explained.ret == 0
        assert harmful(explained.stdout.str()) == []


COMMANDS = [
    ["compare", "one", "one"], ["compare", "one", "one", "--format", "markdown"], ["runs", "show", "one"],
    ["history"], ["runs", "list"], ["cases", "stats"], ["gate", "one", "--gate", "mrr >= 2"], ["score", "one"],
    ["comment", "one", "--dry-run"],
]  # fmt: skip


def test_commands_over_such_a_run_show_text(run: Project, tally: Tally):
    tally.tried(len(COMMANDS))
    for command in COMMANDS:
        result = run.rageval(*command)
        shown = result.stdout.str() + result.stderr.str()
        assert "Traceback" not in shown, command
        assert harmful(shown) == [], command


def test_a_table_for_spreadsheets_holds_no_formula(run: Project):
    assert run.rageval("export", "one", "--format", "csv", "--full-text", "-o", "cases.csv").ret == 0
    with (run.path / "cases.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert cells
    numbers = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?")
    assert [cell for cell in cells if cell[:1] in ("=", "+", "-", "@") and not numbers.fullmatch(cell)] == []


def test_pages_in_the_browser_hold_no_markup_of_theirs(run: Project):
    with served(run.path) as app:
        for record in run.results("one")[::3]:
            page = app.page(path_to("runs", "one", "cases", record["case_key"]))
            assert "<script>alert" not in page
            assert "<img src=x" not in page
