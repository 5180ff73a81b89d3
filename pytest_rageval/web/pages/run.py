"""The pages of one run: its head, its cases, its exports, and the comparison of two runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from pytest_rageval.comparison.case_diff import representative_trial
from pytest_rageval.comparison.case_filter import FilterError
from pytest_rageval.errors import SettingsError
from pytest_rageval.export.formats import csv_lines
from pytest_rageval.export.report_json import json_lines
from pytest_rageval.render.html.case_view import RecordedCase, read_case_lines, recorded_case_of
from pytest_rageval.render.html.report_file import FILES
from pytest_rageval.render.html.report_page import KEYS
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable
from pytest_rageval.web.case_list import CasePage, CaseQuery, PagedCases
from pytest_rageval.web.jobs.job import LOG, log_tail
from pytest_rageval.web.jobs.jobs import Jobs
from pytest_rageval.web.opened_runs import BASELINE, OpenedRun, OpenedRuns, TheRuns, run_of
from pytest_rageval.web.pages.jobs import TheJobs, jobs_of
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.results_table import ResultsTable, ShownCell, csv_rows_of, workbook
from pytest_rageval.web.run_folders import TheFolders
from pytest_rageval.web.run_lines import Rows
from pytest_rageval.web.site import TheSite, UnknownPageError
from pytest_rageval.web.versions.version_folder import is_slug

PYTEST = "pytest (unversioned)"


class RunHead(NamedTuple):
    """The line beside a run's id. `agent` and `dataset` are None for a run of pytest."""

    source: str
    agent: MadeFrom | None
    dataset: MadeFrom | None


class MadeFrom(NamedTuple):
    """A version in the configuration of a run. `address` leads to its page; '' if the name is no valid slug."""

    slug: str
    version: int
    address: str


def head_of_run(config: Mapping[str, Any]) -> RunHead:
    """Return the head of a run with this config.json."""
    origin = config.get("origin")
    origin = origin if isinstance(origin, Mapping) else {}
    source = origin.get("source")
    return RunHead(
        source if isinstance(source, str) else PYTEST,
        _version("agents", origin.get("agent"), origin.get("agent_version")),
        _version("datasets", origin.get("dataset"), origin.get("dataset_version")),
    )


def _version(kind: str, name: object, version: object) -> MadeFrom | None:
    if not isinstance(name, str) or not isinstance(version, int):
        return None
    return MadeFrom(name, version, path_to(kind, name, "versions", str(version)) if is_slug(name) else "")


class UnfinishedRun(NamedTuple):
    """The state and problems of an unfinished run, and its files: name, whether it exists, what it holds."""

    state: str
    problems: Sequence[str]
    files: Sequence[tuple[str, bool, str]]


def unfinished_run(run: StoredRun, problems: Sequence[str]) -> UnfinishedRun:
    files = [(name, (run.path / name).is_file(), what) for name, what in FILES.items()]
    return UnfinishedRun(run.state, list(dict.fromkeys(problems)), files)


def unfinished_case(run: StoredRun, key: str, baseline: Path) -> RecordedCase | None:
    """Return a case of an unfinished run, read alone, or None if not recorded; `baseline` is the project's file."""
    lines = read_case_lines(run, {key}).get(key)
    return recorded_case_of(run, representative_trial(lines.records), registry_of(run), baseline) if lines else None


FORMATS = ("csv", "json", "xlsx")
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LONGEST_QUERY = 2_000
UNFINISHED = (("cases", "Cases"), ("files", "Files"))
"""The sections of an unfinished run: their ids and titles."""

router = APIRouter()

Filter = Annotated[str, Query(max_length=LONGEST_QUERY)]
Order = Annotated[str, Query(max_length=200)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, alias="page")]
Menu = Annotated[str | None, Query(max_length=400)]


class Menus:
    """The menus beside the filter line. Each stands for a term, which it adds or replaces, or removes by ANY."""

    def __init__(self, outcome: Menu = None, category: Menu = None, tag: Menu = None) -> None:
        self._chosen = {"outcome": outcome, "category": category, "tag": tag}

    def added_to(self, query: str) -> str:
        """Return the filter with the chosen values."""
        for word, value in self._chosen.items():
            if value:
                rest = re.sub(_TERM_OF.format(word), " ", query).strip()
                quoted = json.dumps(value, ensure_ascii=False) if re.search(r'[\s",]', value) else value
                query = rest if value == ANY else f"{rest} {word}:{quoted}".strip()
        return query


ANY = "*"
NO_MENUS = Menus()
_TERM_OF = r'(?:^|(?<=\s)){}:(?:"(?:[^"\\]|\\.)*"|[^\s"]+)'


