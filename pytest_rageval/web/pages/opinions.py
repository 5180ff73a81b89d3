"""Second opinions on labels, held against the case file or the working copy and against one another."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.web.labelling.label_desk import TheDesk, Where, label_files
from pytest_rageval.web.rendering import page
from pytest_rageval.web.site import TheSite
from pytest_rageval.workbench.label.label_agreement import agreements
from pytest_rageval.workbench.label.label_store import opinion_files, opinions
from pytest_rageval.workbench.label.opening import cases_to_label

MOST_DIFFERENCES = 200
"""Of one pair that are shown."""

router = APIRouter()


@router.get("/label/opinions")
def opinions_page(request: Request, site: TheSite, desk: TheDesk, file: str = "", dataset: str = "") -> Response:
    """How far people agree, and the cases in which they do not."""
    project = site.project()
    if dataset:
        path = desk.copies.path(desk.copies.sound(dataset).slug)
    else:
        files = label_files(project)
        if file not in files or file.endswith(ENDING):
            raise HTTPException(404, f"There is no case file {file!r} in this project.")
        path = files[file]
    given = {name: opinions(place, project.root) for name, place in opinion_files(path).items()}
    results = agreements(cases_to_label(path, project), given)
    return page(
        request, "opinions.html", where=Where(file, dataset), results=results, names=list(given), most=MOST_DIFFERENCES,
    )  # fmt: skip
