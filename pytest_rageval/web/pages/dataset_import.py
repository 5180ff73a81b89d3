"""The import of a dataset in steps: upload, preview, choice of columns, saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from pytest_rageval.errors import CaseError
from pytest_rageval.io.encodings import ENCODINGS
from pytest_rageval.web.column_mapping import (
    CHOICES,
    LEFT_OUT,
    METADATA,
    REFERENCE_CHOICES,
    MappedColumn,
    guess_mapping,
    mapping_problems,
)
from pytest_rageval.web.dataset_upload import DatasetReading, Look, look, read_dataset
from pytest_rageval.web.forms import FormState, Note, OneLine, Paragraphs, Submitted, Title, read_form, split_tags
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import Site, TheSite, WebLimits
from pytest_rageval.web.tables import SEPARATORS, Part, TableFormat, chosen_table
from pytest_rageval.web.upload import Upload, Uploads, file_of
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore, DatasetVersion
from pytest_rageval.web.versions.value_changes import dataset_changes
from pytest_rageval.web.versions.version_folder import NewerVersion, slug_of

router = APIRouter()
CASES, REFERENCES = "cases", "references"
"""The parts of an upload: a file of cases or questions, and an optional one of references."""
FIELDS = {CASES: "field", REFERENCES: "reference_field"}
"""The fields of the form under which the choices of their columns are sent."""
MOST_PROBLEMS = 1_000
"""Maximum number of problems on a page."""


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
    action: Literal["check", "reread", "import", "discard"] = "check"


@router.get("/datasets/new")
def dataset_upload_page(request: Request, site: TheSite, store: Datasets, dataset: str = "") -> Response:
    """Show the form for files of a new dataset or of a dataset's next version."""
    return _upload_form(request, site, store, FormState(), dataset)


@router.post("/datasets/uploads")
def take_dataset_upload(request: Request, site: TheSite, store: Datasets, submitted: Submitted) -> Response:
    """Keep the files until they are confirmed. No dataset is created yet."""
    dataset = str(submitted.get("dataset") or "")
    files = {part: file for part in (CASES, REFERENCES) if (file := file_of(submitted, part)) is not None}
    about: dict[str, Any] = {"dataset": dataset, "based_on": store.last(dataset)} if dataset else {}
    form: FormState[ImportForm] = FormState()
    if CASES not in files:
        return _upload_form(request, site, store, form.with_problem(CASES, "choose a file"), dataset, status=422)
    uploads = Uploads(site.settings.data, site.settings.limits)
    try:
        upload = uploads.begin(request.session, files, about)
        try:
            for part in upload.names:
                # Read at once: a file that is no table is told beside its field, not on the next page.
                look(upload.part(part))
        except CaseError:
            uploads.remove(upload)
            raise
    except CaseError as error:
        form = form.with_problem(CASES, *error.problems)
        return _upload_form(request, site, store, form, dataset, status=422)
    return redirect(path_to("datasets", "uploads", upload.id))


@router.get("/datasets/uploads/{upload_id}")
def dataset_preview_page(request: Request, site: TheSite, store: Datasets, upload_id: str) -> Response:
    """Show the first rows, the guesses and all problems."""
    review = _review(site, _dataset_upload(site, upload_id), {})
    form: FormState[ImportForm] = FormState(_initial_values(review, store))
    return _preview(request, store, review, form)


