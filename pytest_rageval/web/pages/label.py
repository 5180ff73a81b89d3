"""The label pages: mark chunks as golds case by case with the terminal's keys, of a file or of a dataset's version."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.web.forms import Submitted, read_form
from pytest_rageval.web.label_desk import (
    LabelDesk,
    LabelPlace,
    OpenLabelling,
    TheDesk,
    label_files,
)
from pytest_rageval.web.label_systems import DEMO, PROJECT
from pytest_rageval.web.label_view import LabelForm, LabelView, action_of, label_view, words_of
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.datasets import Datasets, TheVersionPages
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import TheSite, UnknownPageError
from pytest_rageval.web.versions.dataset_store import DatasetVersion
from pytest_rageval.web.versions.version_folder import version_choice

POOL_WITHIN_S = 1.5
"""Seconds that a page waits for the chunks of its case; after that it appears without them and polls."""
MARK_WITHIN_S = 20.0
"""Seconds that a mark waits for the chunks."""
CLOSED = "This file was finished or read again in another window. Nothing was marked: open it again."

router = APIRouter()


@dataclass(frozen=True, kw_only=True)
class LabelFilesPage(PageContext):
    """The files and datasets that can be labelled."""

    template = "label_files.html"
    files: Sequence[tuple[str, bool]]
    """The case files, and whether they hold drafts."""
    target: str | None
    """The project's system; None without one."""
    notes: str | None
    """The folder of the project's notes; None without one."""
    datasets: Sequence[DatasetVersion]
    """The newest version of each dataset."""


@dataclass(frozen=True, kw_only=True)
class LabelPage(PageContext):
    """One case with its chunks."""

    template = "label.html"
    view: LabelView
    """The case, its chunks and the lines of the selected one, as they are shown."""
    session: LabelSession
    """The labelling session."""
    place: LabelPlace
    """The place in the session that is shown."""
    seen: str
    """A hash of the case and its chunks, by which a form of an older page is refused."""
    message: str
    """What the last action did; '' for nothing to say."""
    is_waiting: bool
    """The systems are still being asked."""
    is_aside: bool
    """The labels go into another file, since this one was changed meanwhile."""
    shows_scores: bool
    """The scores of chunks are shown."""
    back: str
    """The address of the list that the case is of."""


@router.get("/label")
def label_files_page(request: Request, site: TheSite, store: Datasets) -> Response:
    """Show the files and datasets that can be labelled."""
    project = site.project()
    files = [(name, name.endswith(ENDING)) for name in label_files(project)]
    datasets, _ = store.newest_versions()
    context = LabelFilesPage(
        files=files,
        target=project.settings.target,
        notes=project.settings.notes,
        datasets=datasets,
    )
    return page(request, context)


class LabelQuery(LabelPlace):
    """The address of a label page; `scores` shows the scores of the chunks."""

    scores: bool = True


@router.get("/label/cases")
def label_page(
    request: Request,
    site: TheSite,
    desk: TheDesk,
    pages: TheVersionPages,
    store: Datasets,
    place: Annotated[LabelQuery, Query()],
) -> Response:
    """Show one case with its chunks.

    If a system cannot be queried for chunks of a dataset, show its page with the problem: another system can be chosen
    there.
    """
    try:
        labelling = _open(site, desk, place)
    except SettingsError as error:
        if not place.dataset or isinstance(error, UnknownPageError):
            raise
        return pages.render(store.newest(place.dataset), status=409, problems=error.problems)
    _wait_for_pool(labelling, place, POOL_WITHIN_S)
    if labelling.is_closed:
        # Finished or read again in another window: what was waited for is cancelled, and would never come.
        labelling = _open(site, desk, place)
    return _render(request, labelling, place, shows_scores=place.scores)


@router.post("/label/cases")
def mark(request: Request, site: TheSite, desk: TheDesk, submitted: Submitted) -> Response:
    """Apply a button's action, unless the case changed in another window since the page was made."""
    form = read_form(LabelForm, submitted).model
    action = None if form is None else action_of(form)
    if form is None or action is None:
        raise HTTPException(400, "This button is none of the label page.")
    labelling = _open(site, desk, form)
    _wait_for_pool(labelling, form, MARK_WITHIN_S)  # a session that was just opened has no chunks yet
    with labelling.lock:
        if labelling.is_closed:
            raise HTTPException(409, CLOSED)
        _move_to(labelling, form)
        # A mark is for what its page showed: rows may stand elsewhere by now.
        if form.seen != labelling.seen:
            theirs = "This case was marked or changed elsewhere meanwhile; nothing was overwritten. So it is now."
            problem = f"{theirs} Yours was: {words_of(form)}; press it again if it is still right."
            return _render(request, labelling, form, status=409, problem=problem)
        labelling.act(action)
        return redirect(labelling.current_place(form).address)


