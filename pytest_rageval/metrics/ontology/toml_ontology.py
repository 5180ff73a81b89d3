"""Read an ontology in TOML or JSON, with all its problems at once.

    [classes]
    Organisation = {}
    Brand = { parents = ["Organisation"], disjoint = ["Product"] }
    Product = {}

    [properties.makes]
    domain = "Brand"            # the subject is one
    range = "Product"           # the object is one
    min = 1                     # different values that each Brand about which anything is inferred must have
    max = 20

    [properties.rivalOf]
    symmetric = true            # each fact needs its reverse

    [[rules]]
    name = "nobody is a rival of itself"
    forbid = ["?x -rivalOf-> ?x"]

    [[rules]]
    name = "rivals make something"
    when = ["?x -rivalOf-> ?y", "?y -a-> Brand"]
    require = ["?y -makes-> ?anything"]

Classes and predicates that are not declared are violations. Names are compared as labels: NFKC, case folded, trimmed.
A rule either forbids facts together, or requires that facts which match `when` go with facts which match `require`;
every fact that takes part in what is forbidden, or that matches `when` in vain, breaks it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import format_path, shown_value
from pytest_rageval.io.records import Flaw, flaws_of
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.language.words import as_label
from pytest_rageval.model import Edge
from pytest_rageval.text import printable

IS_A = "a"
"""The predicate of a pattern that matches entities of a class: `?x -a-> Brand`."""
MOST_PATTERNS = 8
"""Patterns in one list of a rule."""


class Pattern(NamedTuple):
    """A fact in which `?x` in the place of subject or object stands for any entity; all names are labels."""

    subject: str
    predicate: str
    object: str

    @classmethod
    def parse(cls, written: str) -> Pattern:
        """Parse a pattern, written like an edge; anything else is a ValueError."""
        pattern = cls(*map(as_label, Edge.parse(written)))
        if is_variable(pattern.predicate) or "?" in (pattern.subject, pattern.object):
            raise ValueError
        return pattern


def is_variable(term: str) -> bool:
    return term.startswith("?")


def _name(written: str) -> str:
    if not as_label(written) or len(written) > 200 or printable(written) != written or "\n" in written:
        raise ValueError(f"is {shown_value(written)}, expected a name of 1 to 200 printable characters")
    return written


Name = Annotated[str, AfterValidator(_name)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Class(_Strict):
    """`[classes]`: the names of its parents, and of classes that share no entity with it."""

    parents: list[Name] = []
    disjoint: list[Name] = []


class Property(_Strict):
    """`[properties]`: constraints on its facts."""

    domain: Name | None = None
    range: Name | None = None
    min: int = Field(0, ge=0)
    max: int | None = Field(None, ge=1)
    symmetric: bool = False


class Rule(_Strict):
    """`[[rules]]`: patterns, written like edges; either `forbid`, or `when` and `require`.

    A variable means the same entity throughout a rule; one that only `require` has means any entity.
    """

    name: Name
    forbid: list[str] | None = Field(None, min_length=1, max_length=MOST_PATTERNS)
    when: list[str] | None = Field(None, min_length=1, max_length=MOST_PATTERNS)
    require: list[str] | None = Field(None, min_length=1, max_length=MOST_PATTERNS)

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return the patterns whose facts are forbidden together, unless those of `required` exist too."""
        return tuple(map(Pattern.parse, self.forbid or self.when or ()))

    @cached_property
    def required(self) -> tuple[Pattern, ...] | None:
        return None if self.require is None else tuple(map(Pattern.parse, self.require))

    def lists(self) -> dict[str, list[str]]:
        """Return the lists of patterns that are present, by key."""
        every = {"forbid": self.forbid, "when": self.when, "require": self.require}
        return {key: patterns for key, patterns in every.items() if patterns is not None}


class Ontology(_Strict):
    """The file as a whole: classes and properties by the names in it, and the rules over them."""

    classes: dict[Name, Class] = {}
    properties: dict[Name, Property] = {}
    rules: list[Rule] = []

    @cached_property
    def class_names(self) -> Mapping[str, str]:
        """Return the names of the classes as written, by label."""
        return {as_label(name): name for name in self.classes}

    @cached_property
    def by_label(self) -> Mapping[str, tuple[str, Property]]:
        """Return each property and its name as written, by label."""
        return {as_label(name): (name, written) for name, written in self.properties.items()}

    @cached_property
    def with_ancestors(self) -> Mapping[str, frozenset[str]]:
        """Return for each class itself and all classes above it, as labels."""
        parents = {as_label(name): [*map(as_label, written.parents)] for name, written in self.classes.items()}
        return {label: frozenset(_upwards(label, parents)) for label in parents}

    @cached_property
    def disjoint_pairs(self) -> frozenset[frozenset[str]]:
        """Return the pairs of classes that share no entity, as declared on either of the two."""
        pairs: set[frozenset[str]] = set()
        for name, written in self.classes.items():
            for other in written.disjoint:
                pairs.add(frozenset((as_label(name), as_label(other))))
        return frozenset(pairs)

    def clashes(self, labels: frozenset[str]) -> list[tuple[str, str]]:
        """Return the sorted names of the disjoint pairs among these classes; pass their ancestors too."""
        pairs = (pair for pair in combinations(sorted(labels), 2) if frozenset(pair) in self.disjoint_pairs)
        return [(self.class_names[first], self.class_names[second]) for first, second in pairs]


