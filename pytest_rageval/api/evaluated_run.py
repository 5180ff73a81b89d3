"""A stored run, and a comparison of two, as objects for scripts: figures, records, and a form for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Side, open_side, side_of_run
from pytest_rageval.comparison.pairing import ComparisonReport, build_comparison
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.export.export_source import look_through
from pytest_rageval.render.html.notebook import comparison_html, run_html
from pytest_rageval.render.html.page_run import PageRun, compared_side, page_of, read_page
from pytest_rageval.runs.reader import StoredRun


@dataclass(frozen=True)
class EvaluatedRun:
    """A finished run, read from its folder, as `rageval report`, `explain` and the others read it.

    notes   remarks on the figures, for people
    """

    path: Path
    project: Project = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def run_id(self) -> str:
        return self.path.name

    @cached_property
    def stored(self) -> StoredRun:
        """Return the folder as the rest of the package reads it."""
        return StoredRun(self.path)

    @property
    def metrics(self) -> Mapping[str, float]:
        """Return the means over the cases, by metric, for metrics that were scored."""
        every = self.stored.finished_metrics["metrics"]
        return {name: metric["mean"] for name, metric in every.items() if metric["mean"] is not None}

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Return how many cases passed, failed, and so on."""
        return dict(self.stored.finished_metrics["outcomes"])

    @property
    def verdict(self) -> str:
        """Return the sentence that every report of the run shows."""
        return str(self.stored.finished_metrics["verdict"]["sentence"])

    @property
    def passed(self) -> bool:
        """Return True if this run would end with exit code 0 in CI."""
        verdict = self.stored.finished_metrics["verdict"]
        outcomes = self.outcomes
        is_failing = outcomes.get("failed", 0) + outcomes.get("error", 0) > 0
        return not is_failing and verdict["tone"] != "red"

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record for each case and trial, for a data frame: question, answer, outcome, every score.

        The names are those of `rageval export --format csv`.
        """
        source = look_through(self.stored)
        columns = source.columns()
        return [dict(zip(columns, source.row(record), strict=True)) for record in source.flat_records()]

    def results(self) -> list[dict[str, Any]]:
        """Return the complete records, as in results.jsonl."""
        return list(self.stored.records())

    @cached_property
    def _page(self) -> PageRun:
        project = self.project
        before = compared_side(self.stored, project.reports, project.baseline_file)
        return read_page(side_of_run(self.stored), before, project.settings)

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.verdict}"

    def _repr_html_(self) -> str:
        return run_html(self._page)


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side, case by case."""

    before: str
    after: str
    paired: ComparisonReport = field(repr=False)
    page: PageRun = field(repr=False)

    @property
    def verdict(self) -> str:
        """Return the verdict of the second run, compared with the first, as one sentence."""
        return self.paired.verdict.sentence

    @property
    def is_compared(self) -> bool:
        """Return True if the runs can be compared; if not, `problems` says why."""
        return self.paired.is_compared

    @property
    def problems(self) -> list[str]:
        return [str(mismatch) for mismatch in self.paired.mismatches]

    @property
    def newly_failing(self) -> list[str]:
        """Return the keys of cases that passed before and fail now."""
        return self._keys("flipped_to_fail")

    @property
    def fixed(self) -> list[str]:
        """Return the keys of cases that failed before and pass now."""
        return self._keys("flipped_to_pass")

    def _keys(self, name: str) -> list[str]:
        if not self.is_compared:
            return []
        return [case["case_key"] for case in self.paired.content[name]]

    def to_dict(self) -> Mapping[str, Any]:
        """Return what `rageval compare --format json` writes."""
        return self.paired.content

    def __str__(self) -> str:
        return f"{self.before} → {self.after}: {self.verdict}"

    def _repr_html_(self) -> str:
        return comparison_html(self.page)


def compare(before: EvaluatedRun | str, after: EvaluatedRun | str, *, ignore_invariants: bool = False) -> RunComparison:
    """Compare two runs, each an EvaluatedRun or a name: an id, `latest`, `latest~1`, `baseline`.

    Raise SettingsError if there is no such run. If the runs cannot be compared, `problems` says why.
    """
    runs = [run for run in (after, before) if isinstance(run, EvaluatedRun)]
    project = runs[0].project if runs else find_project()
    side_before = _side(before, project)
    side_after = _side(after, project)
    settings = project.settings
    ignores = ignore_invariants or settings.ignore_invariants
    paired = build_comparison(side_before, side_after, settings, ignore_invariants=ignores)
    page = page_of(side_after, side_before, paired, settings, is_chosen=True)
    return RunComparison(side_before.run_id, side_after.run_id, paired, page)


def _side(run: EvaluatedRun | str, project: Project) -> Side:
    if isinstance(run, EvaluatedRun):
        return side_of_run(run.stored)
    return open_side(project.reports, project.baseline_file, run)


compare_runs = compare
"""The same under a name that says in a script what is compared."""
