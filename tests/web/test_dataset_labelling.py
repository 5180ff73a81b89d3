"""Datasets labelled in the browser: in a working copy that becomes the next version, or is discarded."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from labelling import FILE, Labeller, label_project
from processes import wait_until
from web_app import WebApp, allow_code, confirm, sent_by, served, store_of, upload

from pytest_rageval.cases.loading import load_file
from pytest_rageval.tools.audit import findings_in_files, findings_in_notes
from pytest_rageval.web.labelling import working_copy as working_copy_module
from pytest_rageval.web.labelling.working_copy import WorkingCopies
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore

CASES = (
    '{"id": "price", "question": "What does the cream cost?",  "metadata": {"asked": ["anna", 3]}}\n'
    '{"id": "place", "question": "Where is the cream made?", "category": "factual", "gold": {"answer": "Jeju"}}\r\n'
    '{"question": "Is there a cream for hair?"}\n'
)
"""Spaces, line ends and keys that nobody would write again so, and a case without an id."""
BOT = """
def answer(question):
    chunk = {"rel_path": "price.md", "heading_path": "# Price > ## Cream", "text": "of the bot"}
    return {"answer": "", "debug": {"retrieved_chunks": [chunk]}}
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[WebApp]:
    """A project with notes, and a dataset that was put there as a file."""
    label_project(tmp_path)
    (tmp_path / "data/datasets/shop").mkdir(parents=True)
    (tmp_path / "data/datasets/shop/v1.jsonl").write_text(CASES, newline="")
    (tmp_path / "label_bot.py").write_text(BOT)
    allow_code(tmp_path, "label_bot", "slow_label_bot")
    with served(tmp_path) as app:
        yield app


def begin(app: WebApp, version: int = 1, *systems: str) -> Labeller:
    """Press Label on the page of the dataset."""
    sent = sent_by(app.page("/datasets/shop"), "/datasets/shop/label")
    response = app.post("/datasets/shop/label", sent | {"version": str(version), "systems": list(systems) or ["demo"]})
    assert response.status_code == 303, response.text
    return Labeller(app, response.headers["location"])


def save(app: WebApp, **fields: str) -> Any:
    address = "/datasets/shop/label/save"
    return app.post(address, sent_by(app.page("/datasets/shop/label"), address) | fields)


def working_copy(app: WebApp) -> Path:
    return WorkingCopies(app.settings.data).folder("shop") / "v1.jsonl"


def version_lines(app: WebApp, number: int) -> list[str]:
    return store_of(app).files.path("shop", number).read_bytes().decode().split("\n")


def test_a_version_is_labelled_in_a_working_copy_and_saved_as_the_next(app: WebApp):
    person = begin(app)
    assert person.title == "price"
    person.point("price.md")
    person.press("gold")
    assert store_of(app).files.numbers("shop") == [1]
    assert "price.md" in working_copy(app).read_text()
    page = app.page("/datasets/shop/label")
    assert "working copy of v1" in page
    assert "1 of 3 cases labelled" in page
    assert save(app, note="golds of the price").headers["location"] == "/datasets/shop"
    assert not working_copy(app).exists()
    version = store_of(app).newest("shop")
    assert (version.number, version.cases, version.note, version.problem) == (2, 3, "golds of the price", None)
    before, after = version_lines(app, 1), version_lines(app, 2)
    assert after[1] == before[1]
    assert after[0].startswith(before[0][:-2])
    assert json.loads(after[0])["metadata"]["asked"] == ["anna", 3]
    assert json.loads(after[0])["gold_supports"][0]["rel_path"] == "price.md"
    assert [case.id for case in store_of(app).cases("shop", 2)] == [case.id for case in store_of(app).cases("shop", 1)]


