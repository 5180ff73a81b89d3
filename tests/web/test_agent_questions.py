"""One question from the form of an agent: it finds the mapping of a server, and says what went wrong."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from agent_forms import begin, edited, store_of
from web_app import WebApp, sent_by, served, text_of

from pytest_rageval.web.keys import store_key


class OwnServer(BaseHTTPRequestHandler):
    """Speaks JSON of its own: the question as `query` or `frage`, the answer and its passages somewhere inside."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hits = [{"body": "It boils.", "meta": {"source": "notes/water.md"}}]
        key = "frage" if self.path == "/frage" else "query"
        reply = {"result": {"text": f"You asked {body.get(key)}"}, "hits": hits}
        self.send_response(200 if key in body else 422)
        self.end_headers()
        self.wfile.write(json.dumps(reply if key in body else {"detail": f"no {key}"}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def own_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), OwnServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/ask"
    server.shutdown()
    server.server_close()


def test_one_question_finds_the_mapping_of_a_server_and_shows_its_answer_at_once(app: WebApp, own_server: str):
    own = {"target_kind": "http", "url": own_server, "judge_kind": "openai"}
    sent = sent_by(app.page("/agents/new"), "/agents") | own
    page = app.post("/agents", sent | {"question": "Does it boil?", "ask": "yes"}).text
    found = sent_by(page, "/agents")
    assert {name: found[name] for name in found if name.startswith("map_")} == {
        "map_question": "query", "map_answer": "result.text", "map_chunks": "hits", "map_text": "body",
        "map_path": "meta.source", "map_heading": "", "map_id": "", "map_score": "",
    }  # fmt: skip
    assert "You asked Does it boil?" in page
    assert "notes/water.md" in page
    assert "question in query , answer in result.text , passages in hits" in text_of(page).replace(", ", " , ")
    slug = begin(
        app, "Own JSON", **{name: value for name, value in found.items() if name not in ("name", "judge_kind")}
    )
    assert store_of(app).newest(slug).agent.mapping == {
        "request": {"query": "{question}"},
        "response": {
            "answer": "result.text",
            "retrieved_chunks": {"each": "hits", "text": "body", "rel_path": "meta.source"},
        },
    }
    assert edited(app, slug)["map_answer"] == "result.text"


class LockedServer(OwnServer):
    """Answers at /api/chat alone, and there only who sends the key."""

    def do_POST(self) -> None:
        is_there = self.path == "/api/chat"
        if is_there and self.headers.get("Authorization") == "Bearer sk-the-key-of-the-bot":
            super().do_POST()
            return
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401 if is_there else 404)
        self.end_headers()


def test_a_path_that_is_not_there_leads_to_the_usual_ones_and_a_key_can_be_entered(tmp_path: Path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), LockedServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    keys = tmp_path / ".env"
    keys.write_text("OTHER=1\n", encoding="utf-8")
    with served(tmp_path, env_file=keys) as app:
        sent = sent_by(app.page("/agents/new"), "/agents") | {"target_kind": "http", "url": f"{origin}/wrong/path"}
        refused = app.post("/agents", sent | {"ask": "yes"}).text
        assert "It wants a key" in refused
        assert "401" in refused
        with_key = sent_by(refused, "/agents") | {"ask": "key", "key_value": "sk-the-key-of-the-bot"}
        page = app.post("/agents", with_key).text
        assert "You asked What can you help me with?" in page
        assert "sk-the-key" not in page
        found = sent_by(page, "/agents")
        assert (found["url"], found["map_answer"]) == (f"{origin}/api/chat", "result.text")
        assert found["header_value"] == ["env:BOT_KEY", ""]
        assert keys.read_text(encoding="utf-8") == 'OTHER=1\nBOT_KEY="Bearer sk-the-key-of-the-bot"\n'
        assert keys.stat().st_mode & 0o077 == 0
        for variable, value in (("PYTHONPATH", "/x"), ("RAGEVAL_WEB_TOKEN", "x"), ("BOT_KEY", 'a"b'), ("BOT_KEY", "")):
            wrong = app.post("/agents", with_key | {"key_variable": variable, "key_value": value})
            assert 'role="alert"' in wrong.text
        assert keys.read_text(encoding="utf-8").count("\n") == 2
        assert "sk-the-key" not in "".join(path.read_text() for path in (tmp_path / "data").rglob("*.toml"))
    server.shutdown()
    server.server_close()


