"""Schema of an ontology file of TOML or JSON: its parts, with their types checked."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.flaws import Flaw, flaws_of
from pytest_rageval.io.messages import shown_value, spelled
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.text import printable
from pytest_rageval.words import as_label

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
    """`[classes]`: the names of classes above it, and of those that share no entity with it."""

    parents: list[Name] = []
    disjoint: list[Name] = []


class PropertyEntry(_Strict):
    """`[properties]`: what holds for its facts."""

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
        """The lists of patterns that are there, by key."""
        every = {"forbid": self.forbid, "when": self.when, "require": self.require}
        return {key: patterns for key, patterns in every.items() if patterns is not None}


class Document(_Strict):
    """The file as a whole."""

    classes: dict[Name, ClassEntry] = {}
    properties: dict[Name, PropertyEntry] = {}
    rules: list[RuleEntry] = []

    def classes_named(self) -> Iterator[tuple[str, str]]:
        """Where a class is referred to outside of rules, and by which name."""
        for name, entry in self.classes.items():
            yield from ((f"classes.{name}.parents", parent) for parent in entry.parents)
            yield from ((f"classes.{name}.disjoint", other) for other in entry.disjoint)
        for name, written in self.properties.items():
            if written.domain is not None:
                yield f"properties.{name}.domain", written.domain
            if written.range is not None:
                yield f"properties.{name}.range", written.range


def read_document(place: str, text: str) -> Document:
    """The parts of a file; `place` is its path, whose suffix says whether it is JSON. Raises SettingsError."""
    content = _parsed(place, text)
    try:
        return Document.model_validate(content)
    except ValidationError as invalid:
        raise SettingsError(*(f"{place}: {_said(flaw)}" for flaw in flaws_of(invalid, content, Document))) from None


_KEYS = {
    "": list(Document.model_fields),
    "classes": list(ClassEntry.model_fields),
    "properties": list(PropertyEntry.model_fields),
    "rules": list(RuleEntry.model_fields),
}


def _parsed(place: str, text: str) -> Any:
    try:
        if place.lower().endswith(".json"):
            return json.loads(text, object_pairs_hook=_without_duplicates)
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{place}: nested too deep; an ontology needs four levels") from None
    except ValueError as error:  # what both parsers raise, and the hook for duplicates
        kind = "JSON" if place.lower().endswith(".json") else "TOML"
        raise SettingsError(f"{place}: not valid {kind}: {printable(str(error))}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice in one object; keep one of them")
    return members


def _said(flaw: Flaw) -> str:
    """One problem of the file: name, value, remedy."""
    path = spelled(flaw.path) or "the file"
    if flaw.is_unknown:
        return f"{path} is not a known key{nearest(str(flaw.path[-1]), flaw.known)}"
    return f"{path} is missing; give it" if flaw.is_missing else f"{path} {flaw.message}"


# ── words for problems ────────────────────────────────────────────────────────────────────────────────────────


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that may have been meant, or those there are."""
    names = list(names)
    return did_you_mean(name, names, f"; known: {listed(names, 20) or 'none'}")
