"""The page of two agents: what each answered to the same questions, and which cases got better or worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from pytest_rageval.errors import SettingsError
from pytest_rageval.text import printable
from pytest_rageval.web.opened_runs import OpenedRuns, TheRuns
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.run import Name, any_cases
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_cases import RunCases
from pytest_rageval.web.run_list import Rows, TheFolders
from pytest_rageval.web.run_rows import RunRow
from pytest_rageval.web.side_by_side import DIRECTIONS, MOST_MOVED, Direction, PairedPage, PairedTexts, SideBySide
from pytest_rageval.web.site import Site, TheSite
from pytest_rageval.web.versions.version_folder import version_name

router = APIRouter()
ADDRESS = ("compare", "answers")
MOST_RIVALS = 20


@dataclass(frozen=True, kw_only=True)
class CompareAnswersPage(PageContext):
    """Two agents: their answers to the same questions."""

    template = "compare_answers.html"
    a: str
    """The id of run A."""
    b: str
    """The id of run B."""
    names: tuple[str, str]
    """The names of both agents with their versions."""
    runs: tuple[RunRow | None, RunRow | None]
    """Both runs as lists show them; None for one that no list has."""
    compared: SideBySide
    """The cases of both runs."""
    shown: PairedPage
    """The cases of this page."""
    texts: Mapping[str, PairedTexts]
    """The texts of these cases, by key."""
    show: Direction | None
    """The filter; None for all cases."""
    directions: Mapping[Direction, str]
    """The filters, with their meanings."""
    most_moved: int
    """The number of moved metrics of a case that are shown."""


@router.get("/compare/answers")
def compare_answers(
    request: Request,
    site: TheSite,
    runs: TheRuns,
    folders: TheFolders,
    a: Name = "",
    b: Name = "",
    show: Direction | None = None,
    run: Annotated[list[str] | None, Query()] = None,
    number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1,
) -> Response:
    """Show the answers of two runs side by side; two selected runs (`run`) in order of their start."""
    rows = {row.run_id: row for row in folders.rows()}
    if run and not (a or b):
        selected = [*dict.fromkeys(run)]
        if len(selected) != 2:
            raise SettingsError(f"{len(selected)} runs are selected: select two")
        begun = {name: row.begun for name, row in rows.items()}
        # Boxes are ticked in any order; the earlier run is read as the one before.
        a, b = sorted(selected, key=lambda name: (begun.get(name, ""), name))
        return redirect(path_to(*ADDRESS, a=a, b=b))
    if not (a and b):
        return redirect(path_to("compare", a=a, b=b))
    compared = SideBySide(_opened(site, runs, a), _opened(site, runs, b))
    shown = compared.page(show, number)
    name_a = _agent_name(site, rows.get(a), a)
    name_b = _agent_name(site, rows.get(b), b)
    context = CompareAnswersPage(
        a=a,
        b=b,
        names=(name_a, name_b),
        runs=(rows.get(a), rows.get(b)),
        compared=compared,
        shown=shown,
        texts=compared.texts(shown.rows),
        show=show,
        directions=DIRECTIONS,
        most_moved=MOST_MOVED,
    )
    return page(request, context)


def _opened(site: Site, runs: OpenedRuns, run_id: str) -> RunCases:
    return any_cases(runs, site.stored_run(run_id))


def _agent_name(site: Site, row: RunRow | None, run_id: str) -> str:
    """Return `Shop bot v4`; for a run without an agent its description, else its id."""
    if row is None:
        return printable(run_id)
    if row.agent:
        return f"{version_name(site.settings.data, 'agents', row.agent)} v{row.agent_version}"
    return row.description or row.run_id


def rivals(rows: Rows, agent: str, version: int) -> list[tuple[RunRow, RunRow]]:
    """Return the last complete run of each other agent version on a dataset of this one, and this one's run there."""
    own: dict[str, RunRow] = {}
    others: dict[tuple[str, int | None, str], RunRow] = {}
    for row in rows:
        if not (row.is_complete and row.agent and row.dataset):
            continue
        if (row.agent, row.agent_version) == (agent, version):
            # Rows come newest first, so the first one of each is the last run.
            own.setdefault(row.dataset, row)
        else:
            others.setdefault((row.agent, row.agent_version, row.dataset), row)
    found = [(row, own[row.dataset]) for row in others.values() if row.dataset in own]
    return found[:MOST_RIVALS]
