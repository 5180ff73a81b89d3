"""Agents and datasets in a real browser: by keyboard alone, on narrow screens, in both schemes, with hostile texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import PAYLOADS
from axe_playwright_python.sync_playwright import Axe
from chromium import Chromium, OpenPage
from web_app import WebApp, served

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.model import NOWHERE
from pytest_rageval.web.labelling.working_copy import WorkingCopies
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset import DatasetAbout
from pytest_rageval.web.versions.dataset_store import DatasetStore

pytestmark = pytest.mark.browser
TEXTS = [text for text in PAYLOADS if "\x00" not in text]
PAGES = (
    "/agents", "/agents/hostile", "/agents/hostile/edit", "/agents/hostile/diff", "/agents/new", "/datasets",
    "/datasets/hostile", "/datasets/hostile/diff", "/datasets/hostile/versions/2/cases/3", "/datasets/new",
    "/datasets/hostile/versions/2/audit", "/datasets/hostile/label?discard=true", "/label",
    "/label/opinions?dataset=hostile",
)  # fmt: skip

DARK = ("/agents/hostile", "/datasets/hostile", "/datasets/hostile/diff")
"""Pages that are looked at in the dark as well: they hold every kind of part that the others are made of."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """Two versions of an agent and of a dataset, with hostile texts in every field."""
    with served(tmp_path_factory.mktemp("shop")) as app:
        agents, datasets = AgentStore(app.settings.data), DatasetStore(app.settings.data)
        for number in (0, 1):
            text = " ".join(TEXTS[number:])
            agent = Agent(
                name=text[:80], description=text, tags=tuple(TEXTS), target=text, llm=text, params={text: text},
                headers={text: text}, gates=(text,), judge=text, prompts={"reference_match": text},
                more={text: text}, thresholds={"reference_match": 0.7},
            )  # fmt: skip
            agents.save("hostile", agent, text, number)
            records = [{"id": f"{n} {text}", "question": text[number:] or "q", "reference": text, "category": text,
                        "tags": [text], "metadata": {text: text}} for n, text in enumerate(TEXTS)]  # fmt: skip
            cases = [case_from_record(record, NOWHERE)[0] for record in records]
            about = DatasetAbout(name=text[:80], description=text, tags=tuple(TEXTS), origin=text)
            datasets.save("hostile", about, cases, text, number)
        WorkingCopies(app.settings.data).begin("hostile", 2, ["hostile/2"])
        yield app


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_hostile_texts_run_nothing_and_pages_fit_and_are_accessible(
    chromium: Chromium, app: WebApp, width: int, scheme: str
):
    with chromium.page(width, 800, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(app.address + path)
            assert page.evaluate("window.hacked") is None, path
            assert [url for url in page.requests if not url.startswith(app.address)] == []
            assert page.problems == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            if scheme == "light" or path in DARK:
                assert serious_problems(chromium, page) == {}, path


def serious_problems(chromium: Chromium, page: OpenPage) -> dict[str, list[str]]:
    """What an accessibility checker finds, by rule."""
    rules = chromium.call(lambda: Axe().run(page.page._target)).response["violations"]
    return {rule["id"]: [node["html"][:120] for node in rule["nodes"]][:3] for rule in rules
            if rule["impact"] in ("serious", "critical")}  # fmt: skip


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
