"""The pages of many runs: their list, and their metrics over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import SettingsError
from pytest_rageval.render.html.figures import Spark, spark
from pytest_rageval.render.html.first_screen import PREFERRED
from pytest_rageval.runs.history import PastRun
from pytest_rageval.text import change, printable, score_text
from pytest_rageval.views.history import change_words
from pytest_rageval.web.forms import Submitted, read_form
from pytest_rageval.web.pages.jobs import TheJobs
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_folders import TheFolders
from pytest_rageval.web.run_lines import Rows, RunFilter, datasets_run, past_runs, run_choices, trends_of
from pytest_rageval.web.run_rows import RUN_STATES
from pytest_rageval.web.run_shelf import TheShelf
from pytest_rageval.web.site import TheSite

ROWS = 50
ARCHIVED = "archived"
"""The choice of the status filter for archived runs."""
DONE, MOST_UNDONE = "done", 50
"""The key of the session for what was done last with runs, and how many of them can be undone by one button."""

router = APIRouter()

Word = Annotated[str, Query(max_length=400)]


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
    progress, is_archived = folders.refresh(), state == ARCHIVED
    narrowed = RunFilter(agent, dataset, source, "" if is_archived else state, text)
    rows = folders.rows(is_archived=is_archived)
    left = narrowed.of(rows)
    pages = max(1, -(-len(left) // ROWS))
    number = min(number, pages)
    first = (number - 1) * ROWS
    lines = left[first : first + ROWS]
    return page(
        request,
        "runs.html",
        lines=lines,
        trends=trends_of(rows, lines),
        left=len(left),
        total=len(rows),
        number=number,
        pages=pages,
        first=first + 1,
        choices=run_choices(rows),
        narrowed=narrowed._replace(state=state) if is_archived else narrowed,
        progress=progress,
        states=RUN_STATES,
        archived=len(shelf.archived()),
        is_archived=is_archived,
        deleted=shelf.deleted(),
        done=request.session.pop(DONE, None),
    )


class SelectedForm(BaseModel):
    """The selected runs, and what is done with them."""

    run: list[str] = Field(default_factory=list, max_length=1_000)
    action: Literal["compare", "archive", "unarchive", "delete", "restore"]


@router.post("/runs/selected")
def change_selected(request: Request, shelf: TheShelf, submitted: Submitted) -> Response:
    """Compare, archive or delete the selected runs, or undo that; the list then offers the way back."""
    form = read_form(SelectedForm, submitted).model
    if form is None:
        raise HTTPException(400, "This button is none of the list of runs.")
    if form.action == "compare":
        return redirect(f"/compare?{urlencode({'run': form.run}, doseq=True)}")
    if not form.run:
        raise SettingsError("no run is selected: tick the runs first")
    if form.action in ("archive", "unarchive"):
        shelf.archive(form.run, is_archived=form.action == "archive")
    elif form.action == "delete":
        shelf.delete(form.run)
    else:
        shelf.restore(form.run)
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
"""The selectable numbers of runs; the largest only for a single metric, because the page would be too long."""
SHOWN_CHANGES = 3


class TimelineRow(NamedTuple):
    """A run in the table under a chart; `is_other_version` if its cases differ from those of the run before it."""

    run: PastRun
    value: str
    change: str
    changes: str
    is_other_version: bool


class Timeline(NamedTuple):
    """A metric over time: its line, the places of changed configurations and cases, and its table, newest run first."""

    metric: str
    line: Spark | None
    changes: Sequence[float]
    versions: Sequence[float]
    low: str
    high: str
    rows: Sequence[TimelineRow]


@router.get("/history")
def history_page(
    request: Request,
    folders: TheFolders,
    dataset: Word = "",
    agent: Word = "",
    metric: Word = "",
    last: Annotated[int, Query(ge=1, le=LASTS[-1])] = LASTS[0],
) -> Response:
    progress = folders.refresh()
    content = _history_content(folders.rows(), dataset, agent, metric, last)
    return page(
        request, "history.html", **content, agent=agent, metric=metric, last=last, progress=progress, lasts=LASTS
    )


def _history_content(rows: Rows, dataset: str, agent: str, metric: str, last: int) -> dict[str, Any]:
    datasets = datasets_run(rows)
    chosen = dataset or (datasets[0].key if datasets else "")
    runs = past_runs(rows, chosen, agent, last if metric else min(last, LASTS[1])) if chosen else []
    names = sorted({name.partition("@")[0] for run in runs for name, mean in run.metrics.items() if mean is not None})
    shown = [metric] if metric else [PASSING, *[name for name in PREFERRED if name in names][: CHARTS - 1]]
    return {
        "datasets": datasets,
        "dataset": chosen,
        "agents": run_choices(rows).agents,
        "names": [PASSING, *names],
        "timelines": [_timeline(name, runs) for name in shown] if runs else [],
        "count": len(runs),
    }


def _timeline(metric: str, runs: Sequence[PastRun]) -> Timeline:
    values = [_value(run, metric) for run in runs]
    numbers = [value for value in values if value is not None]
    steps = max(len(runs) - 1, 1)
    others = [place for place in range(1, len(runs)) if runs[place].dataset_hash != runs[place - 1].dataset_hash]
    moved = [place for place, run in enumerate(runs) if place and run.changes and place not in others]
    rows = []
    for place, (run, value) in enumerate(zip(runs, values, strict=True)):
        same_cases = [
            earlier
            for before, earlier in zip(runs[:place], values, strict=False)
            if before.dataset_hash == run.dataset_hash
        ]
        rows.append(TimelineRow(run, score_text(value), _change(same_cases, value), _changes(run), place in others))
    low, high = (score_text(end) for end in (min(numbers), max(numbers))) if numbers else ("", "")
    x = [[round(100 * place / steps, 1) for place in places] for places in (moved, others)]
    return Timeline(metric, spark(values), x[0], x[1], low, high, rows[::-1])


def _value(run: PastRun, metric: str) -> float | None:
    if metric == PASSING:
        return run.outcomes["passed"] / run.total if run.total else None
    return run.value(metric) if run.value(metric) is not None else run.value(f"{metric}@k")


def _change(before: Sequence[float | None], value: float | None) -> str:
    """Return the change since the last earlier run of the same cases that has a value."""
    earlier = next((number for number in reversed(before) if number is not None), None)
    return "" if value is None or earlier is None else change(value - earlier)


def _changes(run: PastRun) -> str:
    texts = [*map(change_words, run.changes)]
    more = len(texts) - SHOWN_CHANGES
    return "; ".join(texts[:SHOWN_CHANGES]) + (f"; and {more} more" if more > 0 else "")
