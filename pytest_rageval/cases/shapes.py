"""What the parts of a case may hold, declared once: reading, its messages and the JSON Schema follow from it.

Where an empty list says nothing (*unlabelled*, not *nothing is expected*), it becomes None.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.records import Name, RecordReader, becomes
from pytest_rageval.io.strict_json import limits_broken
from pytest_rageval.model import Anchor, Edge, EvalCase, Gold, Json, Turn

T = TypeVar("T")

# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _or_none(value: T) -> T | None:
    return value or None


def _unless_blank(text: str) -> str | None:
    return text if text and not text.isspace() else None


def _once_each(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _listed(value: Json) -> Json:
    if isinstance(value, str) and not _unless_blank(value):
        raise ValueError("is blank; write the answer, or leave it out")
    return [value] if isinstance(value, str) else value


def _not_empty(group: tuple[int, ...]) -> tuple[int, ...]:
    if group:
        return group
    raise ValueError("is empty; leave the group out, or name what it needs")


_ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ]\d\d:\d\d\S{0,30})?)?)?", re.ASCII)


def _iso_date(text: str) -> str:
    """Dates are compared as written, so they must be ISO 8601: a year, a month, a day, or an instant."""
    if _ISO_DATE.fullmatch(text):
        return text
    raise PydanticCustomError("date_type", "Input should be an ISO date")


def _not_too_deep(value: dict[str, Json]) -> dict[str, Json]:
    # A number of any length is kept as it is written: whoever shows the data later must not run out of stack.
    if problem := limits_broken(value, max_bits=math.inf):
        raise ValueError(problem)
    return value


Label = Annotated[str, AfterValidator(_unless_blank)]
"""A blank one says nothing, like an empty cell."""
Names = tuple[Name, ...]
SomeNames = Annotated[Names, AfterValidator(_or_none)]
Ids = Annotated[Names, AfterValidator(_once_each)]
"""A set that keeps its order: an id named twice is one gold."""
SomeIds = Annotated[Ids, AfterValidator(_or_none)]
_FILLED = {"type": "string", "pattern": r"\S"}
Answers = Annotated[
    SomeNames,
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [_FILLED, {"type": "array", "items": _FILLED}]}),
    Expects("a string or a list of strings"),
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
Free = Annotated[dict[str, Any], AfterValidator(_not_too_deep)]

# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@becomes(Anchor)
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


Anchors = Annotated[tuple[AnchorShape, ...], AfterValidator(_or_none), Expects("a list of {rel_path, heading_path}")]


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
        return Edge(*plain.groups())  # what `Edge.parse` makes of it, in a third of the time
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
    """One earlier turn of the conversation."""

    role: Annotated[Name, Field(description="user, assistant, …")]
    text: str


def _turn(turn: TurnShape) -> Turn:
    return Turn(turn.role, turn.text)


@becomes(Gold)
@dataclass(frozen=True, slots=True)
class GoldShape:
    """All that is known to be right."""

    answers: Answers | None = None
    key_facts: SomeNames | None = None
    supports: Anchors | None = None
    support_groups: Groups | None = None
    irrelevant_supports: Anchors | None = None
    chunk_ids: Ids | None = None
    irrelevant_ids: SomeIds | None = None
    ids_are_prefixes: bool = False
    relevance: Grades | None = None
    concepts: Names | None = None
    constraints: Names | None = None
    kg_entities: Names | None = None
    kg_edges: Edges | None = None
    recency_conflict_rule: Literal["cite_newer", "acknowledge_both", "cite_both"] | None = None


@becomes(EvalCase)
@dataclass(frozen=True, slots=True)
class CaseShape:
    """A case in its canonical parts. One without an id gets it when all of it is known."""

    question: Name
    id: Name = ""
    answerable: bool = True
    category: Label | None = None
    difficulty: Label | None = None
    domain: Label | None = None
    tags: Names = ()
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    requires_kg: bool = False
    gold: GoldShape = Gold()  # type: ignore[assignment]  # because it becomes one
    history: tuple[Annotated[TurnShape, AfterValidator(_turn)], ...] | None = None
    contexts: tuple[str, ...] | None = None
    metadata: Free = field(default_factory=dict)
    source: Any = None


CASES = RecordReader[EvalCase](CaseShape)
