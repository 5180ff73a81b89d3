"""Who can reach the app, and what a browser can make it run: token, proxies, and code that no project lists."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import Chromium
from fastapi import FastAPI
from labelling import FILE, label_project
from processes import PATIENCE_S
from project import Project
from web_app import TOKEN, WebApp, allow_code, confirm, errors_beside, sent_by, served, upload

from pytest_rageval.web import server
from pytest_rageval.web.app import create_web_app
from pytest_rageval.web.sessions import FAILURES, TokenCheck, new_token
from pytest_rageval.web.site import WebSettings
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore

pytestmark = pytest.mark.reliability("web", "foreign Host and Origin, tokens", costs="leak")

COMMAND = b"id,question,reference\nq1,touch owned,x\n"


@pytest.mark.parametrize("path", ["/", "/runs?state=failed", "/label/cases?file=a.jsonl", "//evil.example/"])
def test_an_address_with_the_token_is_left_for_one_without_it_and_lets_the_browser_in(app: WebApp, path: str):
    with app.stranger() as browser:
        asked = f"{app.address}{path}{'&' if '?' in path else '?'}token={TOKEN}"
        opened = browser.get(asked)
        assert (opened.status_code, opened.headers["refresh"]) == (200, f"0; url={app.address}{path}")
        assert TOKEN not in str(opened.headers) + opened.text
        assert browser.get(app.address + path).headers.get("location") != "/login"


def test_a_browser_that_opens_a_wrong_token_is_asked_for_it(app: WebApp):
    with app.stranger() as browser:
        assert browser.get("/", params={"token": "wrong"}).headers["location"] == f"{app.address}/"
        assert browser.get("/").headers["location"] == "/login"
    assert app.get("/", params={"token": "wrong"}, follow_redirects=True).url.path == "/"


def test_a_program_gives_the_token_in_a_header_and_needs_no_cookie_or_form(web_app: WebApp):
    with web_app.stranger() as program:
        right, wrong = ({"Authorization": f"Bearer {token}"} for token in (TOKEN, f"{TOKEN}x"))
        assert program.get("/runs", headers=right).status_code == 200
        assert program.post("/demo/agent", data={"x": "y"}, headers=right).status_code == 303
        program.cookies.clear()
        refused = program.get("/runs", headers=wrong)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert program.post("/demo/agent", data={"x": "y"}).status_code == 401


@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket"])
def test_no_page_of_another_site_loads_a_part_of_ours_or_guesses_for_its_reader(app: WebApp, mode: str):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
    assert app.get("/runs", headers=headers).status_code == 403
    assert app.get("/runs", headers=headers | {"Sec-Fetch-Mode": "navigate"}).status_code == 200


def test_a_link_on_another_site_opens_no_page_that_queries_systems(tmp_path: Path):
    label_project(tmp_path)
    asked = tmp_path / "asked"
    (tmp_path / "noting_bot.py").write_text(
        f"open({str(asked)!r}, 'w').close()\n\ndef answer(question):\n    return {{}}\n"
    )
    configuration = tmp_path / "rageval.toml"
    own = configuration.read_text() if configuration.exists() else ""
    configuration.write_text(f'target = "noting_bot:answer"\n{own}')
    page = f"/label/cases?file={FILE}"
    with served(tmp_path) as app:
        for site in ("cross-site", "same-site"):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
            for address in (page, f"{page}&case=price"):
                assert app.get(address, headers=headers, follow_redirects=True).status_code == 403
            assert app.get(f"{page}&token=wrong", headers=headers, follow_redirects=True).status_code == 403
            opened = app.get(f"{page}&token={TOKEN}", headers=headers, follow_redirects=True)
            assert opened.headers["refresh"] == f"0; url={app.address}{page.replace('/shop', '%2Fshop')}"
            assert "set-cookie" not in opened.headers, "forms of other windows would be refused"
        assert not asked.exists()
        assert app.get(page, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
        assert asked.exists()


def test_guesses_at_a_token_of_its_own_making_keep_nobody_out():
    made, chosen = TokenCheck(new_token(), b"k"), TokenCheck("a chosen token", b"k")
    for check in (made, chosen):
        assert not any(check.accepts("guess", "127.0.0.1") for _ in range(FAILURES))
    assert made.accepts(str(made.token), "127.0.0.1")
    with pytest.raises(Exception, match="Too many wrong tokens"):
        chosen.accepts("a chosen token", "127.0.0.1")


def test_without_a_token_nobody_is_asked_and_that_is_said(project, monkeypatch: pytest.MonkeyPatch):
    started: list[Any] = []
    monkeypatch.setattr(server, "serve_web", lambda _, settings, *__, **___: started.append(settings))
    result = project.rageval("web", "--no-token", RAGEVAL_WEB_TOKEN="a long enough token")
    assert started[0].token is None
    result.stderr.fnmatch_lines(["WARNING: --no-token: every user and program of this machine can use the app*"])
    result = project.rageval("web", "--token", "a long enough token")
    result.stderr.fnmatch_lines(["WARNING: --token: other users of this machine see it*set RAGEVAL_WEB_TOKEN"])
    project.rageval("web")
    project.rageval("web", "--host", "0.0.0.0")
    assert [len(settings.token) for settings in started[1:]] == [19, 43, 43]
    assert started[2].token != started[3].token
    assert started[2].token not in repr(started[2])


@pytest.mark.parametrize("is_chosen", [False, True])
def test_a_browser_is_opened_without_the_token_in_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_chosen: bool
):
    opened: list[tuple[str, str, int]] = []

    def note(address: str) -> None:
        file = Path(address.removeprefix("file://"))
        opened.append((address, file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777))

    def end(app: FastAPI, settings: Any) -> Any:
        return type("Ended", (), {"run": lambda *_, **__: None})()

    monkeypatch.setattr(webbrowser, "open", note)
    monkeypatch.setattr(server, "make_server", end)
    settings = WebSettings(root=tmp_path, reports=tmp_path / "r", data=tmp_path / "data", port=0, token=TOKEN)
    said: list[str] = []
    server.serve_web(create_web_app(settings), settings, said.append, is_opened=True, is_token_shown=not is_chosen)
    [(address, content, mode)] = opened
    assert TOKEN not in address
    assert f"/?token={TOKEN}" in content
    assert mode == 0o600
    assert not Path(address.removeprefix("file://")).exists()
    assert (TOKEN in said[0]) is not is_chosen


@pytest.mark.browser
def test_a_browser_that_opens_the_file_is_in_and_its_address_holds_no_token(
    tmp_path: Path, web_app: WebApp, chromium: Chromium, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    file = tmp_path / "open.html"
    with chromium.page() as page:
        page.context.clear_cookies()
        with server.opened_through(file, f"{web_app.address}/?token={TOKEN}"):
            page.goto(file.as_uri())
            page.wait_for_function("() => location.protocol === 'http:' && !location.search")
        assert page.url == f"{web_app.address}/"
        assert page.locator("text=log out").count() == 1
        assert page.evaluate("document.referrer + document.cookie") == ""


def test_the_token_reaches_no_file_and_no_process(tmp_path: Path):
    with served(tmp_path) as app:
        app.post("/demo/agent")
        app.get("/nothing", params={"token": "wrong"})
        app.get("/nothing", params={"token": TOKEN})
        written = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert written == []


ATTACK = """
import encodings.idna, http.client, os, re, sys, urllib.parse
port, uid = int(sys.argv[1]), int(sys.argv[2])
if uid:
    os.setgroups([]), os.setgid(uid), os.setuid(uid)
