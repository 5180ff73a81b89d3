"""The pages of many runs: their list, and their metrics over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import SettingsError
from pytest_rageval.render.html.figures import Chart, Spark, time_chart
from pytest_rageval.render.html.first_screen import PREFERRED
from pytest_rageval.runs.history import PastRun
from pytest_rageval.text import printable
from pytest_rageval.views.history import runs_table
from pytest_rageval.views.parts import FigureTable
from pytest_rageval.web.forms import Submitted, read_form
from pytest_rageval.web.jobs.jobs import TheJobs
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_list import (
    DatasetRuns,
    Rows,
    RunFilter,
    TheFolders,
    datasets_run,
    past_runs,
    run_choices,
    trends_of,
)
from pytest_rageval.web.run_rows import RUN_STATES
from pytest_rageval.web.run_shelf import TheShelf
from pytest_rageval.web.site import TheSite

ROWS = 50
ARCHIVED = "archived"
"""The choice of the status filter for archived runs."""
DONE, MOST_UNDONE = "done", 50
"""The session's key for what was done last, and how many runs one button can undo."""

router = APIRouter()

Word = Annotated[str, Query(max_length=400)]


@dataclass(frozen=True, kw_only=True)
class RunsPage(PageContext):
    """One page of the list of runs."""

    template = "runs.html"
    lines: Rows
    """The runs of this page."""
    trends: Mapping[str, Spark | None]
    """The pass rates of the runs like each one, by its id."""
    left: int
    """The number of runs that the filter finds."""
    total: int
    """The number of all runs of the list."""
    number: int
    """The number of this page, from 1."""
    pages: int
    """The number of pages."""
    first: int
    """The position of the first run of this page, from 1."""
    choices: Mapping[str, list[str]]
    """The values that each menu of the filter offers."""
    narrowed: RunFilter
    """The filter."""
    states: Mapping[str, str]
    """The states of runs, with their meanings."""
    archived: int
    """The number of archived runs."""
    is_archived: bool
    """The archived runs are shown."""
    deleted: Sequence[str]
    """The ids of deleted runs that can be restored."""
    done: Mapping[str, Any] | None
    """The last action and its runs, which can be undone; None without one."""


@router.get("/runs")
def runs_page(
    request: Request,
    folders: TheFolders,
    shelf: TheShelf,
    agent: Word = "",
    dataset: Word = "",
    source: Word = "",
    state: Word = "",
    text: Word = "",
    number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1,
) -> Response:
    """Show everything that was started, whoever started it: running, finished, partial, failed, archived."""
    is_archived = state == ARCHIVED
    narrowed = RunFilter(agent, dataset, source, "" if is_archived else state, text)
    rows = folders.rows(is_archived=is_archived)
    left = narrowed.of(rows)
    pages = max(1, math.ceil(len(left) / ROWS))
    number = min(number, pages)
    first = (number - 1) * ROWS
    lines = left[first : first + ROWS]
    context = RunsPage(
        lines=lines,
        trends=trends_of(rows, lines),
        left=len(left),
        total=len(rows),
        number=number,
        pages=pages,
        first=first + 1,
        choices=run_choices(rows),
        narrowed=narrowed._replace(state=state),
        states=RUN_STATES,
        archived=len(shelf.archived()),
        is_archived=is_archived,
        deleted=shelf.deleted(),
        # Shown once: a later visit of the list has done nothing.
        done=request.session.pop(DONE, None),
    )
    return page(request, context)


class SelectedForm(BaseModel):
    """The selected runs, and what is done with them."""

    run: list[str] = Field(default_factory=list, max_length=1_000)
    action: Literal["compare", "answers", "archive", "unarchive", "delete", "restore"]


@router.post("/runs/selected")
def change_selected(request: Request, shelf: TheShelf, submitted: Submitted) -> Response:
    """Compare, archive or delete the selected runs, or undo that; the list then offers the way back."""
    form = read_form(SelectedForm, submitted).model
    if form is None:
        raise HTTPException(400, "This button is none of the list of runs.")
    if form.action == "compare":
        return redirect(f"/compare?{urlencode({'run': form.run}, doseq=True)}")
    if form.action == "answers":
        return redirect(f"/compare/answers?{urlencode({'run': form.run}, doseq=True)}")
    if not form.run:
        raise SettingsError("no run is selected: tick the runs first")
    if form.action in ("archive", "unarchive"):
        shelf.archive(form.run, is_archived=form.action == "archive")
    elif form.action == "delete":
        shelf.delete(form.run)
    else:
        shelf.restore(form.run)
    # Bounded, since the session is a cookie.
    request.session[DONE] = {"action": form.action, "runs": form.run[:MOST_UNDONE]}
    return redirect("/runs")


