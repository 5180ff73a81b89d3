"""A case's bad answer kept as a draft of a case, and opened to be labelled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from pytest_rageval.cases.drafts import ENDING, add_drafts
from pytest_rageval.compare.case_diff import representative_trial
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.line_index import Check, index, record_at
from pytest_rageval.io.masking import Mask
from pytest_rageval.runs.disk.reader import OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.runs.disk.resume import journals
from pytest_rageval.runs.disk.row_records import check_observation, check_result
from pytest_rageval.web.forms.submitted import Submitted
from pytest_rageval.web.labelling.label_desk import Where
from pytest_rageval.web.rendering import see
from pytest_rageval.web.site import TheSite, UnknownPageError
from pytest_rageval.workbench.answer_draft import answer_draft, drafts_file_of

OTHER_DRAFTS = f"evalcases/answers{ENDING}"
"""For cases whose file does not say where in this project it is."""

router = APIRouter()


@router.post("/runs/{run_id}/draft")
def save_draft_case(submitted: Submitted, site: TheSite, run_id: str) -> Response:
    """Add the draft to the file beside the case's own, in which no run asks it, and open it for labelling."""
    project = site.project()
    run = site.stored_run(run_id)
    record, line = _recorded(run, str(submitted.get("case", "")))
    draft = answer_draft(record, line, run_id)
    if draft is None:
        raise SettingsError(f"run {run_id} keeps no texts (redact): there is no question to draft a case from")
    file = _within(project.root, drafts_file_of(record))
    add_drafts(project.root / file, [Mask(project.settings.secrets()).value(draft)])
    return see(Where(file, case=str(draft["id"])).address)


def _recorded(run: StoredRun, case: str) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """The record of a case that stands for its trials, and its observation where the run keeps it."""
    records = _trials(run, RESULTS, check_result, case)
    if not records:
        raise UnknownPageError(f"run {run.run_id} has recorded no case {case!r}")
    record = representative_trial(records)
    return dict(record), _trials(run, OBSERVATIONS, check_observation, case).get(record["trial"])


def _trials(run: StoredRun, name: str, check: Check, case: str) -> dict[int, Mapping[str, Any]]:
    """The lines of a case by trial, also those that a worker of a run that died had written."""
    places = index([run.path / name, *journals(run.path, name)], check=check, keeps=lambda key: key[0] == case)
    return {trial: record_at(place) for (_, trial), place in places.items()}


def _within(root: Path, written: str) -> str:
    """A file of drafts as a run names it, if that is a place of this project; else one for all others."""
    path = PurePosixPath(written)
    is_inside = (
        not path.is_absolute() and ".." not in path.parts and (root / path).resolve().is_relative_to(root.resolve())
    )
    return path.as_posix() if is_inside and (root / path).parent.is_dir() else OTHER_DRAFTS
