"""Agents and datasets in a real browser: by keyboard alone, and without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Chromium, OpenPage
from web_app import WebApp, served

from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    with served(tmp_path_factory.mktemp("shop")) as app:
        yield app


def test_an_agent_is_begun_and_edited_by_keyboard_alone(chromium: Chromium, app: WebApp):
    with chromium.page() as page:
        page.goto(f"{app.address}/agents/new")
        tab_to(page, "name")
        page.keyboard.type("Keyboard bot")
        tab_to(page, "target_kind")
        assert not page.is_visible("#url")
        page.keyboard.type("HTTP")
        assert page.is_visible("#url")
        tab_to(page, "url")
        page.keyboard.type("http://localhost:8080")
        page.keyboard.press("Enter")
        page.wait_for_url("**/agents/keyboard-bot")
        page.goto(f"{app.address}/agents/keyboard-bot/edit")
        tab_to(page, "threshold.reference_match")
        page.keyboard.press("Control+A")
        page.keyboard.type("0.9")
        page.keyboard.press("Enter")
        page.wait_for_url("**/agents/keyboard-bot")
    versions, _ = AgentStore(app.settings.data).versions("keyboard-bot")
    assert [version.agent.thresholds["reference_match"] for version in versions] == [0.9, 0.7]
    assert versions[0].agent.target == "http://localhost:8080"


def tab_to(page: OpenPage, field: str) -> None:
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == field:
            return
    raise AssertionError(f"Tab never comes to {field}")


def test_an_upload_is_looked_at_and_saved_without_a_script(chromium: Chromium, app: WebApp, tmp_path: Path):
    file = tmp_path / "faq.jsonl"
    file.write_text(json.dumps({"kysymys": "Why?", "vastaus": "Because."}) + "\n", "utf-8")
    with chromium.page(java_script_enabled=False) as page:
        page.goto(f"{app.address}/datasets/new")
        page.set_input_files("#cases", str(file))
        page.click("text=Look at it")
        assert "no column gives the question" in page.inner_text("main")
        page.select_option("select[aria-label='what kysymys is']", "question")
        page.select_option("select[aria-label='what vastaus is']", "reference")
        page.click("text=Look again with these columns")
        assert "1 case, each with a reference answer" in page.inner_text("main")
        page.click("text=Save as a dataset")
        page.wait_for_url("**/datasets/faq")
    (case,) = DatasetStore(app.settings.data).cases("faq", 1)
    assert (case.question, case.gold.answers) == ("Why?", ("Because.",))
