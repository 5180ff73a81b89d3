"""Pages of new runs, jobs and labels in a real browser: nobody is kept out, in no width and no scheme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Chromium
from labelling import FILE, label_project
from project import FOUNDING
from web_app import WebApp, an_order, ended, project_with_bot, served, until

from pytest_rageval.cases import load_file
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore

pytestmark = [pytest.mark.browser, pytest.mark.child_process]
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """A project with an agent, a dataset, a run that has ended, case files and drafts."""
    root = label_project(tmp_path_factory.mktemp("project")).parents[1]
    jobs = project_with_bot(root, "BOT_SECONDS=0\n")
    job = jobs.start(an_order(2, warnings=("gpt-x judges itself",)))
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


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_nothing_serious_stands_in_anybody_s_way(app: WebApp, chromium: Chromium, scheme: str, width: int):
    found: dict[str, object] = {}
    with chromium.page(width, 800, color_scheme=scheme) as page:
        for name, address in addresses(app).items():
            page.goto(f"{app.address}{address}")
            if "/label/cases" in address:
                page.page.wait_for_selector("#label:not([hx-trigger])")
            violations = chromium.call(Axe().run, page.page._target).response["violations"]
            serious = [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in violations if rule["impact"] in SERIOUS]
            too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
            if serious or too_wide:
                found[name] = serious or "wider than the window"
        assert found == {}
        assert page.problems == []


def test_pages_are_small(app: WebApp):
    sizes = {name: len(app.get(address).content) for name, address in addresses(app).items()}
    assert max(sizes.values()) <= 150_000, sizes


def test_the_run_s_page_is_one_click_away(app: WebApp, chromium: Chromium, tmp_path: Path):
    with chromium.page() as page:
        page.goto(f"{app.address}{addresses(app)['job']}")
        page.page.click("text=Open the run")
        page.page.wait_for_selector(".verdict")
        assert "/runs/" in page.evaluate("location.pathname")


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
