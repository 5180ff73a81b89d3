"""Labelling in the browser: every mark is a button of a form, every key presses one, the file holds what was said."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from browser import Chromium, KeyboardUser
from labelling import FILE, Labeller, label_project
from processes import PATIENCE_S, wait_until
from web_app import WebApp, served

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.opening import Labelling
from pytest_rageval.web.label_desk import LabelDesk, LabelPlace, OpenLabelling


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return label_project(tmp_path)


@pytest.fixture
def app(file: Path, tmp_path: Path) -> Iterator[WebApp]:
    with served(tmp_path) as app:
        yield app


def stored(file: Path) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in map(json.loads, file.read_text().splitlines())}


def paths_of(record: dict[str, Any]) -> list[str]:
    return [gold["rel_path"] for gold in record.get("gold_supports") or record.get("gold", {}).get("supports", ())]


def test_the_files_that_can_be_labelled_are_listed(app: WebApp):
    page = app.page("/label")
    assert FILE in page
    assert "evalcases/shop.drafts.jsonl" in page
    assert app.get("/label/cases?file=../../etc/passwd").status_code == 404
    assert app.get(f"/label/cases?file={FILE}&case=nothing").status_code == 404


def test_marks_are_written_at_once_into_the_labelled_line_alone(app: WebApp, file: Path):
    before = file.read_text().splitlines()
    person = Labeller(app, f"/label/cases?file={FILE}")
    assert person.title == "price"
    person.point("price.md")
    person.press("gold")
    person.press("snippet", first=1, last=1)
    person.point("old.md")
    person.press("irrelevant")
    after = file.read_text().splitlines()
    assert after[1:] == before[1:]
    assert paths_of(json.loads(after[0])) == ["price.md"]
    assert "The cream costs" in after[0] or "snippets" in after[0]
    assert file.with_name("shop.jsonl.bak").read_text().splitlines() == before
    person.press("next")
    assert person.title == "place"
    assert "1 labelled" in person.page


def test_groups_undo_and_the_question_before_golds_are_cleared(app: WebApp, file: Path):
    person = Labeller(app, f"/label/cases?file={FILE}&case=price")
    person.point("price.md")
    person.press("gold")
    person.point("old.md")
    person.press("group-2")
    assert re.search(r"group 2 = \d", person.page)
    person.press("unanswerable")
    assert "u again clears 2 golds" in person.page
    assert len(paths_of(stored(file)["price"])) == 2
    person.press("unanswerable")
    assert paths_of(stored(file)["price"]) == []
    assert stored(file)["price"]["answerable"] is False
    person.press("undo")
    assert len(paths_of(stored(file)["price"])) == 2
    person.press("redo")
    person.press("next")
    person.press("undo")
    assert person.title == "price"


def test_the_page_says_whether_any_or_all_golds_are_asked_for(app: WebApp, file: Path):
    person = Labeller(app, f"/label/cases?file={FILE}&case=price")
    person.point("price.md")
    person.press("gold")
    person.point("old.md")
    person.press("gold")
    assert re.search(r">golds = any of \d, \d ·", person.page)
    assert "required_support_groups" not in stored(file)["price"]
    person.press("group-1")
    assert re.search(r">group 1 = all of \d, \d ·", person.page)
    person.press("next")
    assert stored(file)["price"]["required_support_groups"] == [[0, 1]]


def test_words_are_found_and_the_systems_are_asked_for_more(app: WebApp):
    person = Labeller(app, f"/label/cases?file={FILE}&case=place")
    assert "no chunk here holds" in person.press("find", words="zebra")
    person.press("find", words="28,000")
    assert re.search(r'aria-current="true"><button[^>]*>.*?old\.md', person.page, re.DOTALL)
    assert "more chunks" in person.press("ask", words="price before")
    assert app.post("/label/cases", {"do": "fly", "file": FILE, "case": "place"}).status_code == 400


def test_what_notes_hold_is_text_on_the_page(app: WebApp):
    person = Labeller(app, f"/label/cases?file={FILE}&case=price")
    person.point("price.md")
    assert "<script>alert" not in person.page
    assert "&lt;script&gt;alert(1)" in person.page
    assert "\\u202e" in person.page


def test_a_second_window_that_is_behind_changes_nothing(app: WebApp, file: Path):
    first = Labeller(app, f"/label/cases?file={FILE}&case=price")
    first.point("price.md")
    second = Labeller(app, first.address)
    first.press("gold")
    refused = second.press("irrelevant", status=409)
    assert "marked or changed elsewhere meanwhile" in refused
    assert "Yours was: irrelevant for chunk" in refused
    assert paths_of(stored(file)["price"]) == ["price.md"]
    second.press("irrelevant")
    assert paths_of(stored(file)["price"]) == []


def test_a_case_that_another_program_changes_is_not_marked_before_it_is_seen(app: WebApp, file: Path):
    person = Labeller(app, f"/label/cases?file={FILE}&case=price")
    person.point("price.md")
    changed = file.read_text().replace("cream cost?", "soap cost?")
    file.write_text(changed)
    assert "nothing was overwritten" in person.press("gold", status=409)
    assert "soap cost?" in person.page
    assert file.read_text() == changed
    file.write_text(changed.replace("for hair", "for the skin"))
    person.press("gold")  # another case was changed: this one is as it was seen
    assert paths_of(stored(file)["price"]) == ["price.md"]
    assert "for the skin" in stored(file)["hair"]["question"]


def test_a_file_that_changes_while_it_is_written_is_left_alone_and_the_label_kept_aside(file: Path, tmp_path: Path):
    opened = OpenLabelling(Labelling(file), Project(tmp_path, load_settings(tmp_path)), lambda _: ())
    try:
        opened.session.source.pool(opened.session.case).result(30)
        changed = file.read_text().replace("for hair", "for skin")
        file.write_text(changed)
        opened.act(LabelSession.toggle_gold)
        assert "was changed by another program meanwhile" in opened.session.message
        assert opened.is_aside
    finally:
        opened.close()
    assert file.read_text() == changed
    (aside,) = file.parent.glob("shop.labels-*.jsonl")
    assert paths_of(stored(aside)["price"])


def test_drafts_are_edited_accepted_and_dropped(app: WebApp, file: Path):
    drafts = file.with_name("shop.drafts.jsonl")
    person = Labeller(app, "/label/cases?file=evalcases/shop.drafts.jsonl")
    person.press("edit", draft='{"id": "vegan",\n "question": "Is it vegan?"}')
    assert "Is it vegan?" in person.page
    assert "not taken" in person.press("edit", draft="{")
    person.press("accept")
    assert stored(file)["vegan"]["question"] == "Is it vegan?"
    assert person.title == "draft-2"
    person.press("drop")
    assert drafts.read_text().strip() == ""


def test_a_key_for_the_system_that_is_asked_may_stand_in_the_env_file(file: Path, tmp_path: Path):
    (tmp_path / "rageval.toml").write_text('target = "demo"\n[headers]\nX-Shop-Key = "env:SHOP_KEY_OF_THE_TEST"\n')
    with served(tmp_path, env_file=tmp_path / ".env") as app:
        response = app.get(f"/label/cases?file={FILE}&case=price")
        assert response.status_code == 409
        assert "the environment variable SHOP_KEY_OF_THE_TEST is not set" in response.text
        (tmp_path / ".env").write_text("SHOP_KEY_OF_THE_TEST=sk-1234567890\n")
        assert "What does the cream cost?" in app.page(f"/label/cases?file={FILE}&case=price")


def test_keys_that_change_while_a_file_is_open_are_used_from_then_on(file: Path, tmp_path: Path):
    desk, project = LabelDesk(tmp_path / "data", tmp_path / ".env"), Project(tmp_path, load_settings(tmp_path))
    try:
        opened = desk.open(project, LabelPlace(file=FILE))
        assert desk.open(project, LabelPlace(file=FILE)) is opened
        (tmp_path / ".env").write_text("SHOP_KEY_OF_THE_TEST=sk-1234567890\n")
        again = desk.open(project, LabelPlace(file=FILE))
        assert again is not opened
        assert desk.open(project, LabelPlace(file=FILE)) is again
    finally:
        desk.close()


@pytest.mark.browser
def test_the_keys_of_the_terminal_press_the_buttons(app: WebApp, file: Path, chromium: Chromium):
    with chromium.page() as browser:
        page = browser.page

        def keys(names: str, selector: str, count: int, case: str = "price") -> None:
            """Press keys as fast as it goes, and wait for what comes of all of them."""
            for name in names.split():
                page.keyboard.press(name)
            deadline = time.monotonic() + PATIENCE_S
            while not (page.locator(selector).count() == count and f"case={case}" in page.evaluate("location.search")):
                assert time.monotonic() < deadline, (names, page.locator("#label").inner_text())
                time.sleep(0.02)

        page.goto(f"{app.address}/label/cases?file={FILE}&case=price")
        page.wait_for_selector("#label:not([hx-trigger]) .chunks li")
        browser.watch_shifts()
        keys("ArrowDown ArrowDown Space", ".chunks li:nth-child(3).gold[aria-current]", 1)
        assert len(paths_of(stored(file)["price"])) == 1
        keys("v ArrowDown Enter", ".lines .snippet", 2)
        keys("z z", ".chunks .gold", 0)
        keys("Shift+ArrowUp x", ".chunks .irrelevant", 2)
        assert browser.shifts() == []
        keys("w", "[name=words]:focus", 1)
        page.keyboard.type("28,000 x")  # letters in a field are no keys
        keys("Escape", "[name=words]:focus", 0)
        keys("Enter", ".chunks .irrelevant", 0, "place")
        keys("a ArrowLeft", ".chunks .irrelevant", 2)
        assert browser.problems == []


@pytest.mark.browser
def test_the_list_of_chunks_is_one_stop_of_tab_and_the_focus_is_what_is_marked(app: WebApp, chromium: Chromium):
    with chromium.page() as page:
        user = KeyboardUser(chromium, page)
        page.goto(f"{app.address}/label/cases?file={FILE}&case=price")
        user.wait_until("!!document.querySelector('#label:not([hx-trigger]) .chunks a')")
        user.tab_to("·", "a")
        user.press("ArrowDown", "Space")
        user.wait_until("!!document.activeElement.closest('.chunks .gold[aria-current]:nth-child(2)')")
        user.tab_to("↑", "a")
        user.tab_to("✔", "a", backwards=True)
        user.press("Enter")  # as anywhere else on the page
        user.wait_for_text("2 of 3")
        user.tab_to("next case")
        user.press("Enter")
        user.wait_for_text("3 of 3")
        user.wait_until("!!document.activeElement.closest('#label')")  # the last case has no link to a next one
        assert page.problems == []


def test_a_checkbox_marks_its_own_chunk_and_is_ticked_then(app: WebApp):
    person = Labeller(app, f"/label/cases?file={FILE}")
    boxes = re.findall(r'name="toggle" value="([^"]+)" role="checkbox" aria-checked="(\w+)"', person.page)
    assert {state for _, state in boxes} == {"false"}
    person.press("", toggle=boxes[1][0])
    states = re.findall(r'role="checkbox" aria-checked="(\w+)"', person.page)
    assert [place for place, state in enumerate(states) if state == "true"] == [1]
    person.press("", toggle=boxes[1][0])
    assert 'aria-checked="true"' not in person.page
    assert app.post("/label/cases", {"case": "x", "do": "", "toggle": "../x"}).status_code == 400


def test_the_whole_question_the_expected_answer_and_the_first_words_are_shown(app: WebApp, file: Path):
    question = "What does the cream " + "from the island " * 60 + "cost?"
    case = {"id": "long", "question": question, "gold": {"answer": ["32,000 won <b>each</b>", "32,000"]}}
    file.write_text(json.dumps(case) + "\n", encoding="utf-8")
    page = app.page(f"/label/cases?file={FILE}")
    assert question in page
    assert "<b>Expected answer</b> 32,000 won &lt;b&gt;each&lt;/b&gt; | 32,000</p>" in page
    person = Labeller(app, f"/label/cases?file={FILE}")
    deadline = time.monotonic() + PATIENCE_S
    while 'class="beginning"' not in page and time.monotonic() < deadline:
        page = app.page(f"/label/cases?file={FILE}")
    assert re.search(r'class="beginning">[^<]*The cream costs 32,000 won\.', page)
    assert person.title == "long"


WAITING = """
import pathlib, time

HERE = pathlib.Path(__file__).parent

def answer(question):
    (HERE / "asked").touch()
    while not (HERE / "go").exists():
        time.sleep(0.02)
    chunk = {"rel_path": "price.md", "text": "The cream costs 32,000 won."}
    return {"answer": "", "debug": {"retrieved_chunks": [chunk]}}
"""


def test_a_page_whose_file_is_read_again_meanwhile_still_waits_for_its_chunks(file: Path, tmp_path: Path):
    (tmp_path / "waiting_bot.py").write_text(WAITING, encoding="utf-8")
    (tmp_path / "rageval.toml").write_text('target = "waiting_bot:answer"\n', encoding="utf-8")
    address = f"/label/cases?file={FILE}&case=price"
    with served(tmp_path) as app, ThreadPoolExecutor(1) as window:
        first = window.submit(app.page, address)
        wait_until((tmp_path / "asked").exists, "the system is asked")
        app.post("/label/anew", {"file": FILE, "case": "price"})
        page = first.result(PATIENCE_S)
        assert 'hx-trigger="every 1s"' in page
        assert "no chunks; ask another query below" not in page
        (tmp_path / "go").touch()
        assert "price.md" in Labeller(app, address).page
