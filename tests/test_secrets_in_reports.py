"""No credential stands in what pytest and its plugins show: cut texts, warnings, logs, properties, in any form."""

from __future__ import annotations

import base64
import json

import pytest
from fault_server import Connection, FaultServer
from hostile import COOKIE, CORE, HEADER_KEY, REPORTS, leaks
from judge_server import JudgeServer
from project import ALONE_AND_WITH_WORKERS, Project, a_case

pytestmark = pytest.mark.reliability("secrets", "cut keys, warnings, logs and properties", costs="leak")

KEY = "Wv8Yb5Nc2Qd9Xf6Zg3Hj"
PIECES = tuple({KEY[at : at + 6] for at in range(len(KEY) - 5)})
"""Six characters in a row of it are a trace, wherever it was cut."""
DEBUG = ["--log-level", "DEBUG", "--log-file", "log.txt", "-o", "log_cli=true", "-o", "junit_logging=all"]

RAISING = """
import os

def answer(question):
    filling = "x" * int(question.split()[-1])
    if "raise" in question:
        raise RuntimeError(f"{filling}{os.environ['BOT_API_KEY']} and more {filling}")
    if "wrong" in question:
        return {"answer": [filling + os.environ["BOT_API_KEY"] + filling]}
    return {"answer": filling + os.environ["BOT_API_KEY"] + filling}
"""
RAISING_JUDGE = """
import os

class Plain:
    async def score_groundedness(self, answer, context):
        raise RuntimeError("x" * int(answer) + os.environ["BOT_API_KEY"] + " and more of it")

plain = Plain()
"""


@pytest.mark.parametrize("how", [["--tb=no"], ["--tb=native"], ["-l"], ["-n", "1"]])
def test_a_secret_that_a_cut_goes_through_leaves_no_piece(
    project: Project, monkeypatch: pytest.MonkeyPatch, how: list[str]
):
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.write("bot.py", RAISING)
    cases = [("raise", range(287, 297)), ("wrong", range(68, 76)), ("say", range(188, 197, 4))]
    project.cases(a_case(f"{verb}-{n}", f"{verb} {n}") for verb, lengths in cases for n in lengths)
    result = project.run("-v", "--junitxml", "junit.xml", "--html", "report.html", "--self-contained-html", *how)
    assert leaks(project, result, traces=PIECES) == []
    assert project.records()["raise-290"]["error"]["message"].startswith("bot:answer: RuntimeError: xxx")
    explained = [project.rageval("explain", "latest", id) for id in ("say-192", "raise-292", "wrong-72")]
    assert leaks(project, *explained, traces=PIECES) == []


