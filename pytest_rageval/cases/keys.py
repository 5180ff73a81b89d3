"""All keys of a case file: which part of a case each one gives, in which of the four spellings, and what it means."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, get_origin

from pytest_rageval.cases.shapes import CaseShape, Label, Names
from pytest_rageval.io.expected import inner_type
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.model import Json

Cell = Literal["text", "flag", "json"]
"""How a value is written in a CSV cell."""


class Key(NamedTuple):
    """One key of a case file.

    part  the field of EvalCase that it gives, or of Gold where `is_gold`
    of    its type, where it is narrower than the part's, or the part is none of a case
    """

    part: str
    about: str
    cell: Cell = "json"
    is_gold: bool = False
    of: Any = None

    @property
    def part_type(self) -> Any:
        """What the part may hold."""
        return inner_type(_GOLD if self.is_gold else CaseShape, self.part)

    @property
    def value_type(self) -> Any:
        """What may stand at the key."""
        return self.of or self.part_type

    @property
    def kind(self) -> type:
        """What a value must be before it is read as its part."""
        return object if self.of is None else list if get_origin(self.of) is tuple else str

    def read(self, value: Json) -> Any:
        """What the part gets from a value at the key, None where it says nothing; Unsound where it cannot be read."""
        narrow = _reader(self.value_type).read(value)
        return _reader(self.part_type).read(value) if self.of and self.part_type is not Any else narrow


_GOLD = inner_type(CaseShape, "gold")


@cache
def _reader(of: Any) -> RecordReader[Any]:
    return RecordReader(of)


def _gold(part: str, about: str, cell: Cell = "json", of: Any = None) -> Key:
    return Key(part, about, cell, is_gold=True, of=of)


COMMON: Mapping[str, Key] = {
    "id": Key("id", "Unique in its file; the last part of the test's name. Absent: a hash of the line.", "text"),
    "question": Key("question", "What the system is asked.", "text"),
    "answerable": Key(
        "answerable",
        "Does the corpus hold an answer? false: the system should abstain. Default: false in the categories general "
        "and negative without gold places or ids, else true.",
        "flag",
    ),
    "category": Key(
        "category",
        "factual, reasoning, multi_hop, recency/conflict, general, adversarial, retrieval, synthesis, specificity, "
        "negative, or any text.",
        "text",
    ),
    "difficulty": Key("difficulty", "easy, medium, hard, or any text.", "text"),
    "domain": Key("domain", "What the question is about, e.g. market, brand, product, metric, general.", "text"),
    "tags": Key("tags", "Free labels, for selecting and for breakdowns."),
    "vaults": Key("vaults", "The vaults in which the question is asked."),
    "folders": Key("folders", "The folders in which the question is asked."),
    "requires_kg": Key(
        "requires_kg",
        "Does the question need the knowledge graph? Default: true where gold holds entities or edges, else false.",
        "flag",
    ),
    "history": Key("history", "Earlier turns of the conversation, oldest first."),
    "contexts": Key("contexts", "Contexts given with the case, judged where the target returns none."),
    "metadata": Key(
        "metadata",
        "Anything else: kept, never interpreted, but for requires_kg, domain and difficulty, which belong to the case.",
    ),
    "gold": Key("in_gold", "All that is known to be right.", of=dict[str, Any]),
}
"""Keys that every spelling shares."""

ANCHORS: Mapping[str, Key] = {
    "expected_key_facts": _gold("key_facts", "Facts that a right answer states."),
    "expected_answers": _gold("answers", "Answers any of which is right.", of=Names),
    "gold_supports": _gold("supports", "The places that hold the answer."),
    "required_support_groups": _gold(
        "support_groups",
        "Which of gold_supports are needed together, by 0-based position: [[0, 1], [2]] means (0 and 1) or 2.",
    ),
    "irrelevant_supports": _gold("irrelevant_supports", "Places that look alike and must not come."),
    "recency_conflict_rule": _gold(
        "recency_conflict_rule", "What a right answer does where the supports disagree.", "text"
    ),
}
"""The anchors spelling: gold is places in documents, which survive re-chunking."""

REFERENCE: Mapping[str, Key] = {
    "reference": _gold("answers", "The right answer.", "text", of=Name),
    "tag": Key("tag", "One free label, added to the tags.", "text", of=Label),
}
"""The reference spelling: a question and the answer to compare with, one row each."""

IDS: Mapping[str, Key] = {
    "query": Key("question", "What the system is asked: another word for `question`.", "text"),
    "relevant_ids": _gold(
        "chunk_ids",
        "Ids that should come; t01 matches t01, t01#2 and t01-a. Empty, with category negative: nothing may come.",
    ),
    "irrelevant_ids": _gold("irrelevant_ids", "Ids that look alike and must not come."),
    "reference_answer": _gold("answers", "The right answer.", "text", of=Name),
}
"""The ids spelling: gold is ids of documents or chunks, matched as prefixes."""

LAYERED: Mapping[str, Key] = {
    "doc_chunk_ids": _gold("chunk_ids", "The chunks that hold the answer."),
    "relevance": _gold("relevance", "Grades by chunk id; a chunk with a grade above 0 is relevant."),
    "kg_entities": _gold("kg_entities", "Entities to link in the question and to find in the graph."),
    "kg_edges": _gold("kg_edges", "Edges of the graph to find: 'laneige -hasProduct-> B08XYZ'."),
    "concepts": _gold("concepts", "Concepts in the question; empty: none."),
    "constraints": _gold("constraints", "Constraints in the question; empty: none."),
}
"""Keys of `gold` that tell the layers spelling."""

CANONICAL: Mapping[str, Key] = {
    "key_facts": ANCHORS["expected_key_facts"],
    "supports": ANCHORS["gold_supports"],
    "support_groups": ANCHORS["required_support_groups"],
    "irrelevant_supports": ANCHORS["irrelevant_supports"],
    "recency_conflict_rule": ANCHORS["recency_conflict_rule"],
    "chunk_ids": LAYERED["doc_chunk_ids"],
    "irrelevant_ids": IDS["irrelevant_ids"],
    "ids_are_prefixes": _gold(
        "ids_are_prefixes", "Do the ids match chunk ids that go on with # or -? Default: false.", "flag"
    ),
}
"""Keys of `gold` that tell a canonical case."""

KEYS: Mapping[str, Key] = {**COMMON, **ANCHORS, **REFERENCE, **IDS}
"""Every key that a line may have."""
CELLS: Mapping[str, Cell] = {name: key.cell for name, key in KEYS.items()}
IN_GOLD: Mapping[str, Key] = {
    "answer": _gold("answers", "The right answer, or a list any of which is right."),
    **LAYERED,
    **CANONICAL,
}
"""Every key that its `gold` may have."""
LIFTED: Mapping[str, Key] = {key: COMMON[key] for key in ("requires_kg", "domain", "difficulty")}
"""What the layers spelling writes into `metadata`, though the case has a field for it."""


def spelling_of(line_keys: Collection[str], in_gold: Collection[str]) -> tuple[str, ...]:
    """The spellings that a line combines, by the keys of the line and of its `gold` that are there and not null: none,
    one or several of anchors, reference, ids, layers, canonical.

    A `gold` object is of the layers spelling if it has a key that tells that spelling, or if nothing else on the line
    tells another one; with a key that only canonical cases have, it is canonical.
    """
    by_line = {"anchors": ANCHORS, "reference": REFERENCE, "ids": IDS}
    spellings = [name for name, keys in by_line.items() if not keys.keys().isdisjoint(line_keys)]
    if not CANONICAL.keys().isdisjoint(in_gold):
        spellings.append("canonical")
    elif in_gold and (not spellings or not LAYERED.keys().isdisjoint(in_gold)):
        spellings.append("layers")
    return tuple(spellings)
