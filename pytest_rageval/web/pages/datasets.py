"""The pages of datasets: the list, a dataset with its versions and cases, differences, the audit and exports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from pytest_rageval.cases.exchange.tool_cases import write_csv
from pytest_rageval.cases.marks import Marks
from pytest_rageval.check.audit import AuditFinding, audit_in_words, findings_in_files, findings_in_notes
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.export.csv_format import as_text
from pytest_rageval.model import EvalCase
from pytest_rageval.web.label_desk import TheDesk
from pytest_rageval.web.label_systems import SystemOption
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.rendering import page
from pytest_rageval.web.site import Site, TheSite
from pytest_rageval.web.versions.dataset_store import DatasetStore, DatasetVersion
from pytest_rageval.web.versions.value_changes import DatasetChanges, dataset_changes
from pytest_rageval.web.versions.version_folder import mentions

router = APIRouter()
PAGE_SIZE = 50
MOST_SHOWN = 200
"""Maximum number of cases of a difference, or findings of an audit, on a page."""


def _store(site: TheSite) -> DatasetStore:
    return DatasetStore(site.settings.data)


Datasets = Annotated[DatasetStore, Depends(_store)]


@dataclass(frozen=True, kw_only=True)
class DatasetsPage(PageContext):
    """The list of datasets."""

    template = "datasets.html"
    versions: Sequence[DatasetVersion]
    """The newest version of each dataset that the search finds."""
    all: int
    """The number of datasets, found or not."""
    problems: Sequence[str]
    """The files that cannot be read."""
    q: str
    """The words that are searched for."""
    folder: Path
    """The folder of the files of datasets."""


@dataclass(frozen=True, kw_only=True)
class DatasetPage(PageContext):
    """A version of a dataset with one page of its cases."""

    template = "dataset.html"
    version: DatasetVersion
    """The version that is shown."""
    problems: Sequence[str]
    """Why the file cannot be read, or why labelling cannot begin."""
    total: int
    """The number of cases of the version."""
    found: int
    """The number of cases that the search finds."""
    rows: Sequence[tuple[int, EvalCase]]
    """The cases of this page, each with its position in the version, from 1."""
    q: str
    """The words that are searched for."""
    category: str
    """The category that is shown; '' for all."""
    categories: Sequence[str]
    """The categories of the version."""
    at: int
    """The number of this page, from 1."""
    pages: int
    """The number of pages."""
    newest: int
    """The number of the newest version."""
    versions: Sequence[DatasetVersion]
    """All versions, the newest first."""
    place: Path
    """The file of the version."""
    options: Sequence[SystemOption]
    """The systems that can retrieve chunks for labelling."""
    systems: Sequence[str]
    """Those of them that are ticked."""
    labelled: int
    """The number of labelled cases of a version that is being labelled."""
    asks_to_discard: bool
    """The page asks whether to discard the labels."""


@dataclass(frozen=True, kw_only=True)
class DatasetDiffPage(PageContext):
    """The differences of two versions of a dataset."""

    template = "dataset_diff.html"
    before: DatasetVersion
    """The earlier version."""
    after: DatasetVersion
    """The later version."""
    numbers: Sequence[int]
    """The numbers of all versions, the newest first."""
    slug: str
    """The dataset's name in addresses."""
    changes: DatasetChanges
    """The cases that were added, changed and removed."""
    most: int
    """The number of cases of a list that are shown."""


@dataclass(frozen=True, kw_only=True)
class DatasetAuditPage(PageContext):
    """What may be wrong with the labels of a version."""

    template = "dataset_audit.html"
    version: DatasetVersion
    """The version that was audited."""
    findings: Sequence[AuditFinding]
    """The findings that are shown, the worst first."""
    count: int
    """The number of all findings."""
    words: str
    """The findings in one sentence."""
    notes: str
    """Whether golds were looked for in the notes, in a sentence."""
    positions: Mapping[str, int]
    """The position of each case in the version, by key."""
    place: Path
    """The file of the version."""


class VersionPages:
    """The renderer of the pages of dataset versions."""

    def __init__(self, request: Request, site: TheSite, store: Datasets, desk: TheDesk) -> None:
        self._request = request
        self._site = site
        self._store = store
        self._desk = desk

    def render(
        self,
        version: DatasetVersion,
        q: str = "",
        category: str = "",
        at: int = 1,
        *,
        problems: Sequence[str] = (),
        status: int = 200,
        asks_to_discard: bool = False,
    ) -> Response:
        """Render a page of a version's cases. If the file is unreadable, show why, and keep its versions reachable."""
        store = self._store
        slug = version.slug
        cases: Sequence[EvalCase] = ()
        try:
            cases = store.cases(slug, version.number)
        except CaseError as error:
            problems = [*problems, *error.problems]
        found = [(position, case) for position, case in enumerate(cases, start=1) if _matches(case, q, category)]
        pages = max(1, math.ceil(len(found) / PAGE_SIZE))
        # A search may leave fewer pages than the address asks for.
        at = min(max(at, 1), pages)
        first = (at - 1) * PAGE_SIZE
        categories = {case.category for case in cases if case.category}
        labelled = 0
        if version.is_open:
            labelled = sum(Marks.of(case).is_label for case in cases)
        options = self._desk.offered(self._target())
        context = DatasetPage(
            asks_to_discard=asks_to_discard,
            version=version,
            problems=problems,
            total=len(cases),
            found=len(found),
            rows=found[first : first + PAGE_SIZE],
            q=q,
            category=category,
            at=at,
            pages=pages,
            categories=sorted(categories),
            newest=store.last(slug),
            versions=store.versions(slug)[0],
            place=store.path(slug, version.number),
            options=options,
            systems=self._desk.selected(slug, options),
            labelled=labelled,
        )
        return page(self._request, context, status=status)

    def _target(self) -> str | None:
        """Return the project's target; None too for a broken configuration, which the health page reports."""
        try:
            return self._site.project().settings.target
        except SettingsError:
            return None


