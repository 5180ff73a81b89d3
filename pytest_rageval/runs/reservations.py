"""Reservations about a verdict: answers not judged or left undecided, and cases that passed only when run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.matching.dialects import worst_doubt
from pytest_rageval.runs.row import Row
from pytest_rageval.text import counted, excerpt

UNJUDGED = "not_judged"
"""The key in metrics.json; a run whose answers were all judged, or that has no judge, is without it."""
RERUN = "passed_when_rerun"
"""The key in metrics.json of the cases that did not pass at their first attempt; a run without any is without it."""
ANSWERS_UNMEASURED = "answers_unmeasured"
"""The key in metrics.json of a run that measured no answers, though it had answers to measure."""
RETRIEVAL_UNMEASURED = "retrieval_unmeasured"
"""The key in metrics.json of the number of cases whose gold names places that no gate could look for; absent if 0."""
LEAKS = "answers_with_credentials"
"""The key in metrics.json of the cases whose answers repeat a credential; a run without any is without it."""
OF_RETRIEVAL = frozenset(
    {
        "recall_any",
        "recall_all",
        "context_recall",
        "precision",
        "mrr",
        "ndcg",
        "map",
        "r_precision",
        "f1",
    }
)
"""The metrics that compare the retrieved chunks with gold places.

Others of their layer look at references, which an answer that declines has not: they are missing for good reasons.
"""
ANSWER_LAYER = "L5"
WITHOUT_CONTENT = frozenset({"abstention", "operations"})
"""The layers that look at no content: whether something was answered, and what it took."""
JUDGE_ERROR = "judge"
"""The beginning of the kinds of error of a judge."""
LEFT_OUT = "judge_unavailable"
"""Why no answer of a run was judged whose judge could not be asked."""
IN_A_BATCH = "judge_batch"
"""Why no answer of a run was judged whose judging was submitted as a batch: it is scored when that is collected."""


def not_judged(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how many cases were to be judged, how many have no or not all judgements, and why; empty if none."""
    reasons = [sorted(set(_reasons(row))) for row in rows]
    failed = [each for each in reasons if each]
    if not failed:
        return {}
    judged = sum(bool(row.judge or why) for row, why in zip(rows, reasons, strict=True))
    kinds: Counter[str] = Counter()
    for each in failed:
        # Once a case: two failed rubrics of one answer are one case of that kind.
        kinds.update(each)
    return {UNJUDGED: {"cases": len(failed), "of": judged, "kinds": dict(sorted(kinds.items()))}}


def judge_left_out(rows: Sequence[Row], why: str) -> dict[str, Any]:
    """Return the same for a run in which no answer was judged, for one reason."""
    # A case without an answer had nothing to judge.
    answered = sum(row.outcome != "error" for row in rows)
    return {UNJUDGED: {"cases": answered, "of": answered, "kinds": {why: answered}}} if answered else {}


