"""The runs that the browser opened last, read once for as long as their files stay the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pytest_rageval.comparison.baseline import open_side, side_of_run
from pytest_rageval.comparison.case_changes import changes_of, new_causes_of
from pytest_rageval.comparison.case_list import list_cases, recorded_side, worst_cases_first
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page
from pytest_rageval.runs.columns import SCORES, CaseColumns
from pytest_rageval.runs.reader import CONFIG, METRICS, StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS
from pytest_rageval.runs.records.record_files import journals
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable
from pytest_rageval.web.run_cases import RunCases
from pytest_rageval.web.run_list import RunFolders, recent_runs_of, states_of
from pytest_rageval.web.site import Site, UnknownPageError, of_app


def cases_of_report(report: PageRun) -> RunCases:
    """Return the cases of a finished run, with the recorded changes if the other run is gone."""
    listed = report.listed
    decided = report.metrics.get("comparison")
    run = report.side.run
    assert run is not None  # because the app opens runs by their ids
    if report.before is None and decided and decided["compared"]:
        changes = changes_of(decided)
        new_causes = new_causes_of(decided)
        changed = []
        for case in listed.cases:
            word = changes.get(case.key, case.change)
            cause = new_causes.get(case.key, case.cause)
            changed.append(case._replace(change=word, cause=cause))
        listed = worst_cases_first(replace(listed, cases=changed, is_compared=True))
    return RunCases(listed, run, report)


def recorded_cases(run: StoredRun) -> RunCases:
    """Return the recorded cases of a run without aggregates, without a comparison."""
    registry = registry_of(run)
    described: dict[str, dict[str, Any]] = {}
    for name in map(str, run.config.get("metrics", ())):
        bare = name.partition("@")[0]
        if bare in registry:
            metric = registry[bare]
            described[name] = {"scale": metric.scale, "better": metric.better, "layer": metric.layer}
            if metric.unit is not None:
                described[name]["unit"] = metric.unit
    listed = list_cases(recorded_side(run, described), before=CaseColumns(), with_places=True)
    return RunCases(listed, run)


CONFIG_FILES = ("rageval.toml", "pyproject.toml")
BASELINE = "baseline"
MOST_KEPT = 4
"""Maximum number of cached runs: one of 100,000 cases takes some hundred megabytes."""


class OpenedRuns:
    """The most recently read runs, by id and compared run."""

    def __init__(self, site: Site, folders: RunFolders) -> None:
        self._site = site
        self._folders = folders
        self._kept: dict[object, tuple[object, RunCases]] = {}
        self._reading = threading.Lock()

    def open(self, run_id: str, other: str | None = None) -> RunCases:
        """Return a finished run, compared with `other` (a run or `baseline`) or with its recorded baseline.

        Raise SettingsError if the run has not ended or is unreadable.
        """
        folders = [self._site.stored_run(name).path for name in (run_id, other) if name and name != BASELINE]
        files = [folder / name for folder in folders for name in (CONFIG, METRICS, RESULTS, OBSERVATIONS, SCORES)]
        # Gates and comparisons depend on the configuration as well.
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
        opened = self._known(run_id, other, stamp)
        if opened is not None:
            return opened  # without the lock, which another run may keep for seconds
        with self._reading:
            opened = self._known(run_id, other, stamp)
            if opened is not None:
                return opened  # another window has read it meanwhile
            try:
                # Many small objects that stay: the garbage collector would go through them at each of its rounds.
                with no_collection(is_for_good=True):
                    opened = read()
            except (KeyError, TypeError, ValueError, AttributeError, LookupError) as error:
                # The readers trust files that a run wrote; an edited one must become a page.
                what = f"its files are not what a run writes: {type(error).__name__}: {error}; were they edited?"
                raise SettingsError(f"run {run_id}: {what}") from None
            self._kept.pop((run_id, other), None)
            self._kept[run_id, other] = stamp, opened
            while len(self._kept) > MOST_KEPT:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
            return opened

    def _known(self, run_id: str, other: str | None, stamp: object) -> RunCases | None:
        known, opened = self._kept.get((run_id, other), (None, None))
        return opened if known == stamp else None

    def _opened(self, run_id: str, other: str | None) -> RunCases:
        run = self._site.stored_run(run_id)
        project = self._site.project()
        if other is None:
            before = compared_side(run, project.reports, project.baseline_file)
        else:
            before = open_side(project.reports, project.baseline_file, other)
        trend = recent_runs_of(self._folders.rows(), printable(run_id))
        report = read_page(
            side_of_run(run),
            before,
            project.settings,
            with_places=True,
            is_chosen=other is not None,
            trend=trend,
        )
        opened = cases_of_report(report)
        _ = opened.start  # computed here, while other windows wait for it
        return opened


TheRuns = Annotated[OpenedRuns, of_app("opened_runs")]
"""A route parameter: the opened runs."""
