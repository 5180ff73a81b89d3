"""Login and first page: the last run of each agent and dataset, current and newest runs, and two first steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from pytest_rageval.cases.loading import load_file
from pytest_rageval.make.scaffold import shipped
from pytest_rageval.model import EvalCase
from pytest_rageval.render.html.figures import Spark
from pytest_rageval.web.forms import FormState, Submitted
from pytest_rageval.web.jobs.job import JobStatus
from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.page_context import PageContext
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
from pytest_rageval.web.run_rows import RunRow
from pytest_rageval.web.sessions import TokenCheck
from pytest_rageval.web.versions.agent_store import new_agent
from pytest_rageval.web.versions.dataset_store import DatasetAbout
from pytest_rageval.web.versions.version_folder import NewerVersion, slug_of

CARDS, NEWEST, MOST_RUNNING = 6, 12, 6
NO_TOKEN = FormState[BaseModel]()

router = APIRouter()


@dataclass(frozen=True, kw_only=True)
class RunningPage(PageContext):
    """The current runs."""

    template = "running.html"
    going: Sequence[JobStatus]
    """The runs that were started here, the newest first."""
    others: Rows
    """The runs of a terminal or another machine."""


@dataclass(frozen=True, kw_only=True)
class DashboardPage(PageContext):
    """The first page."""

    template = "dashboard.html"
    cards: Rows
    """The last run of each agent and dataset."""
    lines: Rows
    """The newest runs."""
    trends: Mapping[str, Spark | None]
    """The pass rates of the runs like each one, by its id."""
    card_metrics: Callable[[RunRow], list[tuple[str, float]]]
    """Returns the metrics of a card with their means."""
    total: int
    """The number of all runs."""
    choices: Mapping[str, list[str]]
    """The values that each menu of the filter offers."""
    agents: int
    """The number of agents."""
    datasets: int
    """The number of datasets."""
    going: Sequence[JobStatus]
    """The runs that were started here and have not ended."""
    others: Rows
    """The current runs of a terminal or another machine."""
    narrowed: RunFilter
    """The filter of the list of runs."""


@dataclass(frozen=True, kw_only=True)
class LoginPage(PageContext):
    """The form for the token."""

    template = "login.html"
    form: FormState[BaseModel]
    """The error of a wrong token."""


@router.get("/")
def dashboard(request: Request, folders: TheFolders, jobs: TheJobs, agents: Agents, datasets: Datasets) -> Response:
    rows = folders.rows()
    cards = latest_of_series(rows, CARDS)
    lines = rows[:NEWEST]
    now = running_now(jobs, rows)
    context = DashboardPage(
        cards=cards,
        lines=lines,
        trends=trends_of(rows, [*cards, *lines]),
        card_metrics=card_metrics,
        total=len(rows),
        choices=run_choices(rows),
        agents=len(agents.slugs()),
        datasets=len(datasets.slugs()),
        going=now.going,
        others=now.others,
        narrowed=RunFilter(),
    )
    return page(request, context)


@router.get("/running")
def running(request: Request, folders: TheFolders, jobs: TheJobs) -> Response:
    """Show the current runs, for a script that polls until none is left."""
    return page(request, running_now(jobs, folders.rows()))


def running_now(jobs: Jobs, rows: Rows) -> RunningPage:
    """Return the current runs that were started here, and the rows of others, the newest first."""
    going = list(jobs.going())
    # A run that was started here has a folder too: it would be listed twice.
    started_here = {status.job.id for status in going}
    others = [run for run in RunFilter(state="running").of(rows) if run.run_id not in started_here]
    return RunningPage(going=going, others=others[:MOST_RUNNING])


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
    return page(request, LoginPage(form=NO_TOKEN))


@router.post("/login")
def log_in(request: Request, submitted: Submitted) -> Response:
    """Check the token and start a new session with it, so that a known old one is useless (session fixation)."""
    tokens: TokenCheck = request.app.state.tokens
    if tokens.token is None:
        return redirect("/")
    address = request.client.host if request.client else ""
    if not tokens.accepts(str(submitted.get("token", "")), address):
        wrong = NO_TOKEN.with_problem("token", "This is not the token.")
        return page(request, LoginPage(form=wrong), status=403)
    tokens.log_in(request.session)
    return redirect("/")


@router.post("/logout")
def log_out(request: Request) -> Response:
    request.session.clear()
    return redirect("/login")
