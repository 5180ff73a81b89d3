"""Two runs side by side: what keeps them from being compared, what was configured, what moved, for which cases."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.compare.baseline import Baseline
from pytest_rageval.compare.by_category import by_category
from pytest_rageval.compare.case_diff import Record, detail, records_of
from pytest_rageval.compare.side import Side
from pytest_rageval.compare.verdict_sentence import alike_line
from pytest_rageval.compare.verdicts import Comparison, compare_cases
from pytest_rageval.compare.versions import change_at_a_time, versions
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.described import without_code
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.runs.case_columns import CaseColumns
from pytest_rageval.runs.comparable import (
    Comparable,
    Mismatch,
    comparable_of,
    compared_parts,
    mismatches,
    relabelled,
    relabelled_note,
)
from pytest_rageval.runs.config_diff import config_changes
from pytest_rageval.runs.disk.score_table import Scores

SCHEMA = 1
DETAILED = 100
"""Cases of each kind of which chunks and answers are read: nobody reads more, and each costs memory."""


@dataclass(frozen=True, slots=True)
class Paired:
    """What came of it: `content` is what every face of the comparison shows, strict JSON as it stands.

    `mismatches` are invariants that do not hold; unless they are ignored nothing is compared. `failed` are the
    regression gates that fail.
    """

    content: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...]
    failed: tuple[str, ...]

    @property
    def is_compared(self) -> bool:
        compared: bool = self.content["compared"]
        return compared


def pair(
    before: Side, after: Side, current: Settings, *, ignore_invariants: bool = False, is_detailed: bool = True
) -> Paired:
    """Compare two runs. The regression gates are those of the project's settings as they are now.

    Where these ask for alike cases, those that changed in between are left out. Unless `is_detailed`, so are chunks and
    answers of cases that flipped, for which both records are read.
    """
    facts = _comparable(before), _comparable(after)
    labels = relabelled(*facts)
    alike_before, alike_after, left_out = compared_parts(*facts, alike_cases=current.alike_cases)
    broken = tuple(mismatches(alike_before, alike_after))
    is_compared = not broken or ignore_invariants
    changes = config_changes(before.config, after.config) if before.config and after.config else []
    parts = versions(before, after, is_other_dataset=_is_other_dataset(*facts, broken))
    changed, is_warning = change_at_a_time(parts, changes)
    failed: tuple[str, ...] = ()
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "before": _described(before),
        "after": _described(after),
        "compared": is_compared,
        "problems": [{**asdict(mismatch), "said": str(mismatch)} for mismatch in broken],
        "configuration": [change._asdict() for change in changes],
        "versions": {part: asdict(version) for part, version in parts.items()},
        "changed": {"said": changed, "warning": is_warning},
        "relabelled": labels,
        "notes": [side.note for side in (before, after) if side.note] + [relabelled_note(labels)] * bool(labels),
    }
    if is_compared:
        moved, failed = _moved(before, after, current, left_out, is_detailed=is_detailed)
        content |= moved
        content["notes"] += _part_note(content)
    content["failed_gates"] = list(failed)
    return Paired(content, broken, failed)


def _part_note(content: Mapping[str, Any]) -> list[str]:
    """What is said of a comparison from which changed cases are left out."""
    if not content["changed_cases"]:
        return []
    return [f"{alike_line(content, content['after']['cases'])}: {listed(content['changed_cases'])}"]


def _comparable(side: Side) -> Comparable:
    return comparable_of(side.metrics, side.config, side.scores.cases if side.scores else None)


def _is_other_dataset(before: Comparable, after: Comparable, broken: Iterable[Mismatch]) -> bool:
    is_other = None not in (before.dataset, after.dataset) and before.dataset != after.dataset
    return is_other or any(mismatch.what == "dataset" for mismatch in broken)


def _described(side: Side) -> dict[str, Any]:
    metrics = side.metrics
    return {
        "name": side.name,
        "run_id": side.run_id,
        "timestamp": metrics["volatile"].get("timestamp"),
        "description": metrics.get("description"),
        "config_hash": metrics.get("config_hash"),
        "partial": metrics["partial"],
        "cases": metrics["total_tests"],
        "outcomes": metrics["outcomes"],
        "judge": metrics["judge"]["model"] if metrics["judge"] else None,
        "has_records": side.has_records,
    }


def _moved(
    before: Side, after: Side, current: Settings, changed: Collection[str], *, is_detailed: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The compared part of the content, and the gates that fail."""
    before_metrics, after_metrics = before.metrics["metrics"], after.metrics["metrics"]
    if before.scores is None or after.scores is None:
        # Without cases there is nothing to pair: every metric is compared as those of a whole run are.
        was = now = Scores(CaseColumns(), {})
        before_metrics, after_metrics = _unpaired(before_metrics), _unpaired(after_metrics)
    else:
        was, now = before.scores, after.scores
    comparison = compare_cases(
        {**after.metrics, "metrics": after_metrics},
        now.cases,
        Baseline(Path(before.name), {**before.metrics, "metrics": before_metrics}, was.cases, before.config),
        plan_for(after, current),
        changed=changed,
    )
    was, now = was.without(changed).renamed(comparison.renamed), now.without(changed)
    described = before.metrics["metrics"] | after.metrics["metrics"]
    is_waived = current.allow_regressions or after.metrics["partial"]
    failed = [f"{gate['metric']} {gate['op']}" for gate in comparison.gates if gate["passed"] is False]
    return {
        "metrics": {name: _metric(described[name], change) for name, change in comparison.content["metrics"].items()},
        "gates": list(comparison.gates),
        "by_category": by_category(was, now),
        **_cases(comparison, was, now, described, (before, after) if is_detailed else ()),
    }, tuple(failed) if not is_waived else ()


