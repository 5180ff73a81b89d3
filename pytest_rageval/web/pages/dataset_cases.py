"""One case of a dataset: show, edit, add or remove it. Each change saves a new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field, create_model
from starlette.datastructures import FormData
from starlette.responses import Response

from pytest_rageval.cases.canonical import case_content
from pytest_rageval.cases.conversations import OF_THE_PLACE
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.messages import Unsound, format_path, shown_value
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import NOWHERE, EvalCase, Json
from pytest_rageval.model.case_fields import DESCRIPTIVE_FIELDS, PROMINENT_NAMES, DescriptiveField
from pytest_rageval.web.dataset_upload import long_texts, trimmed
from pytest_rageval.web.forms import FormState, Note, OneLine, Submitted, read_form, split_tags
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import TheSite, UnknownPageError
from pytest_rageval.web.versions.dataset_store import DatasetVersion
from pytest_rageval.web.versions.value_changes import ValueChange, case_changes
from pytest_rageval.web.versions.version_folder import NewerVersion

router = APIRouter()
NEW = "new"
TEXTS = ("id", "question", *PROMINENT_NAMES)
"""Fields of the form that are keys of a case of the same name."""


class CaseForm(BaseModel):
    """One case: the fields that a person edits most, and everything else as JSON."""

    id: OneLine = ""
    question: str = ""
    reference: str = ""
    answerable: Literal["yes", "no"] = "yes"
    tags: str = ""
    rest: str = ""
    note: Note = ""
    based_on: int = Field(ge=1)
    action: Literal["save", "remove"] = "save"


def _with_descriptions() -> type[CaseForm]:
    """Return the form with a text for each prominent descriptive field."""
    texts: dict[str, Any] = dict.fromkeys(PROMINENT_NAMES, (str, ""))
    return create_model("DescribedCaseForm", __base__=CaseForm, **texts)


CASE_FORM = _with_descriptions()


class CaseConflict(NamedTuple):
    """A version that another window saved while the form was filled in."""

    number: int
    """The number of that version."""
    mine: Sequence[ValueChange]
    """What the form would change in its case."""
    is_there: bool
    """That version has the case."""
    is_removal: bool
    """The form was to remove the case."""


@dataclass(frozen=True, kw_only=True)
class DatasetCasePage(PageContext):
    """A case of a dataset in a form."""

    template = "dataset_case.html"
    form: FormState[CaseForm]
    """The typed values and their errors."""
    version: DatasetVersion
    """The version that the case is of."""
    position: str
    """The position in the address: a number from 1, or `new`."""
    at: int | None
    """The position as a number; None for a new case."""
    case: EvalCase | None
    """The case; None for a new one."""
    total: int
    """The number of cases of the version."""
    newest: int
    """The number of the newest version, which alone can be edited."""
    descriptive: Sequence[DescriptiveField]
    """The descriptive fields that the form shows."""
    conflict: CaseConflict | None
    """The version that another window saved meanwhile; None if there is none."""


class OpenCase(NamedTuple):
    """A case in its version; `original` is None for a new one."""

    version: DatasetVersion
    position: str
    cases: Sequence[EvalCase]
    original: EvalCase | None


def _open_case(store: Datasets, slug: str, number: int, position: str) -> OpenCase:
    """Return the case at a 1-based position or a new one; raise UnknownPageError if there is none."""
    cases = store.cases(slug, number)
    original: EvalCase | None = None
    if position != NEW:
        # `isdigit` also accepts digits such as ², for which `int` fails.
        is_number = position.isascii() and position.isdigit() and len(position) < 10
        if not is_number or not 0 < int(position) <= len(cases):
            raise UnknownPageError(f"there is no case {position!r}; this version has {len(cases)}")
        original = cases[int(position) - 1]
    return OpenCase(store.read(slug, number), position, cases, original)


TheCase = Annotated[OpenCase, Depends(_open_case)]


@router.get("/datasets/{slug}/versions/{number}/cases/{position}")
def dataset_case_page(request: Request, store: Datasets, opened: TheCase) -> Response:
    """Show a case in a form, which can be saved if the version is the newest."""
    state: FormState[CaseForm] = FormState({} if opened.original is None else case_values(opened.original))
    return _case_form(request, store, opened, state)


@router.post("/datasets/{slug}/versions/{number}/cases/{position}")
def save_dataset_case(
    request: Request, site: TheSite, store: Datasets, submitted: Submitted, opened: TheCase
) -> Response:
    """Save the next version with this case changed, added or removed."""
    original = opened.original
    state = read_form(CASE_FORM, submitted)
    case: EvalCase | None = None
    if state.model is None or state.model.action == "save" or original is None:
        state, case = case_of_form(submitted, original, site.settings.limits.field_characters)
        state = _checked(state, case, opened)
    elif len(opened.cases) == 1:
        state = state.with_problem("", "This is the only case; a dataset needs one.")
    if state.model is None:
        return _case_form(request, store, opened, state, status=422)
    note = state.model.note.strip() or _words(case, original)
    version = opened.version
    try:
        cases = _cases_after(opened, case)
        saved = store.save(version.slug, version.about, cases, note, state.model.based_on)
    except NewerVersion as newer:
        return _conflict(request, store, opened, state, case, newer)
    return redirect(path_to("datasets", saved.slug, "diff", before=saved.number - 1, after=saved.number))


def _checked(state: FormState[CaseForm], case: EvalCase | None, opened: OpenCase) -> FormState[CaseForm]:
    """Add the problems of the case among the others: a duplicate id, or no difference."""
    if case is None:
        return state
    if opened.original is None and any(other.id == case.id for other in opened.cases):
        return state.with_problem("id", f"{shown_value(case.id)} is used already; ids are unique in a dataset")
    if opened.original is not None and not case_changes(opened.original, case):
        return state.with_problem("", "Nothing differs.")
    return state


def _cases_after(opened: OpenCase, case: EvalCase | None) -> list[EvalCase]:
    """Return the cases of the next version: `case` added, in place of the original, or None to remove that."""
    if opened.original is None:
        return [*opened.cases] if case is None else [*opened.cases, case]
    after = []
    for other in opened.cases:
        if other is not opened.original:
            after.append(other)
        elif case is not None:
            after.append(case)
    return after


def _words(case: EvalCase | None, original: EvalCase | None) -> str:
    """Return what changes; `case` is None if it is removed, `original` if it is new."""
    named = f"case {shown_value((case or original or NO_CASE).id)}"
    if case is None:
        return f"{named} removed"
    if original is None:
        return f"{named} added"
    names = [change.name for change in case_changes(original, case)]
    return f"{named}: {', '.join(names)}"


def _conflict(
    request: Request,
    store: Datasets,
    opened: OpenCase,
    state: FormState[CaseForm],
    typed: EvalCase | None,
    newer: NewerVersion,
) -> Response:
    """Render the typed form over the version that was saved in between, with the differences.

    typed  the new content of the case; None if it was to be removed
    """
    case_id = (opened.original or typed or NO_CASE).id
    cases = store.cases(newer.slug, newer.newest)
    theirs = next((case for case in cases if case.id == case_id), None)
    place = NEW if theirs is None else str(cases.index(theirs) + 1)
    mine = [] if theirs is None or typed is None else case_changes(theirs, typed)
    conflict = CaseConflict(
        number=newer.newest,
        mine=mine,
        is_there=theirs is not None,
        is_removal=typed is None,
    )
    now = OpenCase(store.read(newer.slug, newer.newest), place, cases, theirs)
    form: FormState[CaseForm] = FormState({**state.values, "id": case_id}, state.errors)
    return _case_form(request, store, now, form, status=409, conflict=conflict)


def _case_form(
    request: Request,
    store: Datasets,
    opened: OpenCase,
    form: FormState[CaseForm],
    *,
    status: int = 200,
    conflict: CaseConflict | None = None,
) -> Response:
    context = DatasetCasePage(
        form=form,
        version=opened.version,
        position=opened.position,
        at=None if opened.original is None else int(opened.position),
        case=opened.original,
        total=len(opened.cases),
        newest=store.last(opened.version.slug),
        descriptive=[field for field in DESCRIPTIVE_FIELDS if field.is_prominent],
        conflict=conflict,
    )
    return page(request, context, status=status)


# ── the form ──────────────────────────────────────────────────────────────────────────────────────────────────


NO_CASE = EvalCase("", "")


def case_values(case: EvalCase) -> dict[str, str | Sequence[str]]:
    """Return the field values for a case. Several right answers go into the JSON."""
    record = {name: value for name, value in case_content(case).items() if name not in OF_THE_PLACE}
    gold = dict(record.pop("gold", {}))
    values = {name: str(record.pop(name, "")) for name in TEXTS}
    values["reference"] = gold.pop("answer") if isinstance(gold.get("answer"), str) else ""
    record.pop("answerable", None)
    values["answerable"] = "yes" if case.answerable else "no"
    # The field divides tags at commas; tags that hold one stay in the JSON.
    if not any("," in tag for tag in case.tags):
        values["tags"] = ", ".join(record.pop("tags", []))
    if gold:
        record["gold"] = gold
    return {**values, "id": case.id, "rest": json_text(record, 2)}


def case_of_form(form: FormData, original: EvalCase | None, most: int) -> tuple[FormState[CaseForm], EvalCase | None]:
    """Return the submitted form and its case, or None in its place if the form has errors.

    original  the case that is edited, whose id stays; None for a new one
    most      characters of a text
    """
    state = read_form(CASE_FORM, form)
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
        if original is not None and original.turn is not None:
            # A turn gets these from its line, which the form does not have.
            case = replace(case, conversation=original.conversation, turn=original.turn)
        return state, case
    except Unsound as unsound:
        for finding in unsound.findings.first:
            state = state.with_problem(_field_of(finding.path), str(finding))
        return state, None


def _typed_record(form: CaseForm, rest: Mapping[str, Any], original: EvalCase | None) -> dict[str, Json]:
    """Return the case as a record of a file: the fields without blank ones, and the keys of the JSON."""
    typed = {name: text for name in TEXTS if (text := getattr(form, name)).strip() or name == "question"}
    record: dict[str, Json] = {**rest, **typed, "answerable": form.answerable == "yes"}
    if original is not None:
        record["id"] = original.id
    if tags := split_tags(form.tags):
        record["tags"] = list(tags)
    if form.reference.strip():
        record["gold"] = {**(rest.get("gold") or {}), "answer": form.reference}
    return record


def _field_of(path: Sequence[str | int]) -> str:
    """Return the form field for a path in the record."""
    if path[:2] == ("gold", "answer"):
        return "reference"
    if path and path[0] in (*TEXTS, "answerable", "tags"):
        return str(path[0])
    return "rest" if path else "question"
