"""The first page: the last run of each agent and dataset, the current runs, and the newest runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.text import counted
from pytest_rageval.web.jobs.job_status import JobStatus
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.pages.jobs import jobs_of
from pytest_rageval.web.rendering import page, path_to
from pytest_rageval.web.run_folders import TheFolders
from pytest_rageval.web.run_lines import (
    Rows,
    RunFilter,
    card_metrics,
    latest_of_series,
    made_from,
    run_choices,
    trends_of,
)
from pytest_rageval.web.site import site_of
from pytest_rageval.web.versions.version_folder import versions_title

CARDS = 6
NEWEST = 12

router = APIRouter()
MOST_RUNNING = 6


@router.get("/")
def dashboard(request: Request, folders: TheFolders, agents: Agents, datasets: Datasets) -> Response:
    progress = folders.refresh()
    rows = folders.rows()
    return page(
        request,
        "dashboard.html",
        cards=(cards := latest_of_series(rows, CARDS)),
        lines=rows[:NEWEST],
        trends=trends_of(rows, [*cards, *rows[:NEWEST]]),
        card_metrics=card_metrics,
        total=len(rows),
        choices=run_choices(rows),
        agents=len(agents.files.slugs()),
        datasets=len(datasets.files.slugs()),
        running=running_cards(request, rows),
        progress=progress,
        narrowed=RunFilter(),
    )


@router.get("/running")
def running(request: Request, folders: TheFolders) -> Response:
    """Show the current runs, for a script that polls until none is left."""
    folders.refresh()
    return page(request, "running.html", running=running_cards(request, folders.rows()))


@router.get("/indexing")
def indexing(request: Request, folders: TheFolders) -> Response:
    """Show how many run folders are read. Once all are, the script reloads its page."""
    progress = folders.refresh()
    response = page(request, "indexing.html", progress=progress)
    if progress.is_done:
        response.headers["HX-Refresh"] = "true"
    return response


class RunningCard(NamedTuple):
    """A run in progress: its versions, its page and its progress.

    done, total  cases; None if unknown, for example for a run of pytest
    notes        short facts, such as `2 errors` or `about 40 s left`
    cancel       address of the form that cancels it; None if this app cannot
    """

    title: str
    source: str
    address: str
    done: int | None = None
    total: int | None = None
    notes: tuple[str, ...] = ()
    cancel: str | None = None


def running_cards(request: Request, rows: Rows) -> list[RunningCard]:
    """Return a card for each current run: those started here, then others, the newest first."""
    jobs, data = list(jobs_of(request).going()), site_of(request).settings.data
    started_here = {job.job.id for job in jobs}
    others = (
        RunningCard(made_from(run, data), run.source, path_to("runs", run.run_id))
        for run in RunFilter(state="running").of(rows)[:MOST_RUNNING]
        if run.run_id not in started_here
    )
    return [*(_card(status, data) for status in jobs), *others]


def _card(status: JobStatus, data: Path) -> RunningCard:
    """Return the card of a job."""
    job, progress = status.job, status.progress
    facts = (
        None if status.state == "running" else status.state,
        counted(progress.errors, "error"),
        progress.rate_in_words,
        progress.time_left_in_words,
        progress.cost_in_words,
    )
    cancel = None if status.state == "stopping" else path_to("jobs", job.id, "cancel")
    notes = tuple(fact for fact in facts if fact)
    title = versions_title(data, (job.agent, job.agent_version), (job.dataset, job.dataset_version))
    return RunningCard(title, job.source, path_to("jobs", job.id), progress.done, progress.total, notes, cancel)
