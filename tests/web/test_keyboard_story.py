"""The whole story by keys alone: from an empty folder to two runs that are compared, with labels made between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Chromium, KeyboardUser, OpenPage
from web_app import WebApp, served

from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore

QUESTIONS = (
    {"id": "lip", "question": "Which products does Laneige have in the catalogue?", "category": "factual"},
    {"id": "poem", "question": "Write a limerick about an elephant.", "category": "general", "answerable": False},
)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[WebApp]:
    with served(tmp_path) as app:
        yield app


@pytest.mark.browser
@pytest.mark.child_process
def test_the_whole_story_by_keyboard_alone(app: WebApp, chromium: Chromium, tmp_path: Path):
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    with chromium.page() as page:
        user = KeyboardUser(chromium, page)
        page.goto(f"{app.address}/")
        make_agent(user)
        import_dataset(user, file)
        first = run(user)
        label(user)
        second = run(user)
        compare(user, first, second)
        assert page.problems == []
    versions = DatasetStore(tmp_path / "data")
    assert versions.cases("questions", 1)[0].gold.supports is None
    assert versions.cases("questions", 2)[0].gold.supports


def make_agent(user: KeyboardUser) -> None:
    user.skip_to_content()
    user.go("New run", "/new-run")
    user.skip_to_content()
    user.go("New agent", "/agents/new")
    user.skip_to_content()
    user.tab_to("Name")
    user.page.keyboard.type("Demo bot")
    user.press("Enter")
    user.wait_for_path("/agents/demo-bot")


def import_dataset(user: KeyboardUser, file: Path) -> None:
    user.go("Datasets", "/datasets", "a")
    user.skip_to_content()
    user.go("Import a dataset", "/datasets/new")
    user.skip_to_content()
    user.tab_to("Cases, or questions", "input")
    user.choose_file(file)
    user.go("Look at it", "/datasets/uploads")
    user.skip_to_content()
    user.tab_to("Name", "input")
    user.press("Enter")  # in a field: what is there is saved
    user.wait_for_path("/datasets/questions")


def run(user: KeyboardUser) -> str:
    """A run of the newest versions, from the dataset's page to its own; its id."""
    user.skip_to_content()
    user.go("New run", "/new-run")
    user.skip_to_content()
    user.tab_to("Start the run")
    user.press("Enter")
    user.wait_for_path("/jobs/")
    user.wait_for_path("/runs/")  # the page that watches a run goes on to it
    return user.path.rpartition("/")[2]


def label(user: KeyboardUser) -> None:
    user.go("Datasets", "/datasets", "a")
    user.skip_to_content()
    user.go("questions", "/datasets/questions", "a")
    user.skip_to_content()
    user.tab_to("Label", "button")
    user.press("Enter")
    user.wait_for_path("/label/cases")
    user.wait_until("!!document.querySelector('#label:not([hx-trigger]) .chunks a')")
    user.skip_to_content()
    user.tab_to("·", "a")  # the chunk that is pointed at
    user.press("ArrowDown", "ArrowDown", "Space")
    user.wait_until("!!document.activeElement.closest('.chunks .gold[aria-current]:nth-child(3)')")
    user.press("Enter")
    user.wait_for_text("2 of 2")
    user.tab_to("hide scores")
    user.press("Enter")
    user.wait_for_focus("show scores")
    user.press("q")
    user.wait_for_path("/datasets/questions")
    user.skip_to_content()
    user.tab_to("Finish version 2", "button")
    user.press("Enter")
    user.wait_for_text("labelled: 1 case changed")


def compare(user: KeyboardUser, first: str, second: str) -> None:
    user.go("Runs", "/runs", "a")
    user.skip_to_content()
    user.tab_to(f"select {second}")
    user.press("Space")
    user.tab_to(f"select {first}")
    user.press("Space", "Enter")
    user.wait_for_path("/compare")
    user.wait_for_text(second)


@pytest.mark.browser
def test_an_agent_is_begun_and_edited_by_keyboard_alone(chromium: Chromium, app: WebApp):
    with chromium.page() as page:
        page.goto(f"{app.address}/agents/new")
        tab_to(page, "name")
        page.keyboard.type("Keyboard bot")
        tab_to(page, "target_kind")
        assert not page.is_visible("#url")
        page.keyboard.type("a server")
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