cookie = token = ""
def ask(method, path, fields=None, body=None, kind="application/x-www-form-urlencoded"):
    global cookie, token
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    if fields is not None:
        body = urllib.parse.urlencode({"form_token": token, **fields})
    connection.request(method, path, body, {"Cookie": cookie, "Content-Type": kind} if body else {"Cookie": cookie})
    answer = connection.getresponse()
    text = answer.read().decode()
    cookie = (answer.getheader("set-cookie") or cookie).partition(";")[0]
    token = (re.findall('name="form_token" value="([0-9a-f]+)"', text) or [token])[0]
    print(answer.status, answer.getheader("location"))
ask("GET", "/login")
agent = {"name": "evil", "target_kind": "python", "python": "os:system", "metrics": "token_f1"}
ask("POST", "/agents", agent | {"k": "5", "judge_temperature": "0"})
rows = 'Content-Disposition: form-data; name="cases"; filename="a.csv"\\r\\n\\r\\nquestion,reference\\ntouch owned,x\\n'
part = f'Content-Disposition: form-data; name="form_token"\\r\\n\\r\\n{token}'
ask("POST", "/datasets/uploads", body=f"--b\\r\\n{part}\\r\\n--b\\r\\n{rows}\\r\\n--b--\\r\\n",
    kind="multipart/form-data; boundary=b")
