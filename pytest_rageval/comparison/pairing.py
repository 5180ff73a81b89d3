"""Two runs side by side: what keeps them from being compared, what was configured, what moved, for which cases."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Baseline, Side
from pytest_rageval.comparison.case_diff import detail
from pytest_rageval.comparison.verdict_sentence import RunVerdict, comparison_notes, pair_verdict
from pytest_rageval.comparison.verdicts import Comparison, compare_cases
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Metric, Registry, without_code
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.runs.columns import CaseColumns, Column, Scores, SharedCases, shared_cases, values_at
from pytest_rageval.runs.comparable import Comparable, Mismatch
from pytest_rageval.runs.config_diff import SettingChange, config_changes

VERSIONS = {
    "dataset": "dataset_version",
    "index": "index_build_version",
    "retriever": "retriever_version",
    "answerer": "answerer_version",
}
_RETRIEVER = ("rerank_weights.", "params.")
"""Settings that the retriever's version is made of, beside k and the folder mode."""
SCHEMA = 1
FLIPS = ("flipped_to_fail", "flipped_to_pass")
KEPT = ("not_measured", "newly_gated", "added_failing", "changed_cases", "changed_failing", "paired")
"""Parts of a comparison that are shown as they are."""
DETAILED = 100
"""Cases of each kind of which chunks and answers are read: nobody reads more, and each costs memory."""


@dataclass(frozen=True, slots=True)
class Version:
    """One of the four versions. `changed` is None where a side does not know its own."""

    before: str | None
    after: str | None
    changed: bool | None


def versions(before: Side, after: Side, *, is_other_dataset: bool) -> dict[str, Version]:
    """By part, its version on both sides."""
    parts = {}
    for part, name in VERSIONS.items():
        was, now = _version(before, part, name), _version(after, part, name)
        is_changed = (was != now) if was is not None and now is not None else None
        parts[part] = Version(was, now, is_other_dataset if part == "dataset" else is_changed)
    return parts


def _version(side: Side, part: str, name: str) -> str | None:
    version = side.config.get(name) if side.config else None
    if version is None and part == "dataset":
        version = side.metrics.get("eval_set_commit_hash")
    return str(version) if version is not None else None


def change_at_a_time(parts: Mapping[str, Version], changes: Sequence[SettingChange]) -> tuple[str, bool]:
    """Which versions changed, as a sentence, and whether that was more than one change.

    A parameter that also decides about the index changes both versions: where it is the only setting of the retriever
    that differs, that is one change.
    """
    changed = [part for part, version in parts.items() if version.changed]
    unknown = [part for part, version in parts.items() if version.changed is None]
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
class Paired:
    """What came of it: `content` is what every face of the comparison shows, strict JSON as it stands.

    `mismatches` keep the two from being compared; unless they are ignored, nothing is. `verdict` is what a run of the
    second against the first would show.
    """

    content: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...]
    verdict: RunVerdict

    @property
    def is_compared(self) -> bool:
        compared: bool = self.content["compared"]
        return compared


def pair(
    before: Side, after: Side, current: Settings, *, ignore_invariants: bool = False, is_detailed: bool = True
) -> Paired:
    """Compare two runs. The regression gates are those of the project's settings as they are now.

    Cases that changed in between are left out. Unless `is_detailed`, so are chunks and answers of cases that flipped,
    for which both records are read.
    """
    current = current.model_copy(update={"ignore_invariants": ignore_invariants})
    comparison = _compared(before, after, current)
    compared = comparison.content
    changes = config_changes(before.config, after.config) if before.config and after.config else []
    is_other_dataset = _is_other_dataset(comparison.before, comparison.after, comparison.problems)
    parts = versions(before, after, is_other_dataset=is_other_dataset)
    changed, is_warning = change_at_a_time(parts, changes)
    verdict = pair_verdict(after, comparison, current)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": verdict.content(),
        "before": _described(before),
        "after": _described(after),
        "problems": [{**asdict(mismatch), "said": str(mismatch)} for mismatch in comparison.problems],
        "configuration": [change._asdict() for change in changes],
        "versions": {part: asdict(version) for part, version in parts.items()},
        "changed": {"said": changed, "warning": is_warning},
        "notes": [side.note for side in (before, after) if side.note]
        + list(comparison_notes(compared, after.metrics["total_tests"])),
        "failed_gates": list(verdict.failed_gates),
        **{name: compared[name] for name in ("compared", "differences", "gate_changes", "relabelled")},
    }
    if compared["compared"]:
        content |= _moved(before, after, comparison, is_detailed=is_detailed)
    return Paired(content, comparison.problems, verdict)


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


