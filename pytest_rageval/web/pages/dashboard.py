"""The first page: the last run of each agent and dataset, the current runs, and the newest runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.text import counted
from pytest_rageval.web.jobs.job_status import JobStatus
from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page, path_to
from pytest_rageval.web.run_list import (
    Rows,
    RunFilter,
    TheFolders,
    card_metrics,
    latest_of_series,
    made_from,
    run_choices,
    trends_of,
)
from pytest_rageval.web.site import TheSite
from pytest_rageval.web.versions.version_folder import versions_title

CARDS, NEWEST, MOST_RUNNING = 6, 12, 6

router = APIRouter()


@router.get("/")
def dashboard(
    request: Request, site: TheSite, folders: TheFolders, jobs: TheJobs, agents: Agents, datasets: Datasets
) -> Response:
    rows = folders.rows()
    cards, lines = latest_of_series(rows, CARDS), rows[:NEWEST]
    return page(
        request,
        "dashboard.html",
        cards=cards,
        lines=lines,
        trends=trends_of(rows, [*cards, *lines]),
        card_metrics=card_metrics,
        total=len(rows),
        choices=run_choices(rows),
        agents=len(agents.files.slugs()),
        datasets=len(datasets.files.slugs()),
        running=running_cards(jobs, rows, site.settings.data),
        narrowed=RunFilter(),
    )


@router.get("/running")
def running(request: Request, site: TheSite, folders: TheFolders, jobs: TheJobs) -> Response:
    """Show the current runs, for a script that polls until none is left."""
    return page(request, "running.html", running=running_cards(jobs, folders.rows(), site.settings.data))


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


def running_cards(jobs: Jobs, rows: Rows, data: Path) -> list[RunningCard]:
    """Return a card for each current run: those started here, then others, the newest first."""
    going = list(jobs.going())
    started_here = {status.job.id for status in going}
    others = (
        RunningCard(made_from(run, data), run.source, path_to("runs", run.run_id))
        for run in RunFilter(state="running").of(rows)[:MOST_RUNNING]
        if run.run_id not in started_here
    )
    return [*(_card(status, data) for status in going), *others]


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
