"""RDF and SHACL: how names become IRIs, what a validation result is about, and what is wrong with files."""

from __future__ import annotations

from pathlib import Path

import pytest
from ontologies import SHOP, claims
from processes import python

from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics.ontology.claims import Claims, Fact, Validator, Violations
from pytest_rageval.metrics.ontology.rates import load_validator

PREFIXES = """
@prefix ex: <https://example.org/a#> .
@prefix other: <https://example.org/b/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Brand a owl:Class . ex:Market a owl:Class . ex:p a owl:ObjectProperty . ex:q a owl:ObjectProperty .
"""


def shapes(folder: Path, turtle: str) -> Validator:
    (folder / "o.ttl").write_text(PREFIXES + turtle, encoding="utf-8")
    return load_validator(["o.ttl"], folder)


def checked(folder: Path, turtle: str, about: Claims) -> Violations:
    return shapes(folder, turtle).check(about)


def problems(folder: Path, turtle: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        shapes(folder, turtle)
    return list(caught.value.problems)


BRANDS = "[] sh:targetSubjectsOf ex:p ; sh:class ex:Brand ; sh:message 'no brand' ."


def test_a_name_may_be_an_iri_a_prefixed_name_or_a_local_name(tmp_path):
    about = claims(types="a:Brand b:ex:Brand c:https://example.org/a#Brand d:other:Brand")
    facts = tuple(Fact(entity, predicate, "x") for entity in "abcd" for predicate in ("p", "ex:p"))
    found = checked(tmp_path, BRANDS, Claims(facts, types=about.types))
    assert found.inferences == {6: ("no brand",), 7: ("no brand",)}
    assert set(found.entities) == {"d"}


def test_a_local_name_that_two_classes_share_stands_for_neither(tmp_path):
    about = claims(types="a:Brand b:ex:Brand c:other:Brand")
    assert set(checked(tmp_path, "other:Brand a owl:Class . " + BRANDS, about).entities) == {"a"}


def test_results_that_are_no_violations_do_not_count(tmp_path):
    assert checked(tmp_path, BRANDS + "[] sh:targetSubjectsOf ex:q ; sh:class ex:Brand ; sh:severity sh:Warning .",
                   claims("a|q|b")).inferences == {}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "inferences", "entities"),
    [
        ("sh:property [ sh:path ex:p ; sh:class ex:Market ]", {0}, set()),
        ("sh:property [ sh:path [ sh:inversePath ex:p ] ; sh:class ex:Market ]", {2}, set()),
        ("sh:property [ sh:path ex:p ; sh:maxCount 0 ]", {0}, set()),
        ("sh:property [ sh:path ex:p ; sh:minCount 2 ]", {0}, set()),
        ("sh:property [ sh:path [ sh:inversePath ex:p ] ; sh:minCount 2 ]", {2}, set()),
        ("sh:property [ sh:path ( ex:p ex:q ) ; sh:minCount 1 ]", {0, 1}, set()),
        ("sh:property [ sh:path ( ex:p ex:q ) ; sh:maxCount 0 ]", set(), set()),
        ("sh:property [ sh:path ex:p ; sh:disjoint ex:q ]", set(), set()),
        ("sh:property [ sh:path ex:p ; sh:equals ex:q ]", {0, 1}, set()),
        ("sh:property [ sh:path rdf:type ; sh:maxCount 0 ]", set(), {"a"}),
        ("sh:class ex:Market", set(), {"a"}),
        ("sh:nodeKind sh:BlankNode", set(), {"a"}),
        ("sh:sparql [ sh:select 'SELECT $this WHERE { $this ?p ?o }' ]", set(), {"a"}),
        (
            "sh:sparql [ sh:select '''SELECT $this ?path ?value WHERE {"
            " $this ?path ?value . FILTER (STRENDS(STR(?path), \"q\")) }''' ]",
            {1},
            set(),
        ),
    ],
)
def test_what_a_result_is_about(tmp_path, shape, inferences, entities):
    found = checked(tmp_path, f"[] sh:targetClass ex:Brand ; {shape} .", claims("a|p|b a|q|c d|p|a", "a:Brand"))
    assert (set(found.inferences), set(found.entities)) == (inferences, entities)


def test_a_result_about_what_made_a_node_a_target_is_about_those_inferences(tmp_path):
    about = claims("a|p|b c|p|b a|q|b", "a:Market b:Market c:Brand")
    assert set(checked(tmp_path, BRANDS, about).inferences) == {0}
    assert set(checked(tmp_path, "[] sh:targetObjectsOf ex:p ; sh:class ex:Brand .", about).inferences) == {0, 1}