ask("POST", "/new-run", {"agent": "evil/1", "dataset": "evil/1", "source": "connector", "action": "start"})
"""


@pytest.mark.child_process
def test_another_user_of_the_machine_gets_nothing_of_the_app(tmp_path: Path):
    """Run the attack as `nobody` where this may be done; who has no rights to that attacks as itself."""
    other = 65_534 if os.getuid() == 0 else 0
    with served(tmp_path) as app:
        before = sorted(app.settings.data.rglob("*"))
        attack = [sys.executable, "-c", ATTACK, str(app.port), str(other)]
        done = subprocess.run(attack, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        assert done.stdout.splitlines() == ["200 None"] + 3 * ["401 None"]
        assert sorted(app.settings.data.rglob("*")) == before


REFUSED = "which runs code or reads files of this machine; if the browser may name it, add web_allows = "


@pytest.mark.parametrize(
    ("field", "spec", "listed"),
    [
        ("python", "os:system", "os:system"), ("python", "asgi:shop.app:app", "shop.app"),
        ("python", "answers:/etc/passwd", "answers:/etc/passwd"), ("python", "shop.bot:ask", "shop.bot"),
        ("judge_spec", "os:abort", "os:abort"), ("judge_spec", "nli:/etc", "nli:/etc"),
        ("judge_spec", "shop.judge:Strict", "shop.judge"), ("judge_spec", "qwen:latest", "qwen:latest"),
    ],
)  # fmt: skip
def test_code_and_files_of_the_machine_are_taken_only_as_the_project_lists_them(
    app: WebApp, field: str, spec: str, listed: str
):
    allow_code(app.settings.root)  # nothing, whatever an earlier test has listed
    kind = {"target_kind": "python"} if field == "python" else {"judge_kind": "other"}
    fields = sent_by(app.page("/agents/new"), "/agents") | {"name": spec, field: spec} | kind
    refused = app.post("/agents", fields)
    assert refused.status_code == 422
    [problem] = errors_beside(refused.text)[field]
    assert f"{REFUSED}[&#34;{spec}&#34;] to the project" in problem
    allow_code(app.settings.root, listed)
    taken = app.post("/agents", fields)
    assert taken.status_code == 303, errors_beside(taken.text)


@pytest.mark.parametrize("spec", ["shop.bot:os.system", "shop.bot.inner:ask", "shop:ask", "asgi:shop:bot"])
def test_a_listed_module_gives_its_own_names_alone(app: WebApp, spec: str):
    allow_code(app.settings.root, "shop.bot")
    fields = sent_by(app.page("/agents/new"), "/agents") | {"name": "a", "target_kind": "python", "python": spec}
    assert app.post("/agents", fields).status_code == 422


def test_the_target_of_the_project_s_configuration_is_listed_by_that(web_app: WebApp):
    (web_app.settings.root / "rageval.toml").write_text('target = "bot:answer"', encoding="utf-8")
    fields = sent_by(web_app.page("/agents/new"), "/agents") | {"name": "a", "target_kind": "python"}
    assert web_app.post("/agents", fields | {"python": "bot:answer"}).status_code == 303


def test_an_agent_that_came_as_a_file_is_neither_run_nor_asked_for_chunks(web_app: WebApp):
    AgentStore(web_app.settings.data).save("evil", Agent(name="evil", target="os:system"), "", 0)
    assert confirm(web_app, upload(web_app, ("set.csv", COMMAND)), name="set").status_code == 303
    run = {"agent": "evil/1", "dataset": "set/1", "source": "connector", "action": "start"}
    refused = web_app.post("/new-run", run)
    assert refused.status_code == 422
    assert "os:system" in refused.text
    assert "web_allows" in refused.text
    assert list((web_app.settings.data / "jobs").iterdir()) == []
    label = "/datasets/set/label"
    web_app.post(label, sent_by(web_app.page("/datasets/set"), label) | {"systems": "evil/1"})
    shown = web_app.get("/label/cases?dataset=set")
    assert shown.status_code == 409
    assert "web_allows" in shown.text
    assert not list(Path.cwd().glob("owned"))


@pytest.mark.child_process
def test_its_uploaded_answers_are_scored_without_it(web_app: WebApp):
    AgentStore(web_app.settings.data).save("evil", Agent(name="evil", target="os:system"), "", 0)
    assert confirm(web_app, upload(web_app, ("set.csv", COMMAND)), name="set").status_code == 303
    run = {"agent": "evil/1", "dataset": "set/1", "source": "uploaded answers", "action": "start"}
    answers = {"answers": ("a.jsonl", io.BytesIO(b'{"id": "q1", "answer": "x"}\n'))}
    sent = web_app.post("/new-run", run, files=answers)
    assert web_app.post(sent.headers["location"]).headers["location"].startswith("/jobs/")


CHOSEN_TOKEN = "a long enough token"


@pytest.mark.parametrize(("proxies", "is_believed"), [((), False), (("10.0.0.1",), False), (("127.0.0.0/8",), True)])
def test_behind_a_proxy_that_speaks_https_it_is_of_the_host_alone(
    tmp_path: Path, proxies: tuple[str, ...], is_believed: bool
):
    with served(tmp_path, proxies=proxies) as app:
        response = httpx.get(f"{app.address}/login", headers={"X-Forwarded-Proto": "https"}, timeout=PATIENCE_S)
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-rageval") is is_believed
    assert cookie.endswith("; secure") is is_believed


@pytest.mark.parametrize(("proxies", "is_believed"), [((), False), (("127.0.0.1",), True)])
def test_who_guesses_is_another_one_only_by_the_word_of_a_proxy_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...], is_believed: bool
):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    with served(tmp_path, token=CHOSEN_TOKEN, proxies=proxies) as app:
        statuses = [
            app.post("/login", {"token": "guess"}, headers={"X-Forwarded-For": f"192.0.2.{number}"}).status_code
            for number in range(21)
        ]
    assert statuses[-1] == (403 if is_believed else 429)


def test_a_proxy_is_an_address(project: Project):
    result = project.rageval("web", "--proxy", "proxy.example")
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        ["ERROR: --proxy proxy.example: no address; write 127.0.0.1, or a network as 10.0.0.0/8"]
    )
