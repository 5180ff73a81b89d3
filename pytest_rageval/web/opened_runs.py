"""A cache of opened runs: each is read once, and again after its files change."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from pytest_rageval.comparison.baseline import open_side, side_of_run
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page
from pytest_rageval.render.html.report_page import page_content
from pytest_rageval.runs.columns import SCORES
from pytest_rageval.runs.reader import CONFIG, METRICS, OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.runs.results_file import journals
from pytest_rageval.text import printable
from pytest_rageval.web.case_list import PagedCases, cases_of_page, recorded_cases
from pytest_rageval.web.results_table import ResultsTable
from pytest_rageval.web.run_folders import RunFolders
from pytest_rageval.web.run_lines import recent_runs_of
from pytest_rageval.web.site import Site

CONFIG_FILES = ("rageval.toml", "pyproject.toml")
BASELINE = "baseline"
MOST_KEPT = 4
"""Maximum number of cached runs: one of 100,000 cases takes some hundred megabytes."""
WAIT = 20
"""The cases of an unfinished run are read again after this many times the duration of reading them."""


@dataclass(frozen=True)
class OpenedRun:
    """A read run with the list of its cases."""

    page: PageRun
    cases: PagedCases

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """Return the template values of the first screen and the sections."""
        return page_content(self.page)

    @cached_property
    def table(self) -> ResultsTable:
        """Return the table of its results."""
        return ResultsTable(run_of(self), self.cases.metrics)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Return the position of each case in the list by its key as addresses write it."""
        return {printable(case.key): number for number, case in enumerate(self.page.cases)}


class StillReadingError(RagevalError):
    """A large run is still being read; a later request gets it."""


@dataclass
class _Reading:
    """One reading of a run: the state of its files, its result, and how long that is served after they change."""

    stamp: object
    result: Future[Any] = field(default_factory=Future)
    serves_until: float = 0


class OpenedRuns:
    """The most recently used runs, by id and compared run. Each is read in its own thread."""

    def __init__(self, site: Site, folders: RunFolders) -> None:
        self._site = site
        self._folders = folders
        self._lock = threading.Lock()
        self._readings: OrderedDict[object, _Reading] = OrderedDict()

    def open(self, run_id: str, other: str | None = None) -> OpenedRun:
        """Return a finished run, compared with `other` (a run or `baseline`) or with its recorded baseline.

        Raise SettingsError if the run has not ended or is unreadable, StillReadingError if reading takes long; it
        continues in the background.
        """
        for name in (run_id, other):
            if name is not None and name != BASELINE:
                self._site.stored_run(name)  # raises unless the name from the address exists in the folder
        opened: OpenedRun = self._result(run_id, other, self._stamp(run_id, other), lambda: self._opened(run_id, other))
        return opened

    def recorded(self, run: StoredRun) -> PagedCases:
        """Return the cases of a run that has not ended or is partly unreadable. Raise the errors of `open`."""
        files = [run.path / name for name in (CONFIG, METRICS, RESULTS)]
        stamp = [_state_of(path) for path in (*files, *journals(run.path, RESULTS))]
        cases: PagedCases = self._result(run.run_id, RESULTS, stamp, lambda: recorded_cases(run), WAIT)
        return cases

    def _result(self, run_id: str, other: str | None, stamp: object, read: Callable[[], Any], wait: int = 0) -> Any:
        key = run_id, other
        with self._lock:
            reading = self._readings.get(key)
            if reading is None or (reading.stamp != stamp and time.monotonic() >= reading.serves_until):
                reading = self._readings[key] = _Reading(stamp, serves_until=math.inf if wait else 0)
                threading.Thread(target=_read_into, args=(reading, run_id, read, wait), daemon=True).start()
            self._readings.move_to_end(key)
            while len(self._readings) > MOST_KEPT:
                self._readings.popitem(last=False)
        try:
            return reading.result.result(self._site.settings.limits.patience_seconds)
        except TimeoutError:
            raise StillReadingError(f"run {run_id} is large: its cases are being read") from None
        except RagevalError:
            with self._lock:  # so that the run is read again once it is fixed
                if self._readings.get(key) is reading:
                    del self._readings[key]
            raise

    def _opened(self, run_id: str, other: str | None) -> OpenedRun:
        page = self._read(run_id, other)
        opened = OpenedRun(page, cases_of_page(page))
        _ = opened.content
        return opened

    def _read(self, run_id: str, other: str | None) -> PageRun:
        run, project = self._site.stored_run(run_id), self._site.project()
        side = side_of_run(run)
        if other is None:
            before = compared_side(run, project.reports, project.baseline_file)
        else:
            before = open_side(project.reports, project.baseline_file, other)
        trend = recent_runs_of(self._folders.rows(), printable(run_id))
        return read_page(side, before, project.settings, is_chosen=other is not None, trend=trend)

    def _stamp(self, run_id: str, other: str | None) -> object:
        """Return a value that changes whenever one of the files read changes."""
        settings = self._site.settings
        folders = [self._site.stored_run(run_id).path, *([self._site.runs / other] if other else [])]
        files = [folder / name for folder in folders for name in (CONFIG, METRICS, RESULTS, OBSERVATIONS, SCORES)]
        files += [settings.root / name for name in CONFIG_FILES]
        return [_state_of(path) for path in (*files, settings.reports / "baseline.json")]


def _read_into(reading: _Reading, run_id: str, read: Callable[[], Any], wait: int) -> None:
    """Set the reading's result from `read`, and keep it for `wait` times as long as that took."""
    started, serves_until = time.monotonic(), 0.0
    try:
        with no_collection():
            result = read()
        serves_until = time.monotonic() + wait * (time.monotonic() - started)
    except (KeyError, TypeError, ValueError, AttributeError, LookupError) as error:
        # The readers trust files that a run wrote: an edited file must become an error page, not a traceback.
        what = f"run {run_id}: its files are not what a run writes: {type(error).__name__}: {error}; were they edited?"
        reading.result.set_exception(SettingsError(what))
    except BaseException as error:  # noqa: BLE001 because the waiting request raises it
        reading.result.set_exception(error)
    else:
        reading.result.set_result(result)
    finally:
        reading.serves_until = serves_until


def run_of(opened: OpenedRun) -> StoredRun:
    """Return the folder of an opened run."""
    run = opened.page.side.run
    assert run is not None  # because it was opened by its id
    return run


def _state_of(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size


def opened_runs_of(request: Request) -> OpenedRuns:
    runs: OpenedRuns = request.app.state.opened_runs
    return runs


TheRuns = Annotated[OpenedRuns, Depends(opened_runs_of)]
"""A route parameter: the opened runs."""
