"""The page of a run: first screen, cases, sections; and the run as a file for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from pytest_rageval.errors import SettingsError
from pytest_rageval.export.export_source import look_through
from pytest_rageval.export.report_json import json_lines
from pytest_rageval.export.spreadsheet import csv_lines
from pytest_rageval.render.html.report_page import KEYS
from pytest_rageval.runs.disk.reader import OBSERVATIONS, StoredRun
from pytest_rageval.runs.disk.resume import journals
from pytest_rageval.text import printable
from pytest_rageval.web.case_list import CaseList, CasePage, CaseQuery
from pytest_rageval.web.index.run_index import RunIndex
from pytest_rageval.web.index_of_site import TheIndex
from pytest_rageval.web.jobs.job_log import LOG, log_tail
from pytest_rageval.web.jobs.jobs import Jobs
from pytest_rageval.web.opened_runs import OpenedRun, TheRuns, run_of
from pytest_rageval.web.pages.jobs import TheJobs, jobs_of
from pytest_rageval.web.rendering import page, path_to, see
from pytest_rageval.web.run_head import head_of_run, unfinished_run
from pytest_rageval.web.site import Site, TheSite, UnknownPageError

FORMATS = {
    "csv": (csv_lines, "text/csv; charset=utf-8"),
    "json": (json_lines, "application/json; charset=utf-8"),
}
LONGEST_QUERY = 2_000
UNFINISHED = (("cases", "Cases"), ("files", "Files"))
"""Sections of a run that has not ended: their ids and titles."""

router = APIRouter()

Filter = Annotated[str, Query(max_length=LONGEST_QUERY)]
Order = Annotated[str, Query(max_length=200)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, alias="page")]


@router.get("/runs/{run_id}")
def show_run(
    request: Request, run_id: str, site: TheSite, runs: TheRuns, index: TheIndex, jobs: TheJobs, q: Filter = "",
    sort: Order = "", number: PageNumber = 1,
) -> Response:  # fmt: skip
    """A finished run as its report shows it; of any other what there is of it."""
    try:
        stored, query = site.stored_run(run_id), CaseQuery(q, sort, number)
    except UnknownPageError:
        if run_id not in jobs:
            raise
        return see(path_to("jobs", run_id))  # it died before it had a folder
    try:
        if stored.metrics is None:
            return _unfinished(request, site, stored, index, query, ())
        opened = runs.open(run_id)
        listed = CaseList(index, stored, site.project()).page(query)
    except SettingsError as error:
        return _unfinished(request, site, stored, index, query, error.problems)
    job = run_id if opened.page.metrics["partial"] and run_id in jobs else None
    return page(request, "run.html", **run_content(opened), listed=listed, log=_log(jobs, stored), job=job)


def _unfinished(
    request: Request, site: Site, run: StoredRun, index: RunIndex, query: CaseQuery, problems: Sequence[str]
) -> Response:
    """A run that goes on, was stopped, or cannot be read: what it is made from, its files, the cases it recorded."""
    recorded, more = _cases_of_unfinished(site, run, index, query)
    run_id, jobs = printable(run.run_id), jobs_of(request)
    return page(
        request, "unfinished_run.html", run=unfinished_run(run, [*problems, *more]), listed=recorded,
        log=_log(jobs, run), run_id=run_id, keys=KEYS, about="",
        job=run_id if run.run_id in jobs else None, head=head_of_run(run.config) if recorded else None,
        sections=UNFINISHED if recorded and recorded.total else (),
    )  # fmt: skip


def _log(jobs: Jobs, run: StoredRun) -> list[str]:
    """The last lines of what a run printed; none where nothing kept them."""
    return [printable(line) for line in jobs.log(run.run_id) or log_tail(run.path / LOG)]


def run_content(opened: OpenedRun) -> dict[str, Any]:
    """What the templates of a run show, whoever includes them."""
    head = head_of_run(opened.page.config)
    run_id = printable(run_of(opened).run_id)
    return {
        **opened.content, "page": opened.page, "head": head, "keys": KEYS, "run_id": run_id,
        "compare_with": path_to("compare", b=run_id),
    }  # fmt: skip


def _cases_of_unfinished(
    site: Site, run: StoredRun, index: RunIndex, query: CaseQuery
) -> tuple[CasePage | None, tuple[str, ...]]:
    """The recorded cases of a run that is not whole, as far as they can be read."""
    try:
        return CaseList(index, run, site.project()).page(query), ()
    except SettingsError as error:
        return None, error.problems


@router.get("/runs/{run_id}/export.{form}")
def export_run(run_id: str, form: str, site: TheSite) -> Response:
    """The run as CSV or JSON, each case and trial with texts, scores and explanations, in full where it keeps them."""
    if form not in FORMATS:
        raise UnknownPageError(f"there is no export as {form!r}; there are {' and '.join(FORMATS)}")
    stored = site.stored_run(run_id)
    has_observations = (stored.path / OBSERVATIONS).is_file() or bool(journals(stored.path, OBSERVATIONS))
    source = look_through(stored, full_text=has_observations)
    lines, kind = FORMATS[form]
    name = "".join(character if character.isascii() and character.isalnum() else "_" for character in run_id)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(_encoded(lines(source)), media_type=kind, headers=headers)


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    for line in lines:
        yield f"{line}\n".encode("utf-8", "replace")
