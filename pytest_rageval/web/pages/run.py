"""The pages of one run: its job, its results as far as they are recorded, its exports, and its comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from pytest_rageval.errors import SettingsError
from pytest_rageval.export.calibration_labels import label_lines
from pytest_rageval.export.csv_format import csv_line, csv_lines
from pytest_rageval.export.report_json import json_lines
from pytest_rageval.render.html.report_file import FILES
from pytest_rageval.render.html.variables import variables
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.forms import Submitted
from pytest_rageval.web.jobs.job import LOG, log_tail
from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.opened_runs import BASELINE, OpenedRuns, TheRuns
from pytest_rageval.web.pages.run_contexts import (
    CompareChoicePage,
    ComparePage,
    JobPage,
    RunPage,
    RunSectionsPage,
    UnfinishedRunPage,
)
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.results_table import workbook
from pytest_rageval.web.run_cases import Filter, RunCases, TheQuery
from pytest_rageval.web.run_list import Rows, RunFolders, TheFolders, made_from
from pytest_rageval.web.run_rows import origin_of
from pytest_rageval.web.site import TheSite, UnknownPageError
from pytest_rageval.web.versions.version_folder import is_slug

FORMATS = ("csv", "json", "xlsx", "labels")
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
UNFINISHED = (("cases", "Cases"), ("files", "Files"))
"""The sections of an unfinished run: their ids and titles."""
MOST_VERSIONS = 50
router = APIRouter()
Name = Annotated[str, Query(max_length=400)]


@router.get("/runs/{run_id}")
def show_run(
    request: Request,
    run_id: str,
    site: TheSite,
    runs: TheRuns,
    jobs: TheJobs,
    folders: TheFolders,
    query: TheQuery,
    version: Name = "",
) -> Response:
    """Show a finished run as its report, and any other run as far as it is recorded."""
    try:
        stored = site.stored_run(run_id)
    except UnknownPageError:
        if run_id not in jobs:
            raise
        return redirect(path_to("jobs", run_id))  # the run died before it had a folder
    if version not in ("", run_id):
        return _leave_for(request, path_to("runs", version, **query.asked))
    opened, problems = runs.as_far_as_recorded(stored)
    listed = opened.page(query) if opened else None
    can_go_on = opened is None or opened.is_partial
    log = _log_lines(jobs, stored)
    job = run_id if run_id in jobs and can_go_on else None
    if opened is None or opened.report is None or listed is None:
        head = origin_of(stored.config) if opened else None
        unfinished = UnfinishedRunPage(
            run_id=printable(stored.run_id),
            state=stored.state,
            problems=problems,
            files=[(name, (stored.path / name).is_file(), what) for name, what in FILES.items()],
            listed=listed,
            log=log,
            job=job,
            has_head=opened is not None,
            head=head,
            sections=UNFINISHED if opened and opened.listed.cases else (),
        )
        return page(request, unfinished)
    versions = _versions(folders, run_id)
    fields = _report(opened) | _other_run(folders, run_id, site.settings.data)
    context = RunPage(**fields, listed=listed, agent_versions=versions, log=log, job=job)
    response = page(request, context)
    return _at(response, path_to("runs", run_id, **listed.query.asked))


def _leave_for(request: Request, address: str) -> Response:
    """Return the redirect to another run, which a script loads as a whole page."""
    # A script follows a redirect by itself, and would put the whole page into a part of this one.
    if request.headers.get("hx-request") == "true":
        return Response(headers={"HX-Redirect": address})
    return redirect(address)


def _at(response: Response, address: str) -> Response:
    """Let a script show this address for a part of a page that it has asked for."""
    response.headers["HX-Replace-Url"] = address
    return response


def _versions(folders: RunFolders, run_id: str) -> list[tuple[str, str]]:
    """Return the last complete run of each version of the agent, on the same dataset."""
    rows = folders.rows()
    own = next((row for row in rows if row.run_id == run_id), None)
    if own is None or own.agent is None or own.agent_version is None:
        return []
    found = {own.agent_version: own.run_id}
    for row in rows:
        if row.is_complete and row.agent_version and (row.agent, row.dataset) == (own.agent, own.dataset):
            # Newest first: the first run of each version is its last.
            found.setdefault(row.agent_version, row.run_id)
    return [(found[version], f"v{version}") for version in sorted(found, reverse=True)[:MOST_VERSIONS]]


def _other_run(folders: RunFolders, run_id: str, data: Path) -> dict[str, str]:
    """Return the link that compares a run with the newest other one of the same dataset; empty without one."""
    rows = folders.rows()
    own = next((row for row in rows if row.run_id == run_id), None)
    if own is None or own.dataset is None:
        return {}
    for row in rows:
        if row.is_complete and row.dataset == own.dataset and row.run_id != run_id:
            words = f"compare with {made_from(row, data)}"
            return {"compare_with": path_to("compare", a=row.run_id, b=run_id), "compare_words": words}
    return {}


def _log_lines(jobs: Jobs, run: StoredRun) -> list[str]:
    """Return the last lines that a run printed; none if no log was kept."""
    return [printable(line) for line in jobs.log(run.run_id) or log_tail(run.path / LOG)]


def _report(opened: RunCases, against: str = "", *, has_sections: bool | None = None) -> dict[str, Any]:
    """Return the fields of a `ReportInBrowser`, by itself or against a chosen other run.

    has_sections  whether the sections are on the page; None to leave them out of a large run
    """
    report = opened.report
    assert report is not None  # because it has ended
    run_id = printable(opened.run.run_id)
    if has_sections is None:
        has_sections = not opened.are_sections_late
    head = origin_of(report.config)
    audit = ""
    if head.dataset and is_slug(head.dataset):
        audit = path_to("datasets", head.dataset, "versions", str(head.dataset_version), "audit")
    return variables(opened.start) | {
        "run_id": run_id,
        "head": head,
        "description": report.metrics.get("description"),
        "against": against,
        "audit": audit,
        "compare_with": path_to("compare", b=run_id),
        "parts": opened.sections if has_sections else None,
        "sections_at": None if has_sections else path_to("runs", run_id, "sections", against=against),
    }


@router.get("/runs/{run_id}/sections")
def show_sections(request: Request, run_id: str, site: TheSite, runs: TheRuns, against: Name = "") -> Response:
    """Show the sections of a finished run: a script puts them below the cases of a large one."""
    opened = runs.open(printable(site.stored_run(run_id).run_id), against or None)
    return page(request, RunSectionsPage(**_report(opened, against, has_sections=True)))


@router.get("/runs/{run_id}/export.{form}")
def export_run(
    run_id: str,
    form: str,
    site: TheSite,
    runs: TheRuns,
    q: Filter = "",
    col: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Return the cases that pass the filter: the chosen columns, else all of each trial."""
    if form not in FORMATS:
        raise UnknownPageError(f"there is no export as {form!r}; there are {', '.join(FORMATS)}")
    opened = any_cases(runs, site.stored_run(run_id))
    keys = opened.keys(q)
    table = opened.table
    # A name of a folder may hold quotes or line ends, which would end the header.
    name = re.sub("[^0-9A-Za-z]", "_", run_id)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    if form == "json":
        lines = json_lines(table.narrowed(keys))
        return StreamingResponse(_encoded(lines), media_type="application/json; charset=utf-8", headers=headers)
    if form == "xlsx":
        cells = table.cells(keys, table.columns(col or ()))
        return Response(workbook(cells), media_type=XLSX, headers=headers)
    if form == "labels":
        headers = {"Content-Disposition": f'attachment; filename="{name}.labels.jsonl"'}
        lines = label_lines(table.narrowed(keys))
        return StreamingResponse(_encoded(lines), media_type="application/jsonl; charset=utf-8", headers=headers)
    lines = csv_lines(table.narrowed(keys))
    if col:
        lines = map(csv_line, table.cells(keys, table.columns(col)))
    return StreamingResponse(_encoded(lines), media_type="text/csv; charset=utf-8", headers=headers)


