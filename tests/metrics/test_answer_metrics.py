"""L5: answers against gold answers and key facts."""

from __future__ import annotations

import json

import pytest
from observations import DATA, answered, lines, score

from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER
from pytest_rageval.metrics.answer import NO_GOLD_ANSWER, NO_KEY_FACTS, best_f1, gold_answers


def says(text: str | None, *golds: str, **answer):
    return answered(text, answers=golds or None, **answer)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("The  Normans!", "normans"),
        ("“Paris”", "Paris"),
        ("ＬＧ전자", "LG전자"),
        ("「東京」です。", "東京です"),
        ("Straße", "STRASSE"),
        ("C.", "C"),
        ("A", "a."),
    ],
)
def test_answers_that_differ_in_typing_only_match(answer, gold):
    assert score("exact_match", says(answer, "something else", gold)) == 1


@pytest.mark.parametrize(
    ("answer", "gold"), [("3.5", "35"), ("-3", "3"), ("A", "the"), ("Paris, France", "Paris"), ("", "Paris")]
)
def test_answers_that_say_something_else_do_not_match(answer, gold):
    assert score("exact_match", says(answer, gold)) == 0


def test_token_f1_is_the_best_over_the_gold_answers():
    assert score("token_f1", says("the red car", "blue car", "a very red car")) == pytest.approx(2 * 2 / (2 + 3))


def test_token_f1_counts_repetitions():
    assert score("token_f1", says("Paris France Paris France", "Paris France")) == pytest.approx(2 * 2 / (4 + 2))


def test_hangul_is_compared_by_words_or_by_characters():
    obs = says("서울 사람", "서울 시민")
    assert score("token_f1", obs) == 0.5
    assert score("token_f1", obs, hangul="char") == pytest.approx(2 * 2 / (4 + 4))
    assert score("token_f1", says("LG", "L.A."), hangul="char") == pytest.approx(2 * 1 / (2 + 2))
    hanging = says("서울에서", "서울")
    assert score("token_f1", hanging) == 1
    assert score("token_f1", hanging, hangul="char") == pytest.approx(2 * 2 / (4 + 2))


def test_every_figure_of_the_official_korquad_script_is_met():
    figures = json.loads((DATA / "answers/korquad.json").read_text(encoding="utf-8"))
    for gold, answer, f1 in figures:
        scored = score("token_f1", says(answer, gold, abstained=False), hangul="char")
        assert scored == pytest.approx(f1, abs=1e-12), (gold, answer)
    assert len(figures) == 30


def test_a_hyphen_parts_words_but_not_for_the_squad_normaliser():
    obs = says("off-by-one", "Off by one")
    assert score("token_f1", obs) == score("exact_match", obs) == 1
    assert score("token_f1", obs, normalizer="squad") == score("exact_match", obs, normalizer="squad") == 0


@pytest.mark.parametrize(
    ("answer", "gold", "common", "tokens"),
    [
        ("시장점유율", "시장 점유율", 2, 4),
        ("시장 점유율", "시장점유율", 2, 4),
        ("한국 시장점유율", "한국시장 점유율", 3, 6),
        ("서울특별시", "서울", 1, 3),
        ("LG전자", "LG 전자", 2, 4),
        ("서울", "서산", 0, 2),
        ("대구", "대구시 대신동", 1, 4),
        ("서" * 60, "서서", 0, 2),  # no word is so long
    ],
)
def test_a_korean_compound_is_compared_in_the_parts_that_the_other_text_writes_apart(answer, gold, common, tokens):
    assert score("token_f1", says(answer, gold)) == pytest.approx(2 * common / tokens)


def test_words_of_other_scripts_are_never_parted():
    assert score("token_f1", says("database é", "data base é")) == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("110mW", "110 mW"), ("1,000 km", "1000km"), ("3.5 %", "3.5%"), ("15 개", "15개입니다"), ("−3 °C", "-3°C")],
)
def test_a_number_is_read_apart_from_its_unit(answer, gold):
    assert score("token_f1", says(answer, gold)) == 1


