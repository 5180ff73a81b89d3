"""Whatever asks a system goes through one door: every verb against hostile bots, in processes of their own."""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from fault_server import Connection, FaultServer
from processes import IS_THOROUGH, Terminal, python

PACKAGE = Path(__file__).parents[2] / "pytest_rageval"
CORE = "Zq7Xw9Kp3Lm5"
"""Stands in every secret here."""
STEERING = "\x1b]0;owned\x07\x1b[2J"
"""Sets the title of a terminal and wipes its screen."""
LONGEST_S = 60
"""Seconds for a command that waits 1 s for its system, on a slow machine under load."""

BOT = f"""
import asyncio, logging, os, sys, time, warnings

SECRETS = " ".join([
    os.environ["BOT_API_KEY"], "hk-{CORE}-header", "pa-{CORE}-param", "tt-{CORE}-nested", "ak-{CORE}-account",
])
STEERING = {STEERING!r}
SAID = STEERING + " said " + SECRETS

print("imported", SAID)
logging.basicConfig()


def raises(question):
    raise RuntimeError("401 for " + SAID)


def prints(question):
    print("out", SAID)
    print("err", SAID, file=sys.stderr)
    logging.getLogger("bot").error("log %s", SAID)
    warnings.warn("warned " + SAID)
    return {{"answer": "A: " + SAID, "debug": {{"retrieved_chunks": [
        {{"rel_path": "notes/" + SAID, "heading_path": "# " + SAID, "text": SAID, "chunk_id": SAID}}]}}}}


def hangs(question):
    time.sleep(1000)


async def blocks(question):
    time.sleep(1000)


def floods(question):
    print(SAID * 20_000)
    return {{"answer": SAID * 200_000}}
"""
BOTS = ["raises", "prints", "hangs", "blocks", "floods"]
SETTINGS = f"""
target = "bot:{{bot}}"
timeout = 1
retries = 0
max_response_bytes = 2000000
params = {{{{ token = "pa-{CORE}-param" }}}}
headers = {{{{ "x-key" = "hk-{CORE}-header" }}}}
web_allows = ["bot"]
"""
ENVIRONMENT = {
    "BOT_API_KEY": f"bk-{CORE}-bot",
    "BOT_CONFIG": json.dumps({"auth": {"token": f"tt-{CORE}-nested"}}),
    "STORAGE": f"DefaultEndpointsProtocol=https;AccountName=bot;AccountKey=ak-{CORE}-account;",
    "COLUMNS": "200",
}
WEB = """
import os
from pathlib import Path
from pytest_rageval.cli.terminal import CommandTexts
from pytest_rageval.metrics import load_registry
from pytest_rageval.web.first_question import ask_one_question
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.config.settings_sources import load_settings

root = Path.cwd()
settings = load_settings(root)
agent = Agent(name="a", target=settings.target, headers=settings.headers, params=settings.params, more={"timeout": 1})
with CommandTexts().routed():  # as the command does that serves the web app
    told = ask_one_question(agent, load_registry(), root, os.environ, "Why?")
print(repr((told.text, told.problems, told.places))[:20000])
"""
VERBS = {
    "pytest": ["-m", "pytest"],
    "run": ["-m", "pytest_rageval", "run"],
    "doctor": ["-m", "pytest_rageval", "doctor"],
    "repl": ["-m", "pytest_rageval", "repl"],
    "sweep": ["-m", "pytest_rageval", "sweep", "--grid", "k=1,2"],
    "label": ["-m", "pytest_rageval", "label", "evalcases/cases.jsonl", "--plain"],
    "web": ["-c", WEB],
}
TYPED = {"repl": "Why is it so?\neval 0\nquit\n", "label": "show 1\n/ another question\nq\n"}
"""Lines on standard input."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of two cases, which has its bot in `bot.py`."""
    (tmp_path / "bot.py").write_text(BOT, encoding="utf-8")
    cases = tmp_path / "evalcases" / "cases.jsonl"
    cases.parent.mkdir()
    lines = [{"id": name, "question": f"Why {name}?", "gold": {"supports": [{"rel_path": "a.md"}]}} for name in "ab"]
    cases.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def choose(folder: Path, bot: str) -> None:
    (folder / "rageval.toml").write_text(SETTINGS.format(bot=bot), encoding="utf-8")


def shown_by(folder: Path, verb: str) -> str:
    """What a verb writes to the terminal; it must end in time."""
    started = time.monotonic()
    try:
        ended = python(
            *VERBS[verb],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT},
            input=TYPED.get(verb, ""),
            stdin=None,
            timeout=LONGEST_S,
            errors="backslashreplace",
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"{verb} did not end within {LONGEST_S} s: {late.stdout!r} {late.stderr!r}")
    assert time.monotonic() - started < LONGEST_S
    return ended.stdout + ended.stderr


