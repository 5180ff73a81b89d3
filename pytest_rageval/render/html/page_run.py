"""What a page is made from: a stored run, what it is compared with, its cases and the runs before it, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_rageval.comparison.baseline import Side, open_side
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, RunVerdict, VerdictFacts, run_verdict
from pytest_rageval.comparison.verdicts import renamed_metrics
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.render.html.run_cases import (
    Fall,
    Flips,
    FullTexts,
    ListedCase,
    falls_by_metric,
    listed_cases,
    signed_width,
)
from pytest_rageval.runs.columns import Column
from pytest_rageval.runs.history import PastRun
from pytest_rageval.runs.reader import OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.runs.results_file import journals
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import counted
from pytest_rageval.tools.calibration_record import CalibrationRecord, stored_calibrations
from pytest_rageval.views.comparison import fallen_lines, settings_table
from pytest_rageval.views.parts import FigureTable

if TYPE_CHECKING:
    from pytest_rageval.comparison.pairing import Paired
from pytest_rageval.runs.history import past_run, with_changes
from pytest_rageval.runs.run_ref import in_time

SHOWN_RUNS = 20


@dataclass(frozen=True)
class PageRun:
    """A finished run and what its page tells beside it.

    before      the other run, or baseline; None where there is nothing to compare with
    comparison  the content of `pair`; None without another run
    cases       worst first
    trend       finished runs of the same cases in time, this one last
    is_chosen   the other run was named, and is not what the run was compared with when it ended
    of_pair     the verdict of the two
    exit_status of pytest, where it is known
    calibrations
                the newest one of the run's judge in each metric, from the folder of reports that the run lies in
    damages     lines that could not be read, as they are met while the pages of cases are made
    """

    side: Side
    settings: Settings
    before: Side | None
    comparison: Mapping[str, Any] | None
    cases: Sequence[ListedCase]
    trend: Sequence[PastRun]
    is_chosen: bool = False
    of_pair: RunVerdict | None = None
    exit_status: int = 0
    calibrations: Sequence[CalibrationRecord] = ()
    damages: list[str] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        return self.side.run_id

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.side.metrics

    @property
    def config(self) -> Mapping[str, Any]:
        """The content of config.json; empty where nothing tells it."""
        return self.side.config or {}

    @property
    def problems(self) -> Mapping[str, str]:
        """What failed the run beside its gates, by name."""
        verdict = self.metrics.get("verdict") or {}
        problems: Mapping[str, str] = verdict.get("problems") or {}
        return problems

    @cached_property
    def registry(self) -> Registry:
        return registry_of(self.side.run) if self.side.run else load_registry()

    @property
    def compared(self) -> Mapping[str, Any] | None:
        """The comparison, where the two could be compared."""
        return self.comparison if self.comparison and self.comparison["compared"] else None

    @property
    def has_both_sides(self) -> bool:
        """Are there texts of both runs, so that a case can be seen before and after? A baseline holds none."""
        return self.compared is not None and self.before is not None and self.before.has_records

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Metrics of the other run by what they are called in this one: `recall_any@5` → `recall_any@2`."""
        return renamed_metrics(self.before, self.side) if self.before else {}

    @cached_property
    def score_columns(self) -> Mapping[str, Column]:
        """By metric the score of each case, in the order of the cases: what looks at all of them reads columns, which
        takes a tenth of the time that as many small mappings take."""
        by_case = [case.row.scores for case in self.cases]
        return {name: [scores.get(name) for scores in by_case] for name in sorted(set().union(*by_case))}

    @cached_property
    def before_columns(self) -> Mapping[str, Column]:
        """By metric, as it is called in this run, the scores of the other run; empty where they are not compared."""
        if self.compared is None or self.before is None or self.before.scores is None:
            return {}
        return self.before.scores.cases.renamed(self.names).scores

    @property
    def latency_before(self) -> Mapping[str, Any]:
        """The latency of the other run; empty where it is unknown, or of other cases."""
        if self.before is None or not self.compared or not self.is_of_same_cases:
            return {}
        metrics = self.before.run.metrics if self.before.run else None
        return ((metrics or self.before.metrics).get("volatile") or {}).get("latency") or {}

    @cached_property
    def falls(self) -> Mapping[str, list[Fall]]:
        """By metric the cases that fell in it."""
        if self.compared is None or self.before is None or self.before.scores is None:
            return {}
        earlier = self.before.scores.without(self.compared["changed_cases"])
        return falls_by_metric(self.cases, earlier.cases, self.metrics["metrics"], self.names)

    @cached_property
    def widths(self) -> Mapping[str, float]:
        """By metric what a share of its scale is multiplied by to give a change on the metric's own scale."""
        return {name: signed_width(metric) for name, metric in self.metrics["metrics"].items()}

    @cached_property
    def is_of_same_cases(self) -> bool:
        """Are all cases of both runs compared, so that figures of the whole runs are of the same cases?"""
        compared = self.compared or {}
        return not any(compared.get(name) for name in ("changed_cases", "only_before", "only_after"))

    def values_in_time(self, name: str) -> list[float | None]:
        """A metric in the runs of the trend; at the cut-off of this run's k, each at its own."""
        bare, at, k = name.partition("@")
        written = f"{bare}@k" if at and k == str(self.config.get("k")) else name
        return [run.value(written) for run in self.trend]

    @cached_property
    def gates(self) -> Sequence[Mapping[str, Any]]:
        """Gates of the run as they were decided; against a run that was chosen, those of the project as it is now."""
        decided = self.metrics.get("gates") or []
        if not self.is_chosen or self.compared is None:
            return decided
        return [*(gate for gate in decided if gate["op"] not in ("drop", "rise")), *self.compared["gates"]]

    @cached_property
    def verdict(self) -> RunVerdict:
        """The verdict that the run ended with; against a run that was chosen, that of this comparison."""
        if self.is_chosen and self.of_pair is not None:
            return self.of_pair
        verdict = run_verdict(
            VerdictFacts(
                self.metrics, self.metrics.get("comparison"), self.gates, self.problems, self.exit_status,
                is_waived=self.settings.allow_regressions or self.settings.update_baseline,
            )
        )  # fmt: skip
        decided = self.metrics.get("verdict") or {}
        if decided.get("word") not in SYMBOLS or "tone" not in decided:
            return verdict
        return replace(verdict, tone=decided["tone"], word=decided["word"])

    @property
    def missing(self) -> list[str]:
        """What a complete run has and this one has not: files, records, lines; with what is not shown for it."""
        lost = {
            RESULTS: "cases are listed without texts, and none can be opened",
            OBSERVATIONS: "expected answers and golds that were not retrieved are not shown",
        }
        if self.side.run is None:
            return [f"{self.run_id} is known by its aggregates and scores only: no case can be opened"]
        folder = self.side.run.path
        kept = {name for name in lost if (folder / name).is_file() or journals(folder, name)}
        gone = [name for name in lost if self.metrics["total_tests"] and name not in kept]
        missing = [f"{name} is not in {folder.name}/ (removed, or not written): {lost[name]}" for name in gone]
        if len(self.cases) < (total := self.metrics["total_tests"]):
            kept_in = RESULTS if RESULTS in kept else "the table of scores"
            missing.append(
                f"{kept_in} holds {len(self.cases):,} of {counted(total, 'case')} (cut off?): others are not listed"
            )
        return [*missing, *dict.fromkeys(self.damages)]

    @property
    def fallen_together(self) -> list[str]:
        """A line for each group of metrics that got worse in the same cases."""
        return fallen_lines(self.compared or {})

    def changed_settings(self) -> FigureTable:
        """Return the settings that differ from the other run, none without one."""
        return settings_table(self.comparison or {"configuration": ()})


