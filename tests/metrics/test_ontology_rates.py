"""L4: the share of inferences and of entities that an ontology, or the system itself, finds wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from observations import REGISTRY, traced
from ontologies import trace, validator

from pytest_rageval.metrics.ontology import rates
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import Edge, Entity, NotApplicable, Observation, Score, Trace

VIOLATIONS, TYPES = "constraint_violation_rate", "type_consistency_rate"


def scored(name: str, of: Trace | None, form: str | None = "shop toml") -> Score | NotApplicable:
    measure = REGISTRY.measure(name, k=5)
    options: Mapping[str, Any] = {} if form is None else {"ontology": validator(form)}
    return Measure(replace(measure.metric, options=options))(traced(of))


def value(name: str, of: Trace | None, form: str | None = "shop toml") -> float | str:
    found = scored(name, of, form)
    return found.reason if isinstance(found, NotApplicable) else found.value


def test_the_rate_of_violations_counts_each_inference_once():
    of = trace("a|rivalOf|a a|rivalOf|b x|partOf|y pen|boughtFrom|set pen|partOf|set", "set:Party")
    reasons = [
        "a -rivalOf-> a: rule 'nobody is a rival of itself'",
        "a -rivalOf-> b: rivalOf is symmetric, and the reverse is missing",
        "pen -boughtFrom-> set: rule 'a part is not bought from where it belongs'",
        "pen -partOf-> set: rule 'a part is not bought from where it belongs'",
    ]
    assert scored(VIOLATIONS, of) == Score(0.8, {"inferences": 5, "violating": 4, "reasons": reasons})


ALONE = trace("pen|boughtFrom|ann", "ann:Maker")
BECAUSE = [{"subject": "Ann", "predicate": "makes", "object": "Pen"}, "nonsense", 3]
PREMISED = {"subject": "pen", "predicate": "boughtFrom", "object": "ann", "because": BECAUSE}
ODD_TYPES = Trace(entity_types={"a": 3, "b": {"type": "Good"}, "c": "Good", "d": ["Good", True]})
WRONG = trace("a|rivalOf|a x|partOf|y", "a:Maker a:Part x:Place")
OWN = trace("a|partOf|b", "a:Place", violations=("wrong", {"entity": "a"}))


def reporting(*violations: object) -> Trace:
    """A trace of two inferences and two entities, of which the system itself reports violations."""
    return trace("a|p|b c|p|d", "a:Good b:Good", violations=violations)


TOML, SHACL = "shop toml", "shop shacl"
RATES = {
    **{f"two violations and two entities, by {form}": (WRONG, form, 0.5, 0.5) for form in (TOML, SHACL)},
    "a type that is no name is no class": (ODD_TYPES, TOML, rates.NO_INFERENCES, 0.25),
    "an inference whose premise is not known": (ALONE, TOML, 1, 1),
    "what the system took from its graph is known": (
        replace(ALONE, kg_edges=(Edge("ann", "makes", "pen"),)), TOML, 0, 1),
    "what it names as premises is known": (replace(ALONE, inferences=(PREMISED,)), TOML, 0, 1),
    **{f"no trace, by {form}": (None, form, rates.NO_INFERENCES, rates.NO_TYPES) for form in (TOML, None)},
    **{f"an empty trace, by {form}": (Trace(), form, rates.NO_INFERENCES, rates.NO_TYPES) for form in (TOML, None)},
    **{f"nothing was inferred, by {form}": (trace(""), form, rates.NOTHING_INFERRED, rates.NO_TYPES)
       for form in (TOML, None)},
    "inferences and no type": (trace("a|partOf|b"), TOML, 0, rates.NO_TYPES),
    "neither ontology nor report": (trace("a|partOf|b", "a:Good"), None, rates.NO_ONTOLOGY, rates.NO_ONTOLOGY),
    "an empty report": (reporting(), None, 0, 1),
    "more violations than inferences": (reporting("one", "two", "three"), None, 1, rates.NO_ENTITIES_NAMED),
    "a violation of an inference": (
        reporting({"rule": "r", "inference": 0}), None, 0.5, rates.NO_ENTITIES_NAMED),
    "violations of entities": (
        reporting({"entity": "a"}, {"entity": "a"}, {"entity": "stranger"}), None, 0, 0.5),
    "an entity that is no name": (reporting({"entity": 3}), None, 0.5, rates.NO_ENTITIES_NAMED),
    "with an ontology the system's own violations do not count": (OWN, TOML, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize(("of", "form", "violations", "consistency"), RATES.values(), ids=RATES)
def test_the_rates_of_a_trace(of, form, violations, consistency):
    found = [value(name, of, form) for name in (VIOLATIONS, TYPES)]
    assert found == [one.reason if isinstance(one, NotApplicable) else one for one in (violations, consistency)]


def test_details_count_entities_that_have_a_type_and_say_why():
    of = Trace(
        entities=(Entity("Pen", type="Good"), Entity("untyped"), Entity("cap", type="Part")),
        entity_types={"pen": ["Part", "Thing"], "ann": "Maker", "bob": None, "cy": []},
    )
    found = scored(TYPES, of)
    assert found == Score(2 / 3, {"entities": 3, "inconsistent": 1, "reasons": ["pen: Good and Part are disjoint"]})


def test_without_an_ontology_the_systems_own_violations_are_marked():
    of = reporting("c p d is wrong", {"entity": "A", "why": "two types"})
    assert scored(VIOLATIONS, of, None) == Score(0.5, {"self_reported": True, "inferences": 2, "violating": 1})
    assert scored(TYPES, of, None) == Score(0.5, {"self_reported": True, "entities": 2, "inconsistent": 1})


def test_an_inference_that_is_no_triple_violates_the_ontology():
    of = Trace(inferences=({"subject": "a", "predicate": "partOf", "object": "b"}, {"text": "a is in b"},
                           {"subject": "a", "predicate": "partOf", "object": ["b"]}))  # fmt: skip
    found = scored(VIOLATIONS, of)
    assert isinstance(found, Score)
    assert found.value == 2 / 3
    assert found.detail["reasons"][0] == "{'text': 'a is in b'}: it is no triple; write {subject, predicate, object}"


def test_reasons_are_few_short_and_printable():
    name = "x\x1b[31m\ud800\u202e" + "y" * 1000
    found = scored(VIOLATIONS, Trace(inferences=({"subject": name, "predicate": "likes\nto", "object": name},) * 50))
    assert isinstance(found, Score)
    reasons = found.detail["reasons"]
    assert len(reasons) == rates.SHOWN
    assert found.detail["violating"] == 50
    for reason in reasons:
        assert len(reason) <= 300
        assert "\x1b" not in reason
        assert reason.endswith("its predicate is no property of the ontology")
        reason.encode()


def test_a_trace_of_too_many_claims_is_an_error_of_its_case():
    crowd = Trace(inferences=({"subject": "a", "predicate": "partOf", "object": "b"},) * 10_001)
    with pytest.raises(ValueError, match="the trace makes 10001 claims; at most 10000 are checked"):
        scored(VIOLATIONS, crowd)


def test_a_score_does_not_depend_on_what_was_scored_before():
    good, bad = trace("x|partOf|y", "x:Place"), trace("x|likes|y", "x:Place")
    alternating: list[Observation] = [traced(good), traced(bad)] * 8
    measure = Measure(replace(rates.constraint_violation_rate, options={"ontology": validator("shop toml")}))
    assert [one.value for obs in alternating if isinstance(one := measure(obs), Score)] == [0, 1] * 8
