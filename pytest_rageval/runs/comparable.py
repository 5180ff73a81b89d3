"""Checks of what must agree between two runs to compare them, to continue one, or to relabel one."""

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
"""The fields of a case that are sent to the system; an answer is only valid for the same values."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that must be the same on both sides but differs, with optional details.

    is_ignorable  there is something to compare if the user ignores it
    sentence      is shown in place of name and values; if empty, made of them
    """

    what: str
    before: str
    after: str
    more: str = ""
    is_ignorable: bool = True
    sentence: str = ""

    def __str__(self) -> str:
        if self.sentence:
            return self.sentence
        more = f": {self.more}" if self.more else ""
        return f"{self.what} was {self.before} and is {self.after}{more}"


class Comparable(NamedTuple):
    """The part of a run or a baseline that decides whether it can be compared with another.

    cases        with two hashes of each: of all its content, and of its question, gold and gates (None if not
                 recorded); None if only aggregates are known
    dataset      the hash over all cases of the project; None if not all are known
    judge        the `judge` of metrics.json; None if nothing was judged
    identity     the judge's identity in config.json, which includes its server; None if not recorded
    temperature  of a model judge; None if not known
    reported     the fields that any answer had besides its text; None if not known
    source       how the answers were obtained: asked, uploaded or recorded; None if not known
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
    """Build it from metrics.json and, if known, from config.json and the cases."""
    config = config or {}
    dataset = config.get("dataset_hash")
    # A part of the cases has another hash than all of them, which says nothing of the dataset.
    if dataset is None and cases is not None and not metrics["partial"]:
        dataset = dataset_hash_of(zip(cases.case_keys, cases.content_hashes, strict=True))
    total = metrics["total_tests"]
    judge = metrics.get("judge")
    temperature = None
    # A heuristic has no temperature, whatever the settings say.
    if judge and not judge["heuristic"]:
        temperature = config.get("settings", {}).get("judge_temperature")
    reported = None
    has_answer = metrics["outcomes"]["error"] != total
    # Without an answer, it is not known which fields the system sends.
    if has_answer and config.get("reported_fields") is not None:
        reported = frozenset(config["reported_fields"])
    target = config.get("target")
    source = None
    if isinstance(target, str):
        source = kind_of(target).source
    return Comparable(
        cases=cases,
        dataset=dataset,
        total=total if cases is None else len(cases),
        judge=judge,
        identity=(config.get("judge") or {}).get("identity"),
        temperature=temperature,
        reported=reported,
        source=source,
        is_partial=metrics["partial"],
    )


def changed_cases(before: Comparable, after: Comparable) -> tuple[str, ...]:
    """Return the keys of shared cases whose question or gold changed: they are left out of a comparison.

    Return none if all shared cases changed: then the runs are not comparable.
    """
    if before.cases is None or after.cases is None:
        return ()
    changed = tuple(case.key for case in _differing(before.cases, after.cases) if case.asks_otherwise)
    shared = shared_cases(before.cases, after.cases).keys
    return changed if len(changed) < len(shared) else ()


def mismatches(before: Comparable, after: Comparable) -> list[Mismatch]:
    """Return why the runs cannot be compared: they share no unchanged case. Empty if they share one.

    Cases on one side only are no obstacle: they are left out of the pairing.
    """
    if before.cases is None or after.cases is None:
        if _is_other(before.dataset, after.dataset):
            return [Mismatch("dataset", _named(before), _named(after))]
        return []
    was = before.cases
    now = after.cases
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
    return [Mismatch("dataset", _named(before), _named(after), ", ".join(parts), is_ignorable=bool(shared))]


def differences(before: Comparable, after: Comparable) -> list[Mismatch]:
    """Return the differences that a reader of a comparison should know: answer source, judge, reported fields."""
    judge = [mismatch for mismatch, _ in _judge(before, after)]
    if _is_other(before.source, after.source):
        # Another source reports other fields: the one difference explains the other.
        return [Mismatch("source", str(before.source), str(after.source)), *judge]
    return [*judge, *_reported(before, after)]


def judged_otherwise(before: Comparable, after: Comparable) -> set[str]:
    """Return the rubrics scored with another judge, prompt or temperature, which could explain a change."""
    judged: set[str] = set()
    for _, rubrics in _judge(before, after):
        judged.update(rubrics)
    return judged


def _is_other(before: float | str | None, after: float | str | None) -> bool:
    """Return True if both values are known and differ."""
    return before is not None and after is not None and before != after


class _DifferingCase(NamedTuple):
    """A case whose hashes differ between the sides: (content, decision)."""

    key: str
    before: tuple[str, str | None]
    after: tuple[str, str | None]

    @property
    def asks_otherwise(self) -> bool:
        """Return True if the question or the gold changed; without decision hashes, if any content changed."""
        content, decision = self.before
        new_content, new_decision = self.after
        if decision is None or new_decision is None:
            return content != new_content
        return asked_part(decision) != asked_part(new_decision)


def _differing(before: CaseColumns, after: CaseColumns) -> Iterator[_DifferingCase]:
    """Yield the shared cases with any differing hash, in key order."""
    shared = shared_cases(before, after)
    was = _hashes(before, shared.before)
    now = _hashes(after, shared.after)
    for key, hashes_before, hashes_after in zip(shared.keys, was, now, strict=True):
        if hashes_before != hashes_after:
            yield _DifferingCase(key, hashes_before, hashes_after)


def _hashes(side: CaseColumns, places: Sequence[int]) -> Iterator[tuple[str, str | None]]:
    return zip(values_at(side.content_hashes, places), values_at(side.decision_hashes, places), strict=True)


def relabelled(before: Comparable, after: Comparable) -> list[str]:
    """Return the keys of cases with the same question but other labels (category, tags, metadata): still comparable."""
    if before.cases is None or after.cases is None:
        return []
    differing = _differing(before.cases, after.cases)
    return [case.key for case in differing if case.before[0] != case.after[0] and not case.asks_otherwise]


def relabelled_note(keys: Sequence[str]) -> str:
    """Return a line for people about relabelled cases."""
    whose = counted(len(keys), "case is", "cases are")
    return f"{whose} labelled otherwise than before (category, tags, metadata, …): {listed(keys)}"


def _named(side: Comparable) -> str:
    cases = counted(side.total, "case")
    return f"{side.dataset[:12]} ({cases})" if side.dataset else cases


def _judge(before: Comparable, after: Comparable) -> Iterator[tuple[Mismatch, Collection[str]]]:
    """Yield each difference between the judges with the rubrics it affects."""
    was = before.judge
    now = after.judge
    if not was or not now:
        return  # one side has no judged scores; all others can be compared
    every = was["prompt_versions"].keys() & now["prompt_versions"].keys()
    if was["model"] != now["model"]:
        yield Mismatch("judge", was["model"], now["model"]), every
    elif _is_other(before.identity, after.identity):
        yield Mismatch("judge", str(before.identity), str(after.identity)), every
    for rubric in sorted(every):
        version_before = was["prompt_versions"][rubric]
        version_after = now["prompt_versions"][rubric]
        if version_before != version_after:
            yield Mismatch(f"prompt of {rubric}", version_before, version_after), (rubric,)
    if _is_other(before.temperature, after.temperature):
        yield Mismatch("judge temperature", str(before.temperature), str(after.temperature)), every


def _reported(before: Comparable, after: Comparable) -> Iterator[Mismatch]:
    """Yield the difference between the reported fields; fields missing from a partial run do not count."""
    if before.reported is None or after.reported is None:
        return
    lost = [] if after.is_partial else sorted(before.reported - after.reported)
    gained = [] if before.is_partial else sorted(after.reported - before.reported)
    if lost or gained:
        parts = []
        sentences = []
        if lost:
            parts.append(f"without {', '.join(lost)}")
            sentences.append(f"no longer sends {', '.join(lost)}")
        if gained:
            parts.append(f"newly with {', '.join(gained)}")
            sentences.append(f"now sends {', '.join(gained)}, which it did not before")
        was = ", ".join(sorted(before.reported)) or "nothing"
        now = ", ".join(sorted(after.reported)) or "nothing"
        sentence = f"the system {' and '.join(sentences)}"
        yield Mismatch("what the system reports", was, now, "; ".join(parts), sentence=sentence)


def other_configuration(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Describe how two config.json differ in the part that is hashed; None if they agree.

    Only runs that agree can be merged, or one continued as the other.
    """
    if before["config_hash"] == after["config_hash"]:
        return None
    changes = config_changes(hashed_part(before), hashed_part(after))
    return "; ".join(map(change_text, changes)) or "its metrics or gates are configured otherwise"


def asked_differently(before: EvalCase, after: EvalCase) -> list[str]:
    """Return the fields sent to the system that differ between two versions of a case."""
    return [name for name in ASKED if getattr(before, name) != getattr(after, name)]
