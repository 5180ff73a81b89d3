"""Gates: read as written, applied where their conditions hold, replaced source by source."""

from __future__ import annotations

import pytest

from pytest_rageval import metric
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.effect import GatesInEffect
from pytest_rageval.gates.gate import default_gates, effective_gates, parse_gate, resolve, unknown_values
from pytest_rageval.gates.regression import parse_regression
from pytest_rageval.gates.verdict import GatedTrial, ending_by_gates, gate_verdict, looks_at
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Anchor, Answer, CaseResult, Chunk, EvalCase, Gold, Judgement, Observation

REGISTRY = load_registry()


def a_gate(written: str):
    return resolve(parse_gate(written, "here"), REGISTRY, 5)


def an_observation(**case) -> Observation:
    gold = case.pop("gold", Gold(supports=(Anchor("a.md"),)))
    answer = Answer("text", chunks=(Chunk(rel_path="b.md", heading_path=""),))
    return observe(EvalCase("q", "Why?", gold=gold, **case), answer)


def applies(gate, obs: Observation, *others: str) -> bool:
    """Does the gate look at a case in which its metric, and others, have scores?"""
    return looks_at(gate, GatedTrial(obs, dict.fromkeys((gate.name, *others), 1.0)))


def check(gates, obs: Observation, scores: dict[str, float]):
    return gate_verdict(gates, [GatedTrial(obs, scores)])[:2]


def test_a_gate_reads_the_same_everywhere():
    gate = a_gate("recall_any@5 >= 0.80 when requires_kg=false tag L2_doc_retrieval_fail")
    assert (gate.name, gate.op, gate.threshold, gate.tag) == ("recall_any@5", ">=", 0.8, "L2_doc_retrieval_fail")
    assert gate.when == (("requires_kg", ("false",)),)


def test_a_name_without_a_cut_off_takes_the_configured_one_and_aliases_are_resolved():
    assert a_gate("recall >= 1").name == "recall_any@5"
    assert a_gate("recall_any@10>=1").name == "recall_any@10"
    assert a_gate("mrr > .5").name == "mrr"


def test_percent_is_of_the_scale():
    assert a_gate("groundedness >= 70%").threshold == pytest.approx(3.5)
    assert a_gate("token_f1 >= 50%").threshold == 0.5


@metric(layer="L5", better="higher", scale=(1, 5))
def stars(obs: Observation) -> float:
    """From one to five."""
    return 1.0


def test_percent_counts_from_where_the_scale_begins():
    gate = resolve(parse_gate("stars >= 50%", "here"), load_registry([stars]), 5)
    assert gate.threshold == 3


@pytest.mark.parametrize(("limit", "is_within"), [("0", True), ("1", True), ("1.01", False), ("-0.01", False)])
def test_a_limit_lies_on_the_scale_its_ends_included(limit: str, is_within: bool):
    if is_within:
        assert a_gate(f"mrr >= {limit}").threshold == float(limit)
    else:
        with pytest.raises(SettingsError, match="the limit is beyond the scale of mrr, 0 to 1"):
            a_gate(f"mrr >= {limit}")


def test_a_gate_examines_only_cases_for_which_its_conditions_hold():
    gates = [a_gate("mrr >= 1 when category=factual")]
    assert check(gates, an_observation(category="reasoning"), {"mrr": 0.0}) == (0, ())
    assert len(check(gates, an_observation(category="factual"), {"mrr": 0.0})[1]) == 1


def test_conditions_are_alternatives_within_a_field_and_all_hold_across_fields():
    gate = a_gate("mrr >= 1 when category=factual,reasoning,answerable=true")
    assert gate.when == (("category", ("factual", "reasoning")), ("answerable", ("true",)))
    assert applies(gate, an_observation(category="reasoning"))
    assert not applies(gate, an_observation(category="multi_hop"))
    assert not applies(gate, an_observation(category="factual", answerable=False))