@router.post("/label/anew")
def reopen(desk: TheDesk, submitted: Submitted) -> Response:
    """Read a file again after another program changed it."""
    place = LabelPlace(
        file=str(submitted.get("file", "")),
        dataset=str(submitted.get("dataset", "")),
        case=str(submitted.get("case", "")),
    )
    desk.close(place.file, place.dataset)
    return redirect(place.address)


def _open(site: TheSite, desk: LabelDesk, place: LabelPlace) -> OpenLabelling:
    project = site.project()
    if not place.dataset and place.file not in label_files(project):
        raise HTTPException(404, f"There is no case file {place.file!r} in this project.")
    return desk.open(project, place)


def _wait_for_pool(labelling: OpenLabelling, place: LabelPlace, seconds: float) -> None:
    """Wait for the chunks of a case, without the lock of the session."""
    with labelling.lock:
        _move_to(labelling, place)
        future = labelling.session.waits_for
    # Outside of the lock, so that marks of other windows need not wait for the system.
    if future is not None:
        wait([future], seconds)


def _move_to(labelling: OpenLabelling, place: LabelPlace) -> None:
    try:
        labelling.move_to(place)
    except CaseError as error:
        raise HTTPException(404, str(error)) from None


def _render(
    request: Request,
    labelling: OpenLabelling,
    place: LabelPlace,
    *,
    status: int = 200,
    problem: str = "",
    shows_scores: bool = True,
) -> Response:
    with labelling.lock:
        _move_to(labelling, place)
        session = labelling.session
        is_waiting = session.waits_for is not None
        message = problem or session.message
        session.message = ""
        context = LabelPage(
            view=label_view(session, hides_scores=not shows_scores),
            session=session,
            place=labelling.current_place(place),
            seen=labelling.seen,
            message=message,
            is_waiting=is_waiting,
            is_aside=labelling.is_aside,
            shows_scores=shows_scores,
            back=path_to("datasets", place.dataset) if place.dataset else path_to("label"),
        )
        return page(request, context, status=status)


# ── the open version of a dataset ─────────────────────────────────────────────────────────────────────────────


MOST_SYSTEMS = 8
"""Maximum number of systems per case: each retrieves 20 chunks."""


def _system(written: str) -> str:
    if written not in (PROJECT, DEMO) and version_choice(written) is None:
        raise ValueError("names no system; choose one of the list")
    return written


class BeginLabelsForm(BaseModel):
    """The systems that retrieve the chunks (without any, only the notes are searched), and the version shown."""

    systems: list[Annotated[str, AfterValidator(_system)]] = Field(default_factory=list, max_length=MOST_SYSTEMS)
    version: int = Field(ge=1)


@router.post("/datasets/{slug}/label")
def begin_labelling(
    pages: TheVersionPages, desk: TheDesk, store: Datasets, submitted: Submitted, slug: str
) -> Response:
    """Open the next version for labels, or go on with the open one, with chunks from the chosen systems."""
    form = read_form(BeginLabelsForm, submitted)
    if form.model is None:
        problems: list[str] = []
        for name, errors in form.errors.items():
            problems += [f"{name}: {error}" for error in errors]
        return pages.render(store.newest(slug), problems=problems, status=422)
    store.open_next(slug, form.model.version)
    desk.choose(slug, form.model.systems)
    return redirect(LabelPlace(dataset=slug).address)


@router.post("/datasets/{slug}/label/finish")
def finish_labelling(desk: TheDesk, store: Datasets, _: Submitted, slug: str) -> Response:
    """Close the open version."""
    store.last(slug)
    desk.close(dataset=slug)
    store.close(slug)
    return redirect(path_to("datasets", slug))


@router.post("/datasets/{slug}/label/discard")
def discard_labels(desk: TheDesk, store: Datasets, _: Submitted, slug: str) -> Response:
    """Remove the open version; the others stay."""
    store.last(slug)
    desk.close(dataset=slug)
    store.discard_open(slug)
    return redirect(path_to("datasets", slug))