def read_page(
    side: Side, before: Side | None, settings: Settings, full_texts: FullTexts | None = None, **facts: Any
) -> PageRun:
    """Read all that a page of this run needs; `facts` are those of PageRun that its files do not hold.

    `full_texts` takes what the cases hold only the beginning of.
    """
    paired = None
    if not facts.get("is_chosen"):
        settings = _as_decided(settings, side.metrics)
    if before is not None:
        from pytest_rageval.comparison.pairing import pair  # here, because a run without a baseline pairs nothing

        ignores = settings.ignore_invariants
        paired = pair(before, side, settings, ignore_invariants=ignores, is_detailed=False)
    return page_of(side, before, paired, settings, full_texts, **facts)


def _as_decided(settings: Settings, metrics: Mapping[str, Any]) -> Settings:
    """The settings with those switches by which the run was compared when it ended, where it says so."""
    comparison = metrics.get("comparison") or {}
    ignores = comparison.get("ignores_invariants", settings.ignore_invariants)
    return settings.model_copy(update={"ignore_invariants": ignores})


def page_of(
    side: Side, before: Side | None, paired: Paired | None, settings: Settings,
    full_texts: FullTexts | None = None, **facts: Any,
) -> PageRun:  # fmt: skip
    """The same of two runs that were compared already."""
    comparison = paired.content if paired is not None else None
    scores = before.scores if before is not None and paired is not None and paired.is_compared else None
    if scores is not None and comparison is not None:
        scores = scores.without(comparison["changed_cases"])
    names = renamed_metrics(before, side) if before else {}
    cases = listed_cases(side, flips_of(comparison), scores, names, full_texts)
    trend = facts.get("trend") or (recent_runs(side.run) if side.run else [])
    calibrations = stored_calibrations(side.run.path.parent.parent, side.run.config.get("judge")) if side.run else ()
    of_pair = paired.verdict if paired is not None else None
    facts = {"calibrations": calibrations, "of_pair": of_pair, **facts, "trend": trend}
    return PageRun(side, settings, before, comparison, cases, **facts)