class Results(NamedTuple):
    """The table of a page of cases: the columns shown, all columns, the cells by case, and the menus' values."""

    columns: Sequence[str]
    choices: Sequence[str]
    is_usual: bool
    cells: Mapping[str, Sequence[ShownCell]]
    menus: Mapping[str, Sequence[str]]
    chosen: Mapping[str, str]

    def address(self, query: CaseQuery) -> dict[str, object]:
        """Return the parameters of an address that shows the same."""
        number = query.page if query.page > 1 else None
        return {"q": query.q, "sort": query.sort, "page": number, "col": None if self.is_usual else [*self.columns]}


def at_address(response: Response, address: str) -> Response:
    """Let a script show this address for a part of a page that it has asked for."""
    response.headers["HX-Replace-Url"] = address
    return response


MOST_IN_MENU = 100


def results_of(table: ResultsTable, cases: PagedCases, listed: CasePage, chosen: Sequence[str]) -> Results:
    """Return the table of a page of cases."""
    columns = table.columns(chosen)
    every = cases.listed.cases
    found = {
        "outcome": {case.outcome for case in every},
        "category": {case.category for case in every if case.category},
        "tag": {tag for case in every for tag in case.tags},
    }
    values = {word: sorted(names)[:MOST_IN_MENU] for word, names in found.items()}
    query = listed.query.q
    matches = {word: re.search(_TERM_OF.format(word), query) for word in values}
    current = {word: match[0].partition(":")[2].strip('"') for word, match in matches.items() if match}
    try:
        cells = table.rows([case.key for case in listed.rows], columns)
    except (SettingsError, LookupError, TypeError, AttributeError):  # records were edited, or only scores are kept
        cells = {}
    return Results(columns, table.choices, columns == table.usual, cells, values, current)


