"""What ties the parts of a case together: what follows from others is filled in, what contradicts them is blamed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from pytest_rageval.io.messages import Path
from pytest_rageval.model import EvalCase

UNANSWERABLE_CATEGORIES = frozenset({"general", "negative"})
"""Cases of these ask for what the corpus does not hold, where they do not say otherwise."""


def with_what_follows(case: EvalCase, given: Collection[str]) -> EvalCase:
    """The case with all that its parts, and the keys that gave them, imply.

    A graded chunk is a relevant chunk. Where no key says whether a case is answerable, one of the categories `general`
    and `negative` is not, unless it names places or ids that hold its answer. In a negative ids case an empty list of
    ids says that nothing may be retrieved; in any other it says nothing.
    """
    gold = case.gold
    chunk_ids = gold.chunk_ids
    if gold.relevance and (graded := [chunk_id for chunk_id, grade in gold.relevance.items() if grade > 0]):
        chunk_ids = tuple(dict.fromkeys((*(chunk_ids or ()), *graded)))
    is_answerable = case.answerable
    if not chunk_ids:
        if not _is_negative_ids_case(case, given):
            chunk_ids = None
        if "answerable" not in given and case.category in UNANSWERABLE_CATEGORIES and not gold.supports:
            is_answerable = False
    if chunk_ids != gold.chunk_ids:
        gold = replace(gold, chunk_ids=chunk_ids)
    if gold is not case.gold or is_answerable is not case.answerable:
        case = replace(case, gold=gold, answerable=is_answerable)
    return case


def contradictions(case: EvalCase, given: Collection[str], broken: Collection[str] = ()) -> Iterator[tuple[Path, str]]:
    """The parts that contradict others, with what is wrong; of what hangs on `broken` parts there is nothing to say."""
    gold = case.gold
    if "chunk_ids" not in broken:
        if gold.relevance:
            for chunk_id in gold.chunk_ids or ():
                if (grade := gold.relevance.get(chunk_id, 1.0)) <= 0:
                    yield (
                        ("relevance", chunk_id),
                        f"is {grade:g}, which says irrelevant, but the chunk ids list it; keep one",
                    )
        if case.answerable and not gold.chunk_ids and _is_negative_ids_case(case, given):
            remedy = "but a negative case without relevant ids has no answer; leave"
            if "answerable" in given:
                yield ("answerable",), f"is true, {remedy} it out, or name the ids"
            else:  # its supports alone make it so
                yield ("supports",), f"say where the answer stands, {remedy} them out, or name the ids"
    if "supports" not in broken and (gold.supports or gold.support_groups or gold.recency_conflict_rule):
        yield from _of_supports(case)


def _of_supports(case: EvalCase) -> Iterator[tuple[Path, str]]:
    supports = case.gold.supports or ()
    for position, group in enumerate(case.gold.support_groups or ()):
        for inner, index in enumerate(group):
            if not 0 <= index < len(supports):
                yield ("support_groups", position, inner), f"is {index}, out of range: {_how_many(len(supports))}"
    if supports and not case.answerable:
        yield (
            ("supports",),
            "contradicts 'answerable': false; leave the supports out, or make the case answerable",
        )
    if case.gold.recency_conflict_rule == "cite_newer" and len(supports) < 2:
        needs = "is 'cite_newer', which needs two supports or more"
        yield ("recency_conflict_rule",), f"{needs}; {_how_many(len(supports))}"


def _is_negative_ids_case(case: EvalCase, given: Collection[str]) -> bool:
    return case.category == "negative" and (case.gold.ids_are_prefixes or "query" in given)


def _how_many(supports: int) -> str:
    if not supports:
        return "the case has no supports"
    return "the case has one support, 0" if supports == 1 else f"the case has {supports} supports, 0 to {supports - 1}"
