"""The default gate of a short gold answer: does the answer say it?"""

from __future__ import annotations

import json

import pytest
from observations import DATA, a_case, answered, lines, score

from pytest_rageval.language.gold_search import best_fit
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.gold_answer import best_recall
from pytest_rageval.model import Answer, Gold

SENTENCES = list(lines("correctness/sentences.jsonl"))


@pytest.mark.parametrize("row", SENTENCES, ids=lambda row: row["answer"])
def test_a_sentence_passes_if_it_says_the_gold(row):
    case = a_case(question=row["question"], gold=Gold(answers=(row["gold"],)))
    value = score("gold_in_answer", observe(case, Answer(row["answer"], abstained=False)))
    assert isinstance(value, float)
    assert (value >= 0.5) is row["correct"], best_fit(row["answer"], [row["gold"]], row["question"])


def test_the_sentences_are_as_many_right_as_wrong():
    assert [sum(row["correct"] is right for row in SENTENCES) for right in (True, False)] == [220, 220]


def test_it_agrees_with_people():
    rows = [json.loads(line) for line in (DATA / "correctness/judged.jsonl").read_text(encoding="utf-8").splitlines()]
    verdicts = [(best_fit(row["answer"], row["golds"], row["question"]).share >= 0.5, row["correct"]) for row in rows]
    right_that_fail = verdicts.count((False, True)) / sum(correct for _, correct in verdicts)
    wrong_that_pass = verdicts.count((True, False)) / sum(not correct for _, correct in verdicts)
    agreement = sum(passes is correct for passes, correct in verdicts) / len(verdicts)
    assert len(verdicts) == 4000
    assert right_that_fail < 0.055
    assert wrong_that_pass < 0.085
    assert agreement > 0.94


@pytest.mark.parametrize(
    ("answer", "gold", "missing"),
    [
        ("The warranty lasts 12 months.", "24 months", "`24 months` is not in the answer; it says 12 months"),
        ("It costs €95 a month.", "59 euros", "`59 euros` is not in the answer; it says €95"),
        ("12 or 24 months.", "24 months", "`24 months` is not in the answer; it is one of several alternatives there"),
        ("It is not 24 months.", "24 months", "`24 months` is not in the answer; it is denied there"),
        ("Peter wrote it.", "Anna Keller", "`Anna Keller` is not in the answer"),
        ("Sure, you can.", "No", "`No` is not in the answer; it says yes"),
        ("保修期为12个月。", "24个月", "`24个月` is not in the answer; it says 12个月"),
    ],
)
def test_it_says_what_is_missing(answer, gold, missing):
    assert best_fit(answer, [gold]).sentence == missing


@pytest.mark.parametrize(
    ("question", "answer", "gold", "missing"),
    [
        (
            "What do students pay?",
            "Adults pay 12 euros and students 7 euros.",
            "12 euros",
            "`12 euros` is not in the answer; for what is asked it says 7 €",
        ),
        (
            "When was it built?",
            "It was built in 1901 and rebuilt in 1950.",
            "1950",
            "`1950` is not in the answer; for what is asked it says 1901",
        ),
        (
            "Who signs the form?",
            "The treasurer signs the form; the secretary only receives a copy.",
            "the secretary",
            "`the secretary` is not in the answer; what is asked is said of another there",
        ),
        (
            "Is the canteen open on Fridays?",
            "The canteen stays closed on Fridays.",
            "Yes",
            "`Yes` is not in the answer; it says no",
        ),
    ],
)
def test_it_says_what_the_answer_says_of_what_is_asked(question, answer, gold, missing):
    assert best_fit(answer, [gold], question).sentence == missing


@pytest.mark.parametrize(
    ("question", "gold", "answer"),
    [
        ("How tall is he?", "6 feet 1 inch", "He is 6 feet 1 inch (185 cm) tall."),
        ("How much is the prize in the 1965 race?", "10000", "In the 1965 race the prize is 10000 (or 12000 today)."),
        ("When was the line begun and finished?", "1881 and 1885", "The line was begun in 1881 and finished in 1885."),
        ("When was the museum founded?", "1901", "The museum goes back to 1901. A new wing followed in 1950."),
        ("What is the minimum age?", "9", "No child under 9 is admitted."),
    ],
)
def test_more_true_figures_do_no_harm(question, gold, answer):
    assert best_fit(answer, [gold], question).share >= 0.5


@pytest.mark.parametrize("piece", ["not ", "12 or ", "a, ", "(", "“", "否定", "않", "1-", "Ab", "٣", "5 MB or "])
def test_an_answer_of_any_length_is_read(piece):
    assert best_fit(piece * 50_000, [piece * 2_000, "24 months"], piece).share <= 1


def test_recall_counts_the_tokens_of_the_best_gold():
    assert best_recall("a fast red car in the yard", ["blue bus", "red car", "red cars"]).value == 1
    assert best_recall("Paris", ["Paris Paris"]).value == 0.5
    assert best_recall("3 wins and 10 losses", ["10 wins and 3 losses"]).value < 1


