"""The pages of pairwise comparisons: start one of two runs, watch it, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.providers import JUDGING
from pytest_rageval.render.html.pairwise_page import PairwiseParts, pairwise_parts
from pytest_rageval.web.forms import OneLine, Submitted, read_form
from pytest_rageval.web.jobs.pairwise_jobs import PairwiseStatus, ThePairwise
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.run import Name
from pytest_rageval.web.pages.usual_judge import WORDS_ALONE, usual_judge, with_own_key
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import TheSite

router = APIRouter()
ADDRESS = ("compare", "pairwise")
LARGEST_COST = 1_000_000.0


class PairwiseForm(BaseModel):
    """Two runs, the judge's spec, and the dollars after which nothing more is asked."""

    a: OneLine
    b: OneLine
    judge: OneLine = ""
    max_cost: Annotated[float | None, BeforeValidator(lambda written: None if written == "" else written)] = Field(
        None, gt=0, le=LARGEST_COST
    )


@dataclass(frozen=True, kw_only=True)
class PairwiseStartPage(PageContext):
    """The form that starts a pairwise comparison of two runs."""

    template = "pairwise_start.html"
    a: str
    """The id of run A."""
    b: str
    """The id of run B."""
    judge: str
    """The spec of the judge as typed, else of the usual one; blank if that is no model."""
    reason: str
    """Why the usual judge is the one, or what to name."""
    models: Sequence[str]
    """Specs of models to choose from."""
    max_cost: str
    """The limit of cost as typed."""
    problems: Sequence[str]
    """What was wrong with the submitted form."""
    earlier: Sequence[PairwiseStatus]
    """The comparisons of these runs that were started before."""


@dataclass(frozen=True, kw_only=True)
class PairwiseWaitPage(PageContext):
    """A pairwise comparison that has no result, or not yet."""

    template = "pairwise_wait.html"
    status: PairwiseStatus
    """Its status, with its log."""


@dataclass(frozen=True, kw_only=True)
class PairwiseResultPage(PageContext):
    """The result of a pairwise comparison."""

    template = "pairwise_result.html"
    status: PairwiseStatus
    """What was compared."""
    parts: PairwiseParts
    """The figures, and the clearest wins and losses."""


@router.get("/compare/pairwise")
def pairwise_start(request: Request, site: TheSite, pairwise: ThePairwise, a: Name = "", b: Name = "") -> Response:
    """Show the form for two runs, and what was compared of them before."""
    if not (a and b):
        return redirect(path_to("compare", a=a, b=b))
    # A page of a run that is gone says so now, not after the form was filled in.
    site.stored_run(a)
    site.stored_run(b)
    return page(request, _start_page(site, pairwise, {"a": a, "b": b}))


def _start_page(
    site: TheSite, pairwise: ThePairwise, typed: Mapping[str, Any], problems: Sequence[str] = ()
) -> PairwiseStartPage:
    usual = usual_judge(site)
    judge = usual.spec
    reason = usual.reason
    if judge == WORDS_ALONE:
        judge = ""
        reason = "Words alone compare no answers: name a model, or a server of yours as openai:MODEL@http://HOST."
    offered: list[str] = []
    for row in JUDGING.values():
        if row.title:
            offered += [f"{row.kind}:{model}" for model in row.models]
    return PairwiseStartPage(
        a=typed["a"],
        b=typed["b"],
        judge=typed.get("judge") or judge,
        reason=reason,
        models=offered,
        max_cost=typed.get("max_cost", ""),
        problems=problems,
        earlier=pairwise.of_runs(typed["a"], typed["b"]),
    )


@router.post("/compare/pairwise")
def start_pairwise(request: Request, site: TheSite, pairwise: ThePairwise, submitted: Submitted) -> Response:
    """Start a comparison; show the form again with what is wrong."""
    form = read_form(PairwiseForm, submitted)
    if not (form.values.get("a") and form.values.get("b")):
        raise HTTPException(400, "This form names no two runs: begin at the comparison of two runs.")
    problems = [f"{name}: {problem}" for name, found in form.errors.items() for problem in found]
    if form.model is not None:
        try:
            site.stored_run(form.model.a)
            site.stored_run(form.model.b)
            if not form.model.judge.strip():
                raise SettingsError("judge: name a model, such as openai:MODEL or ollama:MODEL")
            judge = with_own_key(site, form.model.judge.strip())
            order = pairwise.start(form.model.a, form.model.b, judge, form.model.max_cost)
            return redirect(path_to(*ADDRESS, order.id))
        except RagevalError as error:
            problems = list(error.problems)
    return page(request, _start_page(site, pairwise, form.values, problems), status=422)


@router.get("/compare/pairwise/{name}")
def pairwise_page(request: Request, pairwise: ThePairwise, name: str) -> Response:
    """Show the result of a comparison, or how far it is."""
    status = pairwise.status(name)
    if status.state != "finished":
        return page(request, PairwiseWaitPage(status=status))
    return page(request, PairwiseResultPage(status=status, parts=pairwise_parts(pairwise.result(name))))


@router.post("/compare/pairwise/{name}/cancel")
def cancel_pairwise(pairwise: ThePairwise, name: str) -> Response:
    pairwise.cancel(name)
    return redirect(path_to(*ADDRESS, name))
