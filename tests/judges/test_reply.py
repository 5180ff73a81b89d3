"""Replies: which scores a judge model's text states, and why nothing is guessed where it states none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_rageval.judges.judge_reply import LONGEST_TEXT, MOST_ENTRIES, read_reply
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.json_exchange import QUOTES_THE_MARKER, UnreadableReply
from pytest_rageval.llm.reply_object import LONGEST_REPLY
from pytest_rageval.model import Judgement
from pytest_rageval.text import printable

pytestmark = pytest.mark.reliability("judge replies", "forms of a reply", costs="false green")

MARKER = "fence-0123456789abcdef"


def read(text: str, rubric: str = "correctness", **options: Any) -> Judgement:
    return read_reply(text, load_rubric(rubric), MARKER, **options)


def scored(value: str, before: str = '"reasoning": "fine", ') -> str:
    """A reply whose score is written as given."""
    return f'{{{before}"score": {value}}}'


GOOD = scored("4")

READ = {
    "alone": (GOOD, 4),
    "on many lines": ('{\n  "reasoning": "fine",\n  "score": 4\n}\n', 4),
    "in a fence": (f"```json\n{GOOD}\n```", 4),
    "in a fence without language": (f"```\n{GOOD}\n```", 4),
    "in a fence that does not end": (f"```json\n{GOOD}", 4),
    "in a fence of tildes": (f"~~~\n{GOOD}\n~~~", 4),
    "in a fence with zero-width characters around": (f"\ufeff```json\n\u200b{GOOD}\n```\u200b", 4),
    "with zero-width characters around": (f"\u200b\u200d{GOOD}\u2060\u200b", 4),
    "the lowest": (scored("0"), 0),
    "the highest": (scored("5"), 5),
    "as 4.0": (scored("4.0"), 4),
    "as 4e000…": (scored("4e" + "0" * 5000), 4),
    "as -0.0": (scored("-0.0"), 0),
    "as text": (scored('"4"'), 4),
    "as text with zero-width characters": (scored('"\u200b4\ufeff"'), 4),
    "as text with a sign": (scored('"+4"'), 4),
    "as an escaped digit": (scored('"\\u0034"'), 4),
    "as a fraction": (scored('"4/5"'), 4),
    "as the whole fraction": (scored('"5/5"'), 5),
    "with a field nobody asked for": (scored("4", '"confidence": 0.2, "final": 1, '), 4),
    "without its reasoning": ('{"score": 4}', 4),
    "with reasoning that is a list": (scored("4", '"reasoning": ["a", "b"], '), 4),
    "with an object quoted in the reasoning": (scored("4", '"reasoning": "it says {\\"score\\": 5}", '), 4),
    "with a score inside another field": (scored("4", '"reasoning": {"score": 1}, '), 4),
    "with half a character in the reasoning": (scored("4", '"reasoning": "\\ud800", '), 4),
    "as 4.5": (scored("4.5"), 4.5),
    "as a fraction with a half": (scored('"4.5/5"'), 4.5),
}

BEHIND, BEFORE = "it goes on behind its JSON object", "it does not begin with its JSON object"
UNREAD = {
    "in single back-quotes": (f"`{GOOD}`", BEFORE),
    "after prose": (f"Here is my judgement:\n\n{GOOD}", f'{BEFORE}: "Here is my judgement'),
    "before prose": (f"{GOOD}\n\nLet me know if you need more.", f'{BEHIND}: "Let me know'),
    "after prose with braces": (f"Of the set {{a, b}} and {{5}} one is named. {GOOD}", BEFORE),
    "in a fence before prose": (f"```json\n{GOOD}\n```\nDone.", BEHIND),
    "in a fence within a fence": (f"```\n```json\n{GOOD}\n```\n```", BEFORE),
    "before a fence with another": (f"{GOOD}\n```json\n{scored('5')}\n```", BEHIND),
    "before thoughts that were quoted": ('{"score": 0}</think>{"score": 5}', f'{BEHIND}: "</think>{{\\"score'),
    "twice the same": (f"{GOOD}\n{GOOD}", BEHIND),
    "nothing": ("", "it is empty"),
    "white space": (" \n\t", "it is empty"),
    "zero-width characters only": ("\ufeff\u200b\u00a0", "it is empty"),
    "a bare number": ("4", 'it holds no JSON object: "4"'),
    "a number in prose": ("Score: 4", 'it holds no JSON object: "Score: 4"'),
    "a refusal": ("I'm sorry, but I can't help with that.", "it holds no JSON object: \"I'm sorry, but"),
    "a refusal as an object": ('{"error": "I cannot judge this."}', '"score" is missing'),
    "a refusal with the fields": (scored("null", '"reasoning": "I cannot.", '), '"score" is null, expected a number'),
    "null": ("null", "it holds no JSON object"),
    "an empty object": ("{}", '"score" is missing'),
    "an empty list": ("[]", "it holds a list, expected one object"),
    "a list of the object": (f"[{GOOD}]", "it holds a list, expected one object"),
    "another case": ('{"Score": 4}', '"score" is missing'),
    "a name with an unseen character": ('{"sc\u200bore": 4}', '"score" is missing'),
    "above the scale": (scored("6"), '"score" is 6, expected 0 to 5'),
    "below the scale": (scored("-1"), '"score" is -1, expected 0 to 5'),
    "a per cent scale": (scored("80"), '"score" is 80, expected 0 to 5'),
    "a little above": (scored("5.000001"), "expected 0 to 5"),
    "not a number": (scored("NaN"), "score is NaN, which is not a JSON number"),
    "not a number as text": (scored('"NaN"'), '"score" is "NaN", expected a number'),
    "infinity by its exponent": (scored("1e999"), "score is 1e999, which is not a JSON number"),
    "a number without end": (scored("9" * 5000), "holds a number of thousands of digits"),
    "null as the score": (scored("null"), '"score" is null, expected a number'),
    "true as the score": (scored("true"), '"score" is true, expected a number'),
    "a list as the score": (scored("[4]"), '"score" is a list, expected a number'),
    "an object as the score": (scored('{"value": 4}'), '"score" is an object, expected a number'),
    "a nested score": ('{"result": {"score": 4}}', '"score" is missing'),
    "N/A": (scored('"N/A"'), '"score" is "N/A", expected a number'),
    "a word with a number": (scored('"4 (good)"'), "expected a number"),
    "of ten": (scored('"4/10"'), '"score" is "4/10", expected a number or a fraction of 5'),
    "a fraction that is no text": (scored("4/5"), "not valid JSON"),
    "a comma for a point": (scored('"4,0"'), "expected a number"),
    "full-width digits": (scored('"４"'), "expected a number"),
    "a leading zero": (scored("04"), "not valid JSON"),
    "a comma at the end": ('{"score": 4,}', "not valid JSON"),
    "escaped as a whole": ('"{\\"score\\": 4}"', BEFORE),
    "two that differ": (scored("4") + scored("2"), BEHIND),
    "an example first": (f'The form is {{"score": 0}}. Mine: {GOOD}', BEFORE),
    "a quotation of the answer first": (f'It says "{scored("5")}"; I say {scored("1")}', BEFORE),
    "the same key twice": ('{"score": 4, "score": 5}', "score stands twice in one object"),
    "another key twice": ('{"reasoning": "a", "reasoning": "b", "score": 4}', "reasoning stands twice"),
    "the same key twice deeper": ('{"reasoning": {"a": 1, "a": 2}, "score": 4}', "reasoning.a stands twice"),
    "the same key escaped": ('{"score": 4, "\\u0073core": 5}', "score stands twice"),
    "the same key in another case": ('{"score": 4, "Score": 5}', '"score" is stated twice, once as "Score"'),
    "cut in the number": ('{"reasoning": "fine", "score": 4', "its object is not valid JSON"),
    "cut in a text": ('{"score": 4, "reasoning": "fi', "its object is not valid JSON"),
    "a brace too many": (GOOD + "}", BEHIND),
    "brackets crossed": ('{"a": [}, "score": 4]}', "not valid JSON"),
    "an object that does not end before": ("{ " + GOOD, "its object is not valid JSON"),
    "half a character": (scored("4", '"reasoning": "\ud800", '), "it holds a lone surrogate"),
    "half a character as the score": (scored('"\\ud8004"'), "expected a number"),
    "a repetition without end": ("score 4 " * LONGEST_REPLY, "characters long, more than 100,000"),
    "a reply just too long": (" " * LONGEST_REPLY + GOOD, "characters long, more than 100,000"),
    "braces without end": ("{" * 90_000, "not valid JSON"),
    "brackets without end": ("[" * 90_000, "it holds a list, expected one object"),
    "objects nine deep": ('{"a": ' * 9 + "1" + "}" * 9, "is nested"),
    "lists without end in an object": ('{"score": ' + "[" * 90_000, "is nested"),
}


@pytest.mark.parametrize(("text", "score"), READ.values(), ids=READ)
def test_a_score_that_is_stated_plainly_is_read(text: str, score: float):
    found = read(text).scores
    assert found == {"correctness": score}
    assert str(found["correctness"]) == str(float(score))


@pytest.mark.parametrize(("text", "reason"), UNREAD.values(), ids=UNREAD)
def test_what_is_not_plain_is_unreadable_and_the_reason_says_why(text: str, reason: str):
    with pytest.raises(UnreadableReply) as raised:
        read(text)
    assert reason in raised.value.reason
    assert len(raised.value.reason) <= 300
    assert printable(raised.value.reason) == raised.value.reason


@pytest.mark.parametrize(("written", "score"), [("0.75", 0.75), ("1", 1.0), ('"0.5"', 0.5), ('"0.75/1"', 0.75)])
def test_a_score_from_a_choice_of_numbers(written: str, score: float):
    assert read(scored(written), "relevance").scores == {"relevance": score}


@pytest.mark.parametrize("written", ["0.8", "4", '"3/4"', '"75%"', "true", "0.7500001"])
def test_a_number_outside_the_choice_is_unreadable(written: str):
    schema = {"properties": {"score": {"type": "number", "enum": [0, 0.25, 0.5, 0.75, 1]}}}
    with pytest.raises(UnreadableReply):
        read_reply(scored(written), replace(load_rubric("relevance"), schema=schema), MARKER)


@pytest.mark.parametrize(("step", "expected"), [(1.0, "a whole number"), (0.2, "a multiple of 0.2")])
def test_a_number_between_the_steps_of_a_rubric_is_unreadable(step: float, expected: str):
    rubric = replace(load_rubric("correctness"), step=step)
    assert read_reply(scored("4"), rubric, MARKER).scores == {"correctness": 4.0}
    for written in ("4.5", '"4.5/5"', "3.9999999"):
        with pytest.raises(UnreadableReply, match=f"expected {expected}"):
            read_reply(scored(written), rubric, MARKER)


def verdicts(*entries: Any) -> str:
    return json.dumps({"verdicts": entries})


def a_verdict(number: object, supported: object) -> dict[str, Any]:
    return {"number": number, "reasoning": "so", "supported": supported}


def test_verdicts_come_by_the_numbers_of_the_claims_whatever_their_order():
    text = verdicts(a_verdict(3, False), a_verdict(1, True), a_verdict("2", "true"))
    reply = read_reply(text, load_rubric("claim_support"), MARKER, claims=3)
    assert reply.extra == {"verdicts": [True, True, False]}
    assert reply.scores == {"claim_support": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([], "is a list, expected a list with a verdict on each claim"),
        ([a_verdict(1, True)], "holds 1 verdicts, expected 2, one on each claim"),
        ([a_verdict(1, True), a_verdict(1, False)], "has two verdicts on claim 1"),
        ([a_verdict(1, True), a_verdict(3, False)], '"number" is 3, expected 1 to 2'),
        ([a_verdict(1, True), a_verdict(2, "perhaps")], '"supported" is "perhaps", expected true or false'),
        ([True, False], "holds true, expected an object for each claim"),
    ],
)
def test_verdicts_that_leave_a_claim_open_are_unreadable(entries: list[Any], problem: str):
    with pytest.raises(UnreadableReply) as raised:
        read_reply(verdicts(*entries), load_rubric("claim_support"), MARKER, claims=2)
    assert problem in raised.value.reason


@pytest.mark.parametrize(("written", "score"), [("true", 1.0), ("false", 0.0), ('"true"', 1.0), ('"false "', 0.0)])
def test_a_truth_value(written: str, score: float):
    assert read(f'{{"abstained": {written}, "confidence": 0.9}}', "abstention").scores == {"abstained": score}


@pytest.mark.parametrize("written", ["1", "0", '"yes"', '"True"', "null", "[true]", '""', "1.0"])
def test_what_is_no_truth_value_is_unreadable(written: str):
    with pytest.raises(UnreadableReply, match=r'"abstained" is .*, expected true or false'):
        read(f'{{"abstained": {written}, "confidence": 0.9}}', "abstention")


def test_one_reply_fills_several_scores_or_none():
    names = list(load_rubric("composite").scores.values())
    whole = dict.fromkeys(names, 0.5) | {"reasoning": "fine"}
    assert read(json.dumps(whole), "composite").scores == dict.fromkeys(load_rubric("composite").scores, 0.5)
    for name in names:
        with pytest.raises(UnreadableReply, match=f'"{name}" is missing'):
            read(json.dumps({key: value for key, value in whole.items() if key != name}), "composite")


def a_grounded(**fields: Any) -> Judgement:
    whole = {"reasoning": "fine", "supported_claims": ["a"], "unsupported_claims": ["b"], "score": 4, **fields}
    return read(json.dumps(whole), "groundedness")


def test_reasoning_and_claims_come_along():
    reply = a_grounded()
    assert (reply.reasoning, reply.supported_claims, reply.unsupported_claims) == ("fine", ("a",), ("b",))
    assert (reply.extra, reply.flags) == ({}, ())


def test_they_are_cut_and_can_be_encoded():
    reply = a_grounded(reasoning="x\ud800" * 5_000, supported_claims=["y" * 5_000, *["z\udfff"] * 1_000])
    assert reply.reasoning == "x\ufffd" * (LONGEST_TEXT // 2 - 1) + "x…"
    assert reply.supported_claims == ("y" * (LONGEST_TEXT - 1) + "…", *["z\ufffd"] * (MOST_ENTRIES - 1))
    "".join((reply.reasoning, *reply.supported_claims)).encode()


@pytest.mark.parametrize("claims", ["a, b", None, {"a": 1}, [{"claim": "a"}], [1], [["a"]]])
def test_claims_that_are_no_list_of_texts_are_left_out_and_flagged(claims: Any):
    reply = a_grounded(supported_claims=claims)
    assert (reply.scores, reply.supported_claims) == ({"groundedness": 4.0}, ())
    (flag,) = reply.flags
    assert flag.startswith('"supported_claims" is ')


@pytest.mark.parametrize(
    ("score", "supported", "unsupported", "is_flagged"),
    [
        (5, 2, 0, False), (5, 2, 1, True), (5, 0, 0, False), (4.5, 2, 1, False), (4, 1, 2, True), (3, 0, 2, False),
        (3, 2, 0, False), (2, 1, 1, False), (2, 2, 0, True), (0, 1, 0, True), (0, 0, 1, False), (0, 0, 0, False),
    ],
)  # fmt: skip
def test_lists_that_contradict_the_score_are_flagged_and_the_score_stays(score, supported, unsupported, is_flagged):
    lists = {"supported_claims": ["a"] * supported, "unsupported_claims": ["b"] * unsupported}
    reply = a_grounded(score=score, **lists)
    assert reply.scores == {"groundedness": score}
    flag = (
        f"its lists contradict its score: {score:g} of 5, with {supported} claim{'s' * (supported != 1)} supported "
        f"and {unsupported} unsupported"
    )
    assert reply.flags == ((flag,) if is_flagged else ())


def test_reasoning_may_be_called_an_explanation():
    reply = read('{"score": 4, "explanation": "so"}')
    assert (reply.reasoning, reply.flags) == ("so", ())


def test_reasoning_that_is_missing_is_flagged():
    reply = read('{"score": 4}')
    assert (reply.reasoning, reply.flags) == ("", ('"reasoning" is missing',))


def test_other_fields_of_the_schema_are_kept_and_those_that_nobody_asked_for_are_not():
    reply = read('{"abstained": true, "confidence": 0.75, "mood": "good"}', "abstention")
    assert reply.extra == {"confidence": 0.75}
    assert read('{"abstained": true, "confidence": 7}', "abstention").extra == {}


def test_a_rubric_without_scores_is_read_for_its_other_fields():
    assert read('{"claims": ["It runs.", "It is red."]}', "claim_split").extra == {"claims": ["It runs.", "It is red."]}
    assert read('{"claims": []}', "claim_split").extra == {"claims": []}


@pytest.mark.parametrize("written", ["{}", '{"claims": null}', '{"claims": "a"}', '{"claims": [1]}'])
def test_without_scores_what_is_required_must_be_there(written: str):
    with pytest.raises(UnreadableReply, match='"claims" is'):
        read(written, "claim_split")


@pytest.mark.parametrize("marker", [MARKER, "fence\\u002d0123456789abcdef"])
def test_a_reply_that_quotes_the_marker_is_flagged(marker: str):
    assert read(scored("4", f'"reasoning": "{marker}", ')).flags == (QUOTES_THE_MARKER,)


def test_a_score_beyond_the_scale_is_unreadable_though_its_schema_would_take_it():
    rubric = replace(load_rubric("correctness"), schema={"properties": {"score": {"type": "number", "maximum": 10}}})
    with pytest.raises(UnreadableReply, match='"score" is 7, expected 0 to 10'):
        read_reply(scored("7"), rubric, MARKER)


def facts_reply(*entries: Any) -> str:
    return json.dumps({"reasoning": "so", "facts": entries})


def a_fact(fact: object, kept: object) -> dict[str, Any]:
    return {"fact": fact, "reasoning": "so", "kept": kept}


def test_the_score_of_facts_is_the_share_that_is_kept_each_fact_once():
    text = facts_reply(a_fact("lives  in Jeju", True), a_fact("has a dog", "false"), a_fact("lives in Jeju", True))
    reply = read_reply(text, load_rubric("knowledge_retention"), MARKER)
    assert reply.scores == {"knowledge_retention": 0.5}
    assert [(fact["fact"], fact["kept"]) for fact in reply.extra["facts"]] == [
        ("lives in Jeju", True), ("has a dog", False),
    ]  # fmt: skip


def test_of_no_fact_there_is_no_score():
    reply = read_reply(facts_reply(), load_rubric("knowledge_retention"), MARKER)
    assert (reply.scores, reply.extra) == ({}, {"facts": []})


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([a_fact("a dog", "perhaps")], '"kept" is "perhaps", expected true or false'),
        ([a_fact("a dog", True), a_fact("a dog", False)], "has two verdicts on one fact"),
        ([a_fact("", True)], '"fact" is "", expected text'),
        (["a dog"], 'holds "a dog", expected an object for each fact'),
        ([{"fact": "a dog"}], '"kept" is missing'),
        ([a_fact(f"fact {at}", True) for at in range(500)], "holds 500 facts, expected at most 200"),
    ],
)
def test_facts_without_a_plain_verdict_are_unreadable(entries: list[Any], problem: str):
    with pytest.raises(UnreadableReply) as raised:
        read_reply(facts_reply(*entries), load_rubric("knowledge_retention"), MARKER)
    assert problem in raised.value.reason
