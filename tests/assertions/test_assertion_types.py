"""Each type of assertion on answers for which it holds, for which it is broken, and for which it says nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from pytest_rageval.assertions.edit_distance import edit_distance
from pytest_rageval.assertions.patterns import LONGEST_SEARCHED, is_found, pattern_problem
from pytest_rageval.assertions.registry import TYPES
from pytest_rageval.errors import OddScoreError
from pytest_rageval.metrics.assertions import assertions, outcomes_of
from pytest_rageval.metrics.worked_examples import asserted
from pytest_rageval.model import Answer, NotApplicable, Observation, Reference, Timings

PRICE = "A return costs 4 euros. It takes a week."
JSON = '{"price": 4, "unit": "euro"}'
PRICED = {"type": "object", "required": ["price"], "properties": {"price": {"type": "number", "minimum": 1}}}

HOLDS: list[tuple[str, Any, str]] = [
    ("contains", "4 euros", PRICE),
    ("contains", 4, PRICE),
    ("contains", "cafe\u0301", "un café"),
    ("icontains", "4 EUROS", PRICE),
    ("icontains", "STRASSE", "Die Straße"),
    ("contains-any", ["5", "4"], PRICE),
    ("contains-all", ["return", "week"], PRICE),
    ("icontains-any", ["MONTH", "WEEK"], PRICE),
    ("icontains-all", ["RETURN", "Week"], PRICE),
    ("equals", "yes", " yes\n"),
    ("equals", 4, "4"),
    ("equals", {"unit": "euro", "price": 4.0}, JSON),
    ("starts-with", "A return", "\n A return costs"),
    ("regex", r"\b\d+ euros?\b", PRICE),
    ("regex", r"(?i)WEEK\.$", PRICE),
    ("is-json", None, JSON),
    ("is-json", PRICED, JSON),
    ("contains-json", PRICED, f"Here it is [1]: {JSON}. Anything else?"),
    ("contains-json", PRICED, f'{{"none": 1}} and {JSON}'),
    ("word-count", 9, PRICE),
    ("word-count", {"min": 5, "max": 9}, PRICE),
    ("word-count", {"max": 9}, PRICE),
    ("levenshtein", "A return costs 5 euros. It takes a weak.", PRICE),
    ("is-refusal", None, "I'm sorry, but the documents do not contain this information."),
    ("language", "en", "You can return it within 30 days, and it is free."),
    ("language", "German", "Die Rückgabe ist kostenlos und dauert nicht lange für die Kunden."),
    ("language", "ko-KR", "반품 비용은 4유로입니다."),
]
BROKEN: list[tuple[str, Any, str, str]] = [
    ("contains", "4 Euros", PRICE, "'4 Euros' is not in the answer"),
    ("icontains", "5 euros", PRICE, "'5 euros' is not in the answer"),
    ("contains-any", ["5", "6"], PRICE, "none of them"),
    ("contains-all", ["return", "month"], PRICE, "'month' is not in the answer"),
    ("equals", "yes", "yes, sure", 'the answer is "yes, sure"'),
    ("equals", {"a": 1}, '{"a": true}', 'the answer is {"a": true}'),
    ("equals", [1], "[1, 2]", "the answer is [1, 2]"),
    ("equals", {"a": 1}, "no", "is not JSON"),
    ("starts-with", "return", PRICE, "it starts"),
    ("regex", r"\d{3}", PRICE, "does not match"),
    ("is-json", None, f"```json\n{JSON}\n```", "is not JSON"),
    ("is-json", None, '{"a": NaN}', "is not JSON"),
    ("is-json", PRICED, '{"price": 0}', "price: 0 is less than the minimum of 1"),
    ("is-json", PRICED, "{}", "'price' is a required property"),
    ("contains-json", None, "See [1] and [2, 3].", "no JSON is in the answer"),
    ("contains-json", PRICED, '{"price": "4"}', "price: '4' is not of type 'number'"),
    ("word-count", {"max": 8}, PRICE, "the answer has 9 words"),
    ("word-count", 1, "", "the answer has 0 words"),
    ("levenshtein", "Returns are free.", PRICE, "more than 5 edits"),
    ("is-refusal", None, PRICE, "the system answered"),
    ("language", "de", "You can return it within 30 days, and it is free.", "the answer is in English"),
    ("language", "en", "Возврат стоит четыре евро.", "Cyrillic"),
]


def written(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind} if value is None else {"type": kind, "value": value}


def outcome(text: str, *assertions_: dict[str, Any], **changed: Any) -> tuple[bool | None, str]:
    obs = asserted(text, *assertions_)
    (first, *_) = outcomes_of(replace(obs, **changed))
    return first.holds, first.received


@pytest.mark.parametrize(("kind", "value", "text"), HOLDS)
def test_it_holds_and_its_negation_is_broken(kind: str, value: Any, text: str):
    assert outcome(text, written(kind, value))[0] is True
    assert outcome(text, written(f"not-{kind}", value))[0] is False


@pytest.mark.parametrize(("kind", "value", "text", "received"), BROKEN)
def test_it_is_broken_and_says_what_was_received(kind: str, value: Any, text: str, received: str):
    holds, said = outcome(text, written(kind, value))
    assert holds is False
    assert received in said
    assert outcome(text, written(f"not-{kind}", value))[0] is True


def test_every_type_has_an_example_here():
    judged_or_measured = {"cites", "latency", "cost", "llm-rubric", "similar"}
    assert {kind for kind, *_ in HOLDS} | judged_or_measured == set(TYPES)


@pytest.mark.parametrize(
    "cites", ["returns.md", "docs/returns.md", "docs/returns.md > Jeju", "c7", "D1"]
)  # the end of a path, a path, a heading, a chunk id, a document id
def test_a_cited_place_is_found_by_any_of_its_names(cites: str):
    reference = Reference("c7", "docs/returns.md", "# Prices > ## Jeju", "D1")
    named = reference if ">" not in cites else replace(reference, heading_path="# Jeju > ## Post")
    answer = Answer(PRICE, references=(Reference(rel_path="docs/other.md"), named))
    assert outcome(PRICE, {"cites": cites}, answer=answer)[0] is True


@pytest.mark.parametrize("cites", ["turns.md", "docs", "returns.md > Mainland", "c"])
def test_a_part_of_a_name_is_no_citation(cites: str):
    answer = Answer(PRICE, references=(Reference("c7", "docs/returns.md", "# Jeju"),))
    assert outcome(PRICE, {"cites": cites}, answer=answer) == (False, "the answer cites 'docs/returns.md > # Jeju'")


def test_figures_that_are_not_known_are_not_applicable_and_never_zero():
    for assertion in ({"latency": 10}, {"cost": 0.01}, {"cites": "a.md"}, {"llm-rubric": "polite"}, {"similar": "x"}):
        negated = {f"not-{name}": value for name, value in assertion.items()}
        for each in (assertion, negated):
            assert outcome(PRICE, each)[0] is None, each
            assert isinstance(score_of(asserted(PRICE, each)), NotApplicable)


def test_time_and_cost_are_held_against_what_was_recorded():
    timings = Timings(queue_ms=9_000, ask_ms=300.4, retry_wait_ms=9_000)
    answer = Answer(PRICE, usage={"cost_usd": 0.002})
    assert outcome(PRICE, {"latency": 301}, timings=timings)[0] is True
    assert outcome(PRICE, {"latency": 300}, timings=timings) == (False, "the answer took 300 ms")
    assert outcome(PRICE, {"latency": 300}, answer=Answer(PRICE, latency={"total_ms": 200}))[0] is True
    assert outcome(PRICE, {"type": "cost", "threshold": 0.002}, answer=answer)[0] is True
    assert outcome(PRICE, {"cost": 0.001}, answer=answer) == (False, "the answer cost 0.002 USD")
    assert outcome(PRICE, {"cost": 0.001}, answer=Answer(PRICE, usage={"cost_usd": True}))[0] is None


def test_short_answers_have_no_language_that_could_be_told():
    assert outcome("OK, 4.", {"language": "en"})[0] is None


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("no", "Det koster fire euro, og det er ikke dyrt."),
        ("da", "Det koster fire euro, og det er ikke dyrt for en creme."),
        ("ca", "La crema no porta perfum i es ven en tots els mercats."),
        ("ja", "東京都千代田区丸の内"),
        ("ko", "The Art of the Balm and the Cream은 16,000원이고 제주 매장에서 살 수 있습니다."),
        ("en", "Москва (Moscow), Санкт-Петербург (Saint Petersburg)."),
        ("en", "4,00 €."),
    ],
)
def test_a_language_that_is_not_decided_is_not_applicable_and_not_its_negation_either(code: str, text: str):
    for name in ("language", "not-language"):
        holds, received = outcome(text, {name: code})
        assert holds is None
        assert "may be in" in received or "too short or too mixed" in received


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "no",
            "Prisen er 4 euro, og leveringen tager en uge, men den er gratis efter 30 dage, og den er uden gebyr.",
        ),
        ("en", "Prisen er 4 euro, og leveringen tager en uge."),
        ("ja", "退货费用为四欧元，客户需要在三十天之内寄回商品。"),
        ("zh", "返品は4ユーロで、一週間かかります。"),
        ("ko", "The return costs 4 euros and it takes a week."),
        ("de", "Возврат стоит четыре евро, доставка занимает неделю."),
    ],
)
def test_a_language_that_is_clearly_another_one_is_broken(code: str, text: str):
    assert outcome(text, {"language": code})[0] is False


@pytest.mark.parametrize(
    ("group", "holds"),
    [
        ({"any": [{"contains": "x"}, {"contains": "4"}]}, True),
        ({"any": [{"contains": "x"}, {"contains": "y"}]}, False),
        ({"any": [{"contains": "x"}, {"latency": 1}]}, None),
        ({"any": [{"contains": "4"}, {"latency": 1}]}, True),
        ({"all": [{"contains": "4"}, {"contains": "week"}]}, True),
        ({"all": [{"contains": "4"}, {"contains": "x"}]}, False),
        ({"all": [{"contains": "x"}, {"latency": 1}]}, False),
        ({"all": [{"contains": "4"}, {"latency": 1}]}, None),
    ],
)
def test_groups_hold_by_any_or_all_of_their_members(group: dict[str, Any], holds: bool | None):
    assert outcome(PRICE, group)[0] is holds


def score_of(obs: Observation) -> Any:
    assert assertions.function is not None
    return assertions.function(obs)


def test_the_metric_is_the_share_of_the_applicable_ones_and_names_the_others():
    score = score_of(asserted(PRICE, {"contains": "4"}, {"contains": "x"}, {"latency": 1}))
    assert score.value == 0.5
    assert [line.partition(":")[0] for line in score.detail["broken"]] == ["contains 'x'"]
    assert score.detail["not_checked"] == [
        "latency 1: no call was timed: the answer is a recorded one, and its record states no latency"
    ]


def test_a_refusal_that_quotes_the_forbidden_word_is_noted():
    refusal = "I'm sorry, but I cannot tell you the password."
    assert "declines" in score_of(asserted(refusal, {"not-icontains": "password"})).detail["note"]
    assert "note" not in score_of(asserted("The password is x.", {"not-icontains": "password"})).detail


# ── hostile values ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pattern", [r"(a|a)*b", r"(a+)+$", r"(.*)*x", r"^(\w+\s?)*$", r"(a{1,11}){1,11}b"])
def test_a_pattern_that_hangs_other_engines_is_quick(pattern: str):
    assert pattern_problem(pattern) is None
    began = time.perf_counter()
    is_found(pattern, "a" * 30 + "a!" * 20_000)  # nearly as long as a text may be
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("pattern", ["(((a{99}){99}){99})b", "a{999999999}", "(?=x)", r"(a)\1", "(", "x" * 1_001])
def test_a_pattern_beyond_all_bounds_is_refused(pattern: str):
    began = time.perf_counter()
    assert pattern_problem(pattern)
    assert time.perf_counter() - began < 1


def test_half_a_character_is_searched_like_any_text():
    assert is_found("a", "\ud800a")


def test_a_text_that_is_too_long_is_an_error_and_no_verdict():
    for kind in ("regex", "not-regex"):
        with pytest.raises(OddScoreError, match="is not searched by a pattern"):
            outcome("a" * (LONGEST_SEARCHED + 1), {kind: "a$"})


DOUBLING = {
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": True},
    "$ref": "#/$defs/d0",
}


@pytest.mark.parametrize(
    ("schema", "text", "received"),
    [
        ({"pattern": "(a+)+$"}, f'"{"a" * 40}!"', "does not match"),
        ({"patternProperties": {"^(a+)+$": False}, "additionalProperties": False}, f'{{"{"a" * 40}!": 1}}', "allowed"),
        ({"uniqueItems": True}, str([{}] * 9_000), "equal members"),
        ({"multipleOf": 1e-300}, "1e300", "not a multiple"),
    ],
)
def test_a_schema_neither_hangs_nor_raises(schema: Any, text: str, received: str):
    began = time.perf_counter()
    holds, said = outcome(text, written("is-json", schema))
    assert (holds, received in said) == (False, True), said
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("schema", "why"), [(DOUBLING, "takes more than 1 s"), ({"allOf": [{"$ref": "#"}]}, "cannot be followed")]
)
@pytest.mark.parametrize("kind", ["is-json", "not-is-json"])
def test_a_schema_that_cannot_be_followed_is_an_error_and_no_verdict(kind: str, schema: Any, why: str):
    with pytest.raises(OddScoreError, match=why):
        outcome("1", written(kind, schema))


def test_nested_json_without_end_is_not_followed():
    for text in ("[" * 100_000, '{"a":' * 100_000, "{" * 100_000, '{"a": "' * 20_000):
        began = time.perf_counter()
        assert outcome(text, {"contains-json": True})[0] is False
        assert time.perf_counter() - began < 5


def test_edits_are_counted_up_to_their_limit():
    assert [edit_distance("kitten", "sitting", most) for most in (2, 3, 9)] == [None, 3, 3]
    assert (edit_distance("", "abc", 3), edit_distance("abc", "", 2), edit_distance("a", "a", 0)) == (3, None, 0)
    began = time.perf_counter()
    edit_distance("ab" * 10_000, "ba" * 10_000, 200)
    assert time.perf_counter() - began < 20
