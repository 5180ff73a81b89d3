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

import json
import tomllib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import format_path, shown_value
from pytest_rageval.io.records import Flaw, flaws_of
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.metrics.ontology.declared import (
    IS_A,
    Class,
    DeclaredValidator,
    Ontology,
    Pattern,
    Property,
    Rule,
    is_variable,
)
from pytest_rageval.model import Edge
from pytest_rageval.text import printable
from pytest_rageval.words import as_label


def declared_validator(place: str, text: str, digest: str = "") -> DeclaredValidator:
    """Return the validator of the ontology in the text of the file at `place`; SettingsError if it is wrong."""
    return DeclaredValidator(read_ontology(place, text), digest)


def read_ontology(place: str, text: str) -> Ontology:
    """Read the ontology in the text of the file at `place`. Raises SettingsError."""
    document = read_document(place, text)
    problems = list(_problems(document))
    if problems:
        raise SettingsError(*(f"{place}: {problem}" for problem in problems))
    return _ontology(document)


# ── what it refers to ─────────────────────────────────────────────────────────────────────────────────────────


def _problems(document: Document) -> Iterator[str]:
    """Yield duplicate names, undeclared names, and constraints that nothing can meet."""
    if not document.classes and not document.properties:
        yield "declares neither classes nor properties; nothing could be checked"
    yield from _duplicates("classes", document.classes)
    yield from _duplicates("properties", document.properties)
    classes = {as_label(name) for name in document.classes}
    if IS_A in map(as_label, document.properties):
        yield f"properties.{IS_A} is taken: in rules it asks for an entity of a class; rename the property"
    undeclared = [(path, name) for path, name in document.classes_named() if as_label(name) not in classes]
    yield from (f"{path} is {name!r}, no class of it{nearest(name, document.classes)}" for path, name in undeclared)
    for name, written in document.properties.items():
        if written.max is not None and written.min > written.max:
            yield f"properties.{name}.min is {written.min}, more than its max of {written.max}; lower it"
    for number, rule in enumerate(document.rules):
        yield from _rule_problems(f"rules[{number}]", rule, document)
    if not undeclared:
        yield from _class_problems(document)


def _duplicates(table: str, names: Iterable[str]) -> Iterator[str]:
    first: dict[str, str] = {}
    for name in names:
        if (earlier := first.setdefault(as_label(name), name)) != name:
            yield f"{table}.{name} is the same name as {earlier!r}; names are compared without case; keep one"


def _class_problems(document: Document) -> Iterator[str]:
    """Yield cycles of parents, and classes that can have no entity."""
    ontology = _ontology(document.model_copy(update={"rules": []}))
    for label, declared in ontology.classes.items():
        above = ontology.with_ancestors[label]
        if any(label in ontology.with_ancestors[parent] for parent in declared.parents):
            yield f"classes.{declared.name}.parents lead back to it; a class is not above itself"
        elif label in declared.disjoint:
            yield f"classes.{declared.name}.disjoint names itself; nothing could be one"
        elif clashes := ontology.clashes(above):
            first, second = clashes[0]
            yield f"classes.{declared.name}: nothing can be one, because {first} and {second} are disjoint; mend either"


def _rule_problems(path: str, rule: RuleEntry, document: Document) -> Iterator[str]:
    if rule.lists().keys() not in ({"forbid"}, {"when", "require"}):
        yield f"{path} ({rule.name}) has {' and '.join(rule.lists()) or 'no pattern'}; give forbid, or when and require"
    for key, written in rule.lists().items():
        patterns = []
        for position, text in enumerate(written):
            try:
                pattern = _pattern(text)
            except ValueError:
                yield f"{path}.{key}[{position}] is {shown_value(text)}, expected a pattern, as in '?x -makes-> ?y'"
                continue
            patterns.append(pattern)
            kind, name, declared = (
                ("class", pattern.object, document.classes)
                if pattern.predicate == IS_A
                else ("property", pattern.predicate, document.properties)
            )
            if name not in map(as_label, declared):
                yield f"{path}.{key}[{position}] names {name!r}, no {kind} of it{nearest(name, declared)}"
        if patterns and key != "require" and all(pattern.predicate == IS_A for pattern in patterns):
            yield f"{path}.{key} names no property, so that no inference could break it; use disjoint classes for types"


def _pattern(written: str) -> Pattern:
    """Parse a pattern, written like an edge; anything else is a ValueError."""
    pattern = Pattern(*map(as_label, Edge.parse(written)))
    if is_variable(pattern.predicate) or "?" in (pattern.subject, pattern.object):
        raise ValueError
    return pattern