@router.get("/runs/{run_id}")
def show_run(
    request: Request,
    run_id: str,
    site: TheSite,
    runs: TheRuns,
    jobs: TheJobs,
    q: Filter = "",
    sort: Order = "",
    number: PageNumber = 1,
    menus: Annotated[Menus, Depends(Menus)] = NO_MENUS,
    col: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Show a finished run as its report, and any other run as far as it is recorded."""
    try:
        stored, query = site.stored_run(run_id), CaseQuery(menus.added_to(q), sort, number)
    except UnknownPageError:
        if run_id not in jobs:
            raise
        return redirect(path_to("jobs", run_id))  # the run died before it had a folder
    try:
        if stored.metrics is None:
            return _unfinished_page(request, runs, stored, query, (), col or ())
        opened = runs.open(run_id)
        listed = opened.cases.page(query)
        results = results_of(opened.table, opened.cases, listed, col or ())
    except SettingsError as error:
        return _unfinished_page(request, runs, stored, query, error.problems, col or ())
    content = run_content(opened) | {"listed": listed, "results": results, "log": _log_lines(jobs, stored)}
    content["job"] = run_id if opened.page.metrics["partial"] and run_id in jobs else None
    return at_address(page(request, "run.html", **content), path_to("runs", run_id, **results.address(listed.query)))


def _unfinished_page(
    request: Request,
    runs: OpenedRuns,
    run: StoredRun,
    query: CaseQuery,
    problems: Sequence[str],
    chosen: Sequence[str],
) -> Response:
    """Show an unfinished or unreadable run: its versions, files and recorded cases."""
    recorded: CasePage | None = None
    results: Results | None = None
    more: Sequence[str] = ()
    try:
        cases = runs.recorded(run)
        recorded = cases.page(query)
        results = results_of(ResultsTable(run, cases.metrics), cases, recorded, chosen) if recorded.total else None
    except SettingsError as error:
        more = error.problems
    run_id, jobs = printable(run.run_id), jobs_of(request)
    return page(
        request,
        "unfinished_run.html",
        run=unfinished_run(run, [*problems, *more]),
        listed=recorded,
        results=results,
        log=_log_lines(jobs, run),
        run_id=run_id,
        keys=KEYS,
        about="",
        description=None,
        job=run_id if run.run_id in jobs else None,
        head=head_of_run(run.config) if recorded else None,
        sections=UNFINISHED if recorded and recorded.total else (),
    )


def _log_lines(jobs: Jobs, run: StoredRun) -> list[str]:
    """Return the last lines that a run printed; none if no log was kept."""
    return [printable(line) for line in jobs.log(run.run_id) or log_tail(run.path / LOG)]


def run_content(opened: OpenedRun) -> dict[str, Any]:
    """Return the values that the templates of a run need."""
    head = head_of_run(opened.page.config)
    run_id = printable(run_of(opened).run_id)
    return {
        **opened.content,
        "page": opened.page,
        "head": head,
        "keys": KEYS,
        "run_id": run_id,
        "compare_with": path_to("compare", b=run_id),
        "description": opened.page.metrics.get("description"),
    }


@router.get("/runs/{run_id}/export.{form}")
def export_run(
    run_id: str,
    form: str,
    site: TheSite,
    runs: TheRuns,
    q: Filter = "",
    col: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Return the cases that pass the filter: with columns what the table shows, else everything of each trial."""
    if form not in FORMATS:
        raise UnknownPageError(f"there is no export as {form!r}; there are {', '.join(FORMATS)}")
    stored = site.stored_run(run_id)
    cases, table = cases_and_table(runs, stored)
    keys = matching_keys(cases, q)
    name = "".join(character if character.isascii() and character.isalnum() else "_" for character in run_id)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    if form == "json":
        lines = json_lines(table.narrowed(keys))
        return StreamingResponse(_encoded(lines), media_type="application/json; charset=utf-8", headers=headers)
    columns = table.columns(col or ()) if col or form == "xlsx" else None
    if form == "xlsx":
        return Response(workbook(table.cells(keys, columns or table.usual)), media_type=XLSX, headers=headers)
    source = table.narrowed(keys)
    lines = csv_lines(source) if columns is None else csv_rows_of(table.cells(keys, columns))
    return StreamingResponse(_encoded(lines), media_type="text/csv; charset=utf-8", headers=headers)


def matching_keys(cases: PagedCases, query: str, sort: str = "") -> list[str]:
    """Return the keys of the cases that pass a filter, in order; SettingsError if filter or order is invalid."""
    try:
        return [case.key for case in cases.matching(query, sort)]
    except FilterError as error:
        raise SettingsError(str(error)) from None


def cases_and_table(runs: OpenedRuns, stored: StoredRun) -> tuple[PagedCases, ResultsTable]:
    """Return the cases of a run and the table of its results, finished or not."""
    try:
        if stored.metrics is None:
            raise SettingsError(f"run {stored.run_id} has not ended")
        opened = runs.open(printable(stored.run_id))
    except SettingsError:
        listed = runs.recorded(stored)
        return listed, ResultsTable(stored, listed.metrics)
    return opened.cases, opened.table


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    for line in lines:
        yield f"{line}\n".encode("utf-8", "replace")


CHOICES = 200
"""Maximum number of runs in the list; other runs can be compared by their ids in the address."""


Name = Annotated[str, Query(max_length=400)]


@router.get("/compare")
def compare_page(
    request: Request,
    folders: TheFolders,
    runs: TheRuns,
    a: Name = "",
    b: Name = "",
    run: Annotated[list[str] | None, Query()] = None,
    q: Filter = "",
    sort: Order = "",
    number: PageNumber = 1,
    menus: Annotated[Menus, Depends(Menus)] = NO_MENUS,
    col: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Compare run `a` with the later run `b`, or two selected runs (`run`) in order of their start."""
    folders.refresh()
    rows = folders.rows()
    if run and not (a or b):
        return _compare_selected(request, rows, run)
    if not (a and b):
        return _choice_form(request, rows, a, b)
    try:
        opened = runs.open(b, a)
    except UnknownPageError:
        raise
    except SettingsError as error:
        return _choice_form(request, rows, a, b, str(error))
    listed = opened.cases.page(CaseQuery(menus.added_to(q), sort, number))
    results = results_of(opened.table, opened.cases, listed, col or ())
    shown = page(request, "compare.html", **run_content(opened), listed=listed, results=results, against=a)
    return at_address(shown, path_to("compare", a=a, b=b, **results.address(listed.query)))


def _compare_selected(request: Request, rows: Rows, run_ids: list[str]) -> Response:
    if len(set(run_ids)) != 2:
        first, second = [*run_ids, "", ""][:2]
        return _choice_form(request, rows, first, second, problem=f"{len(set(run_ids))} runs are selected: select two")
    begun = {run.run_id: run.begun for run in rows}
    before, after = sorted(run_ids, key=lambda name: (begun.get(name, ""), name))
    return redirect(path_to("compare", a=before, b=after))


def _choice_form(request: Request, rows: Rows, a: str = "", b: str = "", problem: str = "") -> Response:
    """Render the form that selects two runs."""
    finished = [run for run in rows[:CHOICES] if run.is_finished]
    newest = [run.run_id for run in finished[:2]]
    chosen = {"a": a or (newest[1] if len(newest) > 1 else BASELINE), "b": b or (newest[0] if newest else "")}
    return page(
        request, "compare_choice.html", status=409 if problem else 200, lines=finished, chosen=chosen, problem=problem
    )