def test_the_audit_has_nothing_against_labels_of_the_browser(app: WebApp, tmp_path: Path):
    person = begin(app)
    person.point("price.md")
    person.press("gold")
    assert save(app).status_code == 303
    cases = load_file(store_of(app).files.path("shop", 2), tmp_path).cases
    assert list(findings_in_notes(cases, tmp_path / "notes")) == []
    assert list(findings_in_files(cases)) == []
    (tmp_path / "notes/price.md").write_text("# Price\n\nNothing is said of it any more.\n")
    assert {finding.case.id for finding in findings_in_notes(cases, tmp_path / "notes")} == {"price"}
    assert "price" in app.page("/datasets/shop/versions/2/audit")


def test_pages_say_that_a_working_copy_is_open(app: WebApp):
    assert "working copy" not in app.page("/")
    begin(app)
    for address in ("/", "/runs", "/datasets", "/datasets/shop", "/datasets/shop/versions/1", "/label"):
        assert "orking copy" in app.page(address), address
    again = app.post("/datasets/shop/label", {"version": "1"})
    assert again.headers["location"] == "/label/cases?dataset=shop"


def test_discarding_asks_and_leaves_the_versions(app: WebApp):
    person = begin(app)
    person.press("unanswerable")
    assert "Discard the working copy, with the labels of 1 case?" in app.page("/datasets/shop/label?discard=true")
    assert working_copy(app).exists()
    assert app.post("/datasets/shop/label/discard").status_code == 303
    assert not list(working_copy(app).parent.iterdir())
    assert store_of(app).files.numbers("shop") == [1]
    assert "No working copy is open" in app.page("/datasets/shop/label")
    assert app.get(person.address).status_code == 404
    form = sent_by(person.page, "/label/cases")
    assert "was saved as a version, or discarded" in app.post("/label/cases", form | {"do": "gold"}).text


def test_nothing_is_saved_where_nothing_differs(app: WebApp):
    begin(app)
    response = save(app)
    assert response.status_code == 422
    assert "Nothing differs from version 1" in response.text
    assert store_of(app).files.numbers("shop") == [1]


def edit(app: WebApp, position: int, **fields: str) -> None:
    """Another window saves the next version, with one case changed."""
    newest = store_of(app).files.newest("shop")
    address = f"/datasets/shop/versions/{newest}/cases/{position}"
    response = app.post(address, sent_by(app.page(address), address) | {"action": "save"} | fields)
    assert response.status_code == 303, response.text


def test_a_version_that_another_window_saved_meanwhile_keeps_its_changes_and_takes_the_labels(app: WebApp):
    person = begin(app)
    person.point("price.md")
    person.press("gold")
    address = "/datasets/shop/label/save"
    form = sent_by(app.page("/datasets/shop/label"), address) | {"note": "mine"}
    edit(app, 1, question="What does the cream cost now?")
    edit(app, 2, action="remove")
    refused = app.post(address, form)
    assert refused.status_code == 409
    assert "Version 3 was saved meanwhile by another window." in refused.text
    assert working_copy(app).exists()
    kept = sent_by(refused.text, address)
    assert (kept["note"], kept["based_on"]) == ("mine", "3")
    assert app.post(address, kept).status_code == 303
    price, hair = store_of(app).cases("shop", 4)
    assert price.question == "What does the cream cost now?"
    assert [support.rel_path for support in price.gold.supports or ()] == ["price.md"]
    assert hair.question == "Is there a cream for hair?"
    assert not working_copy(app).exists()


def test_labels_of_a_case_that_is_gone_meanwhile_are_kept_beside(app: WebApp):
    person = begin(app)
    person.press("unanswerable")
    edit(app, 1, action="remove")
    page = app.page("/datasets/shop/label")
    assert "your labels of these stay in a file beside the working copy: price" in page
    assert save(app).status_code == 422  # nothing of it is left to be saved
    person = Labeller(app, "/label/cases?dataset=shop&case=place")
    person.press("unanswerable")
    assert save(app).status_code == 303
    (aside,) = working_copy(app).parent.glob("v1.labels-*.jsonl")
    assert json.loads(aside.read_text())["answerable"] is False
    assert [case.answerable for case in store_of(app).cases("shop", 3)] == [False, True]