@pytest.mark.parametrize(
    ("condition", "case"),
    [
        ("tag=cold", {"tags": ("cold", "wet")}),
        ("difficulty=hard", {"difficulty": "hard"}),
        ("domain=market", {"domain": "market"}),
        ("category=uncategorised", {}),
        ("gold=anchors", {}),
        ("gold=ids", {"gold": Gold(chunk_ids=("a",))}),
        ("gold=none", {"gold": Gold()}),
        ("groups=true", {"gold": Gold(supports=(Anchor("a.md"),), support_groups=((0,),))}),
        ("groups=false", {}),
        ("requires_kg=true", {"requires_kg": True}),
    ],
)
def test_every_field_can_be_a_condition(condition: str, case: dict):
    assert applies(a_gate(f"mrr >= 1 when {condition}"), an_observation(**case))


@pytest.mark.parametrize(
    "written",
    ["", "mrr", "mrr => 1", "mrr >= ", "mrr >= one", "mrr == 1", ">= 1", "mrr >= 1 when", "mrr >= 1 when colour=red",
     "mrr >= 1 tag", "run mrr >= 1 when category=a", "mrr >= nan", "mrr >= 1 2", "mrr >= \u0660"],
)  # fmt: skip
def test_what_is_no_gate_is_refused_in_one_line(written: str):
    with pytest.raises(SettingsError) as raised:
        parse_gate(written, "pyproject.toml: gates.case")
    assert str(raised.value).startswith("pyproject.toml: gates.case")
    assert "\n" not in str(raised.value)


def test_a_value_that_no_case_has_is_answered_with_the_nearest_whatever_its_case():
    cases = [EvalCase("q", "Why?", category="multi_hop")]
    assert [*unknown_values([a_gate("recall >= 1 when category=MULTI_HOP")], cases)] == [
        "gate 'recall_any@5 >= 1 when category=MULTI_HOP': no case has the category 'MULTI_HOP'; "
        "did you mean 'multi_hop'?"
    ]


def test_an_unknown_metric_is_answered_with_the_nearest():
    with pytest.raises(SettingsError, match=r"unknown metric 'recal@5'; did you mean 'recall'\?"):
        a_gate("recal@5 >= 1")


def test_later_sources_replace_gates_of_the_same_metric_and_off_removes_them():
    default = [a_gate("recall_any >= 1"), a_gate("mrr >= 0.1"), a_gate("token_f1 >= 0.5")]
    table = [a_gate("recall_any@10 >= 0.5"), a_gate("mrr off")]
    in_force = effective_gates(default, table, [])
    assert sorted(map(str, in_force)) == ["recall_any@10 >= 0.5", "token_f1 >= 0.5"]
    assert sorted(map(str, effective_gates(default, table, [a_gate("mrr >= 0.9")]))) == [
        "mrr >= 0.9",
        "recall_any@10 >= 0.5",
        "token_f1 >= 0.5",
    ]


def test_a_limit_that_is_met_exactly_holds_unless_it_is_strict():
    obs = an_observation()
    assert check([a_gate("mrr >= 0.5")], obs, {"mrr": 0.5}) == (1, ())
    _, failed = check([a_gate("mrr > 0.5 tag t")], obs, {"mrr": 0.5})
    assert [(gate.metric, gate.threshold, gate.tag) for gate in failed] == [("mrr", "> 0.5", "t")]
    assert check([a_gate("mrr <= 0.5")], obs, {"mrr": 0.5}) == (1, ())
    assert check([a_gate("mrr < 0.5")], obs, {"mrr": 0.5})[0] == 0


def test_a_metric_without_a_score_is_not_examined():
    assert check([a_gate("mrr >= 0.5")], an_observation(), {}) == (0, ())


def test_a_failure_is_said_once_though_two_gates_say_it():
    gates = [a_gate("recall_all >= 1 when groups=false"), a_gate("recall_all >= 1 when category=multi_hop")]
    _, failed = check(gates, an_observation(category="multi_hop"), {"recall_all@5": 0.0})
    assert len(failed) == 1


@pytest.mark.parametrize(("heuristic", "gated"), [(True, False), (False, True)])
def test_a_default_gate_rests_on_no_heuristic(heuristic: bool, gated: bool):
    case = EvalCase("q", "Why?")
    judged = Judgement("groundedness", {"groundedness": 1.0}, scale=(0, 5), heuristic=heuristic)
    obs = observe(case, Answer("text"), judgements={"groundedness": judged})
    default = [resolve(gate, REGISTRY, 5) for gate in default_gates(REGISTRY)]
    gate = next(gate for gate in default if gate.name == "groundedness")
    assert applies(gate, obs) is gated
    assert applies(a_gate("groundedness >= 3"), obs)


