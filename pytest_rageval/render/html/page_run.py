"""The data of an HTML report: a stored run, the run to compare with, its cases and earlier runs, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_rageval.check.calibration_record import CalibrationRecord, stored_calibrations
from pytest_rageval.comparison.baseline import Side, open_side
from pytest_rageval.comparison.case_changes import changes_of, new_causes_of
from pytest_rageval.comparison.case_list import CaseList, Fall, list_cases, with_answer_changes
from pytest_rageval.comparison.changes import signed_width
from pytest_rageval.comparison.cut_offs import renamed_metrics
from pytest_rageval.comparison.gates_now import Both
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.comparison.pairing import ComparisonReport, build_comparison
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_sentence import WORDS, RunVerdict, run_verdict
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.runs.columns import CaseColumns, Column
from pytest_rageval.runs.history import PastRun, past_run, with_changes
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS
from pytest_rageval.runs.records.record_files import record_paths
from pytest_rageval.runs.run_ref import in_time, is_of_sweep
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import counted

SHOWN_RUNS = 20
"""Runs of the trend."""


@dataclass(frozen=True)
class PageRun:
    """A finished run with the data of its HTML report."""

    side: Side
    settings: Settings
    before: Side | None
    """The other run, or the baseline; None without one."""
    comparison: Mapping[str, Any] | None
    """The content of the comparison, which may lack what details need; None without another run."""
    listed: CaseList
    """The cases of the run, worst first, with their scores and falls."""
    trend: Sequence[PastRun]
    """Finished runs of the same cases in time, this one last."""
    is_chosen: bool = False
    """The other run was named, and is not what the run was compared with when it ended."""
    comparison_verdict: RunVerdict | None = None
    """The verdict of this run against the other."""
    both: Both | None = None
    """The cases that both runs have, as they are compared."""
    exit_status: int = 0
    """That of pytest, if it is known."""
    calibrations: Sequence[CalibrationRecord] = ()
    """The newest calibration of the run's judge in each metric, from the run's folder of reports."""
    damages: list[str] = field(default_factory=list)
    """Unreadable lines, found while the pages of cases are made."""

    @property
    def run_id(self) -> str:
        return self.side.run_id

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.side.metrics

    @property
    def config(self) -> Mapping[str, Any]:
        """Return the content of config.json; empty if it is unknown."""
        return self.side.config or {}

    @property
    def decided(self) -> Mapping[str, Any]:
        """Return the verdict that the run ended with, as metrics.json has it."""
        return self.metrics.get("verdict") or {}

    @property
    def problems(self) -> Mapping[str, str]:
        """Return what failed the run apart from its gates, by name, and what is wrong with its records now."""
        problems = dict(self.decided.get("problems") or {})
        if self.side.damage is not None:
            problems["records"] = self.side.damage
        return problems

    @cached_property
    def registry(self) -> Registry:
        return registry_of(self.side.run) if self.side.run else load_registry()

    @property
    def compared(self) -> Mapping[str, Any] | None:
        """Return the comparison if both runs are comparable, else None."""
        if self.comparison and self.comparison["compared"]:
            return self.comparison
        return None

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Return the names of the other run's metrics in this one: `recall_any@5` → `recall_any@2`."""
        return renamed_metrics(self.before, self.side) if self.before else {}

    @property
    def cases(self) -> Sequence[ListedCase]:
        return self.listed.cases

    @property
    def falls(self) -> Mapping[str, Sequence[Fall]]:
        """Return the cases that fell in each metric."""
        return self.listed.falls or {}

    @cached_property
    def before_columns(self) -> Mapping[str, Column]:
        """Return the other run's scores by this run's metric names; empty if the runs are not compared."""
        if self.before is None or not self.compared:
            return {}
        return self.before.cases.renamed(self.names).scores

    @property
    def operations(self) -> Mapping[str, Any]:
        """Return what asking took, by operation."""
        return self.metrics["volatile"].get("operations") or {}

    @property
    def operations_before(self) -> Mapping[str, Any]:
        """Return what asking took in the other run; empty if it is unknown, or of other cases."""
        if self.before is None or not self.compared or not self.is_of_same_cases:
            return {}
        # A baseline holds no latency, but its run may still be kept.
        kept_metrics = self.before.run.metrics if self.before.run else None
        volatile = (kept_metrics or self.before.metrics).get("volatile") or {}
        return volatile.get("operations") or {}

    @cached_property
    def widths(self) -> Mapping[str, float]:
        """Return for each metric the factor that turns a share of its scale into a change on the scale."""
        return {name: signed_width(metric) for name, metric in self.metrics["metrics"].items()}

    @cached_property
    def is_of_same_cases(self) -> bool:
        """Return True if all cases of both runs are compared, so that figures of both runs are of the same cases."""
        compared = self.compared or {}
        return not any(compared.get(name) for name in ("changed_cases", "only_before", "only_after"))

    def values_in_time(self, name: str) -> list[float | None]:
        """Return a metric's values in the runs of the trend; at the cut-off of this run's k, each at its own."""
        bare, _, cut_off = name.partition("@")
        # So the line does not end where the project changed its k.
        if cut_off and cut_off == str(self.config.get("k")):
            name = f"{bare}@k"
        return [run.value(name) for run in self.trend]

    @cached_property
    def gates(self) -> Sequence[Mapping[str, Any]]:
        """Return the run's gates as decided; against a chosen run, regressions by the project's present gates."""
        decided = self.metrics.get("gates") or []
        if not self.is_chosen or self.compared is None:
            return decided
        # Regressions were decided against the recorded baseline, not against the chosen run.
        absolute = [gate for gate in decided if gate["op"] not in ("drop", "rise")]
        return [*absolute, *self.compared["gates"]]

    @cached_property
    def verdict(self) -> RunVerdict:
        """Return the verdict that the run ended with; against a chosen run, the verdict of this comparison."""
        if self.is_chosen and self.comparison_verdict is not None:
            return self.comparison_verdict
        facts = VerdictFacts(
            self.metrics,
            self.metrics.get("comparison"),
            self.gates,
            self.problems,
            self.exit_status,
            is_waived=self.settings.allow_regressions or self.settings.update_baseline,
            known_failures=self.decided.get("known_failures") or "fail",
        )
        verdict = run_verdict(facts)
        # Runs of older versions have no verdict in their files.
        is_recorded = self.decided.get("word") in WORDS and "tone" in self.decided
        # The page must not say otherwise than the exit status did, except where files were damaged since.
        if self.side.damage is None and is_recorded:
            return replace(verdict, tone=self.decided["tone"], word=self.decided["word"])
        return verdict

    @property
    def missing(self) -> list[str]:
        """Return the files, records and lines that this run lacks, and what cannot be shown without them."""
        effects = {
            RESULTS: "cases are listed without texts, and none can be opened",
            OBSERVATIONS: "expected answers and golds that were not retrieved are not shown",
        }
        if self.side.run is None:
            return [f"{self.run_id} is known by its aggregates and scores only: no case can be opened"]
        total = self.metrics["total_tests"]
        folder = self.side.run.path.name
        present = {name for name in effects if record_paths(self.side.run.path, name)}
        missing = []
        if self.side.damage is not None:
            missing.append(self.side.damage)
        for name, effect in effects.items():
            if total and name not in present:
                missing.append(f"{name} is not in {folder}/ (removed, or not written): {effect}")
        if len(self.cases) < total:
            source = RESULTS if RESULTS in present else "the table of scores"
            holds = f"{source} holds {len(self.cases):,} of {counted(total, 'case')}"
            missing.append(f"{holds} (cut off?): others are not listed")
        return [*missing, *dict.fromkeys(self.damages)]


