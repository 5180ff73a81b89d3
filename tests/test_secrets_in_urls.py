"""A configured URL is shown without its password and its signed query: by commands, in files and on pages."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator

import pytest
from fault_server import Connection, FaultServer
from hostile import leaks
from judge_server import JudgeServer
from project import Project, a_case
from web_app import served

from pytest_rageval.model import EvalCase
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore

pytestmark = pytest.mark.reliability("secrets", "passwords and signatures in configured URLs", costs="leak")

TRACES = ("secretpw", "sig=abc")
"""A short value, which no search of a text could find: only its name tells that it is a secret."""
CONFIGURATION = "pyproject.toml"


def with_secrets(url: str) -> str:
    return url.replace("//", "//user:secretpw@") + "/?sig=abc"


async def answers(connection: Connection) -> None:
    await connection.reply(200, json.dumps({"answer": "Water boils at 100 °C."}).encode())


async def refuses(connection: Connection) -> None:
    await connection.reply(403, b"no")


@pytest.fixture(params=[answers, refuses])
def project(project: Project, request: pytest.FixtureRequest) -> Iterator[Project]:
    """A project whose target and judge stand behind such URLs."""
    project.cases([a_case("one"), a_case("two")])
    with FaultServer(request.param) as server, JudgeServer() as judge:
        spec = f"openai:judge-1@{judge.url.replace('//', '//user:secretpw@')}?sig=abc"
        project.configure(f'target = "{with_secrets(server.url)}"\njudge = "{spec}"\nretries = 0\n')
        yield project


COMMANDS = (
    ("doctor",), ("doctor", "--json"), ("run", "--run-id", "a"), ("run", "--run-id", "b", "--dry-run"),
    ("run", "--run-id", "c"), ("report", "a"), ("comment", "a"), ("explain", "a", "one"), ("compare", "a", "c"),
    ("compare", "--pairwise", "a", "c"), ("history",), ("history", "--json"), ("runs", "show", "a"), ("runs", "list"),
    ("gate", "a"), ("judge", "a"), ("judge-check",), ("judge-cache", "stats"), ("score", "a"),
    ("export", "a", "--format", "json"), ("cases", "stats"), ("metrics",), ("schema",),
)  # fmt: skip


def test_no_command_or_file_of_a_run_shows_them(project: Project):
    results = [project.rageval(*command) for command in COMMANDS]
    results.append(project.run("-v", "--rageval-run-id", "d"))
    assert leaks(project, *results, traces=TRACES) == []


def test_no_page_shows_them(project: Project):
    for run_id in ("a", "b"):
        project.rageval("run", "--run-id", run_id)
    agents = project.path / "data" / "agents" / "shop"
    agents.mkdir(parents=True)
    table = (project.path / CONFIGURATION).read_text(encoding="utf-8").replace("[tool.rageval]", "")
    table += 'headers = { x-key = "secretpw", x-other = "env:OTHER" }\nparams = { api_key = "secretpw" }\n'
    (agents / "v1.toml").write_text(table, encoding="utf-8")
    (agents / "v2.toml").write_text(table.replace("user:", "other:"), encoding="utf-8")
    with served(project.path) as app:
        DatasetStore(app.settings.data).save("one", DatasetAbout(name="One"), [EvalCase("one", "What?")], "", 0)
        shown = {address: html.unescape(app.page(address)) for address in PAGES}
    leaking = [address for address, text in shown.items() if any(trace in text for trace in TRACES)]
    assert leaking == []
    assert "cannot be saved again" in shown["/agents/shop/edit"]
    assert "no agent keeps it" in shown["/agents/new"]
    assert "env:OTHER" in shown["/agents/shop"]


PAGES = (
    "/", "/runs", "/runs/a", "/runs/a/sections?against=b", "/compare?a=a&b=b", "/compare/answers?a=a&b=b",
    "/compare/pairwise?a=a&b=b", "/history", "/agents", "/agents/new", "/agents/shop", "/agents/shop/versions/1",
    "/agents/shop/edit", "/agents/shop/edit?version=1", "/agents/shop/diff", "/new-run",
    "/new-run?agent=shop/2&dataset=one/1", "/health", "/label",
)  # fmt: skip
