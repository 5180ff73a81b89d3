"""Labelling a dataset: open its next version, label it, and finish or discard it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from pytest_rageval.web.forms import Submitted, read_form
from pytest_rageval.web.labelling.label_desk import DEMO, PROJECT, LabelPlace, TheDesk
from pytest_rageval.web.pages.datasets import Datasets, TheVersionPages
from pytest_rageval.web.rendering import path_to, redirect
from pytest_rageval.web.versions.version_folder import version_choice

MOST_SYSTEMS = 8
"""Maximum number of systems per case: each retrieves 20 chunks."""
router = APIRouter()


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
        problems = [f"{name}: {problem}" for name, found in form.errors.items() for problem in found]
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
