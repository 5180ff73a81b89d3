"""All keys of a case file: the values, the part of a case and the format of each.

Reading, messages and the JSON Schema derive from these tables. Where an empty list means *unlabelled*, not *nothing
expected*, it becomes None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.pass_rule import WrittenPassRule
from pytest_rageval.io.records import Name
from pytest_rageval.io.strict_json import limits_broken
from pytest_rageval.model import Anchor, Edge, Json, Turn
from pytest_rageval.model.case_fields import DESCRIPTIVE_FIELDS

T = TypeVar("T")

# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _or_none(value: T) -> T | None:
    return value or None


def _unless_blank(text: str) -> str | None:
    return text if text and not text.isspace() else None


def _once_each(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _not_empty(group: tuple[int, ...]) -> tuple[int, ...]:
    if group:
        return group
    raise ValueError("is empty; leave the group out, or name what it needs")


_ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ]\d\d:\d\d\S{0,30})?)?)?", re.ASCII)


def _iso_date(text: str) -> str:
    """Check that a date is ISO 8601, because dates are compared as text: a year, a month, a day, or an instant."""
    if _ISO_DATE.fullmatch(text):
        return text
    raise PydanticCustomError("date_type", "Input should be an ISO date")


def _not_too_deep(value: dict[str, Json]) -> dict[str, Json]:
    # A number of any length keeps its written form, so that code that later shows the data does not exhaust the stack.
    is_deep = any(type(inner) in (dict, list) for inner in value.values())
    if is_deep and (problem := limits_broken(value, max_bits=math.inf)):
        raise ValueError(problem)
    return value


Label = Annotated[str, AfterValidator(_unless_blank)]
"""A text that is absent if blank, like an empty cell."""
Names = tuple[Name, ...]
SomeNames = Annotated[Names, AfterValidator(_or_none)]
Ids = Annotated[Names, AfterValidator(_once_each)]
"""A set in order: an id named twice is one gold."""
SomeIds = Annotated[Ids, AfterValidator(_or_none)]
FILLED = {"type": "string", "pattern": r"\S"}
Answer = Annotated[Name, AfterValidator(lambda answer: (answer,))]
Answers = Annotated[
    Answer | SomeNames,
    Expects("a string or a list of strings", broken="is blank; write the answer, or leave it out"),
]
Grade = Annotated[float, Field(ge=-1e6, le=1e6), Expects("a number up to a million")]
Grades = Annotated[dict[str, Grade], AfterValidator(_or_none), Expects("an object of grades by chunk id")]
Group = Annotated[
    tuple[Annotated[int, Field(json_schema_extra={"minimum": 0})], ...],
    AfterValidator(_not_empty),  # `min_length` would also count the positions that cannot be read
    Field(json_schema_extra={"minItems": 1}),
    Expects("a list of positions, such as [0, 1]"),
]
Groups = Annotated[
    tuple[Group, ...], AfterValidator(_or_none), Expects("a list of lists of positions, such as [[0, 1], [2]]")
]

# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AnchorShape:
    """A place in a document."""

    rel_path: Annotated[Name, Field(description="Path of the document, as the system reports it.")]
    heading_path: Annotated[
        str, Field(description="Headings from the top, '# Setup > ## Linux'; what lies below matches too.")
    ] = ""
    snippets: Annotated[Names, Field(description="Passages, one of which the chunk must hold.")] = ()
    date: (
        Annotated[
            str,
            AfterValidator(_iso_date),
            Expects("an ISO date such as '2024-05-31'"),
            Field(description="ISO date of what the place says: 2024, 2024-05, 2024-05-31."),
        ]
        | None
    ) = None


def _anchors(shapes: tuple[AnchorShape, ...]) -> tuple[Anchor, ...] | None:
    return tuple(Anchor(shape.rel_path, shape.heading_path, shape.snippets, shape.date) for shape in shapes) or None


Anchors = Annotated[tuple[AnchorShape, ...], AfterValidator(_anchors), Expects("a list of {rel_path, heading_path}")]


@dataclass(frozen=True, slots=True)
class EdgeShape:
    """An edge of the graph in three parts."""

    subject: Name
    predicate: Name
    object: Name


_PLAIN_EDGE = re.compile(r"(\S+) -(\w+)-> (\S+)")


def _edge(written: str | EdgeShape) -> Edge:
    if isinstance(written, EdgeShape):
        return Edge(written.subject.strip(), written.predicate.strip(), written.object.strip())
    if plain := _PLAIN_EDGE.fullmatch(written):
        return Edge(*plain.groups())  # equal to `Edge.parse`, in a third of the time
    try:
        return Edge.parse(written)
    except ValueError:
        raise PydanticCustomError("edge_type", "Input should be an edge") from None


_Edge = Annotated[
    str | EdgeShape,
    AfterValidator(_edge),
    Expects("an edge: 's -p-> o', 's|p|o' or {subject, predicate, object}"),
    Field(description="'subject -predicate-> object', 'subject|predicate|object', or an object."),
]
Edges = Annotated[tuple[_Edge, ...], Expects("a list of edges such as 'laneige -hasProduct-> B08XYZ'")]


@dataclass(frozen=True, slots=True)
class TurnShape:
    """One earlier turn of the conversation; chat services call the text `content`."""

    role: Annotated[Name, Field(description="user, assistant, …")]
    text: str | None = None
    content: str | None = None


def _turn(turn: TurnShape) -> Turn:
    if (turn.text is None) == (turn.content is None):
        raise ValueError("needs its text, in either 'text' or 'content'")
    return Turn(turn.role, turn.text or turn.content or "")


Turns = tuple[Annotated[TurnShape, AfterValidator(_turn)], ...]


def _checked_depth(written: Json) -> Json:
    if problem := limits_broken(written):
        raise ValueError(problem)
    return written


WrittenAssertions = Annotated[
    list[Any],
    AfterValidator(_checked_depth),
    WithJsonSchema({"type": "array"}),
    Expects("a list of assertions such as [{'icontains': '4 euros'}]"),
]
"""Assertions are read by the table of their types, once the line is sound."""
Rule = Literal["cite_newer", "acknowledge_both", "cite_both"]

# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

Cell = Literal["text", "flag", "json"]
"""The type of a CSV cell."""


class Key(NamedTuple):
    """One key of a case file: the field of EvalCase (of Gold if `is_gold`) that it fills, and its type."""

    part: str
    of: Any
    about: str
    cell: Cell = "json"
    is_gold: bool = False


def _object_type(name: str, keys: Mapping[str, Key]) -> Any:
    fields = {name: Annotated[key.of, Field(description=key.about)] for name, key in keys.items()}
    return TypedDict(name, fields, total=False)  # type: ignore[operator]  # the keys come from a table


def _gold(part: str, of: Any, about: str, cell: Cell = "json") -> Key:
    return Key(part, of, about, cell, is_gold=True)


DESCRIPTIVE: Mapping[str, Key] = {
    field.name: Key(field.name, Label, field.about, "text") for field in DESCRIPTIVE_FIELDS
}
"""Keys with a text that describes the case."""

LIFTED: Mapping[str, Key] = {
    "requires_kg": Key(
        "requires_kg",
        bool,
        "Does the question need the knowledge graph? Default: true where gold holds entities or edges, else false.",
        "flag",
    ),
    **{field.name: DESCRIPTIVE[field.name] for field in DESCRIPTIVE_FIELDS if field.in_metadata},
}
"""Keys that the layers format has in `metadata`, though the case has a field for them."""

ANCHORS: Mapping[str, Key] = {
    "expected_key_facts": _gold("key_facts", SomeNames, "Facts that a right answer states."),
    "expected_answers": _gold("answers", SomeNames, "Answers any of which is right."),
    "gold_supports": _gold("supports", Anchors, "The places that hold the answer."),
    "required_support_groups": _gold(
        "support_groups",
        Groups,
        "Which of gold_supports are needed together, by 0-based position: [[0, 1], [2]] means (0 and 1) or 2.",
    ),
    "irrelevant_supports": _gold("irrelevant_supports", Anchors, "Places that look alike and must not be retrieved."),
    "recency_conflict_rule": _gold(
        "recency_conflict_rule", Rule, "What a right answer does where the supports disagree.", "text"
    ),
}
"""The anchors format: gold is places in documents, which survive re-chunking."""

REFERENCE: Mapping[str, Key] = {
    "reference": _gold("answers", Answer, "The right answer.", "text"),
    "tag": Key("tag", Label, "One free label, added to the tags.", "text"),
}
"""The reference format: a question and its reference answer, one row each."""

IDS: Mapping[str, Key] = {
    "query": Key("question", Name, "Alias of `question`.", "text"),
    "relevant_ids": _gold(
        "chunk_ids",
        Ids,
        "Ids to retrieve; t01 matches t01, t01#2 and t01-a. Empty, with category negative: nothing.",
    ),
    "irrelevant_ids": _gold("irrelevant_ids", SomeIds, "Ids that look alike and must not be retrieved."),
    "reference_answer": _gold("answers", Answer, "The right answer.", "text"),
}
"""The ids format: gold is ids of documents or chunks, matched as prefixes."""

LAYERED: Mapping[str, Key] = {
    "doc_chunk_ids": _gold("chunk_ids", Ids, "The chunks that hold the answer."),
    "relevance": _gold("relevance", Grades, "Grades by chunk id; a chunk with a grade above 0 is relevant."),
    "kg_entities": _gold("kg_entities", Names, "Entities to link in the question and to find in the graph."),
    "kg_edges": _gold("kg_edges", Edges, "Edges of the graph to find: 'laneige -hasProduct-> B08XYZ'."),
    "concepts": _gold("concepts", Names, "Concepts in the question; empty: none."),
    "constraints": _gold("constraints", Names, "Constraints in the question; empty: none."),
}
"""Keys of `gold` that identify the layers format."""

CANONICAL: Mapping[str, Key] = {
    "key_facts": ANCHORS["expected_key_facts"],
    "supports": ANCHORS["gold_supports"],
    "support_groups": ANCHORS["required_support_groups"],
    "irrelevant_supports": ANCHORS["irrelevant_supports"],
    "recency_conflict_rule": ANCHORS["recency_conflict_rule"],
    "chunk_ids": LAYERED["doc_chunk_ids"],
    "irrelevant_ids": IDS["irrelevant_ids"],
    "ids_are_prefixes": _gold(
        "ids_are_prefixes", bool, "Do the ids match chunk ids that go on with # or -? Default: false.", "flag"
    ),
}
"""Keys of `gold` that identify a canonical case."""

IN_GOLD: Mapping[str, Key] = {
    "answer": _gold("answers", Answers, "The right answer, or a list any of which is right."),
    **LAYERED,
    **CANONICAL,
}
"""All keys of `gold` in the layers and canonical formats."""

Metadata: Any = Annotated[
    with_config(ConfigDict(strict=True, extra="allow"))(_object_type("Metadata", LIFTED)),
    AfterValidator(_not_too_deep),
    WithJsonSchema({"type": "object"}),
    Expects("an object"),
]

COMMON: Mapping[str, Key] = {
    "id": Key("id", Name, "Unique in its file; the last part of the test's name. Absent: a hash of the line.", "text"),
    "question": Key("question", Name, "What the system is asked.", "text"),
    "answerable": Key(
        "answerable",
        bool,
        "Does the corpus hold an answer? false: the system should abstain. Default: false in the categories general, "
        "negative, unanswerable and the like without gold places or ids, else true.",
        "flag",
    ),
    **DESCRIPTIVE,
    "tags": Key("tags", Names, "Free labels, for selecting and for breakdowns."),
    "vaults": Key("vaults", tuple[str, ...], "The vaults in which the question is asked."),
    "folders": Key("folders", tuple[str, ...], "The folders in which the question is asked."),
    "requires_kg": LIFTED["requires_kg"],
    "history": Key("history", Turns, "Earlier turns of the conversation, oldest first."),
    "rewrite": Key(
        "rewrite", Label, "The question of a follow-up as it would stand alone; never sent with it.", "text"
    ),
    "standalone": Key("rewrite", Label, "Alias of `rewrite`.", "text"),
    "conversational": Key(
        "conversational", bool, "Is it small talk, such as thanks, which needs no source? Default: false.", "flag"
    ),
    "expected_outcome": Key(
        "expected_outcome", Label, "What the person should know or have at the end of the conversation.", "text"
    ),
    "contexts": Key(
        "contexts", tuple[str, ...], "Passages for the judge if the system reports none; not sent over HTTP."
    ),
    "pass_rule": Key(
        "pass_rule",
        WrittenPassRule,
        "With repeats, how many trials must pass: mean (of the scores), all, majority, any, or a share such as 0.8.",
        "text",
    ),
    "assert": Key(
        "assertions",
        WrittenAssertions,
        "What the answer must contain, be or cost: {'icontains': '4 euros'}, or promptfoo's {'type', 'value', …}.",
    ),
    "metadata": Key(
        "metadata",
        Metadata,
        f"Anything else: kept, never interpreted, but for {', '.join(LIFTED)}, which belong to the case.",
    ),
    "gold": Key("in_gold", _object_type("InGold", IN_GOLD), "All that is known to be right."),
}
"""Keys shared by all formats."""

OF_CASE: Mapping[str, Key] = {**COMMON, **ANCHORS, **REFERENCE, **IDS}
"""The keys of a line with one question."""
OF_TURN: Mapping[str, Key] = {name: key for name, key in OF_CASE.items() if name not in ("history", "expected_outcome")}
"""The keys of one turn of a conversation."""


@dataclass(frozen=True, slots=True)
class MessageShape:
    """One message of a chat, as OpenAI's interface has it."""

    role: Annotated[Name, Field(description="system, user, assistant or tool")]
    content: Annotated[Any, Field(description="The text, or a list of {type: text, text}.")] = None


