"""The page of a case: the fragment of the report, with links to its neighbours in the list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.cases.drafts import ENDING, add_drafts, answer_draft, drafts_file_of
from pytest_rageval.comparison.case_diff import representative_trial
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.render.html.case_view import case_views, read_case_lines, recorded_case_of
from pytest_rageval.render.html.report_page import KEYS
from pytest_rageval.runs.ratings import (
    LONGEST_NOTE,
    THUMBS,
    Rating,
    Thumb,
    answer_hash,
    rate,
    read_ratings,
)
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import (
    OBSERVATION,
    RESULT,
    RecordKind,
)
from pytest_rageval.runs.records.record_files import index, record_at, record_paths
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable
from pytest_rageval.views.case_content import CaseView
from pytest_rageval.web.forms import Submitted, read_form
from pytest_rageval.web.label_desk import LabelPlace
from pytest_rageval.web.opened_runs import TheRuns
from pytest_rageval.web.pages.run import any_cases
from pytest_rageval.web.pages.run_contexts import CaseLinks, CaseOfRunPage
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_cases import CaseQuery, Filter, Order
from pytest_rageval.web.run_rows import origin_of
from pytest_rageval.web.site import TheSite, UnknownPageError

router = APIRouter()
RATING_KEYS = (("+ -", "good answer, bad answer; again: take it back"), ("w", "write a note; Enter saves it"),
               ("g", "open a draft of the case"))  # fmt: skip
OTHER_DRAFTS = f"evalcases/answers{ENDING}"
"""The drafts file for cases whose own file is unknown or outside the project."""


class CaseKeyConvertor(PathConvertor):
    """Key of a case in a path: any characters, also the line ends that Starlette's `path` leaves out."""

    regex = "(?s:.*)"


register_url_convertor("case_key", CaseKeyConvertor())


@router.get("/runs/{run_id}/cases/{key:case_key}")
def show_case(
    request: Request,
    run_id: str,
    key: str,
    site: TheSite,
    runs: TheRuns,
    q: Filter = "",
    sort: Order = "",
    against: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Show a case of a run, alone or before and after; `against` is the run to compare with."""
    stored = site.stored_run(run_id)
    opened = runs.open(run_id, against) if against else any_cases(runs, stored)
    report = opened.report
    case = opened.case(key)
    if case is None:
        raise UnknownPageError(f"run {run_id} has no case {key!r}")
    shown: CaseView | None
    if report is not None:
        shown = next(case_views(report, [case]), None)
    else:
        registry = registry_of(stored)
        records = read_case_lines(stored, {case.key})[case.key].records
        shown = recorded_case_of(stored, representative_trial(records), registry, site.project().baseline_file).view
    rating, is_rating_old, rating_problem = _rating(stored, case)
    context = CaseOfRunPage(
        run_id=run_id,
        against=against,
        case=case,
        c=shown,
        links=CaseLinks(run_id, case.key, q, sort, against),
        neighbours=opened.neighbours(case.key, CaseQuery(q, sort)),
        head=origin_of(stored.config),
        keys=(*KEYS, *RATING_KEYS),
        rating=rating,
        is_rating_old=is_rating_old,
        rating_problem=rating_problem,
        longest_note=LONGEST_NOTE,
    )
    return page(request, context)


def _rating(run: StoredRun, case: ListedCase) -> tuple[Rating, bool, str]:
    """Return the rating of a case, whether it is of an earlier answer, and why it cannot be read."""
    try:
        rating = read_ratings(run.path).get(case.key, Rating())
    except SettingsError as error:
        return Rating(), False, str(error)
    is_old = not rating.is_blank and not rating.is_of({"trial": case.trial, "answer": case.answer})
    return rating, is_old, ""


class RatingForm(BaseModel):
    """A thumb or a note for the answer of a case; `back` is the address of the page with the form."""

    case: str
    do: Literal["up", "down", "note", "clear"]
    note: Annotated[str, AfterValidator(printable)] = Field("", max_length=LONGEST_NOTE)
    back: str = ""


@router.post("/runs/{run_id}/rating")
def rate_answer(submitted: Submitted, site: TheSite, runs: TheRuns, run_id: str) -> Response:
    """Store a thumb and a note beside the run; the same thumb again takes it back."""
    form = read_form(RatingForm, submitted)
    if form.model is None:
        problem = f"A note has at most {LONGEST_NOTE:,} characters, and a rating a button of its page."
        raise HTTPException(422, problem)
    sent = form.model
    stored = site.stored_run(run_id)
    case = any_cases(runs, stored).case(printable(sent.case))
    if case is None:
        raise UnknownPageError(f"run {run_id} has recorded no case {sent.case!r}")
    before, is_old, problem = _rating(stored, case)
    if problem:
        raise SettingsError(problem)
    thumb = None if is_old else before.thumb
    if sent.do in THUMBS:
        thumb = None if thumb == sent.do else cast("Thumb", sent.do)
    # The answer's hash tells later whether the thumb is still of this answer.
    rating = Rating(thumb, sent.note.strip(), case.trial, answer_hash(case.answer))
    if sent.do == "clear":
        rating = Rating()
    rate(stored.path, case.key, rating)
    own = path_to("runs", run_id, "cases", printable(case.key))
    is_own = sent.back.partition("?")[0] == own  # any other address may lead out of the app
    return redirect(sent.back if is_own else own)


@router.post("/runs/{run_id}/draft")
def save_draft_case(submitted: Submitted, site: TheSite, run_id: str) -> Response:
    """Add a draft to the drafts file of the case, which no run reads, and open it for labelling."""
    project = site.project()
    run = site.stored_run(run_id)
    case = str(submitted.get("case", ""))
    records = _records_by_trial(run, RESULT, case)
    if not records:
        raise UnknownPageError(f"run {run_id} has recorded no case {case!r}")
    record = representative_trial(records)
    line = _records_by_trial(run, OBSERVATION, case).get(record["trial"])
    draft = answer_draft(record, line, run_id)
    if draft is None:
        raise SettingsError(f"run {run_id} keeps no texts (redact): there is no question to draft a case from")
    file = _drafts_file(project.root, drafts_file_of(record))
    # Answers may quote keys, and drafts are meant for the repository.
    add_drafts(project.root / file, [Mask(project.settings.secrets()).value(draft)])
    return redirect(LabelPlace(file=file, case=str(draft["id"])).address)


def _records_by_trial(run: StoredRun, kind: RecordKind, case: str) -> dict[int, Mapping[str, Any]]:
    """Return the records of a case by trial, including those in the journals of crashed workers."""
    places = index(record_paths(run.path, kind.file), kind, keeps=lambda key: key[0] == case)
    return {trial: record_at(place) for (_, trial), place in places.items()}


def _drafts_file(root: Path, written: str) -> str:
    """Return the drafts file that a run names if it is inside the project, else the common one."""
    path = PurePosixPath(written)
    if path.is_absolute() or ".." in path.parts:
        return OTHER_DRAFTS
    is_inside = (root / path).resolve().is_relative_to(root.resolve())  # a link may lead out of the project
    return path.as_posix() if is_inside and (root / path).parent.is_dir() else OTHER_DRAFTS
