"""What violates an ontology, and that its two forms, TOML and RDF with SHACL, say the same of the same claims."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ontologies import DEMO, claims, validator, verdict
from processes import rounds

from pytest_rageval.metrics.ontology.claims import Claims, Fact, Value

NONE: set[int] = set()
FINE: set[str] = set()

SHOP = {
    "nothing is claimed": (claims(), NONE, FINE),
    "everything keeps to the ontology": (
        claims("ann|makes|pen", "ann:Maker pen:Good", known="pen|hasPart|a pen|hasPart|b"), NONE, FINE,
    ),
    "names are compared without case and margin": (
        Claims((Fact("ann", "makes", "pen"),), types=(("ann", ("maker",)), ("pen", ("good",)))), NONE, FINE,
    ),
    "a predicate that is not declared": (claims("ann|likes|bob ann|rivalOf|bob bob|rivalOf|ann"), {0}, FINE),
    "the predicate of rules for classes is none for facts": (claims("ann|a|Maker"), {0}, FINE),
    "what is no triple": (Claims((None, Fact("x", "partof", "y"))), {0}, FINE),
    "a subject of another class": (claims("ann|makes|pen", "ann:Seller pen:Good"), {0}, FINE),
    "an object of another class": (claims("ann|makes|cap", "ann:Maker cap:Part"), {0}, FINE),
    "a subject and an object without a type": (claims("ann|makes|pen", "ann:Maker"), {0}, FINE),
    "a class below that of the range": (claims("pen|boughtFrom|bob", "bob:Seller"), NONE, FINE),
    "a class above that of the domain": (claims("ann|makes|pen", "ann:Party pen:Good"), {0}, FINE),
    "a number where a class is asked for": (claims("ann|makes|3", "ann:Maker"), {0}, FINE),
    "a number where nothing is asked": (claims("pen|price|3", "pen:Part"), {0}, FINE),
    "too many values, all of them": (
        claims("pen|boughtFrom|bob pen|boughtFrom|cy pen|partOf|set", "bob:Seller cy:Seller"), {0, 1}, FINE,
    ),
    "one value too many is known already": (
        claims("pen|boughtFrom|bob", "bob:Seller cy:Seller", known="pen|boughtFrom|cy"), {0}, FINE,
    ),
    "the same inference twice is one value": (
        claims("pen|boughtFrom|bob pen|boughtFrom|bob", "bob:Seller"), NONE, FINE,
    ),
    "two numbers, of which one is written otherwise": (claims("pen|price|3 pen|price|3.5", "pen:Good"), {0, 1}, FINE),
    "too few values where some are inferred": (
        claims("pen|hasPart|cap pen|partOf|set", "pen:Good cap:Part"), {0}, FINE,
    ),
    "too few values where none is inferred": (claims("ann|partOf|club", "ann:Maker"), {0}, FINE),
    "too few values of one of whom nothing is inferred": (claims("pen|partOf|set", "ann:Maker"), NONE, FINE),
    "enough values with those that are known": (
        claims("ann|partOf|club", "ann:Maker", known="ann|makes|x"), NONE, FINE,
    ),
    "too few values of a property without domain": (claims("x|alias|y z|partOf|x"), {0}, FINE),
    "a symmetric fact without its reverse": (claims("ann|rivalOf|bob"), {0}, FINE),
    "a symmetric fact whose reverse is known": (claims("ann|rivalOf|bob", known="bob|rivalOf|ann"), NONE, FINE),
    "a symmetric fact with both ways": (claims("ann|rivalOf|bob bob|rivalOf|ann"), NONE, FINE),
    "a forbidden fact": (claims("ann|rivalOf|ann ann|rivalOf|bob bob|rivalOf|ann"), {0}, FINE),
    "two facts that are forbidden together": (claims("pen|partOf|set pen|boughtFrom|set", "set:Party"), {0, 1}, FINE),
    "two facts, of which one is only known": (
        claims("pen|boughtFrom|set", "set:Party", known="pen|partOf|set"), {0}, FINE,
    ),
    "a required fact is missing": (claims("pen|boughtFrom|ann", "ann:Maker", known="ann|makes|cap"), {0}, FINE),
    "a required fact is known": (claims("pen|boughtFrom|ann", "ann:Maker", known="ann|makes|pen"), NONE, FINE),
    "what is only known is not judged": (claims("x|partOf|y", known="ann|likes|bob ann|rivalOf|bob"), NONE, FINE),
    "an unknown class": (claims("", "ann:Maker bob:Ghost"), NONE, {"bob"}),
    "two classes that are disjoint": (claims("", "pen:Good pen:Part cap:Part"), NONE, {"pen"}),
    "classes whose parents are disjoint": (claims("", "x:Maker x:Part y:Seller y:Maker"), NONE, {"x"}),
    "disjointness as declared on the other class": (claims("", "x:Place x:Good"), NONE, {"x"}),
}  # fmt: skip


@pytest.mark.parametrize("form", ["shop toml", "shop shacl"])
@pytest.mark.parametrize(("about", "inferences", "entities"), SHOP.values(), ids=SHOP)
def test_the_verdict_of_the_shop_ontology(form, about, inferences, entities):
    assert verdict(form, about) == (inferences, entities)


ENTITIES = st.sampled_from(["a", "b", "c", "ä b/c?", "#"])
PREDICATES = st.sampled_from(["makes", "haspart", "rivalof", "boughtfrom", "price", "alias", "partof", "likes"])
CLASSES = st.sampled_from(["party", "maker", "seller", "thing", "good", "part", "place", "ghost"])
FACTS = st.builds(Fact, ENTITIES, PREDICATES, ENTITIES | st.sampled_from([Value("1"), Value("1.0"), Value("true")]))
CLAIMS = st.builds(
    lambda inferences, known, types: Claims(
        tuple(inferences), frozenset(known), tuple(sorted((entity, tuple(sorted(of))) for entity, of in types.items()))
    ),
    st.lists(FACTS, max_size=8),
    st.lists(FACTS, max_size=4),
    st.dictionaries(ENTITIES, st.sets(CLASSES, min_size=1, max_size=2)),
)


@settings(max_examples=rounds(40, 10), deadline=None)
@given(CLAIMS)
def test_both_forms_give_the_same_verdict_on_any_claims(about):
    assert verdict("shop toml", about) == verdict("shop shacl", about)


def test_reasons_say_what_is_wrong():
    about = claims("ann|makes|3 pen|boughtFrom|ann ann|rivalOf|bob x|likes|y", "ann:Maker bob:Ghost pen:Good pen:Part")
    found = validator("shop toml").check(about)
    assert found.inferences == {
        0: ("the object is no Good (it is a value)",),
        1: ("rule 'what is bought from a maker is made by it'", "hasPart has 0 values, at least 2 needed"),
        2: ("rivalOf is symmetric, and the reverse is missing",),
        3: ("its predicate is no property of the ontology",),
    }
    assert found.entities == {"bob": ("'ghost' is no class of the ontology",), "pen": ("Good and Part are disjoint",)}


def graph_of_the_demo() -> Claims:
    tables = tomllib.loads((DEMO / "graph.toml").read_text(encoding="utf-8"))
    edges = " ".join("|".join((row["subject"], row["predicate"], row["object"])) for row in tables["edge"])
    return claims(edges, " ".join(f"{one['id']}:{one['type']}" for one in tables["entity"]))


@pytest.mark.parametrize("form", ["demo toml", "demo shacl"])
def test_the_graph_of_the_demo_keeps_to_its_ontology_in_both_forms(form):
    assert verdict(form, graph_of_the_demo()) == (NONE, FINE)


DEMO_CLAIMS = {
    "a rule that its premises fulfil": (
        claims("moru|presentIn|japan", "moru:Brand japan:Market", "moru|hasProduct|pad pad|soldIn|japan"), NONE, FINE,
    ),
    "a rule that nothing fulfils": (
        claims("moru|presentIn|korea pad|availableIn|japan", "moru:Brand korea:Market pad:Product japan:Market",
               "moru|hasProduct|pad pad|soldIn|japan pad|stockedBy|shop shop|operatesIn|korea"), {0, 1}, FINE,
    ),
    "wrong types on every side": (
        claims("korea|presentIn|moru pad|containsIngredient|moru cohort|recordedWith|rig rig|hasDevice|cohort",
               "moru:Brand korea:Market pad:Product cohort:Dataset rig:Instrument"), {0, 1, 3}, FINE,
    ),
    "two leaders, two heroes and a rival without a reverse": (
        claims("moru|leadsMarket|korea moru|leadsMarket|japan moru|hasHeroProduct|pad moru|hasHeroProduct|mask "
               "moru|competesWith|onda", "moru:Brand onda:Brand korea:Market japan:Market pad:Product mask:Product"),
        {0, 1, 2, 3, 4}, FINE,
    ),
    "a retailer of which the country is unknown": (
        claims("shop|soldIn|korea", "shop:Retailer korea:Market"), {0}, FINE,
    ),
    "types that share nothing": (
        claims("", "a:Brand a:Retailer b:Product b:Ingredient c:Market c:Dataset d:Measure d:Brand e:Instrument"),
        NONE, {"a", "b", "c", "d"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["demo toml", "demo shacl"])
@pytest.mark.parametrize(("about", "inferences", "entities"), DEMO_CLAIMS.values(), ids=DEMO_CLAIMS)
def test_the_verdict_of_the_ontology_of_the_demo(form, about, inferences, entities):
    assert verdict(form, about) == (inferences, entities)


def test_rules_that_would_look_at_too_many_facts_are_stopped(tmp_path):
    from ontologies import load_validator

    (tmp_path / "o.toml").write_text(
        'properties.p = {}\nrules = [{name = "r", forbid = ["?a -p-> ?b", "?c -p-> ?d", "?e -p-> ?e"]}]'
    )
    crowd = Claims(tuple(Fact(f"s{number}", "p", "o") for number in range(2000)))
    with pytest.raises(ValueError, match="need more than 1000000 steps"):
        load_validator(["o.toml"], tmp_path).check(crowd)