CONVERSATION: Mapping[str, Key] = {
    "turns": Key(
        "turns",
        Annotated[tuple[_object_type("AskedTurn", OF_TURN), ...], Field(json_schema_extra={"minItems": 1})],  # type: ignore[misc]  # the keys come from a table
        "The turns of a conversation, each with the keys of a case; those of the line are defaults, but for golds.",
    ),
    "messages": Key(
        "messages",
        Annotated[tuple[MessageShape, ...], Field(json_schema_extra={"minItems": 1})],
        "The turns as messages of a chat: what a user says is asked, the assistant's reply is its right answer.",
    ),
}
"""Keys that make a line a conversation."""

KEYS: Mapping[str, Key] = {**OF_CASE, **CONVERSATION}
"""All keys of a line."""
CELLS: Mapping[str, Cell] = {name: key.cell for name, key in KEYS.items()}
Line = _object_type("Line", KEYS)
"""The type of a line."""


@lru_cache(maxsize=512)
def spelling_of(line_keys: tuple[str, ...], in_gold: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats that a line combines, from the non-null keys of the line and of its `gold`.

    The result has any of anchors, reference, ids, layers, canonical. A `gold` object is canonical if it has a canonical
    key; else it is of the layers format if it has a layers key, or if the line has no key of another format.
    """
    by_line = {"anchors": ANCHORS, "reference": REFERENCE, "ids": IDS}
    spellings = [name for name, keys in by_line.items() if not keys.keys().isdisjoint(line_keys)]
    if not CANONICAL.keys().isdisjoint(in_gold):
        spellings.append("canonical")
    elif in_gold and (not spellings or not LAYERED.keys().isdisjoint(in_gold)):
        spellings.append("layers")
    return tuple(spellings)
