"""Closed-world check of claims against an ontology of TOML or JSON: what a trace does not state is false."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pytest_rageval.language.words import as_label
from pytest_rageval.metrics.ontology.claims import NOT_A_TRIPLE, Claims, Fact, Value, Violations
from pytest_rageval.metrics.ontology.toml_ontology import (
    IS_A,
    Pattern,
    Property,
    Rule,
    is_variable,
    read_ontology,
)

Classes = Mapping[str, frozenset[str]]
"""The classes of each entity and all classes above them; names that are no class are left out."""


class DeclaredValidator:
    """Validator of claims against the ontology in the text of a file; see `toml_ontology` for its meaning."""

    digest = ""

    def __init__(self, place: str, text: str) -> None:
        self._ontology = read_ontology(place, text)

    def check(self, claims: Claims) -> Violations:
        """Return what violates the ontology; rules that need too much work for this trace are a ValueError."""
        classes = {entity: self._classes(names) for entity, names in claims.types}
        declared = [fact for fact in claims.facts if fact.predicate in self._ontology.by_label]
        memberships: list[Fact] = []
        for entity, above in classes.items():
            memberships.extend(Fact(entity, IS_A, label) for label in above)
        facts = FactIndex([*declared, *memberships])
        inferences: dict[int, tuple[str, ...]] = {}
        for index, fact in enumerate(claims.inferences):
            reasons = (NOT_A_TRIPLE,) if fact is None else tuple(self._reasons(fact, facts, classes))
            if reasons:
                inferences[index] = reasons
        entities: dict[str, tuple[str, ...]] = {}
        for entity, names in claims.types:
            problems = tuple(self._type_problems(names, classes[entity]))
            if problems:
                entities[entity] = problems
        incomplete = self._incomplete(claims, facts, classes, inferences)
        return Violations(inferences | incomplete, entities)

    def _classes(self, names: tuple[str, ...]) -> frozenset[str]:
        above = self._ontology.with_ancestors
        return frozenset(label for name in names for label in above.get(name, ()))

    def _reasons(self, fact: Fact, facts: FactIndex, classes: Classes) -> Iterator[str]:
        """Yield why this fact violates the ontology, except for missing values."""
        if fact.predicate not in self._ontology.by_label:
            yield "its predicate is no property of the ontology"
            return
        name, declared = self._ontology.by_label[fact.predicate]
        for role, node, expected in (
            ("subject", fact.subject, declared.domain),
            ("object", fact.object, declared.range),
        ):
            if expected is not None and as_label(expected) not in _classes_of(node, classes):
                wanted = self._ontology.class_names[as_label(expected)]
                yield f"the {role} is no {wanted} ({self._types_in_words(node, classes)})"
        count = facts.count(fact.subject, fact.predicate)
        if declared.max is not None and count > declared.max:
            yield f"{name} has {count} values, at most {declared.max} allowed"
        reverse = Fact(fact.object, fact.predicate, fact.subject) if isinstance(fact.object, str) else None
        if declared.symmetric and (reverse is None or reverse not in facts):
            yield f"{name} is symmetric, and the reverse is missing"
        for rule in self._ontology.rules:
            if _is_broken(rule, fact, facts):
                yield f"rule {rule.name!r}"

    def _incomplete(
        self, claims: Claims, facts: FactIndex, classes: Classes, other_reasons: Mapping[int, tuple[str, ...]]
    ) -> dict[int, tuple[str, ...]]:
        """Return the inferences about subjects with too few values of a property, with all reasons against them."""
        by_subject: dict[str, list[tuple[int, Fact]]] = {}
        for index, fact in enumerate(claims.inferences):
            if fact is not None:
                by_subject.setdefault(fact.subject, []).append((index, fact))
        more: dict[int, tuple[str, ...]] = {}
        for label, (name, declared) in self._ontology.by_label.items():
            for subject, about in by_subject.items() if declared.min else ():
                count = facts.count(subject, label)
                if count < declared.min and _needs_values(declared, subject, count, classes):
                    # Without an inference of this property, every inference about the subject violates it.
                    of_it = [index for index, fact in about if fact.predicate == label]
                    reason = f"{name} has {count} values, at least {declared.min} needed"
                    for index in of_it or [index for index, _ in about]:
                        more[index] = (*more.get(index, other_reasons.get(index, ())), reason)
        return more

    def _type_problems(self, names: tuple[str, ...], classes: frozenset[str]) -> Iterator[str]:
        for name in names:
            if name not in self._ontology.class_names:
                yield f"{name!r} is no class of the ontology"
        for first, second in self._ontology.clashes(classes):
            yield f"{first} and {second} are disjoint"

    def _types_in_words(self, node: Node, classes: Classes) -> str:
        if isinstance(node, Value):
            return "it is a value"
        names = sorted(self._ontology.class_names[label] for label in classes.get(node, ()))
        return f"it is {', '.join(names)}" if names else "it has no type of the ontology"


def _classes_of(node: Node, classes: Classes) -> frozenset[str]:
    return frozenset() if isinstance(node, Value) else classes.get(node, frozenset())


def _needs_values(declared: Property, subject: str, count: int, classes: Classes) -> bool:
    """Return True if the subject must have values: if it is in the domain or, without a domain, has any value."""
    if declared.domain is None:
        return count > 0
    return as_label(declared.domain) in _classes_of(subject, classes)


MOST_STEPS = 1_000_000
"""Facts that the rules of an ontology may read for one trace."""

Node = str | Value
Bindings = Mapping[str, Node]
"""Values of the variables."""


def _is_broken(rule: Rule, fact: Fact, among: FactIndex) -> bool:
    """Return True if the fact is part of a forbidden match of the rule's patterns.

    More work than MOST_STEPS is a ValueError.
    """
    for position, pattern in enumerate(rule.patterns):
        # Types are not what is judged here: an inference breaks a rule by its own triple.
        bound = None if pattern.predicate == IS_A else _unify(pattern, fact, {})
        if bound is None:
            continue
        others = rule.patterns[:position] + rule.patterns[position + 1 :]
        for match in among.matches(others, bound):
            if rule.required is None or next(among.matches(rule.required, match), None) is None:
                return True
    return False


class FactIndex:
    """Facts indexed for the search of patterns; classes of entities are facts of IS_A."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._all = frozenset(facts)
        self._by_subject: defaultdict[tuple[str, Node], list[Fact]] = defaultdict(list)
        self._by_object: defaultdict[tuple[str, Node], list[Fact]] = defaultdict(list)
        self._by_predicate: defaultdict[str, list[Fact]] = defaultdict(list)
        self._steps = 0
        for fact in self._all:
            self._by_subject[fact.predicate, fact.subject].append(fact)
            self._by_object[fact.predicate, fact.object].append(fact)
            self._by_predicate[fact.predicate].append(fact)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._all

    def count(self, subject: str, predicate: str) -> int:
        """Return the number of different values that the predicate has for this subject."""
        return len(self._by_subject.get((predicate, subject), ()))

    def matches(self, patterns: tuple[Pattern, ...], bound: Bindings) -> Iterator[Bindings]:
        """Yield every match of all patterns that agrees with the variables bound already."""
        if not patterns:
            yield bound
            return
        for fact in self._candidates(patterns[0], bound):
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise ValueError(f"the rules of the ontology need more than {MOST_STEPS} steps for this trace")
            matched = _unify(patterns[0], fact, bound)
            if matched is not None:
                yield from self.matches(patterns[1:], matched)

    def _candidates(self, pattern: Pattern, bound: Bindings) -> Iterable[Fact]:
        """Return facts that may match the pattern: as few as an index gives."""
        subject = _value(pattern.subject, bound)
        value = _value(pattern.object, bound)
        if isinstance(subject, str) and value is not None:
            fact = Fact(subject, pattern.predicate, value)
            return (fact,) if fact in self._all else ()
        if subject is not None:
            return self._by_subject.get((pattern.predicate, subject), ())
        if value is not None:
            return self._by_object.get((pattern.predicate, value), ())
        return self._by_predicate.get(pattern.predicate, ())


def _unify(pattern: Pattern, fact: Fact, bound: Bindings) -> Bindings | None:
    """Return the values of the variables that make the pattern this fact; None if none do."""
    if pattern.predicate != fact.predicate:
        return None
    bindings = dict(bound)
    for term, node in ((pattern.subject, fact.subject), (pattern.object, fact.object)):
        value = bindings.setdefault(term, node) if is_variable(term) else term
        if value != node:
            return None
    return bindings


def _value(term: str, bound: Bindings) -> Node | None:
    return bound.get(term) if is_variable(term) else term
