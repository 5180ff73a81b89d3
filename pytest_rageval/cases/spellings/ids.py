"""The ids spelling: gold is ids of documents or chunks, matched as prefixes."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.cases import shapes
from pytest_rageval.cases.fields import CaseDraft, Field

FIELDS: Mapping[str, Field] = {
    "query": Field("question", shapes.NAME, "What the system is asked: another word for `question`."),
    "relevant_ids": Field(
        "chunk_ids",
        shapes.IDS,
        "Ids that should come; t01 matches t01, t01#2 and t01-a. Empty, with category negative: nothing may come.",
        is_gold=True,
    ),
    "irrelevant_ids": Field("irrelevant_ids", shapes.SOME_IDS, "Ids that look alike and must not come.", is_gold=True),
    "reference_answer": Field("answers", shapes.ANSWER, "The right answer.", is_gold=True),
}


SETTLED = frozenset({"chunk_ids", "irrelevant_ids", "category"})


def settle_ids(draft: CaseDraft) -> None:
    """Ids are prefixes; a negative case without relevant ids is one that nothing in the corpus answers."""
    case, gold, given = draft.case, draft.gold, draft.given
    if "relevant_ids" in given or "irrelevant_ids" in given:
        gold["ids_are_prefixes"] = True
    is_ids = gold.get("ids_are_prefixes", False) or "query" in given
    is_negative = is_ids and case.get("category") == "negative" and "chunk_ids" not in draft.broken
    if not gold.get("chunk_ids"):
        if is_negative and case.get("answerable") is True:
            message = "is true, but a negative case without relevant ids has no answer; leave it out, or name the ids"
            draft.blame("answerable", message)
        elif is_negative:
            case["answerable"] = False
        else:
            gold.pop("chunk_ids", None)
