"""Closed-world check of claims against an ontology of TOML or JSON: what a trace does not state is false."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_rageval.metrics.ontology.claims import NOT_A_TRIPLE, Claims, Fact, Value, Violations
from pytest_rageval.metrics.ontology.rules import IS_A, Facts, Node
from pytest_rageval.metrics.ontology.terms import Ontology, Property

Classes = Mapping[str, frozenset[str]]
"""By entity, its classes and all classes above them; names that are no class are left out."""


class DeclaredValidator:
    """Checks claims against classes, properties and rules; see `toml_ontology` for what each of them says."""

    def __init__(self, ontology: Ontology, digest: str = "") -> None:
        self._ontology = ontology
        self.digest = digest

    def check(self, claims: Claims) -> Violations:
        """What violates the ontology; rules that need too much work for this trace are a ValueError."""
        classes = {entity: self._classes(names) for entity, names in claims.types}
        declared = [fact for fact in claims.facts if fact.predicate in self._ontology.properties]
        facts = Facts([*declared, *(Fact(entity, IS_A, label) for entity, above in classes.items() for label in above)])
        inferences = {
            index: tuple(reasons)
            for index, fact in enumerate(claims.inferences)
            if (reasons := [NOT_A_TRIPLE] if fact is None else list(self._reasons(fact, facts, classes)))
        }
        entities = {
            entity: tuple(problems)
            for entity, names in claims.types
            if (problems := list(self._type_problems(names, classes[entity])))
        }
        return Violations(inferences | self._incomplete(claims, facts, classes, inferences), entities)

    def _classes(self, names: tuple[str, ...]) -> frozenset[str]:
        above = self._ontology.with_ancestors
        return frozenset(label for name in names for label in above.get(name, ()))

    def _reasons(self, fact: Fact, facts: Facts, classes: Classes) -> Iterator[str]:
        """Why this fact violates the ontology, but for values that are missing."""
        declared = self._ontology.properties.get(fact.predicate)
        if declared is None:
            yield "its predicate is no property of the ontology"
            return
        for role, node, expected in (
            ("subject", fact.subject, declared.domain),
            ("object", fact.object, declared.range),
        ):
            if expected is not None and expected not in _classes_of(node, classes):
                name = self._ontology.classes[expected].name
                yield f"the {role} is no {name} ({self._types_in_words(node, classes)})"
        count = facts.count(fact.subject, fact.predicate)
        if declared.max is not None and count > declared.max:
            yield f"{declared.name} has {count} values, at most {declared.max} allowed"
        if declared.symmetric and not _has_reverse(fact, facts):
            yield f"{declared.name} is symmetric, and the reverse is missing"
        for rule in self._ontology.rules:
            if rule.is_broken_by(fact, facts):
                yield f"rule {rule.name!r}"

    def _incomplete(
        self, claims: Claims, facts: Facts, classes: Classes, other_reasons: Mapping[int, tuple[str, ...]]
    ) -> dict[int, tuple[str, ...]]:
        """Inferences about subjects that have too few values of some property, with all reasons against them."""
        by_subject: dict[str, list[tuple[int, Fact]]] = {}
        for index, fact in enumerate(claims.inferences):
            if fact is not None:
                by_subject.setdefault(fact.subject, []).append((index, fact))
        more: dict[int, tuple[str, ...]] = {}
        for label, declared in self._ontology.properties.items():
            for subject, about in by_subject.items() if declared.min else ():
                count = facts.count(subject, label)
                if count < declared.min and _is_asked(declared, subject, count, classes):
                    # Where no inference is of this property, all that is inferred about the subject rests on a gap.
                    of_it = [index for index, fact in about if fact.predicate == label]
                    reason = f"{declared.name} has {count} values, at least {declared.min} needed"
                    for index in of_it or [index for index, _ in about]:
                        more[index] = (*more.get(index, other_reasons.get(index, ())), reason)
        return more

    def _type_problems(self, names: tuple[str, ...], classes: frozenset[str]) -> Iterator[str]:
        for name in names:
            if name not in self._ontology.classes:
                yield f"{name!r} is no class of the ontology"
        for first, second in self._ontology.clashes(classes):
            yield f"{first} and {second} are disjoint"

    def _types_in_words(self, node: Node, classes: Classes) -> str:
        if isinstance(node, Value):
            return "it is a value"
        names = sorted(self._ontology.classes[label].name for label in classes.get(node, ()))
        return f"it is {', '.join(names)}" if names else "it has no type of the ontology"


def _classes_of(node: Node, classes: Classes) -> frozenset[str]:
    return frozenset() if isinstance(node, Value) else classes.get(node, frozenset())


def _has_reverse(fact: Fact, facts: Facts) -> bool:
    return isinstance(fact.object, str) and Fact(fact.object, fact.predicate, fact.subject) in facts


def _is_asked(declared: Property, subject: str, count: int, classes: Classes) -> bool:
    """Must this subject have values: as one of the domain, or, where there is none, as one that has any."""
    return declared.domain in _classes_of(subject, classes) if declared.domain is not None else count > 0
