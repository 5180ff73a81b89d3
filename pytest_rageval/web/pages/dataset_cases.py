"""One case of a dataset: show, edit, add or remove it. Each change saves a new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.datastructures import FormData
from starlette.responses import Response

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.messages import Unsound, format_path, shown_value
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import NOWHERE, EvalCase, Json
from pytest_rageval.web.forms import FormState, Note, OneLine, Submitted, read_form, split_tags
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import TheSite, UnknownPageError
from pytest_rageval.web.uploads.dataset_upload import long_texts, trimmed
from pytest_rageval.web.versions.dataset_store import DatasetStore
from pytest_rageval.web.versions.value_changes import case_changes
from pytest_rageval.web.versions.version_folder import NewerVersion

router = APIRouter()
NEW = "new"


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


@router.get("/datasets/{slug}/versions/{number}/cases/{position}")
def dataset_case_page(request: Request, store: Datasets, slug: str, number: int, position: str) -> Response:
    """Show a case in a form, which can be saved if the version is the newest."""
    cases = store.cases(slug, number)
    original = _case_at(cases, position)
    state: FormState[CaseForm] = FormState({} if original is None else case_values(original))
    return _case_form(request, store, slug, number, position, cases, state)


@router.post("/datasets/{slug}/versions/{number}/cases/{position}")
def save_dataset_case(
    request: Request, site: TheSite, store: Datasets, submitted: Submitted, slug: str, number: int, position: str
) -> Response:
    """Save the next version with this case changed, added or removed."""
    cases = store.cases(slug, number)
    original = _case_at(cases, position)
    state = read_form(CaseForm, submitted)
    case: EvalCase | None = None
    if state.model is not None and state.model.action == "remove" and original is not None:
        after = [other for other in cases if other is not original]
        words = f"case {shown_value(original.id)} removed"
        if not after:
            state = state.with_problem("", "This is the only case; a dataset needs one.")
    else:
        state, case = case_of_form(submitted, original, site.settings.limits.field_characters)
        state = _checked(state, case, original, cases)
        after = [case if other is original else other for other in cases] if case and original else [*cases]
        after += [case] if case and original is None else []
        words = _words(case, original) if case else ""
    if state.model is None:
        return _case_form(request, store, slug, number, position, cases, state, status=422)
    version = store.read(slug, number)
    try:
        saved = store.save(slug, version.about, after, state.model.note.strip() or words, state.model.based_on)
    except NewerVersion as newer:
        return _conflict(request, store, slug, state, original or case, case, newer)
    return redirect(path_to("datasets", slug, "diff", before=saved.number - 1, after=saved.number))


def _case_at(cases: Sequence[EvalCase], position: str) -> EvalCase | None:
    """Return the case at a 1-based position, or None for a new one; raise UnknownPageError if there is none."""
    if position == NEW:
        return None
    if position.isascii() and position.isdigit() and len(position) < 10 and 0 < int(position) <= len(cases):
        return cases[int(position) - 1]
    raise UnknownPageError(f"there is no case {position!r}; this version has {len(cases)}")


def _checked(
    state: FormState[CaseForm], case: EvalCase | None, original: EvalCase | None, cases: Sequence[EvalCase]
) -> FormState[CaseForm]:
    """Add the problems of the case among the others: a duplicate id, or no difference."""
    if case is None:
        return state
    if original is None and any(other.id == case.id for other in cases):
        return state.with_problem("id", f"{shown_value(case.id)} is used already; ids are unique in a dataset")
    if original is not None and not case_changes(original, case):
        return state.with_problem("", "Nothing differs.")
    return state


def _words(case: EvalCase, original: EvalCase | None) -> str:
    if original is None:
        return f"case {shown_value(case.id)} added"
    names = ", ".join(change.name for change in case_changes(original, case))
    return f"case {shown_value(case.id)}: {names}"


def _conflict(
    request: Request,
    store: DatasetStore,
    slug: str,
    state: FormState[CaseForm],
    original: EvalCase | None,
    typed: EvalCase | None,
    newer: NewerVersion,
) -> Response:
    """Render the typed form over the version that was saved in between, with the differences.

    original  the case that was edited, removed or added
    typed     its new content; None if it was to be removed
    """
    assert original is not None
    cases = store.cases(slug, newer.newest)
    theirs = next((case for case in cases if case.id == original.id), None)
    place = str(cases.index(theirs) + 1) if theirs is not None else NEW
    mine = case_changes(theirs, typed) if theirs is not None and typed is not None else []
    conflict = {"number": newer.newest, "mine": mine, "is_there": theirs is not None, "is_removal": typed is None}
    typed_values: FormState[CaseForm] = FormState({**state.values, "id": original.id}, state.errors)
    return _case_form(request, store, slug, newer.newest, place, cases, typed_values, status=409, conflict=conflict)


def _case_form(
    request: Request,
    store: DatasetStore,
    slug: str,
    number: int,
    position: str,
    cases: Sequence[EvalCase],
    form: FormState[CaseForm],
    **content: Any,
) -> Response:
    at = None if position == NEW else int(position)
    return page(
        request,
        "dataset_case.html",
        form=form,
        version=store.read(slug, number),
        position=position,
        at=at,
        case=None if at is None else cases[at - 1],
        total=len(cases),
        newest=store.last(slug),
        **{"conflict": None, **content},
    )


# ── the form ──────────────────────────────────────────────────────────────────────────────────────────────────


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