@pytest.mark.parametrize(
    ("judged_by", "gated"), [(None, True), ({"heuristic": True}, True), ({"heuristic": False}, False)]
)
def test_the_default_gate_of_a_formula_stands_back_where_a_model_judged_the_same(judged_by, gated: bool):
    scored = judged_by and Judgement("reference_match", {"reference_match": 1.0}, scale=(0, 5), **judged_by)
    case = EvalCase("q", "Why?", gold=Gold(answers=("text",)))
    obs = observe(case, Answer("text"), judgements={"reference_match": scored} if scored else {})
    default = [resolve(gate, REGISTRY, 5) for gate in default_gates(REGISTRY)]
    assert (
        applies(
            next(gate for gate in default if gate.name == "gold_in_answer"),
            obs,
            *(["reference_match"] if scored else []),
        )
        is gated
    )
    assert applies(a_gate("token_f1 >= 0.5"), obs)


def test_a_regression_has_the_direction_of_its_metric():
    gate = parse_regression("recall_any@k drop 0.05", "here", REGISTRY, 7)
    assert (gate.name, gate.tolerance, gate.word) == ("recall_any@7", 0.05, "drop")
    assert parse_regression("groundedness drop 10%", "here", REGISTRY, 5).tolerance == pytest.approx(0.5)
    with pytest.raises(SettingsError, match="lower is better, so only a rise"):
        parse_regression("hallucinated drop 0.1", "here", REGISTRY, 5)


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("answerable=True", "answerable is 'True', expected true or false"),
        ("gold=nonne", "gold is 'nonne', expected anchors or ids or none"),
        ("category=multi_hop,", "category is '', expected something"),
    ],
)
def test_a_condition_that_nothing_could_meet_is_refused(when: str, problem: str):
    with pytest.raises(SettingsError, match=problem):
        parse_gate(f"mrr >= 0.5 when {when}", "here")


def judged_trial(score: float | None, *, heuristic: bool) -> GatedTrial:
    judged = Judgement("groundedness", {"groundedness": score or 0.0}, scale=(0, 5), heuristic=heuristic)
    obs = observe(EvalCase("q", "Why?"), Answer("text"), judgements={} if score is None else {"groundedness": judged})
    return GatedTrial(obs, {} if score is None else {"groundedness": score})


def default_gate(name: str):
    return next(gate for gate in (resolve(one, REGISTRY, 5) for one in default_gates(REGISTRY)) if gate.name == name)


@pytest.mark.parametrize("order", [(None, 1.0), (1.0, None)])
def test_a_heuristics_score_gates_in_no_order_of_trials(order: tuple[float | None, ...]):
    trials = [judged_trial(score, heuristic=True) for score in order]
    assert gate_verdict([default_gate("groundedness")], trials).failed == ()


def test_a_gate_is_held_against_the_mean_of_the_trials_in_which_it_looks():
    gate = default_gate("groundedness")
    trials = [
        judged_trial(4.0, heuristic=False),
        judged_trial(None, heuristic=False),
        judged_trial(2.0, heuristic=False),
    ]
    assert [failed.value for failed in gate_verdict([gate], trials).failed] == [3.0]
    # A trial that only a heuristic judged is no part of the mean.
    trials = [judged_trial(4.0, heuristic=False), judged_trial(0.0, heuristic=True)]
    assert gate_verdict([gate], trials) == (1, (), (), False, False, False)


def test_gold_is_unexamined_where_no_gate_that_is_meant_for_it_could_look():
    gates = [a_gate("recall_any >= 1 when gold=anchors"), a_gate("token_f1 >= 0.5"), a_gate("groundedness >= 3")]
    obs = observe(EvalCase("q", "Why?", gold=Gold(supports=(Anchor("a.md"),))), Answer("text"))
    grounded = gate_verdict(gates, [GatedTrial(obs, {"groundedness": 4.0}, ["recall_any@5"])])
    assert grounded.unexamined == ("recall_any@5",)
    assert not grounded.is_gold_examined
    compared = gate_verdict(gates, [GatedTrial(obs, {"token_f1": 1.0}, ["recall_any@5"])])
    assert (compared.unexamined, compared.is_gold_examined) == (("recall_any@5",), True)
    measured = CaseResult(obs.case, "passed", scores={"token_f1": 1.0})
    assert ending_by_gates(measured, compared, [measured]) == ("passed", None)
    ids = observe(EvalCase("q", "Why?", gold=Gold(chunk_ids=("a",))), Answer("text"))
    assert gate_verdict(gates, [GatedTrial(ids, {}, ["recall_any@5"])]).unexamined == ()


