"""The forms of datasets: the import of one, and one case of a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field
from starlette.datastructures import FormData

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.messages import Unsound, format_path
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import NOWHERE, EvalCase, Json
from pytest_rageval.web.forms.form_state import FormState, Note, OneLine, Paragraphs, Title, read_form, split_tags
from pytest_rageval.web.uploads.dataset_upload import long_texts, trimmed
from pytest_rageval.web.versions.dataset_store import DatasetAbout


class ImportForm(BaseModel):
    """The chosen fields of an upload, and the dataset's description; `action` is the pressed button.

    encoding, separator  of each table of the upload, in order
    """

    field: list[str] = Field(default_factory=list)
    reference_field: list[str] = Field(default_factory=list)
    encoding: list[str] = Field(default_factory=list)
    separator: list[str] = Field(default_factory=list)
    name: Title = ""
    description: Paragraphs = ""
    tags: OneLine = ""
    note: Note = ""
    action: Literal["check", "import", "discard"] = "check"


class CaseForm(BaseModel):
    """One case: the fields that a person edits most, and everything else as JSON."""

    id: OneLine = ""
    question: str = ""
    reference: str = ""
    answerable: Literal["yes", "no"] = "yes"
    category: str = ""
    difficulty: str = ""
    tags: str = ""
    rest: str = ""
    note: Note = ""
    based_on: int = Field(ge=1)
    action: Literal["save", "remove"] = "save"


def about_of_form(form: ImportForm, origin: str) -> DatasetAbout:
    """Return the description of a new dataset."""
    return DatasetAbout(
        name=form.name.strip(),
        description=form.description.strip(),
        tags=split_tags(form.tags),
        origin=origin,
    )


def case_values(case: EvalCase) -> dict[str, str | Sequence[str]]:
    """Return the field values for a case. Several right answers go into the JSON."""
    record = _record(case)
    gold = dict(record.pop("gold", {}))
    reference = gold.pop("answer") if isinstance(gold.get("answer"), str) else ""
    if gold:
        record["gold"] = gold
    has_plain_tags = not any("," in tag for tag in case.tags)
    tags = record.pop("tags", []) if has_plain_tags else []
    for name in ("id", "question", "answerable", "category", "difficulty"):
        record.pop(name, None)
    return {
        "id": case.id,
        "question": case.question,
        "reference": reference,
        "answerable": _yes(case.answerable),
        "category": case.category or "",
        "difficulty": case.difficulty or "",
        "tags": ", ".join(tags),
        "rest": json_text(record, 2),
    }


def case_of_form(form: FormData, original: EvalCase | None, most: int) -> tuple[FormState[CaseForm], EvalCase | None]:
    """Return the submitted form and its case, or None in its place if the form has errors.

    original  the case that is edited, whose id stays; None for a new one
    most      characters of a text
    """
    state = read_form(CaseForm, form)
    if state.model is None:
        return state, None
    try:
        rest = parse(state.model.rest or "{}")
    except StrictJsonError as error:
        return state.with_problem("rest", str(error)), None
    if not isinstance(rest, dict) or not isinstance(rest.get("gold") or {}, dict):
        return state.with_problem("rest", "is no JSON object, in which gold is one"), None
    record = trimmed(_typed_record(state.model, rest, original))
    for path, message in long_texts(record, most):
        state = state.with_problem(_field_of(path), f"{format_path(path)} {message}")
    if state.model is None:
        return state, None
    try:
        case, _ = case_from_record(record, original.source if original else NOWHERE)
    except Unsound as unsound:
        for finding in unsound.findings.first:
            state = state.with_problem(_field_of(finding.path), str(finding))
        return state, None
    return state, case


def _record(case: EvalCase) -> dict[str, Json]:
    record = case_to_mapping(case)
    del record["source"]
    return record


def _typed_record(form: CaseForm, rest: Mapping[str, Any], original: EvalCase | None) -> dict[str, Json]:
    """Return the case as a record of a file: the fields without blank ones, and the keys of the JSON."""
    record: dict[str, Json] = {
        **rest,
        "id": original.id if original else form.id,
        "question": form.question,
        "answerable": form.answerable == "yes",
    }
    for name in ("category", "difficulty"):
        if text := getattr(form, name).strip():
            record[name] = text
    if tags := split_tags(form.tags):
        record["tags"] = list(tags)
    if form.reference.strip():
        record["gold"] = {**(rest.get("gold") or {}), "answer": form.reference}
    return {name: value for name, value in record.items() if name != "id" or value.strip()}


def _field_of(path: Sequence[str | int]) -> str:
    """Return the form field for a path in the record."""
    first = str(path[0]) if path else ""
    if path[:2] == ("gold", "answer"):
        return "reference"
    if first in ("id", "question", "answerable", "category", "difficulty", "tags"):
        return first
    return "rest" if path else "question"


def _yes(claim: bool) -> str:
    return "yes" if claim else "no"
