"""Someone who has nothing yet: each empty page offers the step that comes next, and the demo to begin with."""

from __future__ import annotations

import html
import time

import pytest
from processes import PATIENCE_S
from web_app import WebApp, confirm, upload

from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore


def text_of(app: WebApp, path: str) -> str:
    return html.unescape(app.page(path))


def test_each_empty_page_offers_the_demo_with_one_button(web_app: WebApp):
    for path in ("/", "/agents", "/new-run", "/health"):
        assert 'action="/demo/agent"' in web_app.page(path), path
    for path in ("/", "/datasets", "/new-run", "/health"):
        assert 'action="/demo/questions"' in web_app.page(path), path
    assert "The same as a command: <code>rageval demo run</code>" in web_app.page("/")


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
    assert "nobody is asked, nothing is paid" in text_of(web_app, "/new-run")


def test_the_demo_becomes_versions_like_any_other_and_what_is_there_stays(web_app: WebApp):
    data = web_app.settings.data
    for _ in range(2):
        assert web_app.post("/demo/agent").status_code == web_app.post("/demo/questions").status_code == 303
    agents, datasets = AgentStore(data), DatasetStore(data)
    assert agents.files.numbers("demo") == datasets.files.numbers("demo-questions") == [1]
    agent, version = agents.newest("demo"), datasets.newest("demo-questions")
    assert (agent.problem, version.problem) == (None, None)
    assert agent.agent.target == "demo"
    assert agent.agent.thresholds == {"reference_match": 0.7, "faithfulness": 0.7}
    assert version.cases == 72
    assert len({case.id for case in datasets.cases("demo-questions", 1)}) == 72


def test_a_folder_without_a_python_project_is_not_told_to_write_one(web_app: WebApp):
    page = text_of(web_app, "/health")
    assert "write rageval.toml, with target = …" in page
    assert "pyproject" not in page


def test_questions_without_references_are_said_before_they_fail_a_run(web_app: WebApp):
    web_app.post("/demo/agent")
    confirm(web_app, upload(web_app, ("q.csv", b"question\nWhy?\n")), name="Bare")
    confirm(web_app, upload(web_app, ("r.csv", b"question,reference\nWhy?,So.\n")), name="Answered")
    words = "no case of Bare v1 has a reference answer: the threshold of reference_match would look at nothing"
    assert words in text_of(web_app, "/new-run?agent=demo&dataset=bare")
    assert "has a reference answer" not in text_of(web_app, "/new-run?agent=demo&dataset=answered")


@pytest.mark.child_process
def test_a_run_of_the_demo_says_which_versions_it_is_of_and_what_one_can_do_next(web_app: WebApp):
    web_app.post("/demo/agent")
    web_app.post("/demo/questions")
    fields = {"agent": "demo/1", "dataset": "demo-questions/1", "source": "connector", "description": ""}
    job = web_app.post("/new-run", fields).headers["location"]
    deadline = time.monotonic() + PATIENCE_S
    while "Open the run" not in (page := text_of(web_app, job)):
        assert time.monotonic() < deadline, page
        time.sleep(0.3)
    assert "■</span> ended</span>" in page
    assert '<p class="sentence">Failing:' in page
    run_id = job.rpartition("/")[2]
    page = text_of(web_app, f"/runs/{run_id}")
    assert '<a href="/agents/demo/versions/1">' in page
    assert '<a href="/datasets/demo-questions/versions/1">' in page
    assert f'nothing to compare with yet: <a href="/compare?b={run_id}">choose a run to compare with</a>' in page
    assert "update-baseline" not in page.partition('id="log"')[0]
    assert '<a class="metric" href="#def-reference_match">' in page.partition('class="flips"')[0]
    case = text_of(web_app, f"/runs/{run_id}/cases/evalcases/demo-questions.jsonl::paraphrase-thirst")
    assert "rageval explain" not in case
    assert "pytest evalcases" not in case
