"""Datasets labelled in the browser: the next version takes the labels until a run uses it, or it is discarded."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labelling import FILE, Labeller, label_project
from processes import wait_until
from web_app import WebApp, allow_code, confirm, sent_by, served, store_of, upload

from pytest_rageval.errors import CaseError
from pytest_rageval.label.label_store import CaseState
from pytest_rageval.web.label_desk import OpenVersionStore
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
    sent = {"version": str(version), "systems": list(systems) or ["demo"]}
    response = app.post("/datasets/shop/label", sent)
    assert response.status_code == 303, response.text
    return Labeller(app, response.headers["location"])


def version_lines(app: WebApp, number: int) -> list[str]:
    return store_of(app).path("shop", number).read_bytes().decode().split("\n")


def test_labels_go_into_the_next_version_until_it_is_finished(app: WebApp):
    person = begin(app)
    assert person.title == "price"
    person.point("price.md")
    person.press("gold")
    assert "price.md" in version_lines(app, 2)[0]
    page = app.page("/datasets/shop")
    assert "Labels go into version 2 until a run uses it: 1 of 3 cases labelled." in page
    assert app.post("/datasets/shop/label/finish").headers["location"] == "/datasets/shop"
    version = store_of(app).newest("shop")
    assert (version.number, version.cases, version.note, version.problem, version.is_open) == (
        2, 3, "labelled: 1 case changed", None, False,
    )  # fmt: skip
    before, after = version_lines(app, 1), version_lines(app, 2)
    assert after[1] == before[1]
    kept = json.loads(before[0])
    assert [*json.loads(after[0])][: len(kept)] == [*kept]
    assert json.loads(after[0])["metadata"]["asked"] == ["anna", 3]
    assert json.loads(after[0])["gold_supports"][0]["rel_path"] == "price.md"
    assert [case.id for case in store_of(app).cases("shop", 2)] == [case.id for case in store_of(app).cases("shop", 1)]
    assert "takes no labels" in app.get(person.address).text
    begin(app, 2)
    assert store_of(app).numbers("shop") == [1, 2, 3]


def test_pages_say_that_a_dataset_is_being_labelled_and_one_can_go_on(app: WebApp):
    begin(app)
    for address in ("/datasets", "/label"):
        assert "being labelled" in app.page(address), address
    again = app.post("/datasets/shop/label", {"version": "1"})
    assert again.headers["location"] == "/label/cases?dataset=shop"
    assert store_of(app).numbers("shop") == [1, 2]


def test_discarding_asks_and_leaves_the_other_versions(app: WebApp):
    person = begin(app)
    person.press("unanswerable")
    assert "Discard version 2 with all its labels?" in app.page("/datasets/shop?discard=true")
    assert app.post("/datasets/shop/label/discard").status_code == 303
    assert store_of(app).numbers("shop") == [1]
    assert app.get(person.address).status_code == 404
    form = sent_by(person.page, "/label/cases")
    assert "takes no labels" in app.post("/label/cases", form | {"do": "gold"}).text


def edit(app: WebApp, position: int, **fields: str) -> None:
    """Another window saves the next version, with one case changed."""
    newest = store_of(app).last("shop")
    address = f"/datasets/shop/versions/{newest}/cases/{position}"
    response = app.post(address, sent_by(app.page(address), address) | {"action": "save"} | fields)
    assert response.status_code == 303, response.text


def test_another_version_keeps_the_labels_and_ends_the_labelling(app: WebApp):
    begin(app).press("unanswerable")
    edit(app, 2, question="Where is it made?")
    assert [version.note for version in store_of(app).versions("shop")[0][:2]] == [
        "case 'place': question", "labelled: 1 case changed",
    ]  # fmt: skip
    assert [case.answerable for case in store_of(app).cases("shop", 3)] == [False, True, True]
    assert app.get("/label/cases?dataset=shop").status_code == 404


def test_labelling_begins_at_the_newest_version_only(app: WebApp):
    edit(app, 1, question="Another?")
    response = app.post("/datasets/shop/label", {"version": "1", "systems": "demo"})
    assert response.status_code == 409
    assert "version 2 was saved meanwhile by another window" in response.text
    assert store_of(app).numbers("shop") == [1, 2]


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
    assert "chunks of 2 systems + search" in begin(app, 2, "bot/1", "demo").page
    app.post("/datasets/shop/label", {"version": "2", "systems": ["lost/1"]})
    refused = app.get("/label/cases?dataset=shop")
    assert refused.status_code == 409
    assert "no_such_module" in refused.text
    assert 'action="/datasets/shop/label"' in refused.text
    assert app.post("/datasets/shop/label", {"version": "2", "systems": ["../x"]}).status_code == 422


def test_an_agent_finds_its_keys_in_the_env_file_and_never_the_server_s_token(
    app: WebApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
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
        app.post("/datasets/shop/label", {"version": "2", "systems": "keyed/1"})
        assert app.get("/label/cases?dataset=shop").status_code == 200
        app.post("/datasets/shop/label", {"version": "2", "systems": "thief/1"})
        assert "RAGEVAL_WEB_TOKEN is not set" in app.get("/label/cases?dataset=shop").text


def test_a_server_that_was_killed_has_lost_no_mark(app: WebApp, tmp_path: Path):
    person = begin(app)
    person.point("price.md")
    person.press("gold")
    with served(tmp_path) as after:  # the first one was never told to end
        assert "1 of 3 cases labelled" in after.page("/datasets/shop")
        assert 'class="gold' in Labeller(after, "/label/cases?dataset=shop&case=price").page


def test_a_run_closes_the_version_that_it_uses(app: WebApp):
    begin(app).press("unanswerable")
    path = store_of(app).run_path("shop", 2)
    assert store_of(app).read("shop", 2).problem is None
    assert app.get("/label/cases?dataset=shop").status_code == 404
    path.chmod(0o644)
    path.write_text(path.read_text() + "\n")
    assert "was changed after it was saved" in str(store_of(app).read("shop", 2).problem)


def test_a_dataset_that_was_imported_is_labelled_in_its_own_spelling(app: WebApp):
    content = b"question,reference\nWhat does the cream cost?,32000 won\nWhere is the cream made?,Jeju\n"
    confirm(app, upload(app, ("faq.csv", content)), name="FAQ")
    response = app.post("/datasets/faq/label", {"version": "1", "systems": []})
    person = Labeller(app, response.headers["location"])
    person.point("price.md")
    person.press("gold")
    first, second = store_of(app).cases("faq", 2)
    assert first.gold.answers == ("32000 won",)
    assert [support.rel_path for support in first.gold.supports or ()] == ["price.md"]
    assert (second.gold.answers, second.gold.supports) == (("Jeju",), None)


def test_two_windows_that_begin_at_once_open_one_version(app: WebApp):
    form = {"version": "1", "systems": "demo", "form_token": app.form_token()}
    headers = {"Origin": app.address, "Sec-Fetch-Site": "same-origin"}
    with ThreadPoolExecutor(4) as windows:
        begun = [windows.submit(app.client.post, "/datasets/shop/label", data=form, headers=headers) for _ in range(4)]
        assert {response.result().status_code for response in begun} <= {303, 409}
    assert store_of(app).numbers("shop") == [1, 2]
    assert store_of(app).newest("shop").is_open


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


def test_a_mark_that_comes_after_the_seal_is_refused_and_the_version_stays_sound(app: WebApp):
    person = begin(app)
    form = sent_by(person.page, "/label/cases")
    store_of(app).run_path("shop", 2)  # as a run does between two marks
    sealed = version_lines(app, 2)
    refused = app.post("/label/cases", form | {"do": "unanswerable"})
    assert refused.status_code == 404
    assert "takes no labels" in refused.text
    assert version_lines(app, 2) == sealed
    assert store_of(app).newest("shop").problem is None


def test_a_label_is_never_written_into_a_version_that_was_sealed_meanwhile(app: WebApp):
    begin(app)
    store = store_of(app)
    version = store.newest("shop")
    labels = OpenVersionStore(store, version, None)
    case = store.cases("shop", 2)[0]
    store.close("shop")
    with pytest.raises(CaseError, match="takes no labels any more"):
        labels.save(CaseState(case, labels.marks_of(case)), [])
    assert store.newest("shop").problem is None


def ticked(page: str) -> list[str]:
    return re.findall(r'name="systems" value="([^"]*)" checked', page)


def test_a_system_that_has_never_answered_is_offered_and_not_preselected(app: WebApp):
    agents = AgentStore(app.settings.data)
    agents.save("new-bot", Agent(name="New bot", target="label_bot:answer"), "", 0)
    page = app.page("/datasets/shop")
    assert ticked(page) == ["demo"]
    assert "New bot v1" in page
    assert 'class="faint">has not answered yet' in page.partition("New bot v1")[2].partition("</p>")[0]
    sent = {"agent": "new-bot/1", "dataset": "shop/1"}
    job = app.post("/new-run", sent).headers["location"]
    wait_until(lambda: "finished" in app.page(job), "the run of the new agent ends")
    assert ticked(app.page("/datasets/shop")) == ["new-bot/1"]
