"""Two runs compared pair by pair from the browser: a real judge process, its result page, and what cannot begin."""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_server import Connection
from judge_server import JudgeServer
from processes import PATIENCE_S
from project import StoredProject, a_case
from web_app import WebApp, served

CASES = 6
BOTS = """
import bot

def good(question):
    return bot.answer(question)

def broken(question):
    found = bot.answer(question)
    found["answer"] = "<b>Bananas</b> {{ 7 * 7 }}"
    return found
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairwise-web")
    project = StoredProject.new(folder, [a_case(f"q{at}", f"What is the boiling point, {at}?") for at in range(CASES)])
    project.write("bots.py", BOTS)
    for name in ("good", "broken"):
        project.pytest("--rageval-target", f"bots:{name}", run_id=name)
    return folder


@pytest.fixture
def app(stored: Path, tmp_path: Path) -> Iterator[WebApp]:
    with served(stored, data=tmp_path / "data") as app:
        yield app


async def prefers_water(connection: Connection) -> None:
    """Prefer the answer with the word, whichever stands first in the prompt."""
    prompt = "\n".join(message["content"] for message in connection.request.json["messages"])
    first, second = (
        re.search(rf"<(fence-\w+) {label}>\n(.*)\n</\1 {label}>", prompt)[2]  # type: ignore[index]
        for label in ("first answer", "second answer")
    )
    preference = 3
    if ("Water" in first) != ("Water" in second):
        preference = 1 if "Water" in first else 5
    said = json.dumps({"reasoning": f"<i>because {preference}</i>", "preference": preference})
    choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    await connection.reply(200, json.dumps({"model": "judge-1", "choices": [choice]}).encode())


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(prefers_water) as running:
        yield running


def started(app: WebApp, judge: str, **fields: Any) -> str:
    response = app.post("/compare/pairwise", {"a": "good", "b": "broken", "judge": judge} | fields)
    assert response.status_code == 303, response.text[:3000]
    return str(response.headers["location"])


def ended(app: WebApp, address: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while 'hx-trigger="every 1s"' in (page := app.page(address)):
        assert time.monotonic() < deadline, page[-3000:]
        time.sleep(0.1)
    return page


@pytest.mark.child_process
def test_two_runs_are_compared_from_their_page_and_the_result_is_shown(app: WebApp, judge: JudgeServer):
    assert "/compare/pairwise?a=good&amp;b=broken" in app.page("/compare?a=good&b=broken")
    form = app.page("/compare/pairwise?a=good&b=broken")
    assert 'name="judge"' in form
    address = started(app, f"openai:judge-1@{judge.url}")
    page = ended(app, address)
    assert "win rate" in page.lower()
    assert "win rate" in page.lower()
    assert f"The clearest losses ({CASES})" in page or "losses" in page
    assert "&lt;i&gt;because 1&lt;/i&gt;" in page
    assert "<b>Bananas</b>" not in page
    assert "49" not in re.findall(r"Bananas[^<]*", page)[0]
    assert len(judge.chats) == 2 * CASES
    assert address in app.page("/compare/pairwise?a=broken&b=good")


@pytest.mark.child_process
def test_a_limit_of_cost_goes_to_the_judge(app: WebApp, judge: JudgeServer):
    page = ended(app, started(app, f"openai:judge-1@{judge.url}", max_cost="5"))
    assert "--max-cost: the price of &#39;judge-1&#39; is not known" in page


@pytest.mark.child_process
def test_a_judge_that_cannot_be_reached_is_said_with_its_log(app: WebApp):
    page = ended(app, started(app, "openai:judge-1@http://127.0.0.1:9"))
    assert "failed" in page
    assert "judge-1" in page
    assert "Start again" in page


@pytest.mark.child_process
def test_the_project_s_own_judge_keeps_the_password_that_its_form_does_not_show(
    app: WebApp, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RAGEVAL_JUDGE", f"openai:judge-1@{judge.url.replace('//', '//someone:secretpw@')}")
    shown = f"openai:judge-1@{judge.url}"
    form = app.page("/compare/pairwise?a=good&b=broken")
    assert shown in form
    assert "secretpw" not in form
    page = ended(app, started(app, shown))
    assert "win rate" in page.lower()
    sent = {request.headers["authorization"] for request in judge.chats}
    assert sent == {"Basic " + b64encode(b"someone:secretpw").decode()}


@pytest.mark.reliability("secrets", "a judge's password in pairwise comparisons", costs="leak")
@pytest.mark.child_process
def test_no_page_log_or_file_has_the_password_of_a_judge(app: WebApp):
    password = "Wv8Yb5Nc2Qd9Xf6Zg3Hj"
    page = ended(app, started(app, f"openai:judge-1@http://someone:{password}@127.0.0.1:9/v1"))
    assert "Connection refused" in page
    pages = [page, app.page("/compare/pairwise?a=good&b=broken")]
    files = [path for path in (app.settings.data / "pairwise").rglob("*") if path.is_file()]
    texts = [*pages, *(path.read_text(encoding="utf-8") for path in files)]
    assert [text for text in texts if password in text] == []


@pytest.mark.child_process
def test_a_comparison_can_be_cancelled(app: WebApp):
    asked: list[Connection] = []

    async def hang(connection: Connection) -> None:
        asked.append(connection)
        await asyncio.sleep(PATIENCE_S)

    with JudgeServer(hang) as slow:
        address = started(app, f"openai:judge-1@{slow.url}")
        deadline = time.monotonic() + PATIENCE_S
        while not asked:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert app.post(f"{address}/cancel").status_code == 303
        page = ended(app, address)
    assert "stopped" in page
    assert "judge cache" in page


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"judge": ""}, "name a model"),
        ({"judge": "bots:judge"}, "runs code or reads files of this machine"),
        ({"judge": "--help"}, ""),
        ({"max_cost": "-1"}, "max_cost: "),
        ({"max_cost": "much"}, "max_cost: "),
    ],
)
@pytest.mark.child_process
def test_what_cannot_begin_is_said_on_the_form(app: WebApp, fields: dict[str, str], said: str):
    typed = {"a": "good", "b": "broken", "judge": "openai:judge-1@http://127.0.0.1:9"} | fields
    response = app.post("/compare/pairwise", typed)
    if said:
        assert response.status_code == 422
        assert said in response.text
        assert not list((app.settings.data / "pairwise").glob("*/log.txt"))
    else:  # an odd name is the judge's alone, never an option
        assert "unknown judge &#39;--help&#39;" in ended(app, response.headers["location"])


def test_unknown_runs_and_comparisons_are_no_pages(app: WebApp):
    assert app.get("/compare/pairwise?a=good&b=nothing").status_code == 404
    assert app.get("/compare/pairwise/nothing").status_code == 404
    assert app.get("/compare/pairwise/..%2f..%2fetc").status_code == 404
    assert app.post("/compare/pairwise/nothing/cancel").status_code == 404
    assert app.post("/compare/pairwise", {"a": "../x", "b": "good", "judge": "openai:m"}).status_code == 422
    assert app.post("/compare/pairwise", {}).status_code == 400
