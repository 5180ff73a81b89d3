"""Classes and properties declared in RDF, by the names a trace may use, and SHACL shapes checked against them.

Imports rdflib, so it is imported only where an RDF ontology is configured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rdflib import OWL, RDF, RDFS, SH, Graph, URIRef
from rdflib.term import Node

from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.words import as_label

CLASS_KINDS = (OWL.Class, RDFS.Class)
PROPERTY_KINDS = (RDF.Property, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.SymmetricProperty,
                  OWL.FunctionalProperty, OWL.TransitiveProperty)  # fmt: skip
NAME_CLASSES = (SH.targetClass, SH["class"])
NAME_PROPERTIES = (SH.targetSubjectsOf, SH.targetObjectsOf, SH.path, SH.inversePath, SH.equals, SH.disjoint,
                   SH.lessThan, SH.lessThanOrEquals)  # fmt: skip
QUERIES = (SH.select, SH.ask)
# pySHACL refuses SERVICE as well, but not where two IRIs with a # stand before it on its line.
_OTHER_SERVER = re.compile(r"(?<![\w:#/?$-])SERVICE\s*(?:SILENT\s*)?(?:[<?$]|\w*:)", re.IGNORECASE)
TARGETS = (SH.targetClass, SH.targetNode, SH.targetSubjectsOf, SH.targetObjectsOf)


class Vocabulary:
    """The declared classes and properties of a graph, by the labels that a trace may use for them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._prefixes = sorted(((str(iri), prefix) for prefix, iri in graph.namespaces()), reverse=True)
        above = (end for triple in graph.triples((None, RDFS.subClassOf, None)) for end in (triple[0], triple[2]))
        self._classes = _iris([*_of_kinds(graph, CLASS_KINDS), *above])
        self._properties = _iris(_of_kinds(graph, PROPERTY_KINDS))
        self.classes = self._by_label(self._classes)
        self.properties = self._by_label(self._properties)

    def problems(self) -> Iterator[str]:
        """What keeps the graph from being an ontology with shapes: name, value, remedy."""
        if not self._classes and not self._properties:
            yield "declares neither classes nor properties; write e.g. 'ex:Brand a owl:Class'"
            return
        shapes = {shape for target in TARGETS for shape in self._graph.subjects(target)}
        shapes |= set(self._graph.subjects(RDF.type, SH.NodeShape)) & self._classes  # a class that is its own shape
        if not shapes:
            yield "holds no SHACL shape with a target, nothing could be checked; name the file of the shapes too"
        queries = [text for predicate in QUERIES for text in self._graph.objects(None, predicate)]
        if any(_OTHER_SERVER.search(str(text)) for text in queries):
            yield "a query asks another server (SERVICE); take that out, checking claims touches no network"
        for kind, predicates, declared in (
            ("class", NAME_CLASSES, self._classes),
            ("property", NAME_PROPERTIES, self._properties | {RDF.type}),
        ):
            for predicate in predicates:
                for named in sorted(_iris(self._graph.objects(None, predicate)) - declared):
                    close = suggestion(self.shown(named), map(self.shown, declared))
                    remedy = f"did you mean {close}?" if close else f"declare it as a {kind}"
                    yield f"{self.shown(predicate, 'sh')} is {self.shown(named)}, no declared {kind}; {remedy}"

    def shown(self, iri: URIRef, prefix: str = "") -> str:
        """The IRI as a reader of the files knows it: with a prefix where one is bound."""
        if prefix:
            return f"{prefix}:{_local(iri)}"
        for base, bound in self._prefixes:
            if iri.startswith(base) and len(iri) > len(base):
                return f"{bound}:{iri[len(base) :]}"
        return f"<{iri}>"

    def _by_label(self, iris: Iterable[URIRef]) -> dict[str, URIRef]:
        """Full IRIs and prefixed names stand for themselves; a local name only where one IRI has it."""
        by_label: dict[str, URIRef] = {}
        by_local: dict[str, list[URIRef]] = {}
        for iri in sorted(iris):
            by_label[as_label(iri)] = by_label[as_label(self.shown(iri))] = iri
            by_local.setdefault(as_label(_local(iri)), []).append(iri)
        return {label: named[0] for label, named in by_local.items() if len(named) == 1} | by_label


def _of_kinds(graph: Graph, kinds: Iterable[URIRef]) -> Iterator[Node]:
    for kind in kinds:
        yield from graph.subjects(RDF.type, kind)


def _iris(nodes: Iterable[Node]) -> set[URIRef]:
    return {node for node in nodes if isinstance(node, URIRef)}


def _local(iri: URIRef) -> str:
    return iri.rpartition("#")[2].rpartition("/")[2]