def _compared(before: Side, after: Side, current: Settings) -> Comparison:
    before_metrics, after_metrics = before.metrics["metrics"], after.metrics["metrics"]
    has_cases = before.scores is not None and after.scores is not None
    if not has_cases:
        # Without cases there is nothing to pair: every metric is compared as those of a whole run are.
        before_metrics, after_metrics = _unpaired(before_metrics), _unpaired(after_metrics)
    was, now = (side.scores.cases if has_cases and side.scores else CaseColumns() for side in (before, after))
    return compare_cases(
        {**after.metrics, "metrics": after_metrics},
        after.config,
        now,
        Baseline(Path(before.name), {**before.metrics, "metrics": before_metrics}, was, before.config),
        plan_for(after, current),
        has_cases=has_cases,
    )


def _moved(before: Side, after: Side, comparison: Comparison, *, is_detailed: bool) -> dict[str, Any]:
    """Return the compared part of the content."""
    compared = comparison.content
    was = Scores(comparison.both.was, before.scores.categories if before.scores else {})
    now = Scores(comparison.both.now, after.scores.categories if after.scores else {})
    described = before.metrics["metrics"] | after.metrics["metrics"]
    return {
        "metrics": compared["metrics"],
        "layers": compared["layers"],
        "gates": list(comparison.gates),
        "by_category": by_category(was, now, {name: {*compared[name]} for name in FLIPS}),
        **_cases(comparison, was, now, described, (before, after) if is_detailed else ()),
    }


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
    return make_plan(current.model_copy(update={**leave, "k": k, "enabled": (), "weights": {}}), registry)


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
        key: _gains(was.cases[key].scores, now.cases[key].scores, described) for name in FLIPS for key in content[name]
    }
    worst = sorted(content["flipped_to_fail"], key=lambda key: (math.fsum(gains[key].values()), key))
    best = sorted(content["flipped_to_pass"], key=lambda key: (-math.fsum(gains[key].values()), key))
    lost = [case["case_key"] for case in content["unmeasured"]]
    keys = {*worst[:DETAILED], *best[:DETAILED], *lost[:DETAILED]}
    records = [side.records(keys) for side in detailed] or [{}, {}]

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
        **{name: content[name] for name in KEPT},
        "errors": {"before": _errors(was), "after": _errors(now)},
    }


def _errors(scores: Scores) -> dict[str, str]:
    """By case the kind of its error; a baseline knows that it was one, not of which kind."""
    cases = scores.cases
    outcomes = zip(cases.case_keys, cases.outcomes, cases.error_kinds, strict=True)
    return {key: kind or "unknown" for key, outcome, kind in outcomes if outcome == "error"}


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


def by_category(before: Scores, after: Scores, flips: Mapping[str, Collection[str]]) -> dict[str, Any] | None:
    """By category outcomes, flips, and of each metric the means over the cases scored on both sides.

    None where neither side knows categories.
    """
    shared = shared_cases(before.cases, after.cases)
    categories = _categories(shared, after.categories or before.categories)
    return {
        name: _outcomes(members, before.cases, after.cases)
        | {flip: sum(key in keys for key in members.keys) for flip, keys in flips.items()}
        | {"metrics": _metrics(members, before.cases, after.cases)}
        for name, members in sorted(categories.items())
    } or None


def _categories(shared: SharedCases, categories: Mapping[str, str]) -> dict[str, SharedCases]:
    """The shared cases of each category; those without one are left out."""
    names = list(map(categories.get, shared.keys))
    if len({*names}) == 1:  # nothing to divide, and nothing to look up
        return {name: shared for name in names[:1] if name is not None}
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        if name is not None:
            numbers.setdefault(name, []).append(number)
    return {
        name: SharedCases(values_at(shared.keys, at), values_at(shared.before, at), values_at(shared.after, at))
        for name, at in numbers.items()
    }


def _outcomes(shared: SharedCases, before: CaseColumns, after: CaseColumns) -> dict[str, Any]:
    was, now = values_at(before.outcomes, shared.before), values_at(after.outcomes, shared.after)
    return {
        "cases": len(was),
        "passed_before": was.count("passed"),
        "passed_after": now.count("passed"),
    }


def _metrics(shared: SharedCases, before: CaseColumns, after: CaseColumns) -> dict[str, Any]:
    by_name = {
        name: _means(values_at(before.scores[name], shared.before), values_at(after.scores[name], shared.after))
        for name in sorted(before.scores.keys() & after.scores.keys())
    }
    return {name: means for name, means in by_name.items() if means}


def _means(was: Column, now: Column) -> dict[str, Any] | None:
    if None in was or None in now:
        scored = [pair for pair in zip(was, now, strict=True) if None not in pair]
        was, now = [pair[0] for pair in scored], [pair[1] for pair in scored]
    if not was:
        return None
    n = len(was)
    # What may be None was left out above, which a type checker does not see.
    mean_was, mean_now = math.fsum(filter(None, was)) / n, math.fsum(filter(None, now)) / n
    return {"before": mean_was, "after": mean_now, "delta": mean_now - mean_was, "n": n}