def test_a_label_that_the_newer_version_gave_otherwise_is_named(app: WebApp):
    begin(app).press("unanswerable")
    edit(app, 1, rest='{"gold": {"supports": [{"rel_path": "old.md"}]}}')
    assert "Labelled there too, and otherwise; yours come after: price." in app.page("/datasets/shop/label")


def test_labelling_begins_at_the_newest_version_only(app: WebApp):
    edit(app, 1, question="Another?")
    response = app.post("/datasets/shop/label", {"version": "1", "systems": "demo"})
    assert response.status_code == 409
    assert "version 2 was saved meanwhile by another window" in response.text
    assert not working_copy(app).exists()


def test_chunks_come_from_versions_of_agents_and_others_can_be_asked(app: WebApp):
    agents = AgentStore(app.settings.data)
    agents.save("bot", Agent(name="Bot", target="label_bot:answer"), "", 0)
    agents.save("lost", Agent(name="Lost", target="no_such_module:answer"), "", 0)
    agents.save("files", Agent(name="Files", target=None), "", 0)
    page = app.page("/datasets/shop")
    assert "Bot v1" in page
    assert "Files v1" not in page
    person = begin(app, 1, "bot/1")
    assert "chunks of 1 system + search" in person.page
    person.point("price.md")
    assert "Bot v1 #1" in html.unescape(person.page)
    other = app.post("/datasets/shop/label/systems", {"systems": ["bot/1", "demo"]})
    assert "chunks of 2 systems + search" in Labeller(app, other.headers["location"]).page
    app.post("/datasets/shop/label/systems", {"systems": ["lost/1"]})
    refused = app.get("/label/cases?dataset=shop")
    assert refused.status_code == 409
    assert "no_such_module" in refused.text
    assert 'action="/datasets/shop/label/systems"' in refused.text
    assert app.post("/datasets/shop/label/systems", {"systems": ["../x"]}).status_code == 422