TYPED = {"key_variable": "BOT_KEY", "key_header": "X-Api-Key", "key_value": "sk-the-key-of-the-bot"}


@pytest.mark.parametrize("button", [{"ask": "key"}, {"ask": "yes"}, {}], ids=["keep", "ask", "save"])
def test_a_typed_key_is_kept_whichever_button_is_pressed(tmp_path: Path, button: dict[str, str]):
    keys = tmp_path / ".env"
    with served(tmp_path, env_file=keys) as app:
        agent = {"name": "Keyed", "target_kind": "http", "url": "http://127.0.0.1:9/"}
        sent = sent_by(app.page("/agents/new"), "/agents") | agent | TYPED | button
        page = app.post("/agents", sent).text
        assert "sk-the-key" not in page
        assert keys.read_text(encoding="utf-8") == 'BOT_KEY="sk-the-key-of-the-bot"\n'
        if not button:
            [saved] = (tmp_path / "data" / "agents").rglob("*.toml")
            assert "env:BOT_KEY" in saved.read_text(encoding="utf-8")


def test_a_key_that_cannot_be_kept_is_not_thrown_away_in_silence(tmp_path: Path):
    with served(tmp_path, env_file=tmp_path / ".env") as app:
        agent = {"name": "Keyed", "target_kind": "http", "url": "http://127.0.0.1:9/"}
        sent = sent_by(app.page("/agents/new"), "/agents") | agent | TYPED | {"key_value": 'a"b'}
        refused = app.post("/agents", sent)
        assert refused.status_code == 422
        assert "The key was not kept" in refused.text
        assert not list((tmp_path / "data" / "agents").rglob("*.toml"))


@pytest.mark.parametrize(
    ("above", "beside", "after"),
    [
        (None, None, "/.env\n"),
        (None, "reports/", "reports/\n/.env\n"),
        (None, ".env*\n", ".env*\n"),
        (".env\n", None, None),
        (".env\n", "!.env\n", "!.env\n/.env\n"),
        ("*.pyc\n", None, "/.env\n"),
        ("/.env\n", None, "/.env\n"),
        ("/project/.env\n", None, None),
        ("**/.env\n", None, None),
    ],
)
def test_git_does_not_see_a_key_that_was_typed(
    tmp_path: Path, above: str | None, beside: str | None, after: str | None
):
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=60)
    for place, content in ((tmp_path, above), (folder, beside)):
        if content is not None:
            (place / ".gitignore").write_text(content, encoding="utf-8")
    store_key(folder / ".env", "BOT_KEY", "sk-the-key-of-the-bot")
    written = folder / ".gitignore"
    assert (written.read_text(encoding="utf-8") if written.exists() else None) == after
    listing = ["git", "-C", str(tmp_path), "add", "-A", "-n"]
    seen = subprocess.run(listing, check=True, capture_output=True, text=True, timeout=60)
    assert "project/.env'" not in seen.stdout
    store_key(folder / ".env", "OTHER_KEY", "sk-the-key-of-the-bot")
    assert (written.read_text(encoding="utf-8") if written.exists() else None) == after


def test_one_question_needs_no_more_than_the_field_of_the_question(app: WebApp, own_server: str):
    sent = sent_by(app.page("/agents/new"), "/agents") | {"target_kind": "http", "url": f"{own_server[:-3]}frage"}
    refused, found = (app.post("/agents", sent | {"ask": "yes", "map_question": key}).text for key in ("", "frage"))
    assert ("a field of its own" in refused, "target.mapping" in refused) == (True, False)
    assert sent_by(found, "/agents")["map_answer"] == "result.text"


def test_one_question_says_what_went_wrong_and_keeps_what_was_typed(app: WebApp):
    typed = {"ask": "yes", "name": "Only asked", "question": "Who are you?"}
    sent = sent_by(app.page("/agents/new"), "/agents") | typed
    refused = app.post("/agents", sent | {"target_kind": "http", "url": "http://127.0.0.1:9/"})
    assert "<b>Who are you?</b>" in refused.text
    assert sent_by(refused.text, "/agents")["name"] == "Only asked"
    assert app.post("/agents", sent | {"target_kind": "http", "url": "ftp"}).status_code == 422
    assert "there is nobody to ask" in app.post("/agents", sent | {"target_kind": "answers"}).text
    assert "web_allows" in app.post("/agents", sent | {"target_kind": "python", "python": "os:system"}).text
    assert not list((app.settings.data / "agents").glob("only*"))
