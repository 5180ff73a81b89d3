"""L5: answers against gold answers and key facts."""

from __future__ import annotations

import json

import pytest
from observations import DATA, answered, assert_score, lines, score, scores

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


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("110mW", "110 mW"), ("1,000 km", "1000km"), ("3.5 %", "3.5%"), ("15 개", "15개입니다"), ("−3 °C", "-3°C")],
)
def test_a_number_is_read_apart_from_its_unit(answer, gold):
    assert score("token_f1", says(answer, gold)) == 1


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("서울", "서울"), ("Cafe\u0301", "Café"), ("ｋｍ／ｈ", "km/h"), ("👍🏽", "👍🏽"), ("“it’s”", '"it\'s"')],
)
def test_unicode_forms_of_the_same_answer_match(answer, gold):
    assert score("exact_match", says(answer, gold)) == 1
    assert score("token_f1", says(answer, gold)) == 1


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
        if output["abstained"]:
            assert scored == (0 if case["answerable"] else ABSTAINED.reason), output
        else:
            assert scored == pytest.approx(f1, abs=1e-9), output
        kinds.add((output["system"], output.get("kind"), output["abstained"]))
    assert len(kinds) == 12


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


HYPHENS = says("off-by-one", "Off by one")
SCORES = {
    "F1 is the best over the gold answers": ("token_f1", says("the red car", "blue car", "a very red car"), 4 / 5),
    "F1 counts repetitions": ("token_f1", says("Paris France Paris France", "Paris France"), 4 / 6),
    "words of other scripts are never parted": ("token_f1", says("database é", "data base é"), 2 / 5),
    "scripts without spaces are compared by characters": ("token_f1", says("東京都", "東京"), 0.8),
    "Thai is compared by characters": ("token_f1", says("กรุงเทพ", "กรุงเทพ"), 1),
    "an unanswerable case is compared with its gold answer": (
        "token_f1", says("It was in 2019", "was in 2019", answerable=False), 6 / 7),
    "an unanswerable case without one": ("token_f1", says("It is 42", answerable=False), NO_GOLD_ANSWER),
    "another emoji is another answer": ("exact_match", says("👍", "👎"), 0),
    "a hyphen parts words": ("exact_match", HYPHENS, 1),
    "a hyphen parts tokens": ("token_f1", HYPHENS, 1),
    "a declared refusal has none of the gold answer": (
        "token_f1", says("I do not know Paris", "Paris", abstained=True), 0),
    "an abstention from an unanswerable question has no F1": (
        "token_f1", says("I do not know Paris", "Paris", abstained=True, answerable=False), ABSTAINED),
    "a blank answer has none of it": ("token_f1", says(" ", "Paris"), 0),
    "a declared abstention is no exact match": (
        "exact_match", says("I do not know Paris", "Paris", abstained=True), 0),
    "a blank answer is no exact match": ("exact_match", says(" ", "Paris"), 0),
    "a blank answer that is declared no abstention is scored": ("token_f1", says("", "Paris", abstained=False), 0),
    "articles alone match no unanswerable case": ("exact_match", says("the", answerable=False), NO_GOLD_ANSWER),
    "empty key facts are unlabelled": ("key_fact_recall", answered("red", key_facts=()), NO_KEY_FACTS),
    "facts of an answer that is not recorded": ("key_fact_recall", answered(None, key_facts=("red",)), NO_ANSWER),
    **{f"{sentence} has no {name}": (name, obs, expected) for name in ("exact_match", "token_f1")
       for sentence, obs, expected in (
        ("a case without a gold answer", says("Paris"), NO_GOLD_ANSWER),
        ("a case with a blank one", says("Paris", "   "), NO_GOLD_ANSWER),
        ("an answer that is not recorded", says(None, "Paris"), NO_ANSWER),
    )},
}  # fmt: skip


@scores(SCORES)
def test_the_score_of_an_answer(name, obs, expected):
    assert_score(name, obs, expected)


@pytest.mark.parametrize(
    ("name", "obs", "expected"),
    [("token_f1", HYPHENS, 0), ("exact_match", HYPHENS, 0), ("exact_match", says("the", answerable=False), 1)],
)
def test_the_squad_normaliser_keeps_hyphens_and_lets_nothing_answer_an_unanswerable_case(name, obs, expected):
    assert_score(name, obs, expected, normalizer="squad")