def any_cases(runs: OpenedRuns, stored: StoredRun) -> RunCases:
    """Return the cases of a run, finished or not, or raise SettingsError if none can be read."""
    opened, problems = runs.as_far_as_recorded(stored)
    if opened is None:
        raise SettingsError(*problems)
    return opened


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    for line in lines:
        # A lone surrogate of a system's answer must not break off the file.
        yield f"{line}\n".encode("utf-8", "replace")


CHOICES = 200
"""Maximum number of runs in the list; other runs can be compared by their ids in the address."""


@router.get("/compare")
def compare_page(
    request: Request,
    folders: TheFolders,
    runs: TheRuns,
    query: TheQuery,
    a: Name = "",
    b: Name = "",
    run: Annotated[list[str] | None, Query()] = None,
    version: Name = "",
) -> Response:
    """Compare run `a` with the later run `b`, or two selected runs (`run`) in order of their start."""
    rows = folders.rows()
    if version not in ("", b):
        return _leave_for(request, path_to("compare", a=a, b=version, **query.asked))
    if run and not (a or b):
        return _compare_selected(request, rows, [*dict.fromkeys(run)])
    if not (a and b):
        return _choice_form(request, rows, a, b)
    try:
        opened = runs.open(b, a)
    except UnknownPageError:
        raise
    except SettingsError as error:
        return _choice_form(request, rows, a, b, str(error))
    listed = opened.page(query)
    context = ComparePage(**_report(opened, a), listed=listed, agent_versions=_versions(folders, b))
    return _at(page(request, context), path_to("compare", a=a, b=b, **listed.query.asked))


