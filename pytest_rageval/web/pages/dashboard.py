"""The first page: the last run of each agent and dataset, the current runs, and the newest runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page
from pytest_rageval.web.run_list import (
    Rows,
    RunFilter,
    TheFolders,
    card_metrics,
    latest_of_series,
    run_choices,
    trends_of,
)

CARDS, NEWEST, MOST_RUNNING = 6, 12, 6

router = APIRouter()


@router.get("/")
def dashboard(request: Request, folders: TheFolders, jobs: TheJobs, agents: Agents, datasets: Datasets) -> Response:
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