def read_page(
    side: Side, before: Side | None, settings: Settings, *, with_places: bool = False, **facts: Any
) -> PageRun:
    """Read all that the page of this run needs.

    with_places  whether the places of records are kept, as for `list_cases`
    facts        fields of PageRun that its files do not hold
    """
    paired = None
    if not facts.get("is_chosen"):
        # The switch that was recorded when the run was compared counts.
        comparison = side.metrics.get("comparison") or {}
        ignores = comparison.get("ignores_invariants", settings.ignore_invariants)
        settings = settings.model_copy(update={"ignore_invariants": ignores})
    if before is not None:
        ignores = settings.ignore_invariants
        paired = build_comparison(before, side, settings, ignore_invariants=ignores, is_detailed=False)
    return page_of(side, before, paired, settings, with_places=with_places, **facts)


def page_of(
    side: Side,
    before: Side | None,
    paired: ComparisonReport | None,
    settings: Settings,
    *,
    with_places: bool = False,
    **facts: Any,
) -> PageRun:
    """Return the page of a run that was already compared with the other; arguments as for `read_page`."""
    comparison = paired.content if paired else None
    scores_before = CaseColumns()
    names: Mapping[str, str] = {}
    is_compared = before is not None and paired is not None and paired.is_compared
    if before is not None and paired is not None and paired.is_compared:
        names = renamed_metrics(before, side)
        scores_before = before.cases.without(paired.content["changed_cases"])
    listed = list_cases(
        side,
        changes_of(comparison),
        scores_before,
        names,
        is_compared=is_compared,
        new_causes=new_causes_of(comparison),
        with_places=with_places,
    )
    if is_compared and before is not None and paired is not None:
        listed = with_answer_changes(listed, side, before, paired.content["changed_cases"])
    if not facts.get("trend"):
        facts["trend"] = recent_runs(side.run) if side.run else []
    if side.run is not None:
        reports = side.run.path.parent.parent
        facts.setdefault("calibrations", stored_calibrations(reports, side.run.config.get("judge")))
    if paired is not None:
        facts["comparison_verdict"] = paired.verdict
        facts["both"] = paired.both
    return PageRun(side, settings, before, comparison, listed, **facts)


def compared_side(run: StoredRun, reports: Path, baseline: Path) -> Side | None:
    """Return what a run was compared with when it ended: the baseline if it is still the same, else its run."""
    comparison = run.finished_metrics.get("comparison")
    run_id = comparison.get("baseline_run_id") if comparison else None
    if not run_id:
        return None
    for reference in ("baseline", run_id):
        try:
            side = open_side(reports, baseline, reference)
        except SettingsError:  # gone, or replaced: try the next one
            continue
        # Another run may have become the baseline since.
        if side.run_id == run_id:
            return side
    return None


def recent_runs(run: StoredRun) -> list[PastRun]:
    """Return the earlier runs of the same cases and this run, oldest first; unreadable folders are skipped."""
    folders = [path for path in in_time(run.path.parent) if path == run.path or not is_of_sweep(path)]
    if run.path in folders:
        folders = folders[: folders.index(run.path)]
    dataset = run.config["dataset_hash"]
    runs = [past_run(run)]
    for folder in reversed(folders):
        # Newest first, so that a folder of hundreds of runs is not read to its end.
        if len(runs) == SHOWN_RUNS:
            break
        try:
            past = past_run(StoredRun(folder))
        except SettingsError:  # not finished, or damaged: `rageval history` names it
            continue
        # A mean over other cases would be a step that is no change of the system.
        if past.dataset_hash == dataset and not past.is_partial:
            runs.append(past)
    return list(with_changes(reversed(runs)))
