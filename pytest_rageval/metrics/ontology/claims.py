"""The claims of a trace (inferred facts, known facts, types of entities), and the protocol of their validators."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pytest_rageval.language.words import as_label
from pytest_rageval.model import Edge, Json, Trace

MOST_CLAIMS = 10_000
"""Facts and types of one trace that are checked; a trace that claims more is an error of its case."""


class Value(NamedTuple):
    """An object that is no entity: a number or a truth value, as JSON writes it."""

    json: str


class Fact(NamedTuple):
    """One triple. Names are labels: NFKC, case folded, trimmed, as everywhere in the metrics of graphs."""

    subject: str
    predicate: str
    object: str | Value


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one trace, hashable.

    inferences  in the order of the trace; None stands for one that is no triple
    known       facts that are not judged but count as circumstances: the edges the system took from its graph
                (`kg_edges`) and the premises that inferences name (`because`)
    types       by entity, the types it is given; only entities that have one
    """

    inferences: tuple[Fact | None, ...] = ()
    known: frozenset[Fact] = frozenset()
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def facts(self) -> frozenset[Fact]:
        """Return all claimed facts, without the types."""
        return self.known.union(fact for fact in self.inferences if fact is not None)

    @property
    def size(self) -> int:
        """Return the number of claimed facts and types."""
        return len(self.inferences) + len(self.known) + sum(len(names) for _, names in self.types)


@dataclass(frozen=True, slots=True)
class Violations:
    """Violations with their reasons: by index of the inference, and by label of the entity whose types clash."""

    inferences: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Validator(Hashable, Protocol):
    """An ontology that claims can be checked against. `digest`: SHA-256 of the files it was read from."""

    digest: str

    def check(self, claims: Claims) -> Violations:
        """Return what violates the ontology, equal for equal claims; ValueError if the check exceeds its bounds."""
        ...


NOT_A_TRIPLE = "it is no triple; write {subject, predicate, object}"


def claims_of(trace: Trace) -> Claims:
    """Return the claims of a trace; more than MOST_CLAIMS of them are a ValueError.

    Types come from `entity_types` (a name or a list of names) and from the `type` of linked entities. Premises that
    are no triples are left out.
    """
    inferences = trace.inferences or ()
    premises: list[Json] = []
    for inference in inferences:
        listed = inference.get("because")
        if isinstance(listed, list | tuple):
            premises += listed
    known = map(fact_of, [*(trace.kg_edges or ()), *premises])
    types = [(entity, tuple(sorted(names))) for entity, names in types_of(trace).items()]
    claims = Claims(
        inferences=tuple(map(fact_of, inferences)),
        known=frozenset(fact for fact in known if fact is not None),
        types=tuple(sorted(types)),
    )
    if claims.size > MOST_CLAIMS:
        raise ValueError(f"the trace makes {claims.size} claims; at most {MOST_CLAIMS} are checked")
    return claims


def fact_of(written: Json) -> Fact | None:
    """Return the fact in an edge, or in a mapping with subject, predicate and object; None if it holds none."""
    if isinstance(written, Mapping):
        value = written.get("object")
        if isinstance(value, bool | int | float):
            # An edge has names alone: the number is put back in after its parts were read.
            edge = fact_of({**written, "object": "value"})
            return None if edge is None else edge._replace(object=Value(json.dumps(value)))
    try:
        return Fact(*map(as_label, Edge.parse(written)))
    except ValueError:
        return None


def types_of(trace: Trace) -> dict[str, set[str]]:
    """Return the labels of the types of each entity by its label; entities without a type are left out."""
    types: dict[str, set[str]] = {}
    linked_types = [(entity.id, entity.type) for entity in trace.entities or ()]
    for entity, written in [*linked_types, *(trace.entity_types or {}).items()]:
        names = written if isinstance(written, list | tuple) else [written]
        for name in names:
            label = _type_label(name)
            if label and as_label(entity):
                types.setdefault(as_label(entity), set()).add(label)
    return types


def _type_label(name: Json) -> str:
    if name is None:
        return ""
    if isinstance(name, str):
        return as_label(name)
    return as_label(json.dumps(name))