def _metric(described: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: described[key] for key in ("layer", "scale", "better")}, **change}


def _unpaired(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**described, "run_level": True} for name, described in metrics.items()}


def plan_for(side: Side, current: Settings) -> Plan:
    """The regression gates of the project, resolved at the cut-off that this side was run with.

    Metrics of the project's own are known by what metrics.json says of them.
    """
    registry = load_registry()
    for name, described in side.metrics["metrics"].items():
        _add(registry, name.partition("@")[0], described)
    k = side.config["k"] if side.config else current.k
    leave = {"gates": Gates(), "gate": (), "metric_options": {}, "ontology": None, "rubrics": None, "mapping": None}
    return make_plan(
        current.model_copy(update={**leave, "k": k, "enabled": (), "weights": {}, "ignore_invariants": True}), registry
    )


def _add(registry: Registry, name: str, described: Mapping[str, Any]) -> None:
    if name not in registry:
        low, high = described["scale"]
        registry.add(
            Metric(
                name, without_code, described["layer"], described["better"], (low, high),
                run_level=described["run_level"],
            )
        )  # fmt: skip


def _cases(
    comparison: Comparison, was: Scores, now: Scores, described: Mapping[str, Any], detailed: Sequence[Side]
) -> dict[str, Any]:
    """Cases that flipped, worst first; those that came, went, or have no score any more.

    `detailed`: both sides, where chunks and answers are read.
    """
    content = comparison.content
    gains = {
        key: _gains(was.cases[key].scores, now.cases[key].scores, described)
        for name in ("flipped_to_fail", "flipped_to_pass")
        for key in content[name]
    }
    worst = sorted(content["flipped_to_fail"], key=lambda key: (math.fsum(gains[key].values()), key))
    best = sorted(content["flipped_to_pass"], key=lambda key: (-math.fsum(gains[key].values()), key))
    lost = [case["case_key"] for case in content["unmeasured"]]
    keys = {*worst[:DETAILED], *best[:DETAILED], *lost[:DETAILED]}
    records = [_records(side, keys) for side in detailed] or [{}, {}]

    def case_of(key: str) -> dict[str, Any]:
        case_before, case_after = was.cases[key], now.cases[key]
        return {
            "case_key": key,
            "category": now.categories.get(key) or was.categories.get(key),
            "outcome_before": case_before.outcome,
            "outcome_after": case_after.outcome,
            "gain": math.fsum(gains.get(key, {}).values()),
            "scores": _moved_scores(case_before.scores, case_after.scores, gains.get(key, {})),
            "detail": detail(records[0].get(key), records[1].get(key)),
        }

    return {
        "flipped_to_fail": [case_of(key) for key in worst],
        "flipped_to_pass": [case_of(key) for key in best],
        "unmeasured": [{**case, "detail": case_of(case["case_key"])["detail"]} for case in content["unmeasured"]],
        "only_before": content["only_before"],
        "only_after": content["only_after"],
        **{name: content[name] for name in ("added_failing", "changed_cases", "changed_failing", "paired")},
        "errors": {"before": _errors(was), "after": _errors(now)},
    }


def _errors(scores: Scores) -> dict[str, str]:
    """By case the kind of its error; a baseline knows that it was one, not of which kind."""
    cases = scores.cases
    outcomes = zip(cases.case_keys, cases.outcomes, cases.error_kinds, strict=True)
    return {key: kind or "unknown" for key, outcome, kind in outcomes if outcome == "error"}


def _records(side: Side, keys: set[str]) -> dict[str, Record]:
    return records_of(side.run.path / "results.jsonl", keys) if side.run else {}


def _gains(before: Mapping[str, float], after: Mapping[str, float], described: Mapping[str, Any]) -> dict[str, float]:
    """By metric scored on both sides and moved: the change as a share of its scale, positive where it got better."""
    gains = {}
    for name in sorted(before.keys() & after.keys() & described.keys()):
        low, high = described[name]["scale"]
        share = (after[name] - before[name]) / (high - low)
        if share:
            gains[name] = share if described[name]["better"] == "higher" else -share
    return gains


def _moved_scores(
    before: Mapping[str, float], after: Mapping[str, float], gains: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Scores that moved, those that moved furthest first."""
    order = sorted(gains, key=lambda name: (-abs(gains[name]), name))
    return [{"metric": name, "before": before[name], "after": after[name]} for name in order]
