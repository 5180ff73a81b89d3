"""The small knowledge graph: entities linked in a question, and the edges and inferences about them."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

EDGES_WITHOUT_PREDICATE = 3
"""Edges of an entity to return if the question asks for no predicate."""

INFERRED = {
    ("hasProduct", "soldIn"): "presentIn",
    ("stockedBy", "operatesIn"): "availableIn",
}
"""Two edges in a row imply a third: a brand is present wherever a product of it is sold."""

# Korean writes particles onto the word: 라네즈는 names 라네즈, 모루히네 does not name 모루.
_PARTICLE = (
    "(?:은|는|이|가|을|를|의|에|에는|에도|에서|에서는|에서의|에게|와|과|도|만|로|으로|까지|부터|보다|처럼"
    "|나|이나|랑|이랑|라는|이라는|인가요|입니다)"
)


class GraphEdge(NamedTuple):
    """One triple."""

    subject: str
    predicate: str
    object: str


class Graph:
    """Entities, edges, concepts, constraints and predicates, as in the tables of a TOML file."""

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        entities = tables.get("entity", ())
        edges = tables.get("edge", ())
        predicates = tables.get("predicate", ())
        self._types = {entity["id"]: str(entity["type"]) for entity in entities}
        self._edges = tuple(GraphEdge(edge["subject"], edge["predicate"], edge["object"]) for edge in edges)
        self._domain = {predicate["id"]: predicate["domain"] for predicate in predicates}
        self._entity_names = _Lexicon((entity["id"], [entity["id"], *entity["names"]]) for entity in entities)
        self._concepts = _terms_of(tables.get("concept", ()))
        self._constraints = _terms_of(tables.get("constraint", ()))
        self._predicates = _terms_of(predicates)

    def trace(self, question: str) -> dict[str, Any]:
        """Return `debug.trace`: the entities in the question, and the edges and inferences about them.

        `kg_entities` ranks what the graph answers before what the question itself names: hits@k then says something
        about the graph, not only about linking.
        """
        linked = self._entity_names.find(question)
        edges = self._asked_edges(linked, self._predicates.find(question))
        answers: list[str] = []
        for edge in edges:
            answers += [end for end in (edge.object, edge.subject) if end not in linked]
        entities = list(dict.fromkeys([*answers, *linked]))
        premises = self._inferences(linked)
        inferences: list[dict[str, Any]] = []
        inferred: list[str] = []
        for conclusion, reasons in premises.items():
            inferences.append({**conclusion._asdict(), "because": [reason._asdict() for reason in reasons]})
            inferred += [conclusion.subject, conclusion.object]
        found = [{"id": name, "type": self._types[name], "text": text} for name, text in linked.items()]
        return {
            "entities": found,
            "concepts": sorted(self._concepts.find(question)),
            "constraints": sorted(self._constraints.find(question)),
            "kg_entities": entities,
            "kg_edges": [edge._asdict() for edge in edges],
            "inferences": inferences,
            "entity_types": {name: self._types[name] for name in (*entities, *inferred)},
        }

    def _asked_edges(self, linked: Collection[str], asked: Iterable[str]) -> list[GraphEdge]:
        """Return the edges of the asked predicates at the linked entities or one step away, else the nearest.

        An edge that joins two linked entities is the answer alone.
        """
        leaving = [edge for edge in self._edges if edge.subject in linked]
        arriving = [edge for edge in self._edges if edge.object in linked and edge.subject not in linked]
        touching = leaving + arriving
        edges: list[GraphEdge] = []
        for predicate in asked:
            direct = [edge for edge in touching if edge.predicate == predicate]
            edges += direct or self._one_step_away(touching, predicate)
        nearest = list(dict.fromkeys(edges)) or touching
        between = [edge for edge in nearest if edge.subject in linked and edge.object in linked]
        if between:
            return between
        return nearest if edges else nearest[:EDGES_WITHOUT_PREDICATE]

    def _one_step_away(self, touching: Sequence[GraphEdge], predicate: str) -> list[GraphEdge]:
        """Return both edges of each way over one entity: from a brand over its products to their ingredients."""
        domain = self._domain.get(predicate, "")
        of_predicate = [edge for edge in self._edges if edge.predicate == predicate]
        edges: list[GraphEdge] = []
        for first in touching:
            if self._types[first.object] == domain:
                for second in of_predicate:
                    if second.subject == first.object:
                        edges += [first, second]
        return edges

    def _inferences(self, linked: Collection[str]) -> dict[GraphEdge, tuple[GraphEdge, GraphEdge]]:
        """Return what follows from two edges in a row that begin at a linked entity, each conclusion once."""
        premises: dict[GraphEdge, tuple[GraphEdge, GraphEdge]] = {}
        for first, second in product(self._edges, self._edges):
            predicate = INFERRED.get((first.predicate, second.predicate))
            if first.subject in linked and predicate and second.subject == first.object:
                premises.setdefault(GraphEdge(first.subject, predicate, second.object), (first, second))
        return premises


class _Lexicon:
    """Ids by their names in a text; of two names at one place the longer counts.

    A Korean name is found with a particle attached; with `as_prefix`, with anything attached (경쟁 in 경쟁사).
    """

    def __init__(self, entries: Iterable[tuple[str, Iterable[str]]], *, as_prefix: bool = False) -> None:
        self._ids: dict[str, str] = {}
        for name, written in entries:
            for form in written:
                self._ids.setdefault(_folded(form), name)
        forms = sorted(self._ids, key=lambda form: (-len(form), form))
        latin = "|".join(re.escape(form) for form in forms if form.isascii()) or "(?!)"
        other = "|".join(re.escape(form) for form in forms if not form.isascii()) or "(?!)"
        end = "" if as_prefix else rf"(?={_PARTICLE}?(?![가-힣]))"
        self._pattern = re.compile(rf"(?<![a-z0-9])({latin})(?![a-z0-9])|(?<![가-힣])({other}){end}")

    def find(self, text: str) -> dict[str, str]:
        """Return the ids in a text, in order of appearance, each with the words that name it."""
        forms: dict[str, str] = {}
        for match in self._pattern.finditer(_folded(text)):
            form = match[1] or match[2]
            forms.setdefault(self._ids[form], form)
        return forms


def _terms_of(rows: Iterable[Mapping[str, Any]]) -> _Lexicon:
    return _Lexicon(((row["id"], row["terms"]) for row in rows), as_prefix=True)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def load_graph(path: Path) -> Graph:
    """Read the graph of a TOML file. Raises OSError or tomllib.TOMLDecodeError."""
    return Graph(tomllib.loads(path.read_text(encoding="utf-8")))