class DescriptionForm(BaseModel):
    description: Annotated[str, AfterValidator(printable)] = Field("", max_length=500)


@router.post("/runs/{run_id}/description")
def describe_run(site: TheSite, jobs: TheJobs, shelf: TheShelf, submitted: Submitted, run_id: str) -> Response:
    """Change the description of a run."""
    form = read_form(DescriptionForm, submitted)
    if form.model is None:
        raise HTTPException(422, f"The description {form.errors['description'][0]}.")
    if run_id not in jobs:
        site.stored_run(run_id)  # raises unless there is one
    shelf.describe(run_id, form.model.description.strip())
    return redirect(path_to("runs", run_id))


PASSING = "pass rate"
CHARTS = 6
LASTS = (20, 50, 200)
"""The selectable numbers of runs; the largest for a single metric only."""


@dataclass(frozen=True, kw_only=True)
class HistoryPage(PageContext):
    """Metrics over time."""

    template = "history.html"
    datasets: Sequence[DatasetRuns]
    """The datasets that can be chosen."""
    dataset: str
    """The key of the chosen one; '' without runs."""
    agents: Sequence[str]
    """The agents that can be chosen."""
    agent: str
    """The chosen one; '' for all."""
    names: Sequence[str]
    """The metrics that can be chosen."""
    metric: str
    """The chosen one; '' for those most looked at."""
    charts: Sequence[tuple[str, Chart | None]]
    """A chart for each shown metric; None if fewer than two runs have a value."""
    table: FigureTable | None
    """The runs as a table; None without runs."""
    links: Mapping[str, str]
    """The address of each run, by id."""
    are_of_other_cases: bool
    """The cases changed between some of the runs."""
    count: int
    """The number of runs."""
    last: int
    """The number of runs that is chosen."""
    lasts: Sequence[int]
    """The numbers of runs that can be chosen."""


@router.get("/history")
def history_page(
    request: Request,
    folders: TheFolders,
    dataset: Word = "",
    agent: Word = "",
    metric: Word = "",
    last: Annotated[int, Query(ge=1, le=LASTS[-1])] = LASTS[0],
) -> Response:
    rows = folders.rows()
    datasets = datasets_run(rows)
    chosen = dataset
    if not chosen and datasets:
        chosen = datasets[0].key
    most = last if metric else min(last, LASTS[1])
    runs = past_runs(rows, chosen, agent, most) if chosen else []
    names = _measured(runs)
    if metric:
        shown = [metric]
    else:
        preferred = [name for name in PREFERRED if name in names]
        shown = [PASSING, *preferred[: CHARTS - 1]]
    changed = [
        place for place, (before, after) in enumerate(pairwise(runs), 1) if before.dataset_hash != after.dataset_hash
    ]
    table = None
    if runs:
        table = runs_table(runs, [name for name in shown if name != PASSING])
    context = HistoryPage(
        datasets=datasets,
        dataset=chosen,
        agents=run_choices(rows)["agent"],
        names=[PASSING, *names],
        charts=_charts(runs, shown, changed),
        table=table,
        links={run.run_id: path_to("runs", run.run_id) for run in runs},
        are_of_other_cases=bool(changed),
        count=len(runs),
        agent=agent,
        metric=metric,
        last=last,
        lasts=LASTS,
    )
    return page(request, context)


def _measured(runs: Sequence[PastRun]) -> list[str]:
    """Return the metrics, without their cut-offs, that have a mean in any of the runs."""
    names = set()
    for run in runs:
        names |= {name.partition("@")[0] for name, mean in run.metrics.items() if mean is not None}
    return sorted(names)


def _charts(runs: Sequence[PastRun], shown: Sequence[str], changed: Sequence[int]) -> list[tuple[str, Chart | None]]:
    """Return a chart for each of these metrics; `changed` are the places of runs of other cases than the one before."""
    if not runs:
        return []
    dates = [run.timestamp[5:10] for run in runs]
    charts: list[tuple[str, Chart | None]] = []
    for name in shown:
        chart = time_chart([_value(run, name) for run in runs], dates, marked=changed)
        if chart is not None:
            chart = chart._replace(dashed="other cases")
        charts.append((name, chart))
    return charts


def _value(run: PastRun, metric: str) -> float | None:
    if metric == PASSING:
        return run.outcomes["passed"] / run.total if run.total else None
    value = run.value(metric)
    # A metric with a cut-off is recorded by it; `@k` follows it through runs with another k.
    return run.value(f"{metric}@k") if value is None else value