SLOW = {("pytest", "blocks"), ("run", "blocks"), ("sweep", "blocks"), ("repl", "blocks")}
"""They wait ten seconds each, by the same loop as label."""
TRIED = [(verb, bot) for verb, bot in itertools.product(VERBS, BOTS) if IS_THOROUGH or (verb, bot) not in SLOW]


@pytest.mark.child_process
@pytest.mark.parametrize(("verb", "bot"), TRIED)
def test_no_bot_gets_a_key_or_an_escape_onto_the_terminal(folder: Path, verb: str, bot: str):
    choose(folder, bot)
    shown = shown_by(folder, verb)
    assert CORE not in shown, _around(shown, CORE)
    assert "\x1b]" not in shown, _around(shown, "\x1b]")
    assert "\x1b[2J" not in shown, _around(shown, "\x1b[2J")
    assert "Traceback" not in shown, shown[-3000:]
    assert len(shown) < 400_000
    if bot == "raises":
        assert "RuntimeError" in shown, "what went wrong is said"


@pytest.mark.child_process
@pytest.mark.parametrize(
    ("arguments", "keys", "end"),
    [
        (["repl"], ["Why?\n", "quit\n"], "A: "),
        (["label", "evalcases/cases.jsonl", "--plain"], ["show 1\n", "q\n"], "*** "),
        (["label", "evalcases/cases.jsonl"], ["q"], "said"),
    ],
    ids=["repl", "label by lines", "label screen"],
)
def test_so_it_is_on_a_real_terminal(folder: Path, arguments: list[str], keys: list[str], end: str):
    choose(folder, "prints")
    shown = ""
    with Terminal(folder, "-m", "pytest_rageval", *arguments, **ENVIRONMENT, TERM="xterm-256color") as terminal:
        for key in keys:
            terminal.comes(end, 5)
            shown += terminal.written
            terminal.type(key)
        terminal.ended()
        shown += terminal.written
    assert "said" in shown
    assert CORE not in shown, _around(shown, CORE)
    assert "\x1b]0;owned" not in shown, _around(shown, "\x1b]0;owned")


async def echoes(connection: Connection) -> None:
    """Repeats what came, and steers the terminal, in the names of its members too."""
    told = f"{STEERING} said {connection.request.headers} {connection.request.path} bk-{CORE}-bot"
    await connection.reply(
        200, json.dumps({"answer": told, f"more {told}": [told], "sources": [{"text": told}]}).encode()
    )


async def refuses(connection: Connection) -> None:
    told = f"{STEERING} refused {connection.request.headers} {connection.request.path} bk-{CORE}-bot"
    await connection.reply(401, told.encode(), x_again=f"bk-{CORE}-bot")


@pytest.mark.child_process
@pytest.mark.parametrize("behaviour", [echoes, refuses])
@pytest.mark.parametrize("verb", ["init", "generate", "doctor"])
def test_no_server_gets_a_key_or_an_escape_onto_the_terminal(
    folder: Path, verb: str, behaviour: Callable[[Connection], Awaitable[None]]
):
    (folder / "notes").mkdir()
    note = "# Water\n\n" + "Water boils at 100 degrees at sea level, and lower above it. " * 9
    (folder / "notes" / "a.md").write_text(note, encoding="utf-8")
    with FaultServer(behaviour) as server:
        url = server.url.replace("//", f"//ann:pw-{CORE}-url@") + f"/ask?api_key=qk-{CORE}-query"
        commands = {
            "init": ["init", "--yes", "--target", url],
            "generate": ["generate", "notes", "--llm", f"openai:parrot@{url}"],
            "doctor": ["doctor"],
        }
        (folder / "rageval.toml").write_text(f'target = "{url}"\ntimeout = 1\nretries = 0\n', encoding="utf-8")
        ended = python(
            "-m", "pytest_rageval", *commands[verb], cwd=folder, env={**os.environ, **ENVIRONMENT}, timeout=LONGEST_S
        )
        assert server.requests
    shown = ended.stdout + ended.stderr
    assert CORE not in shown, _around(shown, CORE)
    assert "\x1b]" not in shown, _around(shown, "\x1b]")
    assert "Traceback" not in shown, shown[-3000:]


def _around(text: str, part: str) -> str:
    at = text.find(part)
    return repr(text[max(0, at - 300) : at + 100])


def test_only_the_door_asks_a_target():
    """Nothing but `run/ask.py` and the turns that it takes: what passes by would be neither captured nor masked."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "ask" and _is_target(node.value):
                found.add(str(path.relative_to(PACKAGE)))
    assert found == {"run/ask.py", "targets/in_turns.py"}


def _is_target(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name.lstrip("_").endswith("target")
