"""What an ontology in TOML or JSON may say, and how its problems are said: all together, each with its remedy."""

from __future__ import annotations

import json
import tomllib

import pytest
from ontologies import SHOP, claims

from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics.ontology.rates import load_validator
from pytest_rageval.metrics.ontology.toml_ontology import read_ontology


def problems(text: str, place: str = "o.toml") -> list[str]:
    """The problems of a text, without the place that each begins with."""
    with pytest.raises(SettingsError) as caught:
        read_ontology(place, text)
    assert all(problem.startswith(f"{place}: ") for problem in caught.value.problems)
    return [problem.removeprefix(f"{place}: ") for problem in caught.value.problems]


def test_json_says_the_same_as_toml(tmp_path):
    content = tomllib.loads((SHOP / "shop.toml").read_text(encoding="utf-8"))
    assert read_ontology("shop.json", json.dumps(content)) == read_ontology(
        "shop.toml", (SHOP / "shop.toml").read_text(encoding="utf-8")
    )


def test_the_example_of_the_documentation_is_an_ontology():
    from pytest_rageval.metrics.ontology import toml_ontology

    example = "\n".join(line[4:] for line in (toml_ontology.__doc__ or "").splitlines() if line.startswith("    "))
    assert set(read_ontology("o.toml", example).properties) == {"makes", "rivalOf"}


def test_problems_of_shape_are_said_together():
    text = """
    clases = {}
    classes.Brand = { parent = ["Thing"] }
    classes.Thing = "a class"
    properties.makes = { min = -1, max = 0, symmetric = "yes", domain = ["Brand"] }
    [[rules]]
    forbid = []
    """
    assert problems(text) == [
        "clases is not a known key; did you mean 'classes'?",
        "classes.Brand.parent is not a known key; did you mean 'parents'?",
        "classes.Thing is 'a class' (a string), expected {parents, disjoint}",
        "properties.makes.min is -1 (a number), expected a whole number of 0 or more",
        "properties.makes.max is 0 (a number), expected a whole number of 1 or more",
        "properties.makes.symmetric is 'yes' (a string), expected true or false",
        "properties.makes.domain is a list, expected a string",
        "rules[0].forbid is an empty list, expected a list of strings, 1 to 8 of them",
        "rules[0].name is missing; give it",
    ]


def test_problems_of_meaning_are_said_together():
    text = """
    [classes]
    Brand = { parents = ["Organization"], disjoint = ["Produkt"] }
    Organisation = {}
    brand = {}
    Product = {}
    [properties]
    a = {}
    makes = { domain = "Brnd", range = "Product", min = 3, max = 2 }
    [[rules]]
    name = "one"
    forbid = ["?x makes ?y", "?x -makez-> ?y", "?x -a-> Prodct"]
    [[rules]]
    name = "two"
    when = ["?x -a-> Brand"]
    """
    assert problems(text) == [
        "classes.brand is the same name as 'Brand'; names are compared without case; keep one",
        "properties.a is taken: in rules it asks for an entity of a class; rename the property",
        "classes.Brand.parents is 'Organization', no class of it; did you mean 'Organisation'?",
        "classes.Brand.disjoint is 'Produkt', no class of it; did you mean 'Product'?",
        "properties.makes.domain is 'Brnd', no class of it; did you mean 'Brand'?",
        "properties.makes.min is 3, more than its max of 2; lower it",
        "rules[0].forbid[0] is '?x makes ?y', expected a pattern, as in '?x -makes-> ?y'",
        "rules[0].forbid[1] names 'makez', no property of it; did you mean 'makes'?",
        "rules[0].forbid[2] names 'prodct', no class of it; did you mean 'Product'?",
        "rules[1] (two) has when; give forbid, or when and require",
        "rules[1].when names no property, so that no inference could break it; use disjoint classes for types",
    ]


def test_classes_that_nothing_can_be_in_are_said():
    text = """
    [classes]
    A = { parents = ["B"] }
    B = { parents = ["A"] }
    C = { disjoint = ["C"] }
    D = { disjoint = ["E"] }
    E = {}
    F = { parents = ["D", "E"] }
    """
    assert problems(text) == [
        "classes.A.parents lead back to it; a class is not above itself",
        "classes.B.parents lead back to it; a class is not above itself",
        "classes.C.disjoint names itself; nothing could be one",
        "classes.F: nothing can be one, because D and E are disjoint; mend either",
    ]


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        ("o.toml", "", "declares neither classes nor properties; nothing could be checked"),
        ("o.toml", "classes = {", "not valid TOML: "),
        ("o.json", "{", "not valid JSON: "),
        ("o.json", "[]", "the file is a list, expected {classes, properties, rules}"),
        ("o.json", "[" * 100_000, "nested too deep"),
        ("o.toml", "a = " + "[" * 100_000, "nested too deep"),
        (
            "o.json",
            '{"classes": {"A": {}, "A": {}}}',
            "classes.A stands twice in one object, first at column 14; keep one",
        ),
        ("o.json", '{"classes": {"\\ud800": {}}}', "classes holds half of a surrogate pair"),
        ("o.json", '{"classes": {" ": {}}}', "classes[' '] is ' ', expected a name of 1 to 200 printable characters"),
    ],
)
def test_a_text_that_is_no_ontology_is_said_in_one_line(place, text, said):
    (problem,) = problems(text, place)
    assert said in problem
    assert "\n" not in problem


def test_a_setting_that_names_no_ontology_is_said(tmp_path):
    for places in (["o.yaml"], ["a.toml", "b.toml"], ["a.ttl", "b.toml"], []):
        with pytest.raises(SettingsError, match=r"write one .toml or .json file, or a list of .ttl files"):
            load_validator(places, tmp_path)
    with pytest.raises(SettingsError) as caught:
        load_validator(["none.ttl", "no.ttl"], tmp_path)
    assert caught.value.problems == tuple(
        f"ontology: {name} cannot be read: No such file or directory; mend the path" for name in ("none.ttl", "no.ttl")
    )


def test_a_file_in_another_encoding_and_one_too_large_are_said(tmp_path):
    (tmp_path / "o.toml").write_bytes("classes = {'Größe' = {}}".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"o.toml: not UTF-8 at byte 14; save it as UTF-8"):
        load_validator(["o.toml"], tmp_path)
    (tmp_path / "o.toml").write_bytes(b"#" * (5 * 2**20))
    with pytest.raises(SettingsError, match=r"o.toml: an ontology is at most 4 MiB"):
        load_validator(["o.toml"], tmp_path)


def test_the_digest_is_that_of_the_content(tmp_path):
    for name, text in (("a.toml", "classes.A = {}"), ("b.toml", "classes.A = {}"), ("c.toml", "classes.B = {}")):
        (tmp_path / name).write_text(text)
    a, b, c = (load_validator([f"{name}.toml"], tmp_path) for name in "abc")
    assert a.digest == b.digest != c.digest
    assert a.check(claims(types="x:A")).entities == {}
    assert set(c.check(claims(types="x:A")).entities) == {"x"}
