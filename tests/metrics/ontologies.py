"""Claims in a line each, and the validators of the ontologies under tests/data and of the demo."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest_rageval.demo
from pytest_rageval.metrics.ontology.claims import Claims, Fact, Validator, claims_of, fact_of
from pytest_rageval.metrics.ontology.rates import load_validator
from pytest_rageval.model import Edge, Trace

SHOP = Path(__file__).parent.parent / "data" / "ontology"
DEMO = Path(pytest_rageval.demo.__file__).parent / "knowledge"
FORMS = {
    "shop toml": (SHOP, ("shop.toml",)),
    "shop shacl": (SHOP, ("shop.ttl", "shop.shacl.ttl")),
    "demo toml": (DEMO, ("ontology.toml",)),
    "demo shacl": (DEMO, ("ontology.ttl", "ontology.shacl.ttl")),
}


@cache
def validator(form: str) -> Validator:
    folder, places = FORMS[form]
    return load_validator(places, folder)


def claims(inferences: str = "", types: str = "", known: str = "") -> Claims:
    """Facts `s|p|o` and types `entity:Type`, separated by spaces; an object that reads as a number is one."""
    kinds: dict[str, list[str]] = {}
    for entity, _, name in (one.partition(":") for one in types.split()):
        kinds.setdefault(entity, []).append(name)
    of_types = claims_of(Trace(entity_types=kinds)).types
    return Claims(tuple(map(fact, inferences.split())), frozenset(map(fact, known.split())), of_types)


def fact(written: str) -> Fact:
    subject, predicate, value = written.split("|")
    object_: object = float(value) if value.replace(".", "").isdigit() else value
    read = fact_of({"subject": subject, "predicate": predicate, "object": object_})
    assert read is not None
    return read


Verdict = tuple[set[int], set[str]]


def verdict(form: str, about: Claims) -> Verdict:
    """Which inferences and which entities are found wrong, without the reasons."""
    found = validator(form).check(about)
    assert all(found.inferences.values())
    assert all(found.entities.values())
    return set(found.inferences), set(found.entities)


def trace(inferences: str, types: str = "", **more: Any) -> Trace:
    """A trace with inferences `s|p|o` and types `entity:Type`."""
    edges = tuple(Edge.parse(one)._asdict() for one in inferences.split())
    kinds = {entity: list(names) for entity, names in claims(types=types).types}
    return Trace(inferences=edges, entity_types=kinds, **more)
