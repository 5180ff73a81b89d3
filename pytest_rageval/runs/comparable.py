"""Comparability: what must agree between two runs that are compared, continued as one, or given new labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.config import dataset_hash_of, hashed_part
from pytest_rageval.runs.config_diff import change_text, config_changes
from pytest_rageval.text import counted

ASKED = ("question", "history", "contexts", "vaults", "folders")
"""What of a case goes out to the system: an answer to something else is no answer to this."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something that must be the same on both sides and is not: both values, and more where that helps."""

    what: str
    before: str
    after: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.what} was {self.before} and is {self.after}" + (f": {self.more}" if self.more else "")


class Comparable(NamedTuple):
    """As much of a run or a baseline as decides whether it may be compared with another.

    contents     by key, the content hash of each case; None where only aggregates are known
    dataset      the hash over all cases of the project; None where nobody knows them all
    judge        the `judge` of metrics.json; None where nothing was judged
    temperature  of a judge that is a model; None where that is not known
    reported     what any answer brought beside its text; None where that is not known
    """

    contents: Mapping[str, str] | None
    dataset: str | None
    total: int
    judge: Mapping[str, Any] | None
    temperature: float | None
    reported: frozenset[str] | None
    is_partial: bool


def comparable_of(
    metrics: Mapping[str, Any], config: Mapping[str, Any] | None, contents: Mapping[str, str] | None
) -> Comparable:
    """From the content of metrics.json and, where they are known, of config.json and of the cases."""
    config = config or {}
    dataset = config.get("dataset_hash")
    if dataset is None and contents is not None and not metrics["partial"]:
        dataset = dataset_hash_of(contents.items())
    judge, total = metrics.get("judge"), metrics["total_tests"]
    reported = config.get("reported_fields")
    is_unanswered = metrics["outcomes"]["error"] == total
    return Comparable(
        contents=contents,
        dataset=dataset,
        total=total if contents is None else len(contents),
        judge=judge,
        temperature=config.get("settings", {}).get("judge_temperature") if judge and not judge["heuristic"] else None,
        reported=None if reported is None or is_unanswered else frozenset(reported),
        is_partial=metrics["partial"],
    )


def mismatches(before: Comparable, after: Comparable) -> list[Mismatch]:
    """Why the two cannot be compared: whatever moved would not be the system's doing. Empty where they can.

    Cases on one side only are no obstacle, as long as there are any on both: they are left out of the pairing.
    """
    return [*_dataset(before, after), *_judge(before, after), *_reported(before, after)]


def _dataset(before: Comparable, after: Comparable) -> Iterator[Mismatch]:
    if before.contents is None or after.contents is None:
        if None not in (before.dataset, after.dataset) and before.dataset != after.dataset:
            yield Mismatch("dataset", _named(before), _named(after))
        return
    was, now = before.contents, after.contents
    shared = was.keys() & now.keys()
    changed = sorted(key for key in shared if was[key] != now[key])
    has_none_in_common = bool(was) and bool(now) and not shared
    if not changed and not has_none_in_common:
        return
    parts = ["no case is on both sides"] if has_none_in_common else []
    for keys, what in (
        (changed, "changed"),
        (sorted(was.keys() - now.keys()), "only before"),
        (sorted(now.keys() - was.keys()), "only after"),
    ):
        if keys:
            parts.append(f"{len(keys)} {what} ({listed(keys)})")
    yield Mismatch("dataset", _named(before), _named(after), ", ".join(parts))


def _named(side: Comparable) -> str:
    cases = counted(side.total, "case")
    return f"{side.dataset[:12]} ({cases})" if side.dataset else cases


def _judge(before: Comparable, after: Comparable) -> Iterator[Mismatch]:
    was, now = before.judge, after.judge
    if not was or not now:
        return  # nothing was judged on one side: what a judge scores is unmeasured, the rest compares
    if was["model"] != now["model"]:
        yield Mismatch("judge", was["model"], now["model"])
    for rubric in sorted(was["prompt_versions"].keys() & now["prompt_versions"].keys()):
        versions = was["prompt_versions"][rubric], now["prompt_versions"][rubric]
        if versions[0] != versions[1]:
            yield Mismatch(f"prompt of {rubric}", *versions)
    degrees = before.temperature, after.temperature
    if None not in degrees and degrees[0] != degrees[1]:
        yield Mismatch("judge temperature", *map(str, degrees))


def _reported(before: Comparable, after: Comparable) -> Iterator[Mismatch]:
    """A partial run need not have met all that the system reports: what it lacks says nothing."""
    if before.reported is None or after.reported is None:
        return
    lost = [] if after.is_partial else sorted(before.reported - after.reported)
    gained = [] if before.is_partial else sorted(after.reported - before.reported)
    if lost or gained:
        parts = [f"without {', '.join(lost)}"] * bool(lost) + [f"newly with {', '.join(gained)}"] * bool(gained)
        was, now = (", ".join(sorted(fields)) or "nothing" for fields in (before.reported, after.reported))
        yield Mismatch("what the system reports", was, now, "; ".join(parts))


def other_configuration(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """What keeps two runs from being parts of one, or one from being continued as the other; None where they agree.

    Both are contents of config.json. Here all that its hash is over must agree: a comparison would show it.
    """
    if before["config_hash"] == after["config_hash"]:
        return None
    changes = config_changes(hashed_part(before), hashed_part(after))
    return "; ".join(map(change_text, changes)) or "its metrics or gates are configured otherwise"


def asked_differently(before: EvalCase, after: EvalCase) -> list[str]:
    """The fields in which what the system was asked is not what this case asks: its answer is none to this."""
    return [name for name in ASKED if getattr(before, name) != getattr(after, name)]
