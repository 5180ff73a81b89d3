"""The anchors spelling: gold is places in documents, which survive re-chunking."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.cases import shapes
from pytest_rageval.cases.fields import CaseDraft, Field

FIELDS: Mapping[str, Field] = {
    "expected_key_facts": Field("key_facts", shapes.SOME_NAMES, "Facts that a right answer states.", is_gold=True),
    "expected_answers": Field("answers", shapes.SOME_NAMES, "Answers any of which is right.", is_gold=True),
    "gold_supports": Field("supports", shapes.ANCHORS, "The places that hold the answer.", is_gold=True),
    "required_support_groups": Field(
        "support_groups",
        shapes.GROUPS,
        "Which of gold_supports are needed together, by 0-based position: [[0, 1], [2]] means (0 and 1) or 2.",
        is_gold=True,
    ),
    "irrelevant_supports": Field(
        "irrelevant_supports", shapes.ANCHORS, "Places that look alike and must not come.", is_gold=True
    ),
    "recency_conflict_rule": Field(
        "recency_conflict_rule", shapes.RULE, "What a right answer does where the supports disagree.", is_gold=True
    ),
}


SETTLED = frozenset({"supports", "support_groups", "recency_conflict_rule"})


def settle_anchors(draft: CaseDraft) -> None:
    """The rules that tie supports, groups, answerable and the recency rule together."""
    gold = draft.gold
    if "supports" in draft.broken:
        return
    supports = gold.get("supports") or ()
    for position, group in enumerate(gold.get("support_groups") or ()):
        for inner, index in enumerate(group):
            if not 0 <= index < len(supports):
                message = f"is {index}, out of range: {_how_many(len(supports))}"
                draft.blame("support_groups", message, (position, inner))
    if supports and draft.case.get("answerable") is False:
        draft.blame("supports", "contradicts 'answerable': false; leave the supports out, or make the case answerable")
    if gold.get("recency_conflict_rule") == "cite_newer" and len(supports) < 2:
        message = f"is 'cite_newer', which needs two supports or more; {_how_many(len(supports))}"
        draft.blame("recency_conflict_rule", message)


def _how_many(supports: int) -> str:
    if not supports:
        return "the case has no supports"
    return "the case has one support, 0" if supports == 1 else f"the case has {supports} supports, 0 to {supports - 1}"
