"""The page of a case: the fragment of the report, with the cases before and after it in the list it was opened from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.errors import SettingsError
from pytest_rageval.page import sections
from pytest_rageval.page.case_views import case_views
from pytest_rageval.page.report_page import KEYS
from pytest_rageval.text import printable
from pytest_rageval.web.case_list import CaseQuery, case_order
from pytest_rageval.web.opened_runs import OpenedRun, TheRuns
from pytest_rageval.web.pages.run import Filter, Order
from pytest_rageval.web.rendering import page, path_to
from pytest_rageval.web.run_head import head_of_run
from pytest_rageval.web.site import UnknownPageError

View = Literal["case", "compare"]

router = APIRouter()


class CaseLinks(NamedTuple):
    """Where a case page leads: the list, its neighbours in it, its other view, the difference of texts on or off."""

    cases: str
    previous: str | None
    next: str | None
    other_view: str | None
    difference: str
    place: int | None
    of: int


@router.get("/runs/{run_id}/cases/{key:path}")
def show_case(
    request: Request, run_id: str, key: str, runs: TheRuns, q: Filter = "", sort: Order = "", view: View = "case",
    diff: Literal["on", "off"] = "on",
) -> Response:  # fmt: skip
    """A case of a finished run, or the same before and after."""
    opened = runs.open(run_id)
    number = opened.numbers.get(key)
    if number is None:
        raise UnknownPageError(f"run {run_id} has no case {key!r}")
    case = opened.page.cases[number]
    view = view if opened.page.has_both_sides else "case"
    content = next(case_views(opened.page, [case]), None)
    return page(
        request, "case_page.html", page=opened.page, case=case, c=content, view=view, diff=diff,
        links=_links(opened, number, CaseQuery(q, sort), view, diff), head=head_of_run(opened.page.config),
        definitions=_definitions(opened, content), keys=KEYS,
    )  # fmt: skip


def _links(opened: OpenedRun, number: int, query: CaseQuery, view: View, diff: str) -> CaseLinks:
    run_id = opened.page.run_id
    try:
        order: Sequence[int] = case_order(opened, query)
    except SettingsError:  # a filter that means nothing any more: the list says what is wrong with it
        order = ()
    place = next((place for place, each in enumerate(order) if each == number), None)
    asked = {"q": query.q, "sort": query.sort}

    def to(other: int | None, shown: str = view, difference: str = diff) -> str | None:
        if other is None:
            return None
        key = printable(opened.page.cases[other].key)
        chosen = {"view": shown if shown != "case" else None, "diff": difference if difference != "on" else None}
        return path_to("runs", run_id, "cases", key, **asked, **chosen)

    before = order[place - 1] if place else None
    after = order[place + 1] if place is not None and place + 1 < len(order) else None
    return CaseLinks(
        cases=path_to("runs", run_id, **asked) + "#cases",
        previous=to(before),
        next=to(after),
        other_view=to(number, "case" if view == "compare" else "compare") if opened.page.has_both_sides else None,
        difference=to(number, difference="off" if diff == "on" else "on") or "",
        place=None if place is None else place + 1,
        of=len(order),
    )


def _definitions(opened: OpenedRun, content: Mapping[str, Any] | None) -> list[sections.DefinitionText]:
    """Of the metrics that the case names: their names lead there."""
    if content is None:
        return []
    names = {row["metric"].partition("@")[0] for row in content["scores"]}
    return [each for each in opened.content["definitions"] if each.name in names]
