"""Comparisons of two runs: obstacles, changes of configuration, changes of metrics, flipped cases."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_diff import detail
from pytest_rageval.comparison.changes import gain, paired
from pytest_rageval.comparison.compared_sides import Comparison, compare_sides
from pytest_rageval.comparison.gates_now import Both
from pytest_rageval.comparison.notes import comparison_notes
from pytest_rageval.comparison.pair_verdict import pair_verdict
from pytest_rageval.comparison.verdict_sentence import RunVerdict
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Metric
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.runs.columns import CaseColumns, SharedCases, values_at
from pytest_rageval.runs.comparable import Mismatch
from pytest_rageval.runs.config_diff import SettingChange, config_changes

VERSIONS = {
    "dataset": "dataset_version",
    "index": "index_build_version",
    "retriever": "retriever_version",
    "answerer": "answerer_version",
}
_RETRIEVER = ("rerank_weights.", "params.")
"""Settings that decide the retriever's version, besides k and the folder mode."""
SCHEMA = 1
FLIPS = ("flipped_to_fail", "flipped_to_pass")
COPIED = (
    "metrics",
    "layers",
    "fallen",
    *FLIPS,
    "unmeasured",
    "only_before",
    "only_after",
    "not_measured",
    "newly_gated",
    "added_failing",
    "changed_cases",
    "changed_failing",
    "paired",
)
"""Parts of a comparison that the content copies."""
DETAILED = 100
"""How many cases of each kind have chunks and answers: more are hardly read, and each costs memory."""


def versions(before: Side, after: Side, *, is_other_dataset: bool) -> dict[str, dict[str, Any]]:
    """Return each part's version on both sides, and whether it changed (None if a side's version is unknown)."""
    parts = {}
    for part, name in VERSIONS.items():
        was, now = _version(before, part, name), _version(after, part, name)
        is_changed = (was != now) if was is not None and now is not None else None
        changed = is_other_dataset if part == "dataset" else is_changed
        parts[part] = {"before": was, "after": now, "changed": changed}
    return parts


def _version(side: Side, part: str, name: str) -> str | None:
    version = side.config.get(name) if side.config else None
    if version is None and part == "dataset":
        version = side.metrics.get("eval_set_commit_hash")
    return str(version) if version is not None else None


def change_at_a_time(parts: Mapping[str, Mapping[str, Any]], changes: Sequence[SettingChange]) -> tuple[str, bool]:
    """Return a sentence about the changed versions, and whether more than one change was made.

    A parameter that also decides about the index changes both versions: it is one change if no other setting of the
    retriever differs.
    """
    changed = [part for part, version in parts.items() if version["changed"]]
    unknown = [part for part, version in parts.items() if version["changed"] is None]
    sentence = f"{_joined(changed)} changed" if changed else "no version changed"
    if unknown:
        sentence += f"; of {_joined(unknown)} it is not known"
    settings = [name for name, _, _ in changes if name in ("k", "folder_mode") or name.startswith(_RETRIEVER)]
    if set(changed) == {"index", "retriever"} and len(settings) == 1 and settings[0].startswith("params."):
        return f"{sentence}, both with {settings[0].removeprefix('params.')}", False
    if len(changed) > 1:
        return f"{sentence}: more than one, so what moved a metric cannot be told; change one at a time", True
    return sentence, False


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """The result of a comparison; `content` is strict JSON with all that reports show.

    `mismatches` are obstacles to a comparison; unless they are ignored, nothing is compared. `verdict` is the one that
    a run of the second side against the first would have. `both` are the compared cases.
    """

    content: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...]
    verdict: RunVerdict
    both: Both

    @property
    def is_compared(self) -> bool:
        return bool(self.content["compared"])


def build_comparison(
    before: Side, after: Side, current: Settings, *, ignore_invariants: bool = False, is_detailed: bool = True
) -> ComparisonReport:
    """Compare two runs, with the project's current regression gates.

    Leave out cases that changed in between. With `is_detailed`, add categories, errors and the scores of flipped cases,
    and read both records for their chunks and answers; otherwise they are keys.
    """
    current = current.model_copy(update={"ignore_invariants": ignore_invariants})
    comparison = compare_sides(before, after, plan_for(after, current))
    compared = comparison.content
    changes = config_changes(before.config, after.config) if before.config and after.config else []
    datasets = comparison.before.dataset, comparison.after.dataset
    is_other = None not in datasets and datasets[0] != datasets[1]
    is_other = is_other or any(mismatch.what == "dataset" for mismatch in comparison.problems)
    parts = versions(before, after, is_other_dataset=is_other)
    changed, is_warning = change_at_a_time(parts, changes)
    damages = {side.name: damage for side in (before, after) if (damage := side.damage) is not None}
    verdict = pair_verdict(after, comparison, current, damages)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": verdict.content(),
        "before": _described(before),
        "after": _described(after),
        "problems": [{**asdict(mismatch), "said": str(mismatch)} for mismatch in comparison.problems],
        "configuration": [change._asdict() for change in changes],
        "versions": parts,
        "changed": {"said": changed, "warning": is_warning},
        "notes": [
            *damages.values(),
            *(side.note for side in (before, after) if side.note),
            *comparison_notes(compared, after.metrics["total_tests"]),
        ],
        "failed_gates": list(verdict.failed_gates),
        **{name: compared[name] for name in ("compared", "differences", "gate_changes", "relabelled")},
    }
    if compared["compared"]:
        content |= _compared_content(before, after, comparison, is_detailed=is_detailed)
    return ComparisonReport(content, comparison.problems, verdict, comparison.both)


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


