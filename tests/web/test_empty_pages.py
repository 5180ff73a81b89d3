"""Someone who begins: empty pages offer the next step, and the health page says what a run lacks."""

from __future__ import annotations

import html

import pytest
from project import SOME, Project
from web_app import WebApp, confirm, served, upload

from pytest_rageval.web.keys import key_states
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore


def text_of(app: WebApp, path: str) -> str:
    return html.unescape(app.page(path))


def test_each_empty_page_offers_the_demo_with_one_button(app: WebApp):
    for path in ("/", "/agents", "/new-run", "/health"):
        assert 'action="/demo/agent"' in app.page(path), path
    for path in ("/", "/datasets", "/new-run", "/health"):
        assert 'action="/demo/questions"' in app.page(path), path
    assert "The same as a command: <code>rageval demo run</code>" in app.page("/")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/agents", ['href="/agents/new"', "cp rageval.toml {data}/agents/shop-bot/v1.toml"]),
        ("/datasets", ['href="/datasets/new"', "{data}/datasets/products/v1.jsonl"]),
        ("/new-run", ["Take the demo system", "rageval run"]),
        *((path, ["No runs yet", "rageval run"]) for path in ("/", "/runs", "/compare", "/history")),
    ],
)
def test_an_empty_list_is_an_instruction(app: WebApp, path: str, words: list[str]):
    page = text_of(app, path)
    assert [word for word in words if word.format(data=app.settings.data) not in page] == []


def test_the_steps_that_are_done_are_ticked_and_lead_on(web_app: WebApp):
    agent = web_app.post("/demo/agent")
    assert agent.headers["location"] == "/agents/demo"
    page = text_of(web_app, "/")
    assert "✔ An agent" in page
    assert "✔ A dataset" not in page
    assert web_app.post("/demo/questions").headers["location"] == "/datasets/demo-questions"
    page = text_of(web_app, "/")
    assert "✔ A dataset" in page
    assert page.count('href="/new-run"') == 2
    assert "Ready to run</strong>: 1 agent, 1 dataset" in text_of(web_app, "/health")
    assert "judge lexical compares words, which is rough: nothing is paid" in text_of(web_app, "/new-run")


def test_the_demo_becomes_versions_like_any_other_and_what_is_there_stays(web_app: WebApp):
    data = web_app.settings.data
    for _ in range(2):
        assert web_app.post("/demo/agent").status_code == web_app.post("/demo/questions").status_code == 303
    agents, datasets = AgentStore(data), DatasetStore(data)
    assert agents.numbers("demo") == datasets.numbers("demo-questions") == [1]
    agent, version = agents.newest("demo"), datasets.newest("demo-questions")
    assert (agent.problem, version.problem) == (None, None)
    assert agent.agent.target == "demo"
    assert agent.agent.thresholds == {"reference_match": 0.7, "faithfulness": 0.7}
    assert version.cases == 72
    assert len({case.id for case in datasets.cases("demo-questions", 1)}) == 72


def test_a_folder_without_a_python_project_is_not_told_to_write_one(app: WebApp):
    page = text_of(app, "/health")
    assert "write rageval.toml, with target = …" in page
    assert "pyproject" not in page


def test_questions_without_references_are_said_before_they_fail_a_run(web_app: WebApp):
    web_app.post("/demo/agent")
    confirm(web_app, upload(web_app, ("q.csv", b"question\nWhy?\n")), name="Bare")
    confirm(web_app, upload(web_app, ("r.csv", b"question,reference\nWhy?,So.\n")), name="Answered")
    words = "no case of Bare v1 has a reference answer: the threshold of reference_match would look at nothing"
    assert words in text_of(web_app, "/new-run?agent=demo&dataset=bare")
    assert "has a reference answer" not in text_of(web_app, "/new-run?agent=demo&dataset=answered")


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
    assert "bot:answer: SystemExit: asked" in mended
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
    env_file = project.write(".env", f"ANTHROPIC_API_KEY={KEY}2\nOWN_SERVICE_KEY='{KEY}3'\n")
    with served(project.path, env_file=env_file) as app:
        page = app.page("/health")
        pages = page + app.get("/").text + app.get("/runs/x").text
    assert KEY not in pages
    assert "OWN_SERVICE_KEY" in page
    states = {state.name: state.where for state in key_states(env_file)[0]}
    assert states["OPENAI_API_KEY"] == "set in the environment"
    assert states["ANTHROPIC_API_KEY"] == states["OWN_SERVICE_KEY"] == "set in .env"


def test_an_env_file_that_is_wrong_is_said_without_its_values(project: Project):
    env_file = project.write(".env", f"KEY {KEY}\n")
    with served(project.path, env_file=env_file) as app:
        page = app.page("/health")
    assert ".env:1: not NAME=value" in page
    assert KEY not in page
