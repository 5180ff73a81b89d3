"""A run in short, for a person who decides: causes, ten failing cases, moved metrics, and changed settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import case_from_mapping
from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_changes import changes_of, new_causes_of
from pytest_rageval.comparison.case_list import list_cases
from pytest_rageval.comparison.listed_case import FLAKY, ListedCase
from pytest_rageval.comparison.what_changed import changes_since
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.config_diff import arrow_text
from pytest_rageval.runs.flaky_cases import CASES as FLAKY_CASES
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS
from pytest_rageval.runs.records.line_scan import repeated_cases, trials_of
from pytest_rageval.runs.records.record_files import record_paths
from pytest_rageval.text import NO_VALUE
from pytest_rageval.views.case_parts import FACT_MARKS, FACT_METRIC, key_facts
from pytest_rageval.views.causes import CauseView, causes_of
from pytest_rageval.views.compared_metrics import ComparedMetric, moved_metrics

Content = Mapping[str, Any]
FAILING = ("error", "failed")
SHOWN_CASES = 10
ABSTENTION = "an abstention: the documents hold no answer"


class FailingCase(NamedTuple):
    """A failing case.

    cause     in words; '' in a run from before causes were recorded
    expected  the gold answers, key facts with their marks, or the abstention; None if none is labelled or kept
    is_known  it is a known failure that fails a new gate
    """

    case: ListedCase
    cause: str
    expected: str | None
    is_known: bool = False

    @property
    def state(self) -> str:
        """Return how the case failed: `newly failing`, `failing, flaky`."""
        if self.case.outcome == "error":
            state = "error"
        elif self.is_known:
            state = "fails a new gate"
        else:
            state = "newly failing" if self.case.change == "worse" else "failing"
        return f"{state}, flaky" if self.case.flaky == FLAKY else state


@dataclass(frozen=True, slots=True)
class RunDigest:
    """A run in short."""

    metrics: Content
    """The content of metrics.json, with its verdict."""
    changes: tuple[str, ...]
    """The settings, versions and commits that differ from the compared run, each as `k 5 → 7`."""
    causes: tuple[CauseView, ...]
    """Why cases fail, the most frequent cause first; known failures are left out."""
    known_causes: tuple[CauseView, ...]
    """Why known failures fail."""
    failing: tuple[ListedCase, ...]
    """The cases that fail or end in errors: newly failing ones first, the largest fall first, then errors."""
    flaky: tuple[ListedCase, ...]
    """The flaky cases that pass."""
    cases: tuple[FailingCase, ...]
    """The first of them with their texts."""
    moved: tuple[ComparedMetric, ...]
    """The metrics that moved against the baseline, the worst verdict first."""


def run_digest(
    run: StoredRun,
    metrics: Content,
    baseline: Path,
    *,
    previous: Content | None = None,
    scores: CaseColumns | None = None,
) -> RunDigest:
    """Return the digest of a finished run.

    metrics   the content of metrics.json, with its verdict
    baseline  the file of the baseline
    previous  the comparison with the run before, whose settings are compared if there is no baseline
    scores    those of the run if they are in memory; else they are read
    """
    comparison = metrics.get("comparison")
    listed = _listed(run, metrics, scores)
    failing = _failing(listed, comparison)
    causes = tuple(causes_of(metrics, sorted(case.key for case in failing)))
    known = {key for cause in metrics.get("causes", ()) for key in cause["cases"]}
    known.difference_update(case.key for case in failing)
    changes = changes_since(run, comparison or previous, baseline)
    flaky = [case for case in listed if case.flaky == FLAKY and case.outcome not in FAILING]
    return RunDigest(
        metrics=metrics,
        changes=tuple(map(arrow_text, changes)),
        causes=causes,
        known_causes=tuple(causes_of(metrics, sorted(known))),
        failing=tuple(failing),
        flaky=tuple(flaky),
        cases=tuple(_with_texts(run, failing[:SHOWN_CASES], causes, comparison)),
        moved=tuple(moved_against(comparison)),
    )


def _listed(run: StoredRun, metrics: Content, scores: CaseColumns | None) -> Sequence[ListedCase]:
    """Return the cases of a run that has failing or flaky ones."""
    is_any_failing = any(metrics["outcomes"].get(outcome) for outcome in FAILING)
    if not is_any_failing and not metrics.get(FLAKY_CASES):
        return []  # most runs: their records need not be read
    comparison = metrics.get("comparison")
    side = side_of_run(run, cases=scores)
    keys = _notable(run, side.cases, metrics)
    return list_cases(side, changes_of(comparison), new_causes=new_causes_of(comparison), keys=keys).cases


def _notable(run: StoredRun, cases: CaseColumns, metrics: Content) -> set[str]:
    """Return the keys of all cases that fail, and of all that can be flaky."""
    outcomes = zip(cases.case_keys, cases.outcomes, strict=True)
    keys = {key for key, outcome in outcomes if outcome in FAILING}
    keys.update(case["case_key"] for case in metrics.get(FLAKY_CASES) or ())
    # A case is flaky as well if its trials differ, and may show a failed one though it passes.
    return keys | repeated_cases(record_paths(run.path, RESULTS))


def _failing(listed: Sequence[ListedCase], comparison: Content | None) -> list[ListedCase]:
    """Return newly failing cases, the largest fall first, then errors, then the others, the lowest scores first."""
    new = {key: place for place, key in enumerate((comparison or {}).get("flipped_to_fail", ()))}
    failing = (case for case in listed if case.outcome in FAILING)
    return sorted(failing, key=lambda case: new.get(case.key, len(new)))


def moved_against(comparison: Content | None) -> list[ComparedMetric]:
    """Return the metrics that moved, without those that were not measured on both sides."""
    if not comparison or not comparison["compared"]:
        return []
    # A comment has 10,000 characters: what did not move stands in the report alone.
    return [metric for metric in moved_metrics(comparison) if metric.figures["change"] not in ("=", NO_VALUE)]


def _with_texts(
    run: StoredRun, cases: Sequence[ListedCase], causes: Sequence[CauseView], comparison: Content | None
) -> Iterator[FailingCase]:
    known = (comparison or {}).get("new_gates", ())
    keys = {case.key for case in cases}
    cause_by_key = {key: cause.text for cause in causes for key in cause.keys}
    trials = trials_of(run.path / RESULTS, keys, {"case_key", "trial"})
    records: dict[str, Content] = {}
    with_facts: set[str] = set()
    for key, by_trial in trials.items():
        record = next(iter(by_trial.values()))
        records[key] = record
        if FACT_METRIC in record.get("scores", ()):
            with_facts.add(key)
    # Key facts stand in the observations alone, which most runs need not read for this.
    observed = trials_of(run.path / OBSERVATIONS, with_facts, {"case_key", "trial", "case", "answer"})
    for case in cases:
        expected = None
        if case.key in records:
            record = records[case.key]
            expected = _expected(record, observed.get(case.key, {}).get(record["trial"]))
        yield FailingCase(case, cause_by_key.get(case.key, ""), expected, case.key in known)


def _expected(record: Content, observed: Content | None) -> str | None:
    """Return what a case expects. `observed`: its line of observations.jsonl, if the run keeps one."""
    if not record.get("answerable", True):
        return ABSTENTION
    parts = list(record.get("reference_answers") or ())
    if observed is not None and observed["answer"] is not None:
        facts = case_from_mapping(observed["case"]).gold.key_facts or ()
        marked = key_facts(facts, record, observed["answer"].get("answer"))
        # A cell is cut: the missing facts stand first.
        missing_first = sorted(marked, key=lambda fact: fact.is_stated is not False)
        parts += [FACT_MARKS[fact.is_stated] + fact.text for fact in missing_first]
    return " / ".join(parts) or None
