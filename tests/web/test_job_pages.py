"""The page of a job and of a new run: with a script and without one, while the run goes on and after."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PATIENCE_MS, Chromium
from hostile import SCRIPT
from labelling import FILE, label_project
from processes import wait_until
from project import FOUNDING
from web_app import WebApp, an_order, ended, jobs_of, project_with_bot, served, text_of, under_way, until

from pytest_rageval.cases.loading import load_file
from pytest_rageval.web.jobs.job import Job
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore


@pytest.mark.child_process
def test_a_job_is_watched_and_cancelled_without_scripts(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    job = jobs.start(an_order(60, description=SCRIPT))
    with served(tmp_path) as app:
        assert job.id in app.page("/")
        until(jobs, job.id, under_way)
        page = app.page(f"/jobs/{job.id}")
        assert '<meta http-equiv="refresh"' in page
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
        assert re.search(r"running \d+ of 60 cases", text_of(page))
        assert "key in use: ***" in page
        card = app.page("/")
        assert "slow-bot v2 × water v1" in card
        assert card.count('class="run-now"') == 1  # a run of ours and what the index knows of it are one card
        assert f'action="/jobs/{job.id}/cancel"' in card
        assert re.search(r"\d+/60", card)
        assert app.post(f"/jobs/{job.id}/cancel").headers["location"] == f"/jobs/{job.id}"
        until(jobs, job.id, ended)
        page = app.page(f"/jobs/{job.id}")
        assert "hx-trigger" not in page
        assert '<meta http-equiv="refresh"' not in page
        assert "cancelled:" in page
        assert "Finish the run" in page
        assert f'<a href="/jobs/{job.id}">Finish it</a>' in app.page(f"/runs/{job.id}")
        assert "/cancel" not in app.page("/")
        assert app.get("/jobs/nothing").status_code == 404
        assert app.post("/jobs/nothing/cancel").status_code == 404
        assert app.client.post(f"/jobs/{job.id}/resume", data={"x": "1"}).status_code == 403


@pytest.mark.child_process
def test_a_job_that_is_finished_has_nothing_to_resume(tmp_path: Path):
    jobs = project_with_bot(tmp_path, "BOT_SECONDS=0\n")
    job = jobs.start(an_order(1))
    until(jobs, job.id, ended)
    with served(tmp_path) as app:
        response = app.post(f"/jobs/{job.id}/resume")
    assert response.status_code == 409
    assert "nothing to resume" in response.text


@pytest.mark.browser
@pytest.mark.child_process
def test_the_page_follows_a_run_to_its_end_and_then_goes_on_to_it(tmp_path: Path, chromium: Chromium):
    gate = tmp_path / "gate"
    jobs = project_with_bot(tmp_path, f"BOT_SECONDS=0.2\nBOT_GATE={gate}\n")
    job = jobs.start(an_order(12))
    with served(tmp_path) as app, chromium.page(320) as page:
        page.page.goto(f"{app.address}/jobs/{job.id}")
        until(jobs, job.id, under_way)
        page.watch_shifts()
        wait_until(
            lambda: page.page.evaluate("document.querySelector('progress')?.value ?? 0") >= 2, "two answers are shown"
        )
        assert jobs.status(job.id).is_going
        assert page.shifts() == []
        gate.touch()
        page.page.wait_for_url(f"**/runs/{job.id}", timeout=PATIENCE_MS)
        page.page.wait_for_selector("#cases", timeout=PATIENCE_MS)
        assert page.page.evaluate("document.querySelectorAll('#progress').length") == 0
        assert page.problems == []
        assert jobs_of(tmp_path).status(job.id).progress.done == 12


@pytest.mark.parametrize("created", ["yesterday", "2026-11-22T10:00:00", ""])
def test_a_job_whose_file_was_edited_hides_no_other_page(tmp_path: Path, created: str):
    folder = tmp_path / "data/jobs/20261122_100000"
    folder.mkdir(parents=True)
    job = Job(
        id=folder.name, agent="a", agent_version=1, dataset="d", dataset_version=1, source="connector",
        created="2026-11-22T10:00:00+00:00", cases=2, arguments=(),
    )  # fmt: skip
    (folder / "job.json").write_text(json.dumps(job.model_dump() | {"created": created}))
    with served(tmp_path) as app:
        pages = ["/", "/runs", "/running", f"/jobs/{folder.name}"]
        assert [app.get(page).status_code for page in pages] == [200, 200, 200, 409]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """A project with an agent, a dataset, a run that has ended, case files and drafts."""
    root = label_project(tmp_path_factory.mktemp("project")).parents[1]
    jobs = project_with_bot(root, "BOT_SECONDS=0\n")
    job = jobs.start(an_order(2))
    AgentStore(root / "data").save("calculator", Agent(name="Calculator", target="demo"), "", 0)
    cases = load_file(FOUNDING / "one.csv", FOUNDING).cases
    DatasetStore(root / "data").save("sums", DatasetAbout(name="Sums"), cases, "", 0)
    until(jobs, job.id, ended)
    with served(root) as app:
        yield app


def addresses(app: WebApp) -> dict[str, str]:
    (job,) = (path.name for path in (app.settings.data / "jobs").iterdir())
    upload = {"answers": ("answers.csv", (FOUNDING / "uploaded.csv").read_bytes(), "text/csv")}
    chosen = {"agent": "calculator/1", "dataset": "sums/1", "source": "uploaded answers"}
    return {
        "new run": "/new-run", "answers": app.post("/new-run", chosen, files=upload).headers["location"],
        "job": f"/jobs/{job}", "files": "/label",
        "label": f"/label/cases?file={FILE}&case=price&row=1",
        "drafts": "/label/cases?file=evalcases/shop.drafts.jsonl",
    }  # fmt: skip


@pytest.mark.browser
@pytest.mark.child_process
def test_the_run_s_page_is_one_click_away(app: WebApp, chromium: Chromium, tmp_path: Path):
    with chromium.page() as page:
        page.goto(f"{app.address}{addresses(app)['job']}")
        page.page.click("text=Open the run")
        page.page.wait_for_selector(".verdict")
        assert "/runs/" in page.evaluate("location.pathname")


@pytest.mark.browser
@pytest.mark.child_process
def test_another_choice_shows_at_once_what_it_takes(app: WebApp, chromium: Chromium):
    with chromium.page() as page:
        page.goto(f"{app.address}/new-run")
        page.page.fill("#description", "from <b>Monday</b>")
        page.page.focus("#source")
        page.page.select_option("#source", "uploaded answers")
        page.page.wait_for_selector("input[type=file]")
        assert page.page.inner_text("button.first >> nth=-1") == "Look at these answers"
        assert page.evaluate("document.activeElement.id") == "source"
        assert page.page.input_value("#description") == "from <b>Monday</b>"
        address = page.evaluate("location.search")
        assert "source=uploaded" in address
        assert "form_token" not in address
        page.page.reload()
        assert page.page.input_value("#source") == "uploaded answers"
        page.page.select_option("#source", "connector")
        page.page.wait_for_selector("input[type=file]", state="detached")
        assert page.problems == []


@pytest.mark.child_process
def test_a_page_that_watches_a_run_goes_on_to_it_when_it_ends(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    job = jobs.start(an_order(1))
    with served(tmp_path) as app:
        until(jobs, job.id, ended)
        watched = app.get(f"/jobs/{job.id}?follow=true")
        assert (watched.status_code, watched.headers["location"]) == (303, f"/runs/{job.id}")
        by_script = app.get(f"/jobs/{job.id}?follow=true", headers={"HX-Request": "true"})
        assert by_script.headers["hx-redirect"] == f"/runs/{job.id}"
        assert "Open the run" in app.page(f"/jobs/{job.id}"), "its log can still be read"
