"""The first page: the last run of each agent and data set, what runs now, and the newest runs."""

from __future__ import annotations

import sqlite3
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.web.index.run_queries import RunFilter, latest_of_series, run_choices, run_list
from pytest_rageval.web.index_of_site import TheIndex
from pytest_rageval.web.labelling.label_desk import TheDesk
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page
from pytest_rageval.web.run_lines import lines_of_runs, run_cards
from pytest_rageval.web.running_cards import running_cards

CARDS = 6
NEWEST = 12

router = APIRouter()


@router.get("/")
def dashboard(request: Request, index: TheIndex, desk: TheDesk, agents: Agents, datasets: Datasets) -> Response:
    progress = index.refresh()
    content = index.read(_content)
    return page(
        request, "dashboard.html", **content, agents=len(agents.files.slugs()), datasets=len(datasets.files.slugs()),
        running=running_cards(request), progress=progress, narrowed=RunFilter(),
        problems=index.file.take_problems(), copies=desk.copies.all_open(),
    )  # fmt: skip


@router.get("/running")
def running(request: Request, index: TheIndex) -> Response:
    """What runs now, for a script that asks again until nothing does."""
    index.refresh()
    return page(request, "running.html", running=running_cards(request))


@router.get("/indexing")
def indexing(request: Request, index: TheIndex) -> Response:
    """How far the index is; once it is done, a script loads the page that asked anew."""
    progress = index.refresh()
    response = page(request, "indexing.html", progress=progress)
    if progress.is_done:
        response.headers["HX-Refresh"] = "true"
    return response


def _content(connection: sqlite3.Connection) -> dict[str, Any]:
    newest = run_list(connection, RunFilter(), size=NEWEST)
    return {
        "cards": run_cards(connection, latest_of_series(connection, CARDS)),
        "lines": lines_of_runs(connection, newest.runs),
        "total": newest.total,
        "choices": run_choices(connection),
    }