def _compared_content(before: Side, after: Side, comparison: Comparison, *, is_detailed: bool) -> dict[str, Any]:
    return {
        **{name: comparison.content[name] for name in COPIED},
        "gates": list(comparison.gates),
        **(_cases(before, after, comparison) if is_detailed else {}),
    }


def plan_for(side: Side, current: Settings) -> Plan:
    """Return a plan with the project's regression gates, at the cut-off of this side.

    The project's own metrics are known from their descriptions in metrics.json.
    """
    registry = load_registry()
    for name, described in side.metrics["metrics"].items():
        if (bare := name.partition("@")[0]) not in registry:
            given = {part: described[part] for part in ("layer", "better", "run_level")}
            registry.add(Metric(name=bare, scale=tuple(described["scale"]), **given))
    k = side.config["k"] if side.config else current.k
    leave = {"gates": Gates(), "gate": (), "metric_options": {}, "ontology": None, "rubrics": None, "mapping": None}
    return make_plan(current.model_copy(update={**leave, "k": k, "enabled": (), "weights": {}}), registry)


def _cases(before: Side, after: Side, comparison: Comparison) -> dict[str, Any]:
    """Return categories, errors, and the cases that flipped or lost their scores, worst first."""
    content, was, now = comparison.content, comparison.both.was, comparison.both.now
    described = before.metrics["metrics"] | after.metrics["metrics"]
    gains = {key: _gains(was[key].scores, now[key].scores, described) for name in FLIPS for key in content[name]}
    worst = content["flipped_to_fail"]
    best = sorted(content["flipped_to_pass"], key=lambda key: (-math.fsum(gains[key].values()), key))
    lost = {case["case_key"]: case for case in content["unmeasured"]}
    keys = {*worst[:DETAILED], *best[:DETAILED], *[*lost][:DETAILED]}
    categories = after.categories or before.categories
    records = before.records(keys), after.records(keys)

    def detailed(key: str) -> dict[str, Any]:
        return {"detail": detail(records[0].get(key), records[1].get(key))}

    def case_of(key: str) -> dict[str, Any]:
        case_before, case_after, moved = was[key], now[key], gains[key]
        return {
            "case_key": key,
            "category": after.categories.get(key) or before.categories.get(key),
            "outcome_before": case_before.outcome,
            "outcome_after": case_after.outcome,
            "gain": math.fsum(moved.values()),
            "scores": [
                {"metric": name, "before": case_before.scores[name], "after": case_after.scores[name]}
                for name in sorted(moved, key=lambda name: (-abs(moved[name]), name))
            ],
            **detailed(key),
        }

    return {
        "by_category": by_category(comparison.both, categories, {name: {*content[name]} for name in FLIPS}),
        "errors": {"before": _errors(was), "after": _errors(now)},
        "flipped_to_fail": list(map(case_of, worst)),
        "flipped_to_pass": list(map(case_of, best)),
        "unmeasured": [case | detailed(key) for key, case in lost.items()],
    }


def _errors(cases: CaseColumns) -> dict[str, str]:
    """Return the kind of error of each case with an error; a baseline does not store the kind."""
    outcomes = zip(cases.case_keys, cases.outcomes, cases.error_kinds, strict=True)
    return {key: kind or "unknown" for key, outcome, kind in outcomes if outcome == "error"}


def _gains(before: Mapping[str, float], after: Mapping[str, float], described: Mapping[str, Any]) -> dict[str, float]:
    """Return, for each metric scored on both sides that moved, its change as a share of its scale."""
    names = sorted(before.keys() & after.keys() & described.keys())
    gains = {name: gain(after[name] - before[name], described[name]) for name in names}
    return {name: share for name, share in gains.items() if share}


def by_category(
    both: Both, categories: Mapping[str, str], flips: Mapping[str, Collection[str]]
) -> dict[str, Any] | None:
    """Return outcomes, flips and metric means by category, over the cases scored on both sides.

    None if neither side has categories.
    """
    was, now = both.was, both.now
    return {
        name: {
            "cases": len(members.keys),
            "passed_before": values_at(was.outcomes, members.before).count("passed"),
            "passed_after": values_at(now.outcomes, members.after).count("passed"),
            **{flip: sum(key in keys for key in members.keys) for flip, keys in flips.items()},
            "metrics": {
                name: {
                    "before": (old := _mean(each.before)),
                    "after": (new := _mean(each.after)),
                    "delta": new - old,
                    "n": len(each.before),
                }
                for name, each in paired(was, now, members).items()
                if each.before
            },
        }
        for name, members in sorted(_categories(both.shared, categories).items())
    } or None


def _categories(shared: SharedCases, categories: Mapping[str, str]) -> dict[str, SharedCases]:
    """Return the shared cases of each category, without those that have none."""
    names = list(map(categories.get, shared.keys))
    if len({*names}) == 1:  # one category for all: no look-ups
        return {name: shared for name in names[:1] if name is not None}
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        if name is not None:
            numbers.setdefault(name, []).append(number)
    return {
        name: SharedCases(values_at(shared.keys, at), values_at(shared.before, at), values_at(shared.after, at))
        for name, at in numbers.items()
    }


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)