def test_nor_does_one_in_what_a_judge_raises_or_replies(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.write("bot.py", "def answer(question):\n    return question.split()[-1]\n")
    project.write("own.py", RAISING_JUDGE)
    project.cases(a_case(f"q{n}", f"say {n}", contexts=["a passage"]) for n in range(174, 184))
    own = project.run(*REPORTS, "--rageval-judge", "own:plain")
    assert {record["error"]["kind"] for record in project.records().values()} == {"judge_exception"}
    assert leaks(project, own, traces=PIECES) == []
    replies = [f"no {'x' * (n - 3)}{KEY} {'y' * 100}" for n in (*range(107, 117, 2), *range(3990, 3997))]
    with JudgeServer(*replies) as server:
        replied = project.run(*REPORTS, "--rageval-judge", f"openai:judge-1@{server.url}")
    assert server.chats
    assert leaks(project, replied, traces=PIECES) == []


def test_nor_does_one_in_the_error_of_a_server(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.cases(a_case(f"q{n}", f"say {n}") for n in range(178, 202, 3))

    async def refuses(connection: Connection) -> None:
        length = int(json.loads(connection.request.body)["question"].split()[-1])
        await connection.reply(500, f"{'x' * length}{KEY} {'y' * 100}".encode())

    with FaultServer(refuses) as server:
        project.configure(f'target = "{server.url}"\nretries = 0')
        result = project.run(*REPORTS)
    assert {record["error"]["kind"] for record in project.records().values()} == {"http_5xx"}
    assert leaks(project, result, traces=PIECES) == []


def test_an_assertion_of_the_users_own_over_long_texts_shows_no_piece(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.write("test_own.py", OWN_TEST)
    project.cases([a_case("a")], "cases.jsonl")
    for how in (["-l"], ["-n", "1"]):
        result = project.run(*REPORTS, *how)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert leaks(project, result, traces=PIECES) == []


OWN_TEST = """
import os
import pytest

@pytest.mark.parametrize("length", [*range(100, 124, 4)])
@pytest.mark.rageval("cases.jsonl")
def test_own(eval_case, rageval, length):
    rageval.evaluate(eval_case)
    sent = {"x" * length + os.environ["BOT_API_KEY"] + "y" * 200: length}
    assert str(sent) == "y"
"""

WARNING_BOT = """
import logging, os, warnings

class Odd(UserWarning):
    def __init__(self, one, two):
        super().__init__(one, two)

def answer(question):
    warnings.warn("asking with " + os.environ["BOT_API_KEY"])
    warnings.warn(Odd("asking with", os.environ["BOT_API_KEY"]))
    logging.getLogger("bot").warning("asking with %s", os.environ["BOT_API_KEY"])
    return "no"
"""
PROPERTIES = """
import os
import pytest

class Odd:
    def __str__(self):
        return "odd " + os.environ["BOT_API_KEY"]

def pytest_rageval_result(item, result):
    item.user_properties += [("key", os.environ["BOT_API_KEY"]), ("odd", Odd()), ("n", 3)]

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.user_properties.append(("more", os.environ["BOT_API_KEY"]))
"""


@ALONE_AND_WITH_WORKERS
def test_warnings_and_logs_are_masked_and_keep_their_words(
    project: Project, monkeypatch: pytest.MonkeyPatch, how: list[str]
):
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.write("bot.py", WARNING_BOT)
    project.cases([a_case("a"), a_case("b")])
    result = project.run(*REPORTS, *DEBUG, *how)
    assert leaks(project, result, traces=PIECES) == []
    assert "UserWarning: asking with ***" in result.stdout.str()
    assert "asking with ***" in (project.path / "junit.xml").read_text(encoding="utf-8")


@ALONE_AND_WITH_WORKERS
def test_properties_that_other_plugins_write_down_are_masked(
    project: Project, monkeypatch: pytest.MonkeyPatch, how: list[str]
):
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.write("conftest.py", PROPERTIES if not how else PROPERTIES.replace('("odd", Odd()), ', ""))
    project.cases([a_case("a")])
    result = project.run(*REPORTS, *how)
    assert leaks(project, result, traces=PIECES) == []
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert 'name="key" value="***"' in junit
    assert 'name="n" value="3"' in junit


HTTPX_BOT = """
import os, httpx

def answer(question):
    reply = httpx.post(os.environ["BOT_URL"], json={"question": question})
    print("headers", dict(reply.headers))
    return "no"
"""


def test_the_headers_of_a_reply_that_httpcore_logs_are_masked(project: Project, monkeypatch: pytest.MonkeyPatch):
    async def sets_a_cookie(connection: Connection) -> None:
        fresh = f"sid={CORE}; Path=/; HttpOnly"
        await connection.reply(200, b'{"answer": "no"}', set_cookie=fresh, x_refresh_token=f"fresh-{CORE}")

    project.cases([a_case("a")])
    with FaultServer(sets_a_cookie) as server:
        monkeypatch.setenv("BOT_URL", server.url)
        project.write("bot.py", HTTPX_BOT)
        result = project.run(*REPORTS, *DEBUG)
    assert "receive_response_headers.complete" in (project.path / "junit.xml").read_text(encoding="utf-8")
    assert leaks(project, result) == []


TELLING_BOT = """
import os

def answer(question):
    told = os.environ["TOLD"]
    if "refuse" in question:
        raise RuntimeError("cannot use " + told)
    if "lines" in question:
        raise RuntimeError("cannot use\\n" + told.replace(" ", "\\n  "))
    print(told)
    return told
"""
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIEogIBAAKC{CORE}\nq1W2{CORE}8=\n-----END RSA PRIVATE KEY-----"
BASIC = base64.b64encode(f"ann:{CORE}".encode()).decode()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("DB_PASSWORD", f"{CORE}-password", None),
        ("DB_PWD", f"{CORE}-password", None),
        ("GCP_CREDENTIALS", json.dumps({"private_key": PEM}), PEM),
        ("DATABASE_URL", f"postgres://ann:{CORE}@db.example/x", None),
        ("ALL_PROXY_OF_MINE", f"http://ann:{CORE}@proxy:3128", f"proxy-authorization: Basic {BASIC}"),
        ("SIGNING", PEM, None),
        ("SIGNING_KEY", PEM, PEM.replace("\n", " ")),
        ("AWS_ACCESS_KEY_ID", "AKIAZQ7XW9KP3LM5ABCD", None),
    ],
)
def test_what_the_environment_holds_by_other_names_and_in_other_forms_is_masked(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str | None
):
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOLD", told or value)
    project.write("bot.py", TELLING_BOT)
    project.cases([a_case(word, f"please {word}") for word in ("echo", "refuse", "lines")])
    result = project.run(*REPORTS, "--tb=long")
    assert leaks(project, result, traces=[CORE, BASIC[:12], "ZQ7XW9KP3LM5"]) == []
    assert project.outcomes()["echo"] == "failed"


@pytest.mark.parametrize("proxy", ["http://ann:{}@127.0.0.1:{}", "ann:{}@127.0.0.1:{}"])
def test_credentials_of_a_proxy_are_masked_plain_and_as_they_are_sent(
    project: Project, monkeypatch: pytest.MonkeyPatch, proxy: str
):
    async def repeats(connection: Connection) -> None:
        told = f"{connection.request.headers} {CORE}"
        status = 502 if b"refuse" in connection.request.body else 200
        await connection.reply(status, json.dumps({"answer": told}).encode(), x_again=told)

    project.cases([a_case(word, f"please {word}") for word in ("echo", "refuse")])
    with FaultServer(repeats) as server:
        port = server.url.rpartition(":")[2]
        monkeypatch.setenv("http_proxy", proxy.format(CORE, port))
        project.configure('target = "http://bot.example"\nretries = 0')
        result = project.run(*REPORTS, *DEBUG)
        assert "proxy-authorization" in server.requests[0].headers
    assert leaks(project, result, traces=[CORE, BASIC[:12]]) == []


def test_config_json_names_headers_and_holds_no_value(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GATEWAY", HEADER_KEY)
    project.cases([a_case("a")])
    headers = f'headers = {{ "x-key" = "{CORE}-value", "X-Gateway" = "env:GATEWAY", x-team = "red-{CORE}" }}'
    project.configure(
        headers + '\ntarget = "bot:answer"', f'[tool.rageval.judge_options]\nheaders = {{ Cookie = "{COOKIE}" }}'
    )
    result = project.run(*REPORTS)
    config = project.config()
    assert config["headers"] == {"target": ["x-gateway", "x-key", "x-team"], "judge": ["cookie"]}
    assert leaks(project, result) == []