@router.post("/datasets/uploads/{upload_id}")
def decide_dataset_upload(
    request: Request, site: TheSite, store: Datasets, submitted: Submitted, upload_id: str
) -> Response:
    """Preview with other fields, save the reading as a version, or discard the upload."""
    form = read_form(ImportForm, submitted)
    upload = _dataset_upload(site, upload_id)
    if form.model is not None and form.model.action == "discard":
        _forget(site, upload)
        return redirect(path_to("datasets", "new", dataset=upload.about.get("dataset")))
    values = dict(form.values)
    if form.model is not None and form.model.action == "reread":  # in another encoding the columns have other names
        values = {name: values[name] for name in ("encoding", "separator")}
    try:
        review = _review(site, upload, values)
    except CaseError as error:  # the chosen encoding does not fit
        form = form.with_problem("", *error.problems)
        del values["encoding"]
        review = _review(site, upload, values)
    if form.model is None or form.model.action != "import":
        return _preview(request, store, review, form, status=200 if form.model else 422)
    if review.problems:
        refused = form.with_problem("", "Nothing is saved as long as the file has problems.")
        return _preview(request, store, review, refused, status=422)
    dataset = str(review.upload.about.get("dataset", ""))
    if not dataset and not form.model.name.strip():
        return _preview(request, store, review, form.with_problem("name", "is blank"), status=422)
    try:
        saved = _save(store, review, form.model, dataset)
    except NewerVersion as newer:
        return _preview(request, store, review, _with_conflict(form, newer, dataset), status=409)
    _forget(site, upload)
    return redirect(path_to("datasets", saved))


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Review:
    """An upload with its reading by the chosen or guessed fields."""

    upload: Upload
    tables: Mapping[str, PartTable]
    reading: DatasetReading
    choice_problems: Sequence[str]

    @property
    def problems(self) -> list[str]:
        """Return every problem that prevents this upload from becoming a version."""
        return [*self.choice_problems, *self.reading.problems]


class PartTable(NamedTuple):
    """A file of an upload as a table: its first rows, and its columns with their fields."""

    part: str
    file: Part
    look: Look
    columns: Sequence[MappedColumn]

    @property
    def field(self) -> str:
        return FIELDS[self.part]

    @property
    def choices(self) -> Sequence[str]:
        return CHOICES if self.part == CASES else REFERENCE_CHOICES


def _dataset_upload(site: Site, upload_id: str) -> Upload:
    upload = Uploads(site.settings.data, site.settings.limits).get(upload_id)
    upload.part(CASES)  # raises for an upload of answers
    return upload


def _review(site: Site, upload: Upload, values: Mapping[str, str | Sequence[str]]) -> _Review:
    """Read an upload as a form says; raise CaseError if a table is not of the chosen encoding."""
    encodings = values.get("encoding", ())
    separators = values.get("separator", ())
    # The form has an encoding and a separator for each table of the upload, and none for its other files.
    formats = [chosen_table(*written) for written in zip(encodings, separators, strict=False)]
    tables: dict[str, PartTable] = {}
    for part in FIELDS:
        if part not in upload.names:
            continue
        file = upload.part(part)
        if file.table is not None and formats:
            file = _in_format(file, formats.pop(0))
        tables[part] = _part_table(part, file, values.get(FIELDS[part], ()))
    problems: list[str] = []
    for part, table in tables.items():
        if table.columns:  # the format of another tool has none to choose
            problems += mapping_problems(table.columns, are_references=part == REFERENCES)
    reading = DatasetReading((), (), {})
    if not problems:
        files = tuple(table.file for table in tables.values())
        columns = tuple(tuple(table.columns) for table in tables.values())
        reading = read_dataset(files, columns, site.settings.limits)
    return _Review(upload, tables, reading, problems)


def _in_format(file: Part, chosen: TableFormat | None) -> Part:
    """Return a file to be read in the chosen format, or raise CaseError if it is not of that encoding."""
    if chosen is None or chosen == file.table:
        return file
    file = file._replace(table=chosen)
    file.text()  # raises for another encoding
    return file


def _part_table(part: str, file: Part, fields: Sequence[str]) -> PartTable:
    """Return a file with its columns, by the chosen `fields` if there is one for each column."""
    beginning = look(file)
    columns = guess_mapping(beginning.columns, CHOICES if part == CASES else REFERENCE_CHOICES)
    # The form may be of another encoding or separator, with other columns.
    if len(fields) == len(columns):
        columns = [column._replace(field=field) for column, field in zip(columns, fields, strict=True)]
    return PartTable(part, file, beginning, columns)


def _forget(site: Site, upload: Upload) -> None:
    """Remove an upload that was confirmed or discarded, and what was read from it."""
    Uploads(site.settings.data, site.settings.limits).remove(upload)
    # The files are gone: their cases would stay in memory until the next upload.
    read_dataset.cache_clear()
    look.cache_clear()


