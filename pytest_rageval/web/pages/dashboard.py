"""Login and first page: the last run of each agent and dataset, current and newest runs, and two first steps."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from pytest_rageval.cases.loading import load_file
from pytest_rageval.make.scaffold import shipped
from pytest_rageval.model import EvalCase
from pytest_rageval.web.forms import FormState, Submitted
from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_list import (
    Rows,
    RunFilter,
    TheFolders,
    card_metrics,
    latest_of_series,
    run_choices,
    trends_of,
)
from pytest_rageval.web.sessions import TokenCheck
from pytest_rageval.web.versions.agent_store import new_agent
from pytest_rageval.web.versions.dataset_store import DatasetAbout
from pytest_rageval.web.versions.version_folder import NewerVersion, slug_of

CARDS, NEWEST, MOST_RUNNING = 6, 12, 6
NO_TOKEN = FormState[BaseModel]()

router = APIRouter()


@router.get("/")
def dashboard(request: Request, folders: TheFolders, jobs: TheJobs, agents: Agents, datasets: Datasets) -> Response:
    rows = folders.rows()
    cards = latest_of_series(rows, CARDS)
    lines = rows[:NEWEST]
    return page(
        request,
        "dashboard.html",
        cards=cards,
        lines=lines,
        trends=trends_of(rows, [*cards, *lines]),
        card_metrics=card_metrics,
        total=len(rows),
        choices=run_choices(rows),
        agents=len(agents.slugs()),
        datasets=len(datasets.slugs()),
        **running_now(jobs, rows),
        narrowed=RunFilter(),
    )


@router.get("/running")
def running(request: Request, folders: TheFolders, jobs: TheJobs) -> Response:
    """Show the current runs, for a script that polls until none is left."""
    return page(request, "running.html", **running_now(jobs, folders.rows()))


def running_now(jobs: Jobs, rows: Rows) -> dict[str, Any]:
    """Return the current runs that were started here, and the rows of others, the newest first."""
    going = list(jobs.going())
    started_here = {status.job.id for status in going}
    others = [run for run in RunFilter(state="running").of(rows) if run.run_id not in started_here]
    return {"going": going, "others": others[:MOST_RUNNING]}


AGENT, QUESTIONS = "Demo", "Demo questions"
CASE_FILES = ("notes_anchors.jsonl", "reference.csv", "sanity.jsonl")
"""The shipped case files with gold for answers or for retrieved chunks."""


@router.post("/demo/agent")
def make_demo_agent(_: Submitted, store: Agents) -> Response:
    """Save the demo as an agent unless it exists."""
    slug = slug_of(AGENT)
    about = "The small RAG system inside the package: real retrieval over shipped notes, no model, no network."
    with suppress(NewerVersion):
        store.save(slug, new_agent(AGENT, about), "", 0)
    return redirect(path_to("agents", slug))


@router.post("/demo/questions")
def make_demo_questions(_: Submitted, store: Datasets) -> Response:
    """Save the demo's questions as a dataset unless it exists."""
    slug = slug_of(QUESTIONS)
    cases: list[EvalCase] = []
    for name in CASE_FILES:
        path = shipped("evalcases") / name
        cases += load_file(path, path.parent).cases
    about = DatasetAbout(
        name=QUESTIONS,
        description="What the notes of the demo answer, and what they do not.",
        origin=" + ".join(CASE_FILES),
    )
    with suppress(NewerVersion):
        store.save(slug, about, cases, "", 0)
    return redirect(path_to("datasets", slug))


@router.get("/login")
def login_page(request: Request) -> Response:
    return page(request, "login.html", form=NO_TOKEN)


@router.post("/login")
def log_in(request: Request, submitted: Submitted) -> Response:
    """Check the token and start a new session with it, so that a known old one is useless (session fixation)."""
    tokens: TokenCheck = request.app.state.tokens
    if tokens.token is None:
        return redirect("/")
    address = request.client.host if request.client else ""
    if not tokens.accepts(str(submitted.get("token", "")), address):
        wrong = NO_TOKEN.with_problem("token", "This is not the token.")
        return page(request, "login.html", status=403, form=wrong)
    tokens.log_in(request.session)
    return redirect("/")


@router.post("/logout")
def log_out(request: Request) -> Response:
    request.session.clear()
    return redirect("/login")