TheVersionPages = Annotated[VersionPages, Depends(VersionPages)]


@router.get("/datasets")
def datasets_page(request: Request, store: Datasets, q: str = "") -> Response:
    versions, problems = store.newest_versions()
    shown = [version for version in versions if mentions(q, version.texts)]
    context = DatasetsPage(
        versions=shown,
        all=len(versions),
        problems=problems,
        q=q,
        folder=store.folder,
    )
    return page(request, context)


@router.get("/datasets/{slug}")
def dataset_page(
    pages: TheVersionPages,
    store: Datasets,
    slug: str,
    q: str = "",
    category: str = "",
    at: int = 1,
    discard: bool = False,
) -> Response:
    """Show the newest version; `discard` asks whether to discard its labels."""
    return pages.render(store.newest(slug), q, category, at, asks_to_discard=discard)


@router.get("/datasets/{slug}/versions/{number}")
def dataset_version_page(
    pages: TheVersionPages, store: Datasets, slug: str, number: int, q: str = "", category: str = "", at: int = 1
) -> Response:
    return pages.render(store.read(slug, number), q, category, at)


@router.get("/datasets/{slug}/versions/{number}/jsonl")
def dataset_jsonl(store: Datasets, slug: str, number: int) -> Response:
    """Return the unchanged case file."""
    path = store.checked_path(slug, number)
    return FileResponse(path, media_type="application/jsonl", filename=f"{slug}-v{number}.jsonl")


@router.get("/datasets/{slug}/versions/{number}/csv")
def dataset_csv(store: Datasets, slug: str, number: int) -> Response:
    """Return the cases as a table for a spreadsheet, with no text that it would run as a formula."""
    lines = write_csv(store.cases(slug, number), {}, as_text).files["cases.csv"]
    # CSV ends its lines so (RFC 4180), and Excel expects it.
    content = "".join(f"{line}\r\n" for line in lines)
    headers = {"Content-Disposition": f'attachment; filename="{slug}-v{number}.csv"'}
    return PlainTextResponse(content, media_type="text/csv", headers=headers)


@router.get("/datasets/{slug}/diff")
def dataset_diff_page(
    request: Request, store: Datasets, slug: str, before: int | None = None, after: int | None = None
) -> Response:
    """Show the differences of two versions, by default the last two."""
    numbers, earlier, later = store.compared(slug, before, after)
    changes = dataset_changes(store.cases(slug, earlier), store.cases(slug, later))
    context = DatasetDiffPage(
        before=store.read(slug, earlier),
        after=store.read(slug, later),
        numbers=list(reversed(numbers)),
        slug=slug,
        changes=changes,
        most=MOST_SHOWN,
    )
    return page(request, context)


@router.get("/datasets/{slug}/versions/{number}/audit")
def dataset_audit_page(request: Request, site: TheSite, store: Datasets, slug: str, number: int) -> Response:
    """Show possible errors in the labels, by themselves and against the project's notes."""
    cases = store.cases(slug, number)
    findings, notes = _findings(site, cases)
    positions = {case.key: position for position, case in enumerate(cases, start=1)}
    context = DatasetAuditPage(
        version=store.read(slug, number),
        findings=findings[:MOST_SHOWN],
        count=len(findings),
        words=audit_in_words(findings, len(cases)),
        notes=notes,
        positions=positions,
        place=store.path(slug, number),
    )
    return page(request, context)


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _matches(case: EvalCase, q: str, category: str) -> bool:
    if category and case.category != category:
        return False
    return mentions(q, (case.id, case.question, *(case.gold.answers or ()), *case.tags))


def _findings(site: Site, cases: Sequence[EvalCase]) -> tuple[list[AuditFinding], str]:
    """Return the findings, and a sentence on the notes that were searched."""
    findings = list(findings_in_files(cases))
    try:
        notes = site.project().notes
    except SettingsError as error:
        # A broken configuration keeps nobody from the findings that need none.
        return findings, f"Golds were not looked for in the notes: {error}"
    if notes is None:
        return findings, "Golds were not looked for in the notes: name their folder as notes in the configuration."
    return [*findings_in_notes(cases, notes), *findings], f"Golds were looked for in {notes}."