def still_left_out(earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for a stored run that is decided again, and in which no answer was judged at its time."""
    unjudged = earlier.get(UNJUDGED)
    if unjudged is None or not {LEFT_OUT, IN_A_BATCH}.intersection(unjudged["kinds"]):
        return {}
    return {UNJUDGED: unjudged}


def has_left_out_judge(metrics: Mapping[str, Any]) -> bool:
    """Return True if the judge that the run names could not be asked."""
    return LEFT_OUT in metrics.get(UNJUDGED, {}).get("kinds", ())


def _reasons(row: Row) -> Iterator[str]:
    """Yield the kinds of the errors that kept an answer from being judged."""
    failed = (row.judge or {}).get("failed") or {}
    yield from (problem["kind"] for problem in failed.values())
    if row.error_kind is not None and row.error_kind.startswith(JUDGE_ERROR):
        yield row.error_kind


def is_unjudged(metrics: Mapping[str, Any]) -> bool:
    """Return True if no answer of the run could be judged."""
    unjudged = metrics.get(UNJUDGED)
    return unjudged is not None and unjudged["cases"] == unjudged["of"]


def unjudged_counts(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield `3 of 8 answers were not judged (judge_timeout)`."""
    unjudged = metrics.get(UNJUDGED)
    if unjudged is None:
        return
    was = "was" if unjudged["cases"] == 1 else "were"
    kinds = ", ".join(unjudged["kinds"])
    yield f"{unjudged['cases']:,} of {counted(unjudged['of'], 'answer')} {was} not judged ({kinds})"


def unmeasured_answers(rows: Iterable[Row], layers: Mapping[str, Any], *, is_retrieval_only: bool) -> dict[str, Any]:
    """Return the mark of a run in which no metric of answers has a value, though there is something to measure.

    That is so where gold answers exist, and where nothing but abstention was measured in answerable cases: any answer
    passes there. Tests of the project's own measure answers by themselves.

    is_retrieval_only  True if the run was told to measure no answers
    """
    if ANSWER_LAYER in layers:
        return {}
    answered = [row for row in rows if row.outcome not in ("error", "skipped") and not row.is_own_test]
    has_gold = any(row.groups.get("answer", ("none",)) != ("none",) for row in answered)
    is_nothing_measured = layers.keys() <= WITHOUT_CONTENT and any(map(_should_be_answered, answered))
    is_unmeasured = has_gold or is_nothing_measured or (answered and is_retrieval_only)
    return {ANSWERS_UNMEASURED: True} if is_unmeasured else {}


def is_of_retrieval(name: str) -> bool:
    """Return True for a metric, with or without its cut-off, that compares the retrieved chunks with gold places."""
    return name.partition("@")[0] in OF_RETRIEVAL


def unmeasured_retrieval(rows: Iterable[Row]) -> dict[str, Any]:
    """Return how many cases have gates on retrieval that found nothing to examine; empty if none."""
    count = 0
    for row in rows:
        if row.outcome != "error" and any(map(is_of_retrieval, row.unexamined)):
            count += 1
    return {RETRIEVAL_UNMEASURED: count} if count else {}


def _should_be_answered(row: Row) -> bool:
    return "answerable" in row.groups.get("answerable", ()) and not row.is_small_talk


def reruns(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the keys of the cases that passed after an attempt that did not; empty if there are none."""
    keys = sorted(row.key for row in rows if row.attempts > 1 and row.outcome == "passed")
    return {RERUN: keys} if keys else {}


def open_abstentions(rows: Iterable[Row]) -> dict[str, Any]:
    """Return how many answers leave open if they abstain, and how many are in languages without training."""
    undecided = 0
    languages: Counter[str] = Counter()
    for row in rows:
        undecided += row.is_undecided
        if row.untrained_language is not None:
            languages[row.untrained_language] += 1
    return {"undecided": undecided, "untrained_languages": dict(sorted(languages.items()))}


def doubts_in(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how many golds are matched in doubt, by kind, and the worst doubt of each case; empty if none is."""
    golds: Counter[str] = Counter()
    cases: dict[str, Any] = {}
    for row in rows:
        if row.doubts:
            golds.update(row.doubts)
            cases[row.key] = worst_doubt(row.doubts)
    if not golds:
        return {}
    return {"doubts": {"golds": dict(sorted(golds.items())), "cases": cases}}


def leaks(trials: Iterable[Row]) -> dict[str, Any]:
    """Return the keys of the cases in which a trial's answer repeats a credential; empty if there are none."""
    keys = sorted({row.key for row in trials if row.repeats_credential})
    return {LEAKS: keys} if keys else {}


def leak_words(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield `the answers of 2 cases repeat a credential (masked)`."""
    keys = metrics.get(LEAKS)
    if not keys:
        return
    subject = "the answer of 1 case repeats" if len(keys) == 1 else f"the answers of {len(keys):,} cases repeat"
    yield f"{subject} a credential (masked): {listed(keys)}"


MOST_REASONS = 5
LONGEST_REASON = 120
"""The most reasons for skipped cases that are shown, and the most characters of each."""
BY_PYTEST = "Skipped: "
"""The beginning of the reason of a case that a mark or pytest.skip() left out."""


def skip_notes(rows: Iterable[Row]) -> Iterator[str]:
    """Yield how many cases marks and pytest.skip() left out, by the reason that they give."""
    reasons: Counter[str] = Counter()
    for row in rows:
        if row.outcome == "skipped" and (row.message or "").startswith(BY_PYTEST):
            reasons[(row.message or "").removeprefix(BY_PYTEST)] += 1
    for reason, number in sorted(reasons.items())[:MOST_REASONS]:
        yield f"{counted(number, 'case')} skipped: {excerpt(reason, LONGEST_REASON) or 'no reason given'}"
