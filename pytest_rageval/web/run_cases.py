"""The cases of one run in the browser, filtered, paged and in order; and a cache of the runs that were opened."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Query

from pytest_rageval.comparison.baseline import open_side, side_of_run
from pytest_rageval.comparison.case_filter import CaseFilter, FilterError
from pytest_rageval.comparison.case_list import (
    CaseList,
    ListedCase,
    changes_of,
    list_cases,
    recorded_side,
    worst_cases_first,
)
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page
from pytest_rageval.render.html.report_page import page_sections, page_start
from pytest_rageval.runs.columns import SCORES, CaseColumns
from pytest_rageval.runs.reader import CONFIG, METRICS, StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS
from pytest_rageval.runs.records.record_files import journals
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable
from pytest_rageval.web.results_table import ResultsTable, ShownCell
from pytest_rageval.web.run_list import RunFolders, recent_runs_of, states_of
from pytest_rageval.web.site import Site, UnknownPageError, of_app

LONGEST, MOST_TERMS = 4_000, 100
"""Maximum characters and terms of a filter: each term checks each case."""
DESCRIBED = ("scale", "better", "layer")
ROWS = 50
"""Cases on a page of the list."""
MOST_IN_MENU = 100
AT_ONCE = 20_000
"""Maximum number of cases of a run whose sections are on its page from the start."""
ANY = "*"
"""The value of a menu that takes its term out of the filter."""
_TERM_OF = r'(?:^|(?<=\s)){}:(?:"(?:[^"\\]|\\.)*"|[^\s"]+)'

Filter = Annotated[str, Query(max_length=2_000)]
Order = Annotated[str, Query(max_length=200)]
Menu = Annotated[str | None, Query(max_length=400)]


class CaseQuery(NamedTuple):
    """A filter, an order (a metric, `id`, `latency`; `-` reverses it), a page, columns."""

    q: str = ""
    sort: str = ""
    page: int = 1
    col: Sequence[str] = ()

    @property
    def asked(self) -> dict[str, object]:
        """Return the parameters of an address that asks the same."""
        return {**self._asdict(), "page": self.page if self.page > 1 else None, "col": [*self.col] or None}


def _query(
    q: Filter = "",
    sort: Order = "",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    col: Annotated[list[str] | None, Query()] = None,
    outcome: Menu = None,
    category: Menu = None,
    tag: Menu = None,
) -> CaseQuery:
    """Return the query of an address. A menu adds, replaces or removes a term of the filter."""
    for word, value in (("outcome", outcome), ("category", category), ("tag", tag)):
        if value:
            rest = re.sub(_TERM_OF.format(word), " ", q).strip()
            quoted = json.dumps(value, ensure_ascii=False) if re.search(r'[\s",]', value) else value
            q = rest if value == ANY else f"{rest} {word}:{quoted}".strip()
    return CaseQuery(q, sort, page, tuple(col or ()))


TheQuery = Annotated[CaseQuery, Depends(_query)]
"""A route parameter: what is asked of a list of cases."""


@dataclass(frozen=True)
class CasePage:
    """A page of the list: `left` cases pass the filter; without rows if that has a `problem`."""

    cases: RunCases
    query: CaseQuery
    rows: Sequence[ListedCase] = ()
    left: int = 0
    problem: str = ""

    @property
    def total(self) -> int:
        return len(self.cases.listed.cases)

    @property
    def pages(self) -> int:
        return max(1, -(-self.left // ROWS))

    @property
    def first(self) -> int:
        """Return the position of the first row in the order, counted from 1."""
        return (self.query.page - 1) * ROWS + 1

    @cached_property
    def columns(self) -> list[str]:
        return self.cases.table.columns(self.query.col)

    @cached_property
    def cells(self) -> Mapping[str, Sequence[ShownCell]]:
        """Return the cells of each case; none if its records were edited, or only its scores are kept."""
        try:
            return self.cases.table.rows([case.key for case in self.rows], self.columns)
        except (SettingsError, LookupError, TypeError, AttributeError):
            return {}

    @property
    def chosen(self) -> dict[str, str]:
        """Return the values of the menus that stand in the filter."""
        matches = {word: re.search(_TERM_OF.format(word), self.query.q) for word in self.cases.menus}
        return {word: match[0].partition(":")[2].strip('"') for word, match in matches.items() if match}


class Neighbours(NamedTuple):
    """The position of a case among the `left` that pass the filter, from 1, and the adjacent keys."""

    position: int | None
    left: int
    previous: str | None = None
    next: str | None = None


@dataclass(frozen=True)
class RunCases:
    """The cases of one run, finished or not, the worst first; `report` is None without aggregates."""

    listed: CaseList
    run: StoredRun
    report: PageRun | None = None

    @cached_property
    def start(self) -> Mapping[str, Any]:
        """Return the template values of the report's first screen and list of cases."""
        return page_start(self.report) if self.report else {}

    @cached_property
    def sections(self) -> Mapping[str, Any]:
        """Return the template values of the report's sections; prepare the search too, which may follow."""
        _ = self._filter.texts
        return page_sections(self.report) if self.report else {}

    @property
    def are_sections_late(self) -> bool:
        """Return True if the sections take so long that a page shows its cases before them."""
        return len(self.listed.cases) > AT_ONCE

    @property
    def is_partial(self) -> bool:
        """Return True unless all cases of the run ended."""
        return self.report is None or self.report.metrics["partial"]

    @cached_property
    def table(self) -> ResultsTable:
        """Return the table of the results."""
        return ResultsTable(self.run, self.listed)

    @cached_property
    def menus(self) -> Mapping[str, Sequence[str]]:
        """Return the values of the menus beside the filter."""
        cases = self.listed.cases
        found = {
            "outcome": {*map(attrgetter("outcome"), cases)},
            "category": {*map(attrgetter("category"), cases)} - {""},
            "tag": {*chain.from_iterable(map(attrgetter("tags"), cases))},
        }
        return {word: sorted(names)[:MOST_IN_MENU] for word, names in found.items()}

    @cached_property
    def _case_of(self) -> Mapping[str, ListedCase]:
        """Return the cases by their keys as addresses write them."""
        return {printable(case.key): case for case in self.listed.cases}

    def case(self, shown: str) -> ListedCase | None:
        """Return the case with this key, which an address writes without control characters."""
        return self._case_of.get(shown)

    def page(self, query: CaseQuery) -> CasePage:
        """Return the requested page of cases, or the last page if the number is beyond it."""
        try:
            found = self.matching(query.q, query.sort)
        except FilterError as error:
            return CasePage(self, query._replace(page=1), problem=str(error))
        number = max(1, min(query.page, -(-len(found) // ROWS)))
        rows = found[ROWS * (number - 1) : ROWS * number]
        return CasePage(self, query._replace(page=number), rows, len(found))

    def neighbours(self, key: str, query: CaseQuery) -> Neighbours:
        """Return the cases before and after a case; none if the filter is invalid."""
        try:
            keys = [case.key for case in self.matching(query.q, query.sort)]
        except FilterError:
            keys = []
        if key not in keys:
            return Neighbours(None, len(keys))
        place, around = keys.index(key), [None, *keys, None]
        return Neighbours(place + 1, len(keys), around[place], around[place + 2])

    def matching(self, query: str = "", sort: str = "") -> Sequence[ListedCase]:
        """Return the cases that pass a filter, in order; raise FilterError if one is invalid."""
        if len(query) > LONGEST:
            raise FilterError(f"the filter is longer than {LONGEST:,} characters")
        numbers = self._filter.numbers(query, MOST_TERMS) if query else range(len(self.listed.cases))
        return [self.listed.cases[number] for number in self._sorted(numbers, sort)]

    def keys(self, query: str, sort: str = "") -> list[str]:
        """Return the keys of `matching`; raise SettingsError if filter or order is invalid."""
        try:
            return [case.key for case in self.matching(query, sort)]
        except FilterError as error:
            raise SettingsError(str(error)) from None

    @cached_property
    def _filter(self) -> CaseFilter:
        return CaseFilter(self.listed)

    def _sorted(self, left: Sequence[int], sort: str) -> Sequence[int]:
        """Sort by latency, id or a metric, cases without a value last; else the worst first."""
        name, is_turned = sort.removeprefix("-"), sort.startswith("-")
        if not sort:
            return left
        if name == "id":
            return sorted(left, key=lambda number: printable(self.listed.cases[number].id), reverse=is_turned)
        if (column := self._filter.column(name)) is None:
            there = ", ".join([*self._filter.measured, *self.table.metrics])
            raise FilterError(f"{name!r} is nothing to sort by; there are id, {there}")
        measured = {number: value for number in left if (value := column[number]) is not None}
        order = sorted(measured, key=measured.__getitem__, reverse=is_turned)
        return [*order, *(number for number in left if number not in measured)]


def cases_of_report(report: PageRun) -> RunCases:
    """Return the cases of a finished run, with the recorded changes if the other run is gone."""
    listed, decided, run = report.listed, report.metrics.get("comparison"), report.side.run
    assert run is not None  # because the app opens runs by their ids
    if report.before is None and decided and decided["compared"]:
        changes = changes_of(decided)
        changed = [case._replace(change=changes.get(case.key, case.change)) for case in listed.cases]
        listed = worst_cases_first(replace(listed, cases=changed, is_compared=True))
    return RunCases(listed, run, report)


def recorded_cases(run: StoredRun) -> RunCases:
    """Return the recorded cases of a run without aggregates, without a comparison."""
    registry = registry_of(run)
    names = (str(name) for name in run.config.get("metrics", ()))
    metrics = {name: registry[bare] for name in names if (bare := name.partition("@")[0]) in registry}
    described = {name: {part: getattr(metric, part) for part in DESCRIBED} for name, metric in metrics.items()}
    return RunCases(list_cases(recorded_side(run, described), before=CaseColumns()), run)


CONFIG_FILES = ("rageval.toml", "pyproject.toml")
BASELINE = "baseline"
MOST_KEPT = 4
"""Maximum number of cached runs: one of 100,000 cases takes some hundred megabytes."""


class OpenedRuns:
    """The most recently read runs, by id and compared run."""

    def __init__(self, site: Site, folders: RunFolders) -> None:
        self._site, self._folders = site, folders
        self._kept: dict[object, tuple[object, RunCases]] = {}
        self._reading = threading.Lock()

    def open(self, run_id: str, other: str | None = None) -> RunCases:
        """Return a finished run, compared with `other` (a run or `baseline`) or with its recorded baseline.

        Raise SettingsError if the run has not ended or is unreadable.
        """
        folders = [self._site.stored_run(name).path for name in (run_id, other) if name and name != BASELINE]
        files = [folder / name for folder in folders for name in (CONFIG, METRICS, RESULTS, OBSERVATIONS, SCORES)]
        files += [self._site.settings.root / name for name in CONFIG_FILES]
        stamp = states_of([*files, self._site.settings.reports / "baseline.json"])
        return self._result(run_id, other, stamp, lambda: self._opened(run_id, other))

    def recorded(self, run: StoredRun) -> RunCases:
        """Return the cases of a run that has not ended or is partly unreadable."""
        files = [run.path / name for name in (CONFIG, METRICS, RESULTS)]
        stamp = states_of([*files, *journals(run.path, RESULTS)])
        return self._result(run.run_id, RESULTS, stamp, lambda: recorded_cases(run))

    def as_far_as_recorded(self, run: StoredRun) -> tuple[RunCases | None, Sequence[str]]:
        """Return a run, or its recorded cases, or None; and what is wrong with it."""
        problems: Sequence[str] = ()
        try:
            if run.metrics is not None:
                return self.open(printable(run.run_id)), ()
        except UnknownPageError:
            raise
        except SettingsError as error:
            problems = error.problems
        try:
            return self.recorded(run), problems
        except SettingsError as error:
            return None, [*dict.fromkeys([*problems, *error.problems])]

    def _result(self, run_id: str, other: str | None, stamp: object, read: Callable[[], RunCases]) -> RunCases:
        """Return what was read from files in this state; two windows on a large run read it once."""
        if (opened := self._known(run_id, other, stamp)) is not None:
            return opened  # while another run is read
        with self._reading:
            if (opened := self._known(run_id, other, stamp)) is None:
                try:
                    with no_collection(is_for_good=True):
                        opened = read()
                except (KeyError, TypeError, ValueError, AttributeError, LookupError) as error:
                    # The readers trust files that a run wrote; an edited one must become a page.
                    what = f"its files are not what a run writes: {type(error).__name__}: {error}; were they edited?"
                    raise SettingsError(f"run {run_id}: {what}") from None
                self._kept.pop((run_id, other), None)
                self._kept[run_id, other] = stamp, opened
                while len(self._kept) > MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
            return opened

    def _known(self, run_id: str, other: str | None, stamp: object) -> RunCases | None:
        known, opened = self._kept.get((run_id, other), (None, None))
        return opened if known == stamp else None

    def _opened(self, run_id: str, other: str | None) -> RunCases:
        run, project = self._site.stored_run(run_id), self._site.project()
        if other is None:
            before = compared_side(run, project.reports, project.baseline_file)
        else:
            before = open_side(project.reports, project.baseline_file, other)
        trend = recent_runs_of(self._folders.rows(), printable(run_id))
        report = read_page(side_of_run(run), before, project.settings, is_chosen=other is not None, trend=trend)
        opened = cases_of_report(report)
        _ = opened.start
        return opened


TheRuns = Annotated[OpenedRuns, of_app("opened_runs")]
"""A route parameter: the opened runs."""
