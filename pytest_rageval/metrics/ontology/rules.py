"""Rules of an ontology: patterns of facts that may not occur together, or that others must go with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.metrics.ontology.claims import Fact, Value

IS_A = "a"
"""The predicate by which a pattern asks for an entity of a class: `?x -a-> Brand`."""
MOST_STEPS = 1_000_000
"""Facts that the rules of an ontology may look at for one trace."""

Node = str | Value
Bound = Mapping[str, Node]
"""What each variable stands for."""


class Pattern(NamedTuple):
    """A fact in which `?x` in the place of subject or object stands for any entity; all names are labels."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Facts that match all `patterns` together are forbidden, unless facts that match all of `require` exist too.

    `require` is None where the patterns are forbidden as such. A variable stands for the same entity wherever it
    occurs in a rule; one that only `require` has stands for any.
    """

    name: str
    patterns: tuple[Pattern, ...]
    require: tuple[Pattern, ...] | None = None

    def is_broken_by(self, fact: Fact, among: Facts) -> bool:
        """True if the fact is one of those that match the patterns where they must not.

        More work than MOST_STEPS is a ValueError.
        """
        for position, pattern in enumerate(self.patterns):
            bound = None if pattern.predicate == IS_A else _unified(pattern, fact, {})
            if bound is None:
                continue
            others = self.patterns[:position] + self.patterns[position + 1 :]
            for match in among.matches(others, bound):
                if self.require is None or next(among.matches(self.require, match), None) is None:
                    return True
        return False


class Facts:
    """Facts to find patterns among; classes of entities are facts of IS_A."""

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
        """How many different values the predicate has for this subject."""
        return len(self._by_subject.get((predicate, subject), ()))

    def matches(self, patterns: tuple[Pattern, ...], bound: Bound) -> Iterator[Bound]:
        """Every way to match all patterns that agrees with what is bound already."""
        if not patterns:
            yield bound
            return
        for fact in self._candidates(patterns[0], bound):
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise ValueError(f"the rules of the ontology need more than {MOST_STEPS} steps for this trace")
            matched = _unified(patterns[0], fact, bound)
            if matched is not None:
                yield from self.matches(patterns[1:], matched)

    def _candidates(self, pattern: Pattern, bound: Bound) -> Iterable[Fact]:
        """Facts that may match the pattern: as few as an index gives."""
        subject, value = (_value(term, bound) for term in (pattern.subject, pattern.object))
        if isinstance(subject, str) and value is not None:
            fact = Fact(subject, pattern.predicate, value)
            return (fact,) if fact in self._all else ()
        if subject is not None:
            return self._by_subject.get((pattern.predicate, subject), ())
        if value is not None:
            return self._by_object.get((pattern.predicate, value), ())
        return self._by_predicate.get(pattern.predicate, ())


def _unified(pattern: Pattern, fact: Fact, bound: Bound) -> Bound | None:
    """What the variables stand for if the pattern is this fact; None where it cannot be."""
    if pattern.predicate != fact.predicate:
        return None
    bindings = dict(bound)
    for term, node in ((pattern.subject, fact.subject), (pattern.object, fact.object)):
        if (bindings.setdefault(term, node) if is_variable(term) else term) != node:
            return None
    return bindings


def _value(term: str, bound: Bound) -> Node | None:
    return bound.get(term) if is_variable(term) else term


def is_variable(term: str) -> bool:
    return term.startswith("?")
