"""The layers spelling, and the `gold` object that it shares with canonical cases: gold for each layer of a system."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.cases import shapes
from pytest_rageval.cases.fields import COMMON, CaseDraft, Field
from pytest_rageval.cases.spellings import anchors, ids

FIELDS: Mapping[str, Field] = {
    "gold": Field("gold", shapes.OBJECT, "All that is known to be right.", is_gold=True),
}

LAYERED: Mapping[str, Field] = {
    "doc_chunk_ids": Field("chunk_ids", shapes.IDS, "The chunks that hold the answer.", is_gold=True),
    "relevance": Field(
        "relevance", shapes.GRADES, "Grades by chunk id; a chunk with a grade above 0 is relevant.", is_gold=True
    ),
    "kg_entities": Field(
        "kg_entities", shapes.NAMES, "Entities to link in the question and to find in the graph.", is_gold=True
    ),
    "kg_edges": Field(
        "kg_edges", shapes.EDGES, "Edges of the graph to find: 'laneige -hasProduct-> B08XYZ'.", is_gold=True
    ),
    "concepts": Field("concepts", shapes.NAMES, "Concepts in the question; empty: none.", is_gold=True),
    "constraints": Field("constraints", shapes.NAMES, "Constraints in the question; empty: none.", is_gold=True),
}
"""Keys of `gold` that tell the layers spelling."""

CANONICAL: Mapping[str, Field] = {
    "key_facts": anchors.FIELDS["expected_key_facts"],
    "supports": anchors.FIELDS["gold_supports"],
    "support_groups": anchors.FIELDS["required_support_groups"],
    "irrelevant_supports": anchors.FIELDS["irrelevant_supports"],
    "recency_conflict_rule": anchors.FIELDS["recency_conflict_rule"],
    "chunk_ids": LAYERED["doc_chunk_ids"],
    "irrelevant_ids": ids.FIELDS["irrelevant_ids"],
    "ids_are_prefixes": Field(
        "ids_are_prefixes",
        shapes.FLAG,
        "Do the ids match chunk ids that go on with # or -? Default: false.",
        is_gold=True,
    ),
}
"""Keys of `gold` that tell a canonical case."""

GOLD: Mapping[str, Field] = {
    "answer": Field("answers", shapes.ANSWERS, "The right answer, or a list any of which is right.", is_gold=True),
    **LAYERED,
    **CANONICAL,
}

LIFTED: Mapping[str, Field] = {key: COMMON[key] for key in ("requires_kg", "domain", "difficulty")}
"""What this spelling writes into `metadata`, though the case has a field for it."""


SETTLED = frozenset({"gold", "relevance"})


def settle_layers(draft: CaseDraft) -> None:
    """Cases of this spelling need the graph unless they say otherwise; a graded chunk is a relevant chunk."""
    if "layers" in draft.spelling:
        draft.case.setdefault("requires_kg", True)
    grades = draft.gold.get("relevance")
    if grades is None or "chunk_ids" in draft.broken:
        return
    listed = draft.gold.get("chunk_ids") or ()
    for chunk_id in listed:
        if grades.get(chunk_id, 1.0) <= 0:
            message = f"is {grades[chunk_id]:g}, which says irrelevant, but the chunk ids list it; keep one"
            draft.blame("relevance", message, (chunk_id,))
    graded = [chunk_id for chunk_id, grade in grades.items() if grade > 0]
    if graded:
        draft.gold["chunk_ids"] = tuple(dict.fromkeys((*listed, *graded)))