def side_of(run: StoredRun) -> Side:
    """A run as one side of a comparison; SettingsError of one that has not ended."""
    return Side(run.run_id, run.finished_metrics, run.scores, run.config, run)


def flips_of(comparison: Mapping[str, Any] | None) -> Flips:
    if comparison is None or not comparison["compared"]:
        return Flips()
    worse, fixed, unmeasured = (
        frozenset(case["case_key"] for case in comparison[name])
        for name in ("flipped_to_fail", "flipped_to_pass", "unmeasured")
    )
    new = frozenset([*comparison["only_after"], *comparison["changed_cases"]])
    return Flips(worse, fixed, unmeasured, new)


def compared_side(run: StoredRun, reports: Path, baseline: Path) -> Side | None:
    """What a run was compared with when it ended: the baseline of that time, if it is still there or its run is."""
    comparison = run.finished_metrics.get("comparison")
    run_id = comparison.get("baseline_run_id") if comparison else None
    if not run_id:
        return None
    for reference in ("baseline", run_id):
        try:
            side = open_side(reports, baseline, reference)
        except SettingsError:  # gone, or replaced by something else: the next one may do
            continue
        if side.run_id == run_id:
            return side
    return None


def recent_runs(run: StoredRun) -> list[PastRun]:
    """The run and those of the same cases before it, the oldest first; folders that cannot be read are passed over."""
    folders = in_time(run.path.parent)
    names = [folder.name for folder in folders]
    until = names.index(run.path.name) if run.path.name in names else len(folders)
    dataset = run.config["dataset_hash"]
    runs = [past_run(run)]
    for folder in reversed(folders[:until]):
        if len(runs) == SHOWN_RUNS:
            break
        try:
            past = past_run(StoredRun(folder))
        except SettingsError:  # not finished, or damaged: `rageval history` names it
            continue
        if past.dataset_hash == dataset and not past.is_partial:
            runs.append(past)
    return list(with_changes(reversed(runs)))