def _upwards(label: str, parents: Mapping[str, list[str]]) -> set[str]:
    seen = {label}
    waiting = [label]
    while waiting:
        above = [parent for parent in parents[waiting.pop()] if parent not in seen]
        seen.update(above)
        waiting += above
    return seen


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_ontology(place: str, text: str) -> Ontology:
    """Read the ontology in the text of the file at `place`, whose suffix decides between JSON and TOML.

    Raise SettingsError with all its problems.
    """
    content: Any = None
    try:
        content = parse(text) if place.lower().endswith(".json") else tomllib.loads(text)
        ontology = Ontology.model_validate(content)
        problems = list(_problems(ontology))
    except RecursionError:
        problems = ["nested too deep; an ontology needs four levels"]
    except ValidationError as invalid:
        problems = [_problem_text(flaw) for flaw in flaws_of(invalid, content, Ontology)]
    except StrictJsonError as error:
        problems = [printable(str(error))]
    except ValueError as error:
        problems = [f"not valid TOML: {printable(str(error))}"]
    if problems:
        raise SettingsError(*(f"{place}: {problem}" for problem in problems))
    return ontology


def _problem_text(flaw: Flaw) -> str:
    path = format_path(flaw.path) or "the file"
    if flaw.is_unknown:
        return f"{path} is not a known key{nearest(str(flaw.path[-1]), flaw.known)}"
    return f"{path} is missing; give it" if flaw.is_missing else f"{path} {flaw.message}"


# ── what it refers to ─────────────────────────────────────────────────────────────────────────────────────────


def _problems(ontology: Ontology) -> Iterator[str]:
    """Yield duplicate names, undeclared names, and constraints that nothing can meet."""
    if not ontology.classes and not ontology.properties:
        yield "declares neither classes nor properties; nothing could be checked"
    yield from _duplicates("classes", ontology.classes)
    yield from _duplicates("properties", ontology.properties)
    if IS_A in ontology.by_label:
        yield f"properties.{IS_A} is taken: in rules it asks for an entity of a class; rename the property"
    undeclared = [(path, name) for path, name in _classes_named(ontology) if as_label(name) not in ontology.class_names]
    yield from (f"{path} is {name!r}, no class of it{nearest(name, ontology.classes)}" for path, name in undeclared)
    for name, written in ontology.properties.items():
        if written.max is not None and written.min > written.max:
            yield f"properties.{name}.min is {written.min}, more than its max of {written.max}; lower it"
    for number, rule in enumerate(ontology.rules):
        yield from _rule_problems(f"rules[{number}]", rule, ontology)
    if not undeclared:
        yield from _class_problems(ontology)


def _classes_named(ontology: Ontology) -> Iterator[tuple[str, str]]:
    """Yield each place outside of rules that refers to a class, and the name it uses."""
    for name, entry in ontology.classes.items():
        yield from ((f"classes.{name}.parents", parent) for parent in entry.parents)
        yield from ((f"classes.{name}.disjoint", other) for other in entry.disjoint)
    for name, written in ontology.properties.items():
        for role, named in (("domain", written.domain), ("range", written.range)):
            if named is not None:
                yield f"properties.{name}.{role}", named


def _duplicates(table: str, names: Iterable[str]) -> Iterator[str]:
    first: dict[str, str] = {}
    for name in names:
        if (earlier := first.setdefault(as_label(name), name)) != name:
            yield f"{table}.{name} is the same name as {earlier!r}; names are compared without case; keep one"


def _class_problems(ontology: Ontology) -> Iterator[str]:
    """Yield cycles of parents, and classes that can have no entity."""
    above = ontology.with_ancestors
    for name, written in ontology.classes.items():
        label = as_label(name)
        if any(label in above[as_label(parent)] for parent in written.parents):
            yield f"classes.{name}.parents lead back to it; a class is not above itself"
        elif label in map(as_label, written.disjoint):
            yield f"classes.{name}.disjoint names itself; nothing could be one"
        elif clashes := ontology.clashes(above[label]):
            first, second = clashes[0]
            yield f"classes.{name}: nothing can be one, because {first} and {second} are disjoint; mend either"


def _rule_problems(path: str, rule: Rule, ontology: Ontology) -> Iterator[str]:
    if rule.lists().keys() not in ({"forbid"}, {"when", "require"}):
        yield f"{path} ({rule.name}) has {' and '.join(rule.lists()) or 'no pattern'}; give forbid, or when and require"
    for key, written in rule.lists().items():
        patterns = []
        for position, text in enumerate(written):
            try:
                pattern = Pattern.parse(text)
            except ValueError:
                yield f"{path}.{key}[{position}] is {shown_value(text)}, expected a pattern, as in '?x -makes-> ?y'"
                continue
            patterns.append(pattern)
            is_class = pattern.predicate == IS_A
            kind, name = ("class", pattern.object) if is_class else ("property", pattern.predicate)
            declared: Iterable[str] = ontology.classes if is_class else ontology.properties
            if name not in map(as_label, declared):
                yield f"{path}.{key}[{position}] names {name!r}, no {kind} of it{nearest(name, declared)}"
        if patterns and key != "require" and all(pattern.predicate == IS_A for pattern in patterns):
            yield f"{path}.{key} names no property, so that no inference could break it; use disjoint classes for types"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the likely intended name, or the known ones."""
    names = list(names)
    return did_you_mean(name, names, f"; known: {listed(names, 20) or 'none'}")