def test_where_the_graph_is_gated_recall_of_ids_is_not():
    gates = [default_gate("context_recall@5"), default_gate("hits@5")]
    graph = observe(EvalCase("q", "Why?", requires_kg=True, gold=Gold(chunk_ids=("a",))), Answer("text"))
    plain = observe(EvalCase("q", "Why?", gold=Gold(chunk_ids=("a",))), Answer("text"))
    both = {"context_recall@5": 0.0, "hits@5": 1.0}
    assert gate_verdict(gates, [GatedTrial(graph, both)]).failed == ()
    assert len(gate_verdict(gates, [GatedTrial(graph, {"context_recall@5": 0.0})]).failed) == 1
    assert len(gate_verdict(gates, [GatedTrial(plain, both)]).failed) == 1


def a_case(category: str | None = None) -> EvalCase:
    return EvalCase("q1", "Why?", category=category)


CONDITIONAL = ("mrr >= 0.5", "recall_any@5 >= 1 when category=multi_hop")


def test_a_condition_that_a_case_does_not_meet_leaves_the_gate_out():
    effect = GatesInEffect(map(a_gate, CONDITIONAL), 5)
    assert [*effect.of(a_case("multi_hop"), "none").words] == ["mrr >= 0.5", "recall_any@k >= 1"]
    assert [*effect.of(a_case("factual"), "none").words] == ["mrr >= 0.5"]


def test_cases_that_meet_other_conditions_have_another_hash_whoever_came_first():
    effect = GatesInEffect(map(a_gate, CONDITIONAL), 5)
    hashes = [effect.of(a_case(category), "none").hash for category in ("multi_hop", "factual", None, "multi_hop")]
    assert (hashes[0] == hashes[3], hashes[1] == hashes[2], hashes[0] != hashes[1]) == (True, True, True)


def test_the_hash_is_that_of_the_sorted_lines_in_any_order_of_the_gates():
    # printf 'mrr >= 0.5\nrecall_any@k >= 1' | sha256sum
    expected = "a824a50074c615f9f76144a31e4db7df3dc599e64606e219c6382e6d569a1ff0"
    for gates in (CONDITIONAL, CONDITIONAL[::-1]):
        assert GatesInEffect(map(a_gate, gates), 5).of(a_case("multi_hop"), "none").hash == expected


@pytest.mark.parametrize(("k", "name"), [(5, "recall_any@k"), (10, "recall_any@5")])
def test_the_configured_cut_off_has_the_same_words_whatever_it_is(k: int, name: str):
    effect = GatesInEffect([a_gate("recall_any@5 >= 1")], k)
    assert [*effect.of(a_case(), "none").words] == [f"{name} >= 1"]


def test_cases_with_the_same_labels_have_the_same_gates_which_ask_for_nothing_more():
    effect = GatesInEffect(map(a_gate, CONDITIONAL), 5)
    gates = effect.of(a_case("multi_hop"), "none").gates
    assert [(str(gate), gate.when) for gate in gates] == [("mrr >= 0.5", ()), ("recall_any@5 >= 1", ())]
    assert effect.of(a_case("multi_hop"), "ids").gates is gates
    assert [str(gate) for gate in effect.of(a_case("factual"), "none").gates] == ["mrr >= 0.5"]


def test_an_off_for_all_and_a_limit_for_some_leave_the_limit():
    project = effective_gates([], [a_gate("mrr off"), a_gate("mrr >= 0.5 when category=multi_hop")], [])
    assert [(str(gate), gate.condition) for gate in project] == [("mrr >= 0.5", "category=multi_hop")]


def test_an_off_for_some_is_an_exception_from_a_limit_of_the_same_list():
    [gate] = effective_gates([], [a_gate("mrr >= 0.5"), a_gate("mrr off when category=multi_hop")], [])
    assert gate.unless == ((("category", ("multi_hop",)),),)