def _initial_values(review: _Review, store: DatasetStore) -> Mapping[str, str]:
    """Return a name for a new dataset from its file name, or a note of the differences for a next version."""
    dataset = review.upload.about.get("dataset")
    if not dataset:
        return {"name": review.upload.names[CASES].partition(".")[0]}
    if review.problems:
        return {}
    before = store.cases(dataset, review.upload.about["based_on"])
    return {"note": str(dataset_changes(before, review.reading.cases))}


def _save(store: DatasetStore, review: _Review, form: ImportForm, dataset: str) -> str:
    """Save the new version and return the slug of its dataset."""
    origin = " + ".join(review.upload.names.values())
    if not dataset:
        tags = split_tags(form.tags)
        about = DatasetAbout(name=form.name.strip(), description=form.description.strip(), tags=tags, origin=origin)
        slug = slug_of(about.name)
        store.save(slug, about, review.reading.cases, form.note.strip(), 0)
        return slug
    based_on = int(review.upload.about["based_on"])
    about = store.read(dataset, based_on).about.model_copy(update={"origin": origin})
    note = form.note.strip() or str(dataset_changes(store.cases(dataset, based_on), review.reading.cases))
    store.save(dataset, about, review.reading.cases, note, based_on)
    return dataset


def _with_conflict(form: FormState[ImportForm], newer: NewerVersion, dataset: str) -> FormState[ImportForm]:
    if not dataset:
        return form.with_problem("name", "is taken: a dataset of this name, or of one very like it, is there already")
    words = f"Version {newer.newest} was saved meanwhile by another window; nothing was overwritten."
    return form.with_problem("", f"{words} Look at it, and upload the file again if yours is to be the next.")


@dataclass(frozen=True, kw_only=True)
class DatasetNewPage(PageContext):
    """The form for the files of a dataset."""

    template = "dataset_new.html"
    form: FormState[ImportForm]
    """The errors of the upload."""
    version: DatasetVersion | None
    """The dataset's newest version; None for a new dataset."""
    limits: WebLimits
    """How large an upload may be."""


@dataclass(frozen=True, kw_only=True)
class DatasetUploadPage(PageContext):
    """The preview of uploaded files."""

    template = "dataset_upload.html"
    form: FormState[ImportForm]
    """The chosen columns, the description, and their errors."""
    upload: Upload
    """The uploaded files."""
    tables: Sequence[PartTable]
    """The files that are tables, with the guessed meaning of each column."""
    reading: DatasetReading
    """The cases, as the files are read now."""
    problems: Sequence[str]
    """What is wrong with the files, as far as it is shown."""
    count: int
    """The number of all problems."""
    left_out: str
    """The choice that leaves a column out."""
    metadata: str
    """The choice that keeps a column as metadata."""
    is_document: bool
    """The file is a test set of another tool, whose fields are known."""
    encodings: Sequence[tuple[str, str]]
    """The encodings that can be chosen, with their titles."""
    separators: Sequence[tuple[str, str]]
    """The separators of cells that can be chosen, with their titles."""
    version: DatasetVersion | None
    """The dataset's newest version; None for a new dataset."""


def _upload_form(
    request: Request, site: Site, store: DatasetStore, form: FormState[ImportForm], dataset: str, *, status: int = 200
) -> Response:
    version = store.newest(dataset) if dataset else None
    context = DatasetNewPage(form=form, version=version, limits=site.settings.limits)
    return page(request, context, status=status)


def _preview(
    request: Request, store: DatasetStore, review: _Review, form: FormState[ImportForm], *, status: int = 200
) -> Response:
    dataset = review.upload.about.get("dataset")
    problems = review.problems
    context = DatasetUploadPage(
        form=form,
        upload=review.upload,
        tables=[table for table in review.tables.values() if table.columns],
        reading=review.reading,
        problems=problems[:MOST_PROBLEMS],
        count=len(problems),
        left_out=LEFT_OUT,
        metadata=METADATA,
        is_document=review.tables[CASES].look.fields is not None,
        encodings=ENCODINGS,
        separators=SEPARATORS,
        version=store.newest(dataset) if dataset else None,
    )
    return page(request, context, status=status)
