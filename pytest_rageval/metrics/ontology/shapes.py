"""Check of claims against RDF with SHACL shapes, through rdflib and pySHACL of the extra `ontology`.

The files hold classes and properties (`a owl:Class`, `a owl:ObjectProperty`, … and `rdfs:subClassOf`) and the shapes
over them. Each claim becomes one triple: the names of a trace stand for the class or property that has such an IRI,
prefixed name or, where only one has it, local name; entities get IRIs of our own. A name that stands for nothing is a
violation, as in a TOML ontology. Then a validation result of severity `sh:Violation` is

- about inferences, if it has a path: the one with that focus node, property and value, or all with that focus node and
  property where it has no value; all of the focus node where a value is missing and none is of the property, or where
  the path has several steps. Where the shape compares two properties, as `sh:equals`, also those of the other one.
- about inferences too, if its shape has no path but targets the subjects or objects of a property: those that made
  the focus node a target.
- about the types of the focus node otherwise, and if its path is `rdf:type`.

Nothing is fetched (`owl:imports` is not followed), nothing is inferred beyond subclasses. Imports rdflib and pySHACL,
so it is imported only where such an ontology is configured.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar
from urllib.parse import quote

import pyshacl
from pyshacl.errors import ReportableRuntimeError
from rdflib import OWL, RDF, RDFS, SH, Graph, Literal, URIRef
from rdflib.plugins.parsers.notation3 import BadSyntax
from rdflib.term import Node

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.language.words import as_label
from pytest_rageval.metrics.ontology.claims import NOT_A_TRIPLE, Claims, Fact, Value, Violations
from pytest_rageval.text import excerpt, printable

BASE = "urn:rageval:/"
MOST_CLAIMS = 1_000
"""Fewer than for other ontologies: a SPARQL constraint costs some 25 ms for each claim that it reads."""
PAIRS = (SH.equals, SH.disjoint, SH.lessThan, SH.lessThanOrEquals)

Triple = tuple[Node, Node, Node]
TriplePattern = tuple[Node | None, Node | None, Node | None]
"""A triple in which None stands for anything."""
K = TypeVar("K", int, str)


def shapes_validator(texts: Mapping[str, str]) -> ShapesValidator:
    """Return the validator of Turtle texts, by place. Raises SettingsError with every problem."""
    # By default rdflib binds some thirty prefixes that the files do not declare.
    graph = Graph(bind_namespaces="none")
    problems = [problem for place, text in texts.items() for problem in _parse_problems(graph, place, text)]
    if problems:
        raise SettingsError(*problems)
    vocabulary = Vocabulary(graph)
    if problems := list(vocabulary.problems()):
        raise SettingsError(*(f"{', '.join(texts)}: {problem}" for problem in problems))
    validator = ShapesValidator(graph, vocabulary)
    try:
        validator.probe()
    except Exception as error:  # noqa: BLE001  pySHACL and rdflib's SPARQL parser have no common one for wrong shapes
        reason = excerpt(str(error), 300)
        reason = reason.removeprefix("pySHACL: ").rstrip(".")
        raise SettingsError(f"{', '.join(texts)}: pySHACL cannot use a shape: {reason}; mend it") from None
    return validator


class ShapesValidator:
    """Validator of claims against SHACL shapes."""

    digest = ""

    def __init__(self, graph: Graph, vocabulary: Vocabulary) -> None:
        self._shapes = graph
        self._vocabulary = vocabulary
        self._hierarchy = list(graph.triples((None, RDFS.subClassOf, None)))

    def check(self, claims: Claims) -> Violations:
        """Return what the shapes find wrong; ValueError for too many claims or if the validation itself fails."""
        if claims.size > MOST_CLAIMS:
            raise ValueError(f"the trace makes {claims.size} claims; at most {MOST_CLAIMS} are checked with SHACL")
        inferences: defaultdict[int, list[str]] = defaultdict(list)
        entities: defaultdict[str, list[str]] = defaultdict(list)
        for index, fact in enumerate(claims.inferences):
            if fact is None:
                inferences[index].append(NOT_A_TRIPLE)
            elif fact.predicate not in self._vocabulary.properties:
                inferences[index].append("its predicate is no property of the ontology")
        for entity, names in claims.types:
            unknown = (name for name in names if name not in self._vocabulary.classes)
            entities[entity] += [f"{name!r} is no class of the ontology" for name in unknown]
        report = _ReportIndex(self._shapes, self._report(claims), self._indexed(claims))
        labels: dict[Node | None, str] = {_entity(entity): entity for entity, _ in claims.types}
        for result, reason in report.reasons():
            indices, focus = report.about(result)
            for index in indices:
                inferences[index].append(reason)
            if focus in labels:
                entities[labels[focus]].append(reason)
        return Violations(_sorted_reasons(inferences), _sorted_reasons(entities))

    def probe(self) -> None:
        """Validate one probe against every shape, so that an unusable shape is found before the run."""
        vocabulary = self._vocabulary
        classes = sorted(vocabulary.classes)
        properties = sorted(vocabulary.properties)
        facts = tuple(Fact("probe", predicate, "probe") for predicate in properties)
        self._report(Claims(facts, types=(("probe", tuple(classes)),)))

    def _triple(self, fact: Fact) -> Triple | None:
        predicate = self._vocabulary.properties.get(fact.predicate)
        return None if predicate is None else (_entity(fact.subject), predicate, _node(fact.object))

    def _indexed(self, claims: Claims) -> list[tuple[int, Triple]]:
        triples = ((index, fact and self._triple(fact)) for index, fact in enumerate(claims.inferences))
        return [(index, triple) for index, triple in triples if triple is not None]

    def _report(self, claims: Claims) -> Graph:
        """Return the validation report over the claims and the class hierarchy."""
        data = Graph(bind_namespaces="none")
        for triple in (*self._hierarchy, *filter(None, map(self._triple, claims.facts))):
            data.add(triple)
        for entity, names in claims.types:
            for name in names:
                if name in self._vocabulary.classes:
                    data.add((_entity(entity), RDF.type, self._vocabulary.classes[name]))
        with warnings.catch_warnings():
            # The libraries' own deprecations must not fail suites that turn warnings into errors.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                _, report, _ = pyshacl.validate(data, shacl_graph=self._shapes, inplace=True, advanced=False, js=False)
            except ReportableRuntimeError as error:
                report = error
        if not isinstance(report, Graph):  # the validation itself failed: an error that pySHACL raised or returned
            raise ValueError(f"pySHACL: {report}")
        return report


class _ReportIndex:
    """A validation report, read against the inferences that it may be about."""

    def __init__(self, shapes: Graph, report: Graph, indexed: Iterable[tuple[int, Triple]]) -> None:
        self._shapes = shapes
        self._report = report
        self._by_pattern: defaultdict[TriplePattern, list[int]] = defaultdict(list)
        for index, (subject, predicate, value) in indexed:
            for pattern in (
                (subject, predicate, value),
                (subject, predicate, None),
                (None, predicate, value),
                (subject, None, None),
            ):
                self._by_pattern[pattern].append(index)

    def reasons(self) -> Iterator[tuple[Node, str]]:
        """Yield the results of severity sh:Violation, each with its message."""
        for result in self._report.objects(None, SH.result):
            if self._report.value(result, SH.resultSeverity) == SH.Violation:
                component = str(self._report.value(result, SH.sourceConstraintComponent)).rpartition("#")[2]
                messages = sorted(map(str, self._report.objects(result, SH.resultMessage)))
                yield result, "; ".join(messages) or component.removesuffix("ConstraintComponent")

    def about(self, result: Node) -> tuple[set[int], Node | None]:
        """Return the indices of the inferences that a result is about; the entity if it is about its types."""
        focus = self._report.value(result, SH.focusNode)
        path = self._report.value(result, SH.resultPath)
        value = self._report.value(result, SH.value)
        shape = self._report.value(result, SH.sourceShape)
        if path == RDF.type:
            return set(), focus
        patterns: list[TriplePattern]
        if path is None:
            patterns = [(focus, of, None) for of in self._shapes.objects(shape, SH.targetSubjectsOf)]
            patterns += [(None, of, focus) for of in self._shapes.objects(shape, SH.targetObjectsOf)]
            return self._matching(patterns), None if patterns else focus
        patterns = []
        for pair in PAIRS:
            patterns += [(focus, other, value) for other in self._shapes.objects(shape, pair)]
        inverse = self._shapes.value(path, SH.inversePath)
        if isinstance(path, URIRef):
            patterns.append((focus, path, value))
        elif isinstance(inverse, URIRef):
            patterns.append((value, inverse, focus))
        about = self._matching(patterns)
        is_missing = self._report.value(result, SH.sourceConstraintComponent) == SH.MinCountConstraintComponent
        has_steps = not isinstance(path, URIRef) and not isinstance(inverse, URIRef)
        if not about and (is_missing or has_steps):
            about = self._matching([(focus, None, None)])
        return about, None

    def _matching(self, patterns: Iterable[TriplePattern]) -> set[int]:
        return {index for pattern in patterns for index in self._by_pattern.get(pattern, ())}


def _parse_problems(graph: Graph, place: str, text: str) -> Iterator[str]:
    """Add the triples of a Turtle text to the graph; yield why it cannot be read."""
    try:
        graph.parse(data=text, format="turtle", publicID=BASE)
    except BadSyntax as error:
        yield f"{place}:{error.lines + 1}: not valid Turtle: {printable(error._why)}"
    except RecursionError:
        yield f"{place}: nested too deep; write the shapes flat"
    except ValueError as error:
        yield f"{place}: not valid Turtle: {excerpt(str(error))}"


def _node(written: str | Value) -> Node:
    return Literal(json.loads(written.json)) if isinstance(written, Value) else _entity(written)


def _entity(label: str) -> URIRef:
    return URIRef(f"{BASE}entity/{quote(label, safe='', errors='surrogatepass')}")


def _sorted_reasons(reasons: Mapping[K, list[str]]) -> dict[K, tuple[str, ...]]:
    """Sort the reasons, because a report has no order."""
    return {key: tuple(sorted(set(texts))) for key, texts in reasons.items() if texts}


CLASS_KINDS = (OWL.Class, RDFS.Class)
PROPERTY_KINDS = (
    RDF.Property,
    OWL.ObjectProperty,
    OWL.DatatypeProperty,
    OWL.SymmetricProperty,
    OWL.FunctionalProperty,
    OWL.TransitiveProperty,
)
NAME_CLASSES = (SH.targetClass, SH["class"])
NAME_PROPERTIES = (
    SH.targetSubjectsOf,
    SH.targetObjectsOf,
    SH.path,
    SH.inversePath,
    SH.equals,
    SH.disjoint,
    SH.lessThan,
    SH.lessThanOrEquals,
)
QUERIES = (SH.select, SH.ask)
# pySHACL refuses SERVICE as well, but not after two IRIs with a # on the same line.
_OTHER_SERVER = re.compile(r"(?<![\w:#/?$-])SERVICE\s*(?:SILENT\s*)?(?:[<?$]|\w*:)", re.IGNORECASE)
TARGETS = (SH.targetClass, SH.targetNode, SH.targetSubjectsOf, SH.targetObjectsOf)


class Vocabulary:
    """The declared classes and properties of a graph, by the labels that a trace may use for them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._prefixes = sorted(((str(iri), prefix) for prefix, iri in graph.namespaces()), reverse=True)
        # A class may be declared by standing on one side of rdfs:subClassOf alone.
        in_hierarchy: list[Node] = []
        for below, _, above in graph.triples((None, RDFS.subClassOf, None)):
            in_hierarchy += [below, above]
        self._classes = _iris([*_of_kinds(graph, CLASS_KINDS), *in_hierarchy])
        self._properties = _iris(_of_kinds(graph, PROPERTY_KINDS))
        self.classes = self._by_label(self._classes)
        self.properties = self._by_label(self._properties)

    def problems(self) -> Iterator[str]:
        """Yield why the graph is no ontology with shapes: name, value, remedy."""
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
        """Return the IRI as a reader of the files knows it: with a prefix if one is bound."""
        if prefix:
            return f"{prefix}:{_local(iri)}"
        for base, bound in self._prefixes:
            if iri.startswith(base) and len(iri) > len(base):
                return f"{bound}:{iri[len(base) :]}"
        return f"<{iri}>"

    def _by_label(self, iris: Iterable[URIRef]) -> dict[str, URIRef]:
        """Map names to IRIs: full and prefixed ones always, a local name only if one IRI has it."""
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