# ── what it means ─────────────────────────────────────────────────────────────────────────────────────────────


def _ontology(document: Document) -> Ontology:
    return Ontology(
        {
            as_label(name): Class(name, _labels(written.parents), _labels(written.disjoint))
            for name, written in document.classes.items()
        },
        {
            as_label(name): Property(
                name,
                domain=None if written.domain is None else as_label(written.domain),
                range=None if written.range is None else as_label(written.range),
                min=written.min,
                max=written.max,
                symmetric=written.symmetric,
            )
            for name, written in document.properties.items()
        },
        tuple(
            Rule(
                rule.name,
                tuple(map(_pattern, rule.forbid or rule.when or ())),
                None if rule.require is None else tuple(map(_pattern, rule.require)),
            )
            for rule in document.rules
        ),
    )


def _labels(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(as_label, names)))


MOST_PATTERNS = 8
"""Patterns in one list of a rule."""


def _name(written: str) -> str:
    if not as_label(written) or len(written) > 200 or printable(written) != written or "\n" in written:
        raise ValueError(f"is {shown_value(written)}, expected a name of 1 to 200 printable characters")
    return written


Name = Annotated[str, AfterValidator(_name)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClassEntry(_Strict):
    """`[classes]`: the names of its parents, and of classes that share no entity with it."""

    parents: list[Name] = []
    disjoint: list[Name] = []


class PropertyEntry(_Strict):
    """`[properties]`: constraints on its facts."""

    domain: Name | None = None
    range: Name | None = None
    min: int = Field(0, ge=0)
    max: int | None = Field(None, ge=1)
    symmetric: bool = False


class RuleEntry(_Strict):
    """`[[rules]]`: patterns, written like edges; either `forbid`, or `when` and `require`."""

    name: Name
    forbid: list[str] | None = Field(None, min_length=1, max_length=MOST_PATTERNS)
    when: list[str] | None = Field(None, min_length=1, max_length=MOST_PATTERNS)
    require: list[str] | None = Field(None, min_length=1, max_length=MOST_PATTERNS)

    def lists(self) -> dict[str, list[str]]:
        """Return the lists of patterns that are present, by key."""
        every = {"forbid": self.forbid, "when": self.when, "require": self.require}
        return {key: patterns for key, patterns in every.items() if patterns is not None}


class Document(_Strict):
    """The file as a whole."""

    classes: dict[Name, ClassEntry] = {}
    properties: dict[Name, PropertyEntry] = {}
    rules: list[RuleEntry] = []

    def classes_named(self) -> Iterator[tuple[str, str]]:
        """Yield each place outside of rules that refers to a class, and the name it uses."""
        for name, entry in self.classes.items():
            yield from ((f"classes.{name}.parents", parent) for parent in entry.parents)
            yield from ((f"classes.{name}.disjoint", other) for other in entry.disjoint)
        for name, written in self.properties.items():
            if written.domain is not None:
                yield f"properties.{name}.domain", written.domain
            if written.range is not None:
                yield f"properties.{name}.range", written.range


def read_document(place: str, text: str) -> Document:
    """Read a file; the suffix of `place`, its path, decides between JSON and TOML. Raises SettingsError."""
    content = _parse(place, text)
    try:
        return Document.model_validate(content)
    except ValidationError as invalid:
        raise SettingsError(
            *(f"{place}: {_problem_text(flaw)}" for flaw in flaws_of(invalid, content, Document))
        ) from None


def _parse(place: str, text: str) -> Any:
    try:
        if place.lower().endswith(".json"):
            return json.loads(text, object_pairs_hook=_without_duplicates)
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{place}: nested too deep; an ontology needs four levels") from None
    except ValueError as error:  # raised by both parsers, and by the hook for duplicates
        kind = "JSON" if place.lower().endswith(".json") else "TOML"
        raise SettingsError(f"{place}: not valid {kind}: {printable(str(error))}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice in one object; keep one of them")
    return members


def _problem_text(flaw: Flaw) -> str:
    """Return one problem of the file: name, value, remedy."""
    path = format_path(flaw.path) or "the file"
    if flaw.is_unknown:
        return f"{path} is not a known key{nearest(str(flaw.path[-1]), flaw.known)}"
    return f"{path} is missing; give it" if flaw.is_missing else f"{path} {flaw.message}"


# ── words for problems ────────────────────────────────────────────────────────────────────────────────────────


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the likely intended name, or the known ones."""
    names = list(names)
    return did_you_mean(name, names, f"; known: {listed(names, 20) or 'none'}")