def test_an_unanswerable_case_with_a_gold_answer_is_compared_with_it():
    assert score("token_f1", says("It was in 2019", "was in 2019", answerable=False)) == pytest.approx(6 / 7)
    assert score("token_f1", says("It is 42", answerable=False)) == NO_GOLD_ANSWER.reason


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("서울", "서울"), ("Cafe\u0301", "Café"), ("ｋｍ／ｈ", "km/h"), ("👍🏽", "👍🏽"), ("“it’s”", '"it\'s"')],
)
def test_unicode_forms_of_the_same_answer_match(answer, gold):
    assert score("exact_match", says(answer, gold)) == 1
    assert score("token_f1", says(answer, gold)) == 1


def test_another_emoji_is_another_answer():
    assert score("exact_match", says("👍", "👎")) == 0


def test_scripts_without_spaces_are_compared_by_characters():
    assert score("token_f1", says("東京都", "東京")) == pytest.approx(0.8)
    assert score("token_f1", says("กรุงเทพ", "กรุงเทพ")) == 1


def test_every_figure_of_the_official_squad_script_is_met():
    systems = json.loads((DATA / "answers/expected.json").read_text(encoding="utf-8"))["systems"]
    cases = {case["id"]: case for case in lines("answers/cases.jsonl")}
    kinds = set()
    for output in lines("answers/system_outputs.jsonl"):
        case = cases[output["id"]]
        obs = answered(
            output["answer"],
            answerable=case["answerable"],
            abstained=output["abstained"],
            answers=tuple(case["expected_answers"]) or None,
        )
        exact, f1 = systems[output["system"]]["per_question"][output["id"]]
        assert score("exact_match", obs, normalizer="squad") == exact, output
        assert best_f1(output["answer"], gold_answers(obs, "squad"), "squad") == pytest.approx(f1, abs=1e-9), output
        scored = score("token_f1", obs, normalizer="squad")
        assert scored == (ABSTAINED.reason if output["abstained"] else pytest.approx(f1, abs=1e-9)), output
        kinds.add((output["system"], output.get("kind"), output["abstained"]))
    assert len(kinds) == 12


def test_the_squad_normaliser_lets_an_unanswerable_case_be_answered_by_nothing():
    assert score("exact_match", says("the", answerable=False), normalizer="squad") == 1
    assert score("exact_match", says("the", answerable=False)) == NO_GOLD_ANSWER.reason


def test_without_a_gold_answer_or_an_answer_there_is_no_score():
    for name in ("exact_match", "token_f1"):
        assert score(name, says("Paris")) == NO_GOLD_ANSWER.reason
        assert score(name, says("Paris", "   ")) == NO_GOLD_ANSWER.reason
        assert score(name, says(None, "Paris")) == NO_ANSWER.reason


def test_an_abstention_has_no_token_f1_but_is_no_exact_match_either():
    for obs in (says("I do not know Paris", "Paris", abstained=True), says(" ", "Paris")):
        assert score("token_f1", obs) == ABSTAINED.reason
        assert score("exact_match", obs) == 0


def test_a_blank_answer_that_is_declared_no_abstention_is_scored():
    assert score("token_f1", says("", "Paris", abstained=False)) == 0


@pytest.mark.parametrize(
    ("fact", "is_found"),
    [
        ("236 metres", True),
        ("236", True),
        ("23", False),
        ("opened in 1975", True),
        ("1975 tower", True),
        ("236 metres in 1975", False),
        ("시장점유율 3.5%", True),
        ("시장점유율 35%", False),
    ],
)
def test_a_key_fact_is_quoted_or_has_all_its_words_in_one_sentence(fact, is_found):
    answer = "It is 236 metres high. The tower was opened to the public in 1975. 라네즈의 시장점유율은 3.5%입니다."
    assert score("key_fact_recall", answered(answer, key_facts=(fact,))) == is_found


def test_empty_key_facts_are_unlabelled():
    assert score("key_fact_recall", answered("red", key_facts=())) == NO_KEY_FACTS.reason
    assert score("key_fact_recall", answered(None, key_facts=("red",))) == NO_ANSWER.reason
