"""The health page: the doctor's lines, the keys that are set, and nothing asked before the button is pressed."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from project import SOME, Project
from web_app import served

from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.web.pages.health import key_states
from pytest_rageval.web.site import WebSettings

KEY = "sk-a-key-that-nobody-must-see"


def test_it_says_what_a_run_needs_and_asks_nothing(project: Project):
    project.cases(SOME)
    project.write("bot.py", "raise SystemExit('the bot was imported')\n")
    with served(project.path) as app:
        page = html.unescape(app.page("/health"))
    assert "Ready to run" in page
    assert "4 cases in 1 file" in page
    assert str(project.path / "data") in page


@pytest.mark.child_process
def test_the_button_looks_at_the_system_in_a_process_of_its_own(project: Project):
    project.cases(SOME)
    project.write("bot.py", "import os\nos.abort()\n")
    with served(project.path) as app:
        broken = app.post("/health")
        assert "rageval doctor told nothing" in broken.text
        project.write("bot.py", "def answer(question):\n    raise SystemExit('asked')\n")
        mended = html.unescape(app.post("/health").text)
    assert "bot:answer: is there; no question was asked" in mended
    assert "as far as can be told" not in mended


def test_what_is_wrong_with_the_configuration_is_said(project: Project):
    project.configure("k = 'five'")
    with served(project.path) as app:
        page = html.unescape(app.page("/health"))
    assert "Not ready to run" in page
    assert "k is 'five'" in page
    assert "Runs from the browser do not need what is missing below." in page


def test_keys_are_named_and_never_shown(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "1")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    env_file = project.write(".env", f"ANTHROPIC_API_KEY={KEY}2\nOWN_SERVICE_KEY='{KEY}3'\n")
    with served(project.path, env_file=env_file) as app:
        page = app.page("/health")
        pages = page + app.get("/").text + app.get("/runs/x").text
    assert KEY not in pages
    assert "OWN_SERVICE_KEY" in page
    states = {state.name: state.where for state in key_states(settings(project.path, env_file))[0]}
    assert states["OPENAI_API_KEY"] == "set in the environment"
    assert states["ANTHROPIC_API_KEY"] == states["OWN_SERVICE_KEY"] == "set in .env"


def test_an_env_file_that_is_wrong_is_said_without_its_values(project: Project):
    env_file = project.write(".env", f"KEY {KEY}\n")
    with served(project.path, env_file=env_file) as app:
        page = app.page("/health")
    assert ".env:1: not NAME=value" in page
    assert KEY not in page


def settings(root: Path, env_file: Path) -> WebSettings:
    return WebSettings(root=root, reports=root / "reports", data=root / "data", env_file=env_file)


@pytest.mark.child_process
def test_the_system_that_is_looked_at_does_not_hear_the_word_for_the_app(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(WEB_TOKEN, "a long enough token")
    project.cases(SOME)
    project.write(
        "bot.py",
        "import os, pathlib\npathlib.Path('heard.txt').write_text(str(os.environ.get('RAGEVAL_WEB_TOKEN')))\n"
        "def answer(question):\n    pass\n",
    )
    with served(project.path) as app:
        app.post("/health")
    assert (project.path / "heard.txt").read_text() == "None"
