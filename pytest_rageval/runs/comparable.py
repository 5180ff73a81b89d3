"""Comparability: what must agree between two runs that are compared, continued as one, or given new labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.case_columns import CaseColumns, shared_cases, values_at
from pytest_rageval.runs.config import dataset_hash_of, hashed_part
from pytest_rageval.runs.config_diff import change_text, config_changes
from pytest_rageval.runs.decision_hash import asked_part, gated_part
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
    """

    cases: CaseColumns | None
    dataset: str | None
    total: int
    judge: Mapping[str, Any] | None
    identity: str | None
    temperature: float | None
    reported: frozenset[str] | None
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
        is_partial=metrics["partial"],
    )


class ComparedParts(NamedTuple):
    """Two sides as they are compared; `changed` are keys of cases on both that are left out."""

    before: Comparable
    after: Comparable
    changed: tuple[str, ...]


def compared_parts(before: Comparable, after: Comparable, *, alike_cases: bool) -> ComparedParts:
    """What of the two is compared: with `alike_cases` not the cases that changed in between, else everything.

    A case is alike where the same is asked, right and gated. Nothing is left out where no case is: then the two are
    as incomparable as they were.
    """
    was, now = before.cases, after.cases
    if was is None or now is None or not alike_cases:
        return ComparedParts(before, after, ())
    differing = _differing(was, now)
    changed = tuple([case.key for case in differing if case.asks_otherwise or case.is_gated_otherwise])
    if len(changed) == len(shared_cases(was, now).keys):
        return ComparedParts(before, after, ())
    left = before._replace(cases=was.without(changed)), after._replace(cases=now.without(changed))
    return ComparedParts(*left, changed)


def mismatches(before: Comparable, after: Comparable) -> list[Mismatch]:
    """Why the two cannot be compared: whatever moved would not be the system's doing. Empty where they can.

    Cases on one side only are no obstacle, as long as there are any on both: they are left out of the pairing.
    """
    return [*_dataset(before, after), *_judge(before, after), *_reported(before, after)]


def _dataset(before: Comparable, after: Comparable) -> Iterator[Mismatch]:
    if before.cases is None or after.cases is None:
        if None not in (before.dataset, after.dataset) and before.dataset != after.dataset:
            yield Mismatch("dataset", _named(before), _named(after))
        return
    was, now = before.cases, after.cases
    differing = list(_differing(was, now))
    changed = [case.key for case in differing if case.asks_otherwise]
    regated = [case.key for case in differing if case.is_gated_otherwise and not case.asks_otherwise]
    if regated:
        before_gates, after_gates = (gated_part(side[regated[0]].decision_hash)[:8] for side in (was, now))
        places = f"{len(regated)} case{'' if len(regated) == 1 else 's'}, {listed(regated)}"
        yield Mismatch("what is gated", f"gates {before_gates}", f"gates {after_gates}", f"in {places}")
    has_none_in_common = bool(was) and bool(now) and not shared_cases(was, now).keys
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

    @property
    def is_gated_otherwise(self) -> bool:
        was, now = self.before[1], self.after[1]
        return None not in (was, now) and gated_part(was) != gated_part(now)


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


def _judge(before: Comparable, after: Comparable) -> Iterator[Mismatch]:
    was, now = before.judge, after.judge
    if not was or not now:
        return  # nothing was judged on one side: what a judge scores is unmeasured, the rest compares
    if was["model"] != now["model"]:
        yield Mismatch("judge", was["model"], now["model"])
    elif before.identity is not None and after.identity is not None and before.identity != after.identity:
        yield Mismatch("judge", before.identity, after.identity)
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