@pytest.mark.parametrize("name", ["token_f1", "token_recall", "gold_in_answer", "exact_match"])
def test_a_refused_question_scores_nothing(name):
    assert score(name, answered("I do not know whether it is Paris.", answers=("Paris",), abstained=True)) == 0


def test_a_refused_question_states_no_key_fact():
    assert score("key_fact_recall", answered("Not Paris, I guess.", key_facts=("Paris",), abstained=True)) == 0


@pytest.mark.parametrize(
    ("question", "gold", "right", "wrong"),
    [
        ("Wie hoch ist die Gebühr?", "höchstens 10 Euro", "3 Prozent, höchstens jedoch 10 Euro.", "Höchstens 12 Euro."),
        (
            "What is the fee?",
            "at most 10 dollars",
            "3 percent, but at most only 10 dollars.",
            "At most just 9 dollars.",
        ),
        ("When do you close on Saturdays?", "2 pm", "Saturdays 10:00-14:00", "Saturdays 10:00-15:00"),
        ("Was kostet eine Mahnung?", "0,50 Euro", "Sie kostet fünfzig Cent.", "Sie kostet sechzig Cent."),
        ("What is the late fee?", "50 cents", "The late fee is $0.50.", "The late fee is $0.60."),
        ("What is the late fee?", "80 pence", "The late fee is £0.80.", "The late fee is £8."),
        ("몇 권까지 빌릴 수 있나요?", "15권", "열다섯 권까지 빌릴 수 있습니다.", "열세 권까지 빌릴 수 있습니다."),
        ("몇 명까지 들어갈 수 있나요?", "20명", "스무 명까지 들어갈 수 있습니다.", "서른 명까지 들어갈 수 있습니다."),
        ("Kann ich verlängern?", "Ja, zweimal", "Ja, Sie können zweimal verlängern.", "Ja, dreimal."),
        ("Can I renew?", "Yes, twice", "Yes, you can renew two times.", "Yes, three times."),
        ("How often can I renew?", "twice", "You can renew it 2 times.", "You can renew it only once."),
        (
            "How often can I renew?",
            "once a year",
            "You can renew it one time a year.",
            "You can renew it twice a year.",
        ),
    ],
)
def test_counts_limits_and_coins_are_read_however_they_are_written(question, gold, right, wrong):
    assert best_fit(right, [gold], question).share >= 0.5
    assert best_fit(wrong, [gold], question).share < 0.5


def test_once_before_a_condition_is_no_count():
    assert best_fit("Once you have paid, you can renew it.", ["once"], "How often can I renew?").share < 0.5


@pytest.mark.parametrize(
    "figure", ["1e1602395", "9e999999", "1e999999 hours 5 minutes", "$9e999999", "8e99999999999999 cents"]
)
def test_monstrous_figures_are_compared_as_they_are_written(figure):
    assert best_fit(f"It is {figure}.", [figure]).share == 1
    assert best_fit("It is 5 minutes, or 7 cents, or $12.", [figure]).share < 1


FOUR_NIGHTS = "Four nights cost 61,000 yen"


@pytest.mark.parametrize(
    "question",
    [
        "What do four nights cost?",
        "What is the price of the stay?",
        "And for a longer stay?",
        "What do we pay for four nights with breakfast?",
        "How expensive is the garden room per stay?",
    ],
)
@pytest.mark.parametrize(
    "rest",
    [
        ", breakfast costs 4,200 yen more.",
        ". If you stay until Friday, the inn charges 4,200 yen for parking.",
        ". The garden wing has a surcharge of 4,200 yen.",
        " or 4,200 yen less in May.",
        ", of which 4,200 yen is tax.",
        ". This does not include the city tax of 4,200 yen.",
    ],
)
def test_another_amount_in_the_same_unit_does_not_take_the_place_of_the_gold(question: str, rest: str):
    assert best_fit(FOUR_NIGHTS + rest, ["61,000 yen"], question).sentence == ""


@pytest.mark.parametrize(
    ("question", "gold", "answer"),
    [
        ("How much is it for children at the pool?", "9 euros", "Adults pay 9 euros. Children pay 4 euros."),
        ("How much is the deposit?", "900 euros", "The rent is 900 euros a month; the deposit is 200 euros."),
        ("What is the surcharge?", "61,000 yen", f"{FOUR_NIGHTS}. The surcharge of the wing is 4,200 yen."),
        ("What does breakfast cost?", "61,000 yen", f"{FOUR_NIGHTS}. Breakfast costs 4,200 yen."),
        ("How much more is breakfast?", "61,000 yen", f"{FOUR_NIGHTS}, breakfast is 4,200 yen more."),
        ("Is it 12 or 24 months?", "24 months", "It is 12 or 24 months."),
    ],
)  # fmt: skip
def test_an_amount_that_the_answer_gives_for_something_else_is_not_the_gold(question: str, gold: str, answer: str):
    assert best_fit(answer, [gold], question).share == 0
