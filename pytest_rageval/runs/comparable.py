"""Comparability: what must agree between two runs that are compared, continued as one, or given new labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.config.options import kind_of
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.columns import CaseColumns, shared_cases, values_at
from pytest_rageval.runs.config import dataset_hash_of, hashed_part
from pytest_rageval.runs.config_diff import change_text, config_changes
from pytest_rageval.runs.decision_hash import asked_part
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

    cases        with the hashes of each: of all that it says, and of what is asked and decides (None where that was
                 not recorded); None where only aggregates are known
    dataset      the hash over all cases of the project; None where nobody knows them all
    judge        the `judge` of metrics.json; None where nothing was judged
    identity     what the judge is, its server included, as config.json names it; None where that does not say
    temperature  of a judge that is a model; None where that is not known
    reported     what any answer brought beside its text; None where that is not known
    source       where the answers came from: asked, uploaded or recorded; None where that is not known
    """

    cases: CaseColumns | None
    dataset: str | None
    total: int
    judge: Mapping[str, Any] | None
    identity: str | None
    temperature: float | None
    reported: frozenset[str] | None
    source: str | None
    is_partial: bool


def comparable_of(
    metrics: Mapping[str, Any], config: Mapping[str, Any] | None, cases: CaseColumns | None
) -> Comparable:
    """From the content of metrics.json and, where they are known, of config.json and of the cases."""
    config = config or {}
    dataset = config.get("dataset_hash")
    if dataset is None and cases is not None and not metrics["partial"]:
        dataset = dataset_hash_of(zip(cases.case_keys, cases.content_hashes, strict=True))
    judge, total = metrics.get("judge"), metrics["total_tests"]
    reported = config.get("reported_fields")
    is_unanswered = metrics["outcomes"]["error"] == total
    return Comparable(
        cases=cases,
        dataset=dataset,
        total=total if cases is None else len(cases),
        judge=judge,
        identity=(config.get("judge") or {}).get("identity"),
        temperature=config.get("settings", {}).get("judge_temperature") if judge and not judge["heuristic"] else None,
        reported=None if reported is None or is_unanswered else frozenset(reported),
        source=source_of(config),
        is_partial=metrics["partial"],
    )


def source_of(config: Mapping[str, Any]) -> str | None:
    """Return where the answers of a run came from; None if its config.json does not say."""
    target = config.get("target")
    if not isinstance(target, str):
        return None
    return kind_of(target).source


def changed_cases(before: Comparable, after: Comparable) -> tuple[str, ...]:
    """Return the keys of shared cases that ask something else, or have another gold: they are compared with nothing.

    If all shared cases changed, none is returned: then the two are not comparable.
    """
    if before.cases is None or after.cases is None:
        return ()
    changed = tuple([case.key for case in _differing(before.cases, after.cases) if case.asks_otherwise])
    return () if len(changed) == len(shared_cases(before.cases, after.cases).keys) else changed


def mismatches(before: Comparable, after: Comparable) -> list[Mismatch]:
    """Return why the two cannot be compared: they have no case in common. Empty if they have one.

    Cases on one side only are no obstacle: they are left out of the pairing.
    """
    if before.cases is None or after.cases is None:
        is_other = None not in (before.dataset, after.dataset) and before.dataset != after.dataset
        return [Mismatch("dataset", _named(before), _named(after))] if is_other else []
    was, now = before.cases, after.cases
    shared = shared_cases(was, now).keys
    changed = [case.key for case in _differing(was, now) if case.asks_otherwise]
    if not (was and now) or len(changed) < len(shared):
        return []
    parts = [] if shared else ["no case is on both sides"]
    for keys, what in (
        (changed, "changed"),
        (sorted(was.keys() - now.keys()), "only before"),
        (sorted(now.keys() - was.keys()), "only after"),
    ):
        if keys:
            parts.append(f"{len(keys)} {what} ({listed(keys)})")
    return [Mismatch("dataset", _named(before), _named(after), ", ".join(parts))]


def differences(before: Comparable, after: Comparable) -> list[Mismatch]:
    """Return what else differs beside the system and should be known: its source, the judge, the reported fields."""
    is_other = _is_other(before.source, after.source)
    source = [Mismatch("source", str(before.source), str(after.source))] if is_other else []
    judge = [mismatch for mismatch, _ in _judge(before, after)]
    return [*source, *judge, *(() if source else _reported(before, after))]


def judged_otherwise(before: Comparable, after: Comparable) -> set[str]:
    """Return the rubrics by which another judge, prompt or temperature scored: a change would be the judge's doing."""
    return {rubric for _, rubrics in _judge(before, after) for rubric in rubrics}


def _is_other(before: str | None, after: str | None) -> bool:
    return None not in (before, after) and before != after


class _Differing(NamedTuple):
    """A case whose hashes are not the same on both sides: (all that it says, what is asked and decides)."""

    key: str
    before: tuple[str, str | None]
    after: tuple[str, str | None]

    @property
    def asks_otherwise(self) -> bool:
        """Is another question asked, or another answer right? Without the hash of that, anything else counts."""
        (content, decision), (new_content, new_decision) = self.before, self.after
        if decision is None or new_decision is None:
            return content != new_content
        return asked_part(decision) != asked_part(new_decision)


def _differing(before: CaseColumns, after: CaseColumns) -> Iterator[_Differing]:
    """The shared cases of which any hash differs, by key."""
    keys, was_at, now_at = shared_cases(before, after)
    was, now = (
        zip(values_at(side.content_hashes, places), values_at(side.decision_hashes, places), strict=True)
        for side, places in ((before, was_at), (after, now_at))
    )
    return (_Differing(*case) for case in zip(keys, was, now, strict=True) if case[1] != case[2])


def relabelled(before: Comparable, after: Comparable) -> list[str]:
    """Keys of the cases that ask the same and are labelled otherwise (category, tags, metadata): shown, no obstacle."""
    if before.cases is None or after.cases is None:
        return []
    differing = _differing(before.cases, after.cases)
    return [case.key for case in differing if case.before[0] != case.after[0] and not case.asks_otherwise]


def relabelled_note(keys: Sequence[str]) -> str:
    """One line for people about cases that are labelled otherwise."""
    whose = counted(len(keys), "case is", "cases are")
    return f"{whose} labelled otherwise than before (category, tags, metadata, …): {listed(keys)}"


def _named(side: Comparable) -> str:
    cases = counted(side.total, "case")
    return f"{side.dataset[:12]} ({cases})" if side.dataset else cases


def _judge(before: Comparable, after: Comparable) -> Iterator[tuple[Mismatch, Collection[str]]]:
    """Yield how the judges differ, each with the rubrics that it concerns."""
    was, now = before.judge, after.judge
    if not was or not now:
        return  # nothing was judged on one side: what a judge scores is unmeasured, the rest compares
    every = was["prompt_versions"].keys() & now["prompt_versions"].keys()
    if was["model"] != now["model"]:
        yield Mismatch("judge", was["model"], now["model"]), every
    elif _is_other(before.identity, after.identity):
        yield Mismatch("judge", str(before.identity), str(after.identity)), every
    for rubric in sorted(every):
        versions = was["prompt_versions"][rubric], now["prompt_versions"][rubric]
        if versions[0] != versions[1]:
            yield Mismatch(f"prompt of {rubric}", *versions), (rubric,)
    degrees = before.temperature, after.temperature
    if None not in degrees and degrees[0] != degrees[1]:
        yield Mismatch("judge temperature", *map(str, degrees)), every


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
