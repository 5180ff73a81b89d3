"""The pages of a dataset's working copy: begin, label, save as the next version, or discard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from pytest_rageval.cases.marks import Marks
from pytest_rageval.errors import RagevalError
from pytest_rageval.io.expected import Expects
from pytest_rageval.web.forms.form_state import FormState, Note, Submitted, read_form
from pytest_rageval.web.labelling.label_desk import DEMO, PROJECT, LabelPlace, TheDesk, offered_systems
from pytest_rageval.web.labelling.working_copy import WorkingCopy
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import MOST_SHOWN, Datasets
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import TheSite
from pytest_rageval.web.versions.dataset_store import DatasetVersion
from pytest_rageval.web.versions.version_folder import NewerVersion, version_choice

MOST_SYSTEMS = 8
"""Maximum number of systems per case: each retrieves 20 chunks."""
router = APIRouter()


def _system(written: str) -> str:
    if written not in (PROJECT, DEMO) and version_choice(written) is None:
        raise ValueError("names no system; choose one of the list")
    return written


SystemName = Annotated[str, AfterValidator(_system), Expects("one of the list")]


class SystemsForm(BaseModel):
    """The systems that retrieve the chunks; without any, only the notes are searched."""

    systems: list[SystemName] = Field(default_factory=list, max_length=MOST_SYSTEMS)


class BeginForm(SystemsForm):
    """The form of a new working copy of `version`, which the page showed as the newest."""

    version: int = Field(ge=1)


class SaveCopyForm(BaseModel):
    """The form that saves the working copy as the version after `based_on`, which the page showed as the newest."""

    note: Note = ""
    based_on: int = Field(ge=1)


class CopyPages:
    """The renderer of the pages of working copies."""

    def __init__(self, request: Request, site: TheSite, desk: TheDesk, store: Datasets, agents: Agents) -> None:
        self.copies, self._chosen = desk.copies, desk.chosen
        self._request, self._site, self._store, self._agents = request, site, store, agents

    def render(
        self,
        slug: str,
        form: FormState[Any] | None = None,
        *,
        status: int = 200,
        problems: Sequence[str] = (),
        asks_to_discard: bool = False,
    ) -> Response:
        """Render the page of a dataset's working copy, or the page that offers to begin one."""
        newest, copy = self._store.newest(slug), self.copies.get(slug)
        versions = [version for name in self._agents.files.slugs() for version in self._agents.versions(name)[0]]
        options = offered_systems(self._site, versions)
        content: dict[str, Any] = {"transfer": None}
        if copy is not None:
            try:
                content = self._copy_content(copy, newest)
            except RagevalError as error:
                problems = [*problems, *error.problems]
        return page(
            self._request,
            "working_copy.html",
            status=status,
            form=form or FormState(),
            copy=copy,
            version=newest,
            problems=problems,
            options=options,
            asks_to_discard=asks_to_discard,
            most=MOST_SHOWN,
            systems=self._chosen.get(slug, [option.value for option in options[:1]]),
            **content,
        )

    def _copy_content(self, copy: WorkingCopy, newest: DatasetVersion) -> dict[str, Any]:
        cases, transfer = self.copies.cases(copy), self.copies.transfer(copy, newest.number)
        return {
            "go_on": LabelPlace(dataset=copy.slug).address,
            "total": len(cases),
            "transfer": transfer,
            "labelled": sum(Marks.of(case).is_label for case in cases),
            "changes": transfer.changes,
        }


TheCopyPages = Annotated[CopyPages, Depends(CopyPages)]


@router.get("/datasets/{slug}/label")
def working_copy_page(pages: TheCopyPages, slug: str, discard: bool = False) -> Response:
    """Show the labels so far; `discard` asks whether to discard them."""
    return pages.render(slug, asks_to_discard=discard)


@router.post("/datasets/{slug}/label")
def begin_labelling(pages: TheCopyPages, desk: TheDesk, submitted: Submitted, slug: str) -> Response:
    """Make a working copy of the newest version, or open the existing one."""
    form = read_form(BeginForm, submitted)
    if form.model is None:
        return pages.render(slug, form, status=422)
    pages.copies.begin(slug, form.model.version)
    desk.choose(slug, form.model.systems)
    return redirect(LabelPlace(dataset=slug).address)


@router.post("/datasets/{slug}/label/systems")
def choose_systems(pages: TheCopyPages, desk: TheDesk, submitted: Submitted, slug: str) -> Response:
    """Retrieve the chunks from other systems."""
    form = read_form(SystemsForm, submitted)
    if form.model is None:
        return pages.render(slug, form, status=422)
    desk.choose(slug, form.model.systems)
    return redirect(LabelPlace(dataset=slug).address)


@router.post("/datasets/{slug}/label/save")
def save_working_copy(pages: TheCopyPages, desk: TheDesk, store: Datasets, submitted: Submitted, slug: str) -> Response:
    """Save the next version of the dataset, or show the conflict if another window saved one since."""
    form = read_form(SaveCopyForm, submitted)
    copy = pages.copies.opened(slug)
    if form.model is None:
        return pages.render(slug, form, status=422)
    desk.close_dataset(slug)
    based_on = form.model.based_on
    if based_on == store.files.newest(slug) and not any(pages.copies.transfer(copy, based_on).changes):
        nothing = f"Nothing differs from version {based_on}: label a case, or discard the working copy."
        return pages.render(slug, form.with_problem("", nothing), status=422)
    try:
        pages.copies.save(slug, form.model.note, based_on)
    except NewerVersion:
        return pages.render(slug, form, status=409)
    return redirect(path_to("datasets", slug))


@router.post("/datasets/{slug}/label/discard")
def discard_working_copy(desk: TheDesk, store: Datasets, slug: str) -> Response:
    """Remove the working copy; the versions stay."""
    store.files.newest(slug)
    desk.close_dataset(slug)
    desk.copies.discard(slug)
    return redirect(path_to("datasets", slug))