def test_an_agent_finds_its_keys_in_the_env_file_and_never_the_server_s_token(
    app: WebApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("RAGEVAL_WEB_TOKEN", "the-word-for-the-server")
    agents = AgentStore(app.settings.data)
    agents.save("chat", Agent(name="Chat", target="openai:gpt-4o-mini"), "", 0)
    agents.save("keyed", Agent(name="Keyed", target="demo", headers={"X-Key": "env:SHOP_KEY_OF_THE_TEST"}), "", 0)
    agents.save("thief", Agent(name="Thief", target="demo", headers={"X-Word": "env:RAGEVAL_WEB_TOKEN"}), "", 0)
    with served(tmp_path, env_file=tmp_path / ".env") as app:
        app.post("/datasets/shop/label", {"version": "1", "systems": "chat/1"})
        refused = app.get("/label/cases?dataset=shop")
        assert "Chat v1: " in refused.text
        assert "OPENAI_API_KEY is not set" in refused.text
        (tmp_path / ".env").write_text("SHOP_KEY_OF_THE_TEST=sk-12345678901234567890\n")
        app.post("/datasets/shop/label/systems", {"systems": "keyed/1"})
        assert app.get("/label/cases?dataset=shop").status_code == 200
        app.post("/datasets/shop/label/systems", {"systems": "thief/1"})
        assert "RAGEVAL_WEB_TOKEN is not set" in app.get("/label/cases?dataset=shop").text


def test_a_server_that_was_killed_has_lost_no_mark(app: WebApp, tmp_path: Path):
    person = begin(app)
    person.point("price.md")
    person.press("gold")
    with served(tmp_path) as after:  # the first one was never told to end
        assert "1 of 3 cases labelled" in after.page("/datasets/shop/label")
        assert 'class="gold' in Labeller(after, "/label/cases?dataset=shop&case=price").page


def test_a_copy_that_was_saved_just_before_the_server_was_killed_makes_no_second_version(app: WebApp):
    begin(app).press("unanswerable")
    left = {path: path.read_bytes() for path in working_copy(app).parent.iterdir()}
    assert save(app).status_code == 303
    for path, content in left.items():
        path.write_bytes(content)
    assert "Nothing differs from version 2" in save(app).text
    assert app.post("/datasets/shop/label/discard").status_code == 303


def test_runs_use_saved_versions(app: WebApp):
    AgentStore(app.settings.data).save("bot", Agent(name="Bot", target="label_bot:answer"), "", 0)
    begin(app)
    page = app.page("/new-run")
    assert 'value="shop/1"' in page
    assert "working" not in page


def test_a_dataset_that_was_imported_is_labelled_in_its_own_spelling(app: WebApp):
    content = b"question,reference\nWhat does the cream cost?,32000 won\nWhere is the cream made?,Jeju\n"
    confirm(app, upload(app, ("faq.csv", content)), name="FAQ")
    response = app.post("/datasets/faq/label", {"version": "1", "systems": []})
    person = Labeller(app, response.headers["location"])
    person.point("price.md")
    person.press("gold")
    assert app.post("/datasets/faq/label/save", {"based_on": "1"}).status_code == 303
    first, second = store_of(app).cases("faq", 2)
    assert first.gold.answers == ("32000 won",)
    assert [support.rel_path for support in first.gold.supports or ()] == ["price.md"]
    assert (second.gold.answers, second.gold.supports) == (("Jeju",), None)


def test_two_windows_that_save_at_once_make_one_version(app: WebApp):
    begin(app).press("unanswerable")
    address = "/datasets/shop/label/save"
    form = sent_by(app.page("/datasets/shop/label"), address) | {"form_token": app.form_token()}
    headers = {"Origin": app.address, "Sec-Fetch-Site": "same-origin"}
    with ThreadPoolExecutor(4) as windows:
        saving = [windows.submit(app.client.post, address, data=form, headers=headers) for _ in range(4)]
        statuses = sorted(response.result().status_code for response in saving)
    assert statuses == [303, 404, 404, 404]
    assert store_of(app).files.numbers("shop") == [1, 2]


def test_a_copy_that_another_window_removes_while_it_is_read_is_gone_and_not_damaged(
    app: WebApp, monkeypatch: pytest.MonkeyPatch
):
    begin(app).press("unanswerable")
    address = "/datasets/shop/label/save"
    form = sent_by(app.page("/datasets/shop/label"), address)

    def read_late(path: Path, *arguments: Any) -> Any:
        WorkingCopies(app.settings.data).discard("shop")
        return load_file(path, *arguments)

    monkeypatch.setattr(working_copy_module, "load_file", read_late)
    response = app.post(address, form)
    assert response.status_code == 404
    assert "it was saved as a version, or discarded" in response.text


SLOW_BOT = """
import pathlib, time
(pathlib.Path(__file__).parent / "begun").touch()
deadline = time.monotonic() + 120
while not (pathlib.Path(__file__).parent / "go").exists():
    assert time.monotonic() < deadline
    time.sleep(0.01)

def answer(question):
    return {"answer": "", "debug": {"retrieved_chunks": []}}
"""


def test_a_file_that_takes_long_to_open_keeps_nobody_from_another_one(app: WebApp, tmp_path: Path):
    (tmp_path / "slow_label_bot.py").write_text(SLOW_BOT)
    AgentStore(app.settings.data).save("slow", Agent(name="Slow", target="slow_label_bot:answer"), "", 0)
    assert app.post("/datasets/shop/label", {"version": "1", "systems": "slow/1"}).status_code == 303
    with ThreadPoolExecutor(1) as windows:
        opening = windows.submit(app.client.get, "/label/cases?dataset=shop")
        wait_until((tmp_path / "begun").exists, "the bot is imported")
        assert app.get(f"/label/cases?file={FILE}").status_code == 200
        assert not opening.done()
        (tmp_path / "go").touch()
        assert opening.result().status_code == 200
