"""Texts that attack the page of pytest-html through its cases: nothing is executed, nothing is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Chromium, OpenPage
from hostile import PAYLOADS, hostile_run
from project import Project, a_case
from stored_pages import page_between

from pytest_rageval.render.html.table_parts import CaseTable
from pytest_rageval.text import printable

pytestmark = [pytest.mark.browser, pytest.mark.reliability("injection", "the table of pytest-html", costs="leak")]
BOT = """
import json, pathlib
PAYLOADS = json.loads(pathlib.Path("payloads.json").read_text())

def answer(question):
    number, _, kind = question.partition(" ")[0].partition("-")
    text = PAYLOADS[int(number)]
    print(text)
    if kind == "error":
        raise ValueError(text)
    chunk = {"chunk_id": text, "rel_path": f"path {text}", "heading_path": text, "text": f"chunk {text}"}
    return {"answer": f"answer {text}", "abstained": False, "debug": {"retrieved_chunks": [chunk]}}
"""


def hostile_cases() -> Iterator[dict[str, Any]]:
    for number, text in enumerate(PAYLOADS):
        facts = {"category": text, "difficulty": text, "domain": text, "tags": [text]}
        gold = {"answer": f"expected {text}", "key_facts": [f"fact {text}"]}
        supports = [{"rel_path": f"gold {text}", "heading_path": ""}]
        yield a_case(f"{number} {text}", f"{number}-answer question {text}", gold=gold, gold_supports=supports, **facts)
        yield a_case(f"{number} error {text}", f"{number}-error question {text}", gold=gold, **facts)


def opened(page: OpenPage, path: Path) -> str:
    """Open the page with all details, move over everything, and come back with all its text."""
    page.page.goto(path.as_uri())
    page.page.wait_for_selector("#results-table tbody")
    page.evaluate("document.getElementById('show_all_details').click()")
    page.evaluate(
        "document.querySelectorAll('#results-table *').forEach(element => ['mouseover', 'pointerenter', 'focus', "
        "'toggle', 'error', 'load'].forEach(name => element.dispatchEvent(new Event(name, {bubbles: true}))))"
    )
    page.wait_for_timeout(300)
    return " ".join(page.evaluate("document.body.textContent").split())


@pytest.mark.parametrize("how", [("--self-contained-html",), ("-n", "2")], ids=["alone", "workers"])
def test_hostile_cases_stand_in_the_table_as_text(chromium: Chromium, project: Project, how: tuple[str, ...]):
    project.write("bot.py", BOT)
    project.write("payloads.json", json.dumps(PAYLOADS))
    project.cases(hostile_cases())
    project.run("--html", "tests.html", *how)
    assert len(project.records()) == 2 * len(PAYLOADS)
    with chromium.page() as page:
        shown = opened(page, project.path / "tests.html")
        assert page.evaluate("top.hacked || 0") == 0
        assert [url for url in page.requests[1:] if not url.endswith("assets/style.css")] == []
        assert page.problems == []
        for part in ("question", "expected", "fact", "answer", "chunk", "gold"):
            missing = [text for text in PAYLOADS if " ".join(printable(f"{part} {text}").split()) not in shown]
            assert missing == [], part


def test_hostile_names_of_metrics_and_judges_stand_in_it_as_text(chromium: Chromium, tmp_path: Path):
    hostile_run(tmp_path, "alone", "failed")
    table = CaseTable(page_between(tmp_path, None, "alone"))
    table.metrics = {f"rageval_{number}": text for number, text in enumerate(PAYLOADS)}
    parts = "".join(part.details + "".join(part.cells) for _, part in table.parts())
    html = f"<!doctype html><meta charset=utf-8><table id=results-table><tbody>{''.join(table.heads())}{parts}</table>"
    path = tmp_path / "parts.html"
    path.write_text(f"{html}{table.summary('x')}<button id=show_all_details></button>", encoding="utf-8")
    with chromium.page() as page:
        shown = opened(page, path)
        assert page.evaluate("top.hacked || 0") == 0
        assert page.requests[1:] == []
        assert [text for text in PAYLOADS if " ".join(printable(f"question {text}").split()) not in shown] == []
