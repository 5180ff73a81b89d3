"""Comparisons of two runs: obstacles, changes of configuration, changes of metrics, flipped cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.carried_errors import carried_errors
from pytest_rageval.comparison.case_diff import detail
from pytest_rageval.comparison.changes import gain, paired
from pytest_rageval.comparison.compared_causes import new_causes_of_sides, with_new_causes
from pytest_rageval.comparison.compared_sides import Comparison, compare_sides
from pytest_rageval.comparison.gates_now import Both
from pytest_rageval.comparison.known_failures import ADDED_GATES, WORSE_KNOWN_FAILURES
from pytest_rageval.comparison.lost_retrieval import LOST_RETRIEVAL
from pytest_rageval.comparison.notes import comparison_notes
from pytest_rageval.comparison.operation_changes import operation_changes, timed_otherwise
from pytest_rageval.comparison.pair_verdict import pair_verdict
from pytest_rageval.comparison.renamed_cases import RENAMED, STILL_FAILING
from pytest_rageval.comparison.slower_answers import slower_answers
from pytest_rageval.comparison.verdict_sentence import RunVerdict
from pytest_rageval.comparison.what_changed import changes_between
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Metric
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.runs.causes import Cause
from pytest_rageval.runs.columns import CaseColumns, SharedCases, values_at
from pytest_rageval.runs.comparable import Mismatch
from pytest_rageval.runs.config_diff import SettingChange

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
    "fails_new_gate",
    "new_gates",
    "added_failing",
    "changed_cases",
    "changed_failing",
    "paired",
)
"""Parts of a comparison that the content copies."""
OPTIONAL = (LOST_RETRIEVAL, WORSE_KNOWN_FAILURES, ADDED_GATES, RENAMED, STILL_FAILING)
"""Parts that the content copies if they are there."""
WITHOUT_CASE_GATES = {
    "gates": Gates(),
    "gate": (),
    "metric_options": {},
    "ontology": None,
    "rubrics": None,
    "mapping": None,
}
"""Settings of a plan that compares stored scores: it gates no case, and its metrics compute nothing."""
DETAILED = 100
"""How many cases of each kind have chunks and answers: more are hardly read, and each costs memory."""


def versions(before: Side, after: Side, *, is_other_dataset: bool) -> dict[str, dict[str, Any]]:
    """Return each part's version on both sides, and whether it changed (None if a side's version is unknown)."""
    parts = {}
    for part, name in VERSIONS.items():
        was = _version(before, part, name)
        now = _version(after, part, name)
        changed: bool | None = None
        if part == "dataset":
            changed = is_other_dataset
        elif was is not None and now is not None:
            changed = was != now
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
    sentence = f"{_joined(changed)} changed" if changed else "no recorded version changed"
    if unknown:
        have = "has" if len(unknown) == 1 else "have"
        sentence += f"; {_joined(unknown)} {have} no version on both sides"
    settings = [name for name, _, _ in changes if name in ("k", "folder_mode") or name.startswith(_RETRIEVER)]
    # A budget of chunks is sent with each question, and decides about the index as well.
    if set(changed) == {"index", "retriever"} and len(settings) == 1:
        (setting,) = settings
        if setting.startswith("params."):
            return f"{sentence}, both with {setting.removeprefix('params.')}", False
    if len(changed) > 1:
        return f"{sentence}: more than one, so what moved a metric cannot be told; change one at a time", True
    return sentence, False


def _joined(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


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
    # The project's own setting is about its baseline, not about two runs that somebody names.
    current = current.model_copy(update={"ignore_invariants": ignore_invariants})
    comparison = compare_sides(before, after, plan_for(before, after, current))
    compared = comparison.content
    changes = changes_between(before.config, after.config) if before.config and after.config else []
    parts = versions(before, after, is_other_dataset=_is_other_dataset(comparison))
    changed, is_warning = change_at_a_time(parts, changes)
    sides = before, after
    damages_by_side = {side.name: side.damage for side in sides}
    damages = {name: damage for name, damage in damages_by_side.items() if damage is not None}
    notes_of_sides = [side.note for side in sides if side.note]
    notes = [*carried_errors(before, after, compared), *comparison_notes(compared, after.metrics["total_tests"])]
    verdict = pair_verdict(after, comparison, current, damages)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": verdict.content(),
        "before": _described(before),
        "after": _described(after),
        "problems": [_problem(mismatch) for mismatch in comparison.problems],
        "configuration": [change._asdict() for change in changes],
        "versions": parts,
        "changed": {"said": changed, "warning": is_warning},
        "notes": [*damages.values(), *notes_of_sides, *notes],
        "failed_gates": list(verdict.failed_gates),
        "compared": compared["compared"],
        "differences": compared["differences"],
        "gate_changes": compared["gate_changes"],
        "relabelled": compared["relabelled"],
    }
    if compared["compared"]:
        content |= {name: compared[name] for name in COPIED}
        content |= {name: compared[name] for name in OPTIONAL if name in compared}
        content["operations"] = operation_changes(before.metrics, after.metrics)
        other_concurrency = timed_otherwise(before.metrics, after.metrics)
        if content["operations"].keys() & {"latency_ms", "ttft_ms"} and other_concurrency is not None:
            content["notes"] = list(dict.fromkeys([*content["notes"], other_concurrency]))
        shared = before.cases.keys() & after.cases.keys()
        slower = slower_answers(before.metrics, after.metrics, shared, before.readable_records, after.readable_records)
        if slower is not None:
            content["slower_answers"] = slower
        content["gates"] = list(comparison.gates)
        new_causes = new_causes_of_sides(compared, before, after)
        content["new_causes"] = {key: cause._asdict() for key, cause in new_causes.items()}
        content["causes"] = _causes_of_new_failures(after, compared, new_causes)
        if is_detailed:
            content |= _cases(before, after, comparison)
    return ComparisonReport(content, comparison.problems, verdict, comparison.both)


def _problem(mismatch: Mismatch) -> dict[str, str]:
    return {
        "what": mismatch.what,
        "before": mismatch.before,
        "after": mismatch.after,
        "more": mismatch.more,
        "said": str(mismatch),
    }


def _causes_of_new_failures(
    after: Side, compared: Mapping[str, Any], new_causes: Mapping[str, Cause]
) -> list[dict[str, Any]]:
    """Return why the cases fail that did not, or fail a new gate: the causes of metrics.json with these cases alone."""
    keys = {*compared["flipped_to_fail"], *compared["fails_new_gate"]}
    causes = []
    for cause in with_new_causes(after.metrics.get("causes", ()), new_causes):
        cases = [key for key in cause["cases"] if key in keys]
        if cases:
            causes.append({**cause, "cases": cases})
    return sorted(causes, key=lambda cause: -len(cause["cases"]))


def _is_other_dataset(comparison: Comparison) -> bool:
    was = comparison.before.dataset
    now = comparison.after.dataset
    if was is not None and now is not None and was != now:
        return True
    return any(mismatch.what == "dataset" for mismatch in comparison.problems)


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


def plan_for(before: Side, after: Side, current: Settings) -> Plan:
    """Return a plan with the project's regression gates, at the cut-off of the later run.

    Metrics of the project and of its assertions are known from their descriptions in metrics.json. A gate may read one
    that the later run lacks.
    """
    registry = load_registry()
    for name, described in (before.metrics["metrics"] | after.metrics["metrics"]).items():
        bare_name = name.partition("@")[0]
        if bare_name not in registry:
            metric = Metric(
                name=bare_name,
                scale=tuple(described["scale"]),
                layer=described["layer"],
                better=described["better"],
                run_level=described["run_level"],
                unit=described.get("unit"),
            )
            registry.add(metric)
    k = after.config["k"] if after.config else current.k
    update = {**WITHOUT_CASE_GATES, "k": k, "enabled": (), "weights": {}}
    return make_plan(current.model_copy(update=update), registry)


def _cases(before: Side, after: Side, comparison: Comparison) -> dict[str, Any]:
    """Return categories, errors, and the cases that flipped or lost their scores, worst first."""
    content = comparison.content
    was = comparison.both.was
    now = comparison.both.now
    described = before.metrics["metrics"] | after.metrics["metrics"]
    flipped = {name: content[name] for name in FLIPS}
    flipped_keys = chain.from_iterable(flipped.values())
    gains = {key: _gains(was[key].scores, now[key].scores, described) for key in flipped_keys}
    worst = content["flipped_to_fail"]
    best = sorted(content["flipped_to_pass"], key=lambda key: (-math.fsum(gains[key].values()), key))
    lost = {case["case_key"]: case for case in content["unmeasured"]}
    detailed_keys = {*worst[:DETAILED], *best[:DETAILED], *list(lost)[:DETAILED]}
    records_before = before.records(detailed_keys)
    records_after = after.records(detailed_keys)

    def detail_of(key: str) -> dict[str, Any] | None:
        return detail(records_before.get(key), records_after.get(key))

    def flipped_case(key: str) -> dict[str, Any]:
        case_before = was[key]
        case_after = now[key]
        moved = gains[key]
        most_moved_first = sorted(moved, key=lambda name: (-abs(moved[name]), name))
        scores = [
            {"metric": name, "before": case_before.scores[name], "after": case_after.scores[name]}
            for name in most_moved_first
        ]
        return {
            "case_key": key,
            "category": after.categories.get(key) or before.categories.get(key),
            "outcome_before": case_before.outcome,
            "outcome_after": case_after.outcome,
            "gain": math.fsum(moved.values()),
            "scores": scores,
            "detail": detail_of(key),
        }

    categories = after.categories or before.categories
    flips = {name: {*keys} for name, keys in flipped.items()}
    return {
        "by_category": by_category(comparison.both, categories, flips),
        "errors": {"before": _errors(was), "after": _errors(now)},
        "flipped_to_fail": [flipped_case(key) for key in worst],
        "flipped_to_pass": [flipped_case(key) for key in best],
        "unmeasured": [{**case, "detail": detail_of(key)} for key, case in lost.items()],
    }


def _errors(cases: CaseColumns) -> dict[str, str]:
    """Return the kind of error of each case with an error; a baseline does not store the kind."""
    outcomes = zip(cases.case_keys, cases.outcomes, cases.error_kinds, strict=True)
    return {key: kind or "unknown" for key, outcome, kind in outcomes if outcome == "error"}


def _gains(before: Mapping[str, float], after: Mapping[str, float], described: Mapping[str, Any]) -> dict[str, float]:
    """Return, for each metric scored on both sides that moved, its change as a share of its scale."""
    shared = sorted(before.keys() & after.keys() & described.keys())
    gains = {}
    for name in shared:
        if "unit" in described[name]:
            continue  # an amount is no share of a scale
        share = gain(after[name] - before[name], described[name])
        if share:
            gains[name] = share
    return gains


def by_category(both: Both, categories: Mapping[str, str], flips: Mapping[str, Set[str]]) -> dict[str, Any] | None:
    """Return outcomes, flips and metric means by category, over the cases scored on both sides.

    None if neither side has categories.
    """
    members = _categories(both.shared, categories)
    if not members:
        return None
    return {name: _category(both, shared, flips) for name, shared in sorted(members.items())}


def _category(both: Both, members: SharedCases, flips: Mapping[str, Set[str]]) -> dict[str, Any]:
    metrics: dict[str, dict[str, Any]] = {}
    for name, pairs in paired(both.was, both.now, members).items():
        if pairs.before:
            before = _mean(pairs.before)
            after = _mean(pairs.after)
            metrics[name] = {"before": before, "after": after, "delta": after - before, "n": len(pairs.before)}
    keys_of_members = {*members.keys}
    flipped = {name: len(keys & keys_of_members) for name, keys in flips.items()}
    return {
        "cases": len(members.keys),
        "passed_before": values_at(both.was.outcomes, members.before).count("passed"),
        "passed_after": values_at(both.now.outcomes, members.after).count("passed"),
        **flipped,
        "metrics": metrics,
    }


def _categories(shared: SharedCases, categories: Mapping[str, str]) -> dict[str, SharedCases]:
    """Return the shared cases of each category, without those that have none."""
    names = list(map(categories.get, shared.keys))
    if len({*names}) == 1:  # one category for all: no look-ups
        (name,) = {*names}
        return {} if name is None else {name: shared}
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        if name is not None:
            numbers.setdefault(name, []).append(number)
    members: dict[str, SharedCases] = {}
    for name, at in numbers.items():
        keys = values_at(shared.keys, at)
        members[name] = SharedCases(keys, values_at(shared.before, at), values_at(shared.after, at))
    return members


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)
