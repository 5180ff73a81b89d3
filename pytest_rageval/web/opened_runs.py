"""Runs that are being looked at, read once and kept until their files change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request

from pytest_rageval.comparison.baseline import open_side
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page, side_of
from pytest_rageval.render.html.report_page import page_content
from pytest_rageval.render.html.run_cases import FullTexts
from pytest_rageval.runs.columns import SCORES
from pytest_rageval.runs.reader import CONFIG, METRICS, OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.index.case_rows import listing_of
from pytest_rageval.web.index.case_tables import open_cases
from pytest_rageval.web.index.run_index import RunIndex
from pytest_rageval.web.index.run_queries import recent_runs_of
from pytest_rageval.web.site import Site

FILE = "rageval.sqlite"


def open_run_index(site: Site) -> RunIndex:
    """The index beside the agents and datasets; made with the app, once."""
    return RunIndex(site.settings.data / FILE, site.runs, site.settings.data / "jobs")


def run_index_of(request: Request) -> RunIndex:
    index: RunIndex = request.app.state.run_index
    return index


TheIndex = Annotated[RunIndex, Depends(run_index_of)]
"""A parameter of a route: the index."""


CONFIG_FILES = ("rageval.toml", "pyproject.toml")
BASELINE = "baseline"
MOST_KEPT = 4
"""Runs in memory: one of 100,000 cases takes some hundred megabytes."""


@dataclass(frozen=True)
class OpenedRun:
    """A run as its pages show it; what costs time is done when it is first asked for."""

    page: PageRun

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """What the templates of the first screen and of the sections show."""
        return page_content(self.page)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The place of each case in the list, worst first, by its key as addresses hold it."""
        return {printable(case.key): number for number, case in enumerate(self.page.cases)}


class StillReadingError(RagevalError):
    """A run that is so large that it is not read yet; whoever asks again in a second or two may have it."""


class _Reading(NamedTuple):
    """A run that is being read, or was: the state of its files then, and what came of it."""

    stamp: object
    result: Future[OpenedRun]


class OpenedRuns:
    """The last runs that were looked at, by id and what each is compared with. Each is read in a thread of its own."""

    def __init__(self, site: Site, index: RunIndex) -> None:
        self._site = site
        self._index = index
        self._lock = threading.Lock()
        self._readings: OrderedDict[tuple[str, str | None], _Reading] = OrderedDict()

    def open(self, run_id: str, other: str | None = None) -> OpenedRun:
        """A finished run, compared with another one (or `baseline`), or with what it was compared with when it ended.

        SettingsError of a run that has not ended or cannot be read, StillReadingError of one that takes long to read:
        that goes on meanwhile.
        """
        for name in (run_id, other):
            if name is not None and name != BASELINE:
                self._site.stored_run(name)  # a name from an address is one of the folder's, or nothing
        key = (run_id, other)
        reading = self._reading(key)
        patience = self._site.settings.limits.patience_seconds
        try:
            return reading.result.result(patience)
        except TimeoutError:
            raise StillReadingError(f"run {run_id} is large: its cases are being read") from None
        except RagevalError:
            with self._lock:  # what is mended is read anew
                if self._readings.get(key) is reading:
                    del self._readings[key]
            raise

    def _reading(self, key: tuple[str, str | None]) -> _Reading:
        """What is being read already, as the files are now; else it is begun."""
        stamp = self._stamp(*key)
        with self._lock:
            reading = self._readings.get(key)
            if reading is None or reading.stamp != stamp:
                reading = self._readings[key] = _Reading(stamp, Future())
                threading.Thread(target=self._read_into, args=(reading.result, *key), daemon=True).start()
            self._readings.move_to_end(key)
            while len(self._readings) > MOST_KEPT:
                self._readings.popitem(last=False)
            return reading

    def _read_into(self, result: Future[OpenedRun], run_id: str, other: str | None) -> None:
        try:
            full_texts: FullTexts = {}
            opened = self._opened(run_id, other, full_texts)
            if other is None:
                self._put_into_index(opened.page, run_of(opened), full_texts)
        except BaseException as error:  # noqa: BLE001 whoever waits for the result raises it
            result.set_exception(error)
        else:
            result.set_result(opened)

    def _put_into_index(self, page: PageRun, run: StoredRun, full_texts: FullTexts) -> None:
        """The cases of the list, as they were just read. Where what the run was compared with is gone, what is known of
        that is read anew: the index keeps what was decided then."""
        is_whole = page.before is not None or page.metrics.get("comparison") is None
        read = (lambda: listing_of(page, full_texts)) if is_whole else None
        open_cases(self._index, run, self._site.project().baseline_file, read)

    def _opened(self, run_id: str, other: str | None, full_texts: FullTexts) -> OpenedRun:
        try:
            with no_collection():
                opened = OpenedRun(self._read(run_id, other, full_texts))
                _ = opened.content
        except (KeyError, TypeError, ValueError, AttributeError, LookupError) as error:
            # What readers do not check is relied on: a file that somebody edited must be a page, not a bug.
            what = f"{type(error).__name__}: {error}"
            raise SettingsError(
                f"run {run_id}: its files are not what a run writes: {what}; were they edited?"
            ) from error
        return opened

    def _read(self, run_id: str, other: str | None, full_texts: FullTexts) -> PageRun:
        run, project = self._site.stored_run(run_id), self._site.project()
        side = side_of(run)
        if other is None:
            before = compared_side(run, project.reports, project.baseline_file)
        else:
            before = open_side(project.reports, project.baseline_file, other)
        trend = self._index.read(lambda connection: recent_runs_of(connection, printable(run_id)))
        return read_page(side, before, project.settings, full_texts, is_chosen=other is not None, trend=trend)

    def _stamp(self, run_id: str, other: str | None) -> object:
        """What changes when anything that is read does."""
        settings = self._site.settings
        folders = [self._site.stored_run(run_id).path, *([self._site.runs / other] if other else [])]
        files = [folder / name for folder in folders for name in (CONFIG, METRICS, RESULTS, OBSERVATIONS, SCORES)]
        files += [settings.root / name for name in CONFIG_FILES]
        return [_state_of(path) for path in (*files, settings.reports / "baseline.json")]


def run_of(opened: OpenedRun) -> StoredRun:
    """The folder of a run that is open."""
    run = opened.page.side.run
    assert run is not None  # because it was opened by its id
    return run


def _state_of(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def opened_runs_of(request: Request) -> OpenedRuns:
    runs: OpenedRuns = request.app.state.opened_runs
    return runs


TheRuns = Annotated[OpenedRuns, Depends(opened_runs_of)]
"""A parameter of a route: the runs that are open."""
