"""Two runs side by side: the sections of a comparison's report, with its cases filtered and paged by the server."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from pytest_rageval.errors import SettingsError
from pytest_rageval.web.case_list import CaseList, CaseQuery
from pytest_rageval.web.index.run_queries import RunFilter, run_list, runs_by_id
from pytest_rageval.web.opened_runs import BASELINE, TheIndex, TheRuns
from pytest_rageval.web.pages.run import Filter, Order, PageNumber, run_content
from pytest_rageval.web.rendering import page, path_to, see
from pytest_rageval.web.run_lines import lines_of_runs
from pytest_rageval.web.site import TheSite, UnknownPageError

CHOICES = 200
"""Runs that can be chosen from a list; any other by its id in the address."""

router = APIRouter()

Name = Annotated[str, Query(max_length=400)]


@router.get("/compare")
def compare_page(
    request: Request, site: TheSite, index: TheIndex, runs: TheRuns, a: Name = "", b: Name = "",
    run: Annotated[list[str] | None, Query()] = None, q: Filter = "", sort: Order = "", number: PageNumber = 1,
) -> Response:  # fmt: skip
    """Run `a` before and `b` after; two of a list (`run`) in the order in which they were begun."""
    index.refresh()
    if run and not (a or b):
        return _of_list(request, index, run)
    if not (a and b):
        return _choice(request, index, a, b)
    try:
        opened = runs.open(b, a)
    except UnknownPageError:
        raise
    except SettingsError as error:
        return _choice(request, index, a, b, str(error))
    listed = CaseList(index, site.stored_run(b), site.project(), opened.page).page(CaseQuery(q, sort, number))
    return page(request, "compare.html", **run_content(opened), listed=listed, against=a)


def _of_list(request: Request, index: TheIndex, run_ids: list[str]) -> Response:
    if len(set(run_ids)) != 2:
        first, second = [*run_ids, "", ""][:2]
        return _choice(request, index, first, second, problem=f"{len(set(run_ids))} runs are selected: select two")
    rows = index.read(lambda connection: runs_by_id(connection, run_ids))
    before, after = sorted(run_ids, key=lambda name: (rows[name].begun if name in rows else "", name))
    return see(path_to("compare", a=before, b=after))


def _choice(request: Request, index: TheIndex, a: str = "", b: str = "", problem: str = "") -> Response:
    """The form in which two runs are chosen."""
    listed = index.read(
        lambda connection: lines_of_runs(connection, run_list(connection, RunFilter(), size=CHOICES).runs)
    )  # fmt: skip
    finished = [line for line in listed if line.run.is_finished]
    newest = [line.run.run_id for line in finished[:2]]
    chosen = {"a": a or (newest[1] if len(newest) > 1 else BASELINE), "b": b or (newest[0] if newest else "")}
    return page(
        request, "compare_choice.html", status=409 if problem else 200, lines=finished, chosen=chosen, problem=problem
    )  # fmt: skip
