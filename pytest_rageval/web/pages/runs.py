"""The list of all runs: narrowed by a form, paged, two of them to be compared."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from pytest_rageval.web.index.run_queries import RunFilter, run_choices, run_list
from pytest_rageval.web.index.run_rows import RUN_STATES
from pytest_rageval.web.labelling.label_desk import TheDesk
from pytest_rageval.web.opened_runs import TheIndex
from pytest_rageval.web.rendering import page
from pytest_rageval.web.run_lines import lines_of_runs

ROWS = 50

router = APIRouter()

Word = Annotated[str, Query(max_length=400)]


@router.get("/runs")
def runs_page(
    request: Request, index: TheIndex, desk: TheDesk, agent: Word = "", dataset: Word = "", source: Word = "",
    state: Word = "", text: Word = "", number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1,
) -> Response:  # fmt: skip
    progress = index.refresh()
    narrowed = RunFilter(agent, dataset, source, state, text)
    content = index.read(lambda connection: _content(connection, narrowed, number))
    return page(
        request, "runs.html", **content, narrowed=narrowed, progress=progress, states=RUN_STATES,
        problems=index.file.take_problems(), copies=desk.copies.all_open(),
    )  # fmt: skip


def _content(connection: sqlite3.Connection, narrowed: RunFilter, number: int) -> dict[str, Any]:
    listed = run_list(connection, narrowed, number, ROWS)
    pages = max(1, -(-listed.left // ROWS))
    if number > pages:  # of a page beyond the last one, the last
        number, listed = pages, run_list(connection, narrowed, pages, ROWS)
    return {
        "lines": lines_of_runs(connection, listed.runs),
        "left": listed.left,
        "total": listed.total,
        "number": number,
        "pages": pages,
        "first": (number - 1) * ROWS + 1,
        "choices": run_choices(connection),
    }