def test_the_message_of_a_result_or_else_its_component_is_the_reason(tmp_path):
    turtle = BRANDS + "[] sh:targetSubjectsOf ex:q ; sh:sparql [ sh:select 'SELECT $this WHERE { $this ?p ?o }' ] ."
    assert checked(tmp_path, turtle, claims("a|p|b a|q|b")).inferences == {0: ("no brand",), 1: ("SPARQL",)}


def test_more_claims_than_shacl_can_check_in_time_are_refused(tmp_path):
    with pytest.raises(ValueError, match="makes 1001 claims; at most 1000 are checked with SHACL"):
        checked(tmp_path, BRANDS, Claims(tuple(Fact(f"e{number}", "p", "x") for number in range(1001))))


def test_several_files_are_one_ontology():
    assert load_validator(["shop.ttl", "shop.shacl.ttl"], SHOP).digest
    with pytest.raises(SettingsError, match=r"^shop.ttl: holds no SHACL shape with a target, .* name the file"):
        load_validator(["shop.ttl"], SHOP)
    with pytest.raises(SettingsError, match=r"^shop.shacl.ttl: declares neither classes nor properties"):
        load_validator(["shop.shacl.ttl"], SHOP)


def test_shapes_that_name_what_is_not_declared_are_said_together(tmp_path):
    turtle = """
    [] sh:targetClass ex:Brandd ; sh:property [ sh:path ex:p ; sh:class ex:Market ] .
    [] sh:targetSubjectsOf other:thing ; sh:class ex:Market .
    """
    assert problems(tmp_path, turtle) == [
        "o.ttl: sh:targetClass is ex:Brandd, no declared class; did you mean ex:Brand?",
        "o.ttl: sh:targetSubjectsOf is other:thing, no declared property; declare it as a property",
    ]


@pytest.mark.parametrize(
    ("turtle", "said"),
    [
        ("ex:a ex:b .", "o.ttl:9: not valid Turtle: objectList expected"),
        ("ex:a ex:b <http://[> .", "o.ttl: "),
        ("[" * 5000, "o.ttl: nested too deep"),
        (BRANDS + "[] sh:targetClass ex:Brand ; sh:property [ sh:minCount 1 ] .",
         "o.ttl: pySHACL cannot use a shape: "),
        (BRANDS + "[] sh:targetClass ex:Brand ; sh:property [ sh:path ex:p ; sh:minCount 'x' ] .",
         "o.ttl: pySHACL cannot use a shape: "),
        (BRANDS + "[] sh:targetClass ex:Brand ; sh:sparql [ sh:select 'SELEC $this' ] .",
         "o.ttl: pySHACL cannot use a shape: "),
        (BRANDS + "[] sh:targetClass ex:Brand ; sh:sparql [ sh:select 'SELECT $this WHERE { "
         "$this <http://a#b> <http://c#d> . SERVICE <http://127.0.0.1:9/> { $this ?p ?o } }' ] .",
         "o.ttl: a query asks another server (SERVICE); take that out, checking claims touches no network"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_said_in_one_line(tmp_path, turtle, said):
    (problem,) = problems(tmp_path, turtle)
    assert problem.startswith(said)
    assert "\n" not in problem


def test_imports_are_not_followed(tmp_path):
    imports = "<https://example.org/a> a owl:Ontology ; owl:imports <http://127.0.0.1:9/x.ttl> ."
    assert checked(tmp_path, BRANDS + imports, claims("a|p|b")).inferences == {0: ("no brand",)}


@pytest.mark.child_process
def test_without_the_extra_its_name_is_said_and_toml_still_works():
    code = (
        "import sys; sys.modules['pyshacl'] = None\n"
        "from pathlib import Path\n"
        "from pytest_rageval.metrics.ontology.rates import load_validator\n"
        f"root = Path({str(SHOP)!r})\n"
        "load_validator(['shop.toml'], root)\n"
        "try:\n    load_validator(['shop.ttl', 'shop.shacl.ttl'], root)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = python("-c", code, check=True)
    assert done.stdout.strip() == (
        "SettingsError ontology: shop.ttl, shop.shacl.ttl needs pyshacl, which is not installed; "
        "pip install 'pytest-rageval[ontology]', or write the ontology as TOML"
    )


@pytest.mark.child_process
def test_neither_rdflib_nor_pydantic_is_loaded_by_the_metrics_alone():
    code = "import sys; import pytest_rageval.metrics; print({'rdflib', 'pyshacl', 'pydantic'} & set(sys.modules))"
    done = python("-c", code, check=True)
    assert done.stdout.strip() == "set()"
