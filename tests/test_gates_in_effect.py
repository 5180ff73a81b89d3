"""The gates in effect for a case, and their hash."""

from __future__ import annotations

import pytest

from pytest_rageval.gates.effect import GatesInEffect
from pytest_rageval.gates.gate import Gate, parse_gate, resolve
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import EvalCase


def a_gate(written: str) -> Gate:
    return resolve(parse_gate(written, "here"), load_registry(), 5)


def a_case(category: str | None = None) -> EvalCase:
    return EvalCase("q1", "Why?", category=category)


CONDITIONAL = ("mrr >= 0.5", "recall_any@5 >= 1 when category=multi_hop")


def test_a_condition_that_a_case_does_not_meet_leaves_the_gate_out():
    effect = GatesInEffect(map(a_gate, CONDITIONAL), 5)
    assert [*effect.words(a_case("multi_hop"), "none")] == ["mrr >= 0.5", "recall_any@k >= 1"]
    assert [*effect.words(a_case("factual"), "none")] == ["mrr >= 0.5"]


def test_cases_that_meet_other_conditions_have_another_hash_whoever_came_first():
    effect = GatesInEffect(map(a_gate, CONDITIONAL), 5)
    hashes = [effect.hash(a_case(category), "none") for category in ("multi_hop", "factual", None, "multi_hop")]
    assert (hashes[0] == hashes[3], hashes[1] == hashes[2], hashes[0] != hashes[1]) == (True, True, True)


def test_the_hash_is_that_of_the_sorted_lines_in_any_order_of_the_gates():
    # printf 'mrr >= 0.5\nrecall_any@k >= 1' | sha256sum
    expected = "a824a50074c615f9f76144a31e4db7df3dc599e64606e219c6382e6d569a1ff0"
    for gates in (CONDITIONAL, CONDITIONAL[::-1]):
        assert GatesInEffect(map(a_gate, gates), 5).hash(a_case("multi_hop"), "none") == expected


@pytest.mark.parametrize(("k", "name"), [(5, "recall_any@k"), (10, "recall_any@5")])
def test_the_configured_cut_off_has_the_same_words_whatever_it_is(k: int, name: str):
    effect = GatesInEffect([a_gate("recall_any@5 >= 1")], k)
    assert [*effect.words(a_case(), "none")] == [f"{name} >= 1"]


def test_cases_with_the_same_labels_have_the_same_gates_which_ask_for_nothing_more():
    effect = GatesInEffect(map(a_gate, CONDITIONAL), 5)
    gates = effect.meant_for(a_case("multi_hop"), "none")
    assert [(str(gate), gate.when) for gate in gates] == [("mrr >= 0.5", ()), ("recall_any@5 >= 1", ())]
    assert effect.meant_for(a_case("multi_hop"), "ids") is gates
    assert [str(gate) for gate in effect.meant_for(a_case("factual"), "none")] == ["mrr >= 0.5"]
