"""Classes, properties and rules of an ontology: what a TOML or JSON file is read into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from pytest_rageval.metrics.ontology.rules import Rule


@dataclass(frozen=True, slots=True)
class Class:
    """A class of entities. Parents and disjoint classes by label; `name` as it was written."""

    name: str
    parents: tuple[str, ...] = ()
    disjoint: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """What holds for the facts of one predicate; domain and range by the label of a class."""

    name: str
    domain: str | None = None
    range: str | None = None
    min: int = 0
    max: int | None = None
    symmetric: bool = False


@dataclass(frozen=True)
class Ontology:
    """Classes and properties by label, and the rules over them. Every label in it is declared."""

    classes: Mapping[str, Class] = field(default_factory=dict)
    properties: Mapping[str, Property] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @cached_property
    def with_ancestors(self) -> Mapping[str, frozenset[str]]:
        """By class: itself and all classes above it."""
        return {label: frozenset(self._upwards(label)) for label in self.classes}

    @cached_property
    def disjoint_pairs(self) -> frozenset[frozenset[str]]:
        """Pairs of classes that no entity may be in together, as declared on either of the two."""
        return frozenset(
            frozenset((label, other)) for label, declared in self.classes.items() for other in declared.disjoint
        )

    def clashes(self, classes: frozenset[str]) -> list[tuple[str, str]]:
        """Names of the disjoint pairs among these classes, the classes above them given too; sorted."""
        pairs = (pair for pair in combinations(sorted(classes), 2) if frozenset(pair) in self.disjoint_pairs)
        return [(self.classes[first].name, self.classes[second].name) for first, second in pairs]

    def _upwards(self, label: str) -> Iterator[str]:
        seen, waiting = {label}, [label]
        while waiting:
            here = waiting.pop()
            yield here
            above = [parent for parent in self.classes[here].parents if parent not in seen]
            seen.update(above)
            waiting += above