def _compare_selected(request: Request, rows: Rows, run_ids: list[str]) -> Response:
    if len(run_ids) != 2:
        first, second, *_ = [*run_ids, "", ""]
        return _choice_form(request, rows, first, second, f"{len(run_ids)} runs are selected: select two")
    begun = {run.run_id: run.begun for run in rows}
    # Boxes are ticked in any order.
    before, after = sorted(run_ids, key=lambda name: (begun.get(name, ""), name))
    return redirect(path_to("compare", a=before, b=after))


def _choice_form(request: Request, rows: Rows, a: str = "", b: str = "", problem: str = "") -> Response:
    """Render the form that selects two runs."""
    finished = [run for run in rows[:CHOICES] if run.past is not None]
    newest, before, *_ = [*(run.run_id for run in finished[:2]), "", ""]
    chosen = {"a": a or before or BASELINE, "b": b or newest}
    status = 409 if problem else 200
    return page(request, CompareChoicePage(lines=finished, chosen=chosen, problem=problem), status=status)


@router.get("/jobs/{job_id}")
def show_job(request: Request, jobs: TheJobs, job_id: str, *, follow: Annotated[bool, Query()] = False) -> Response:
    """Show one job: what it runs, its progress and its log. A script that polls gets the changing part alone.

    follow  goes on to the run once it has come to its end: asked by a page that watched the job go on
    """
    job_status = jobs.status(job_id)
    if follow and job_status.state == "finished" and job_status.has_run:
        return _leave_for(request, path_to("runs", job_id))
    return page(request, JobPage(job_status=job_status, log=jobs.log(job_id)))


@router.post("/jobs/{job_id}/cancel")
def cancel_job(_: Submitted, jobs: TheJobs, job_id: str) -> Response:
    jobs.cancel(job_id)
    return redirect(path_to("jobs", job_id))


@router.post("/jobs/{job_id}/resume")
def resume_job(_: Submitted, jobs: TheJobs, job_id: str) -> Response:
    """Finish a stopped or killed run."""
    jobs.resume(job_id)
    return redirect(path_to("jobs", job_id))
