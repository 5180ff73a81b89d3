"""Right answers beside limits and pointers stay answers; refusals that tell something else stay refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import Project
from reliability import Tally

from pytest_rageval.abstention.answering_part import answer_parts, answering_part
from pytest_rageval.abstention.courtesies import is_greeting
from pytest_rageval.abstention.detector import declines, log_odds

BESIDE = Path(__file__).parent / "data" / "wordings" / "answering_part.jsonl"
UNSPACED = ("ja", "zh")


def rows(label: str, of_set: str) -> list[dict[str, str]]:
    every = [json.loads(line) for line in BESIDE.read_text(encoding="utf-8").splitlines()]
    return [row for row in every if row["label"] == label and row["set"] == of_set]


def with_endings(label: str, of_set: str) -> list[tuple[dict[str, str], str]]:
    """Return each row of a label with each ending in its language."""
    endings = rows("ending", of_set)
    made = []
    for row in rows(label, of_set):
        between = "" if row["language"] in UNSPACED else " "
        texts = [ending["answer"] for ending in endings if ending["language"] == row["language"]]
        made += [(row, f"{row['answer']}{between}{text}") for text in texts]
    return made


@pytest.mark.reliability("false reds", "right answers with limits and pointers taken for refusals")
@pytest.mark.parametrize(
    ("of_set", "most_refused", "most_undecided"), [("chosen-by", 0.02, 0.02), ("kept", 0.06, 0.09)]
)
def test_an_answer_with_any_ending_is_no_refusal(of_set: str, most_refused: float, most_undecided: float, tally: Tally):
    refused = []
    undecided = []
    tried = with_endings("answered", of_set)
    assert len(tried) > 200
    for row, answer in tried:
        tally.tried()
        verdict = declines(answer, row["question"]).abstained
        if verdict is True:
            refused.append(answer)
        elif verdict is None:
            undecided.append(answer)
    assert len(refused) <= most_refused * len(tried), "\n".join(refused)
    assert len(undecided) <= most_undecided * len(tried), "\n".join(undecided)


@pytest.mark.reliability("false greens", "refusals that point elsewhere taken for answers", costs="false green")
@pytest.mark.parametrize("of_set", ["chosen-by", "kept"])
def test_a_refusal_with_any_ending_is_no_answer(of_set: str, tally: Tally):
    """Of those that are refusals alone."""
    alone = {row["answer"]: declines(row["answer"], row["question"]).abstained for row in rows("abstained", of_set)}
    lost = []
    tried = 0
    for row, answer in with_endings("abstained", of_set):
        if alone[row["answer"]]:
            tried += 1
            tally.tried()
            if declines(answer, row["question"]).abstained is False:
                lost.append(answer)
    assert tried > 150
    assert len(lost) <= 0.02 * tried, "\n".join(lost)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much is the fee?", "The fee is 5 EUR per month. Exceptions are listed in the handbook."),
        ("What is the notice period?", "Three months. Please contact support if you have further questions."),
        ("Where is the head office?", "The head office is in Berlin. The documents do not mention any exceptions."),
        ("Which port does the server use?", "I am not able to give advice. The server uses port 8443."),
        ("Where is the head office?", "The head office is in Berlin, though I could not verify whether it moved."),
        ("Wie hoch ist die Gebühr?", "Die Gebühr beträgt 5 Euro. Zu Ausnahmen steht in den Unterlagen nichts."),
    ],
)
def test_the_part_that_gives_what_is_asked_decides(question: str, answer: str):
    assert declines(answer, question).abstained is False


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the late fee?", "I couldn't find the late fee. The handbook lists fees in general."),
        ("When does the north gate open?", "The south gate opens at 8 am. I have nothing on the north gate."),
        ("Is a hummingbird a songbird?", "Sorry, but I do not know."),
        ("Who won the tender?", "I don't know who won. Three companies took part in the tender."),
        ("What is the CPU of the new model?", "I have no details on the CPU. The new model weighs 1.1 kg."),
        ("Wie hoch ist die Mahngebühr?", "Zur Mahngebühr habe ich nichts gefunden. Der Beitrag ist 48 Euro."),
    ],
)
def test_what_a_refusal_tells_in_place_of_the_answer_is_none(question: str, answer: str):
    assert declines(answer, question).abstained is True


GOLD_IN_PART = [
    ("What is the fee and who collects it?", "5 EUR", "The fee is 5 EUR. I couldn't find who collects it."),
    ("What is the fee and who collects it?", "5 EUR", "I have no information on who collects it; it amounts to 5 EUR."),
    ("What is the fee and who collects it?", "5 EUR", "While no text says who collects it, they state a fee of 5 EUR."),
    ("When was it founded and by whom?", "2011", "The documents don't say by whom, but it was founded in 2011."),
    ("Quels sont le prix et le délai ?", "5 euros", "Je ne connais pas le délai, mais le prix est de 5 euros."),
    ("料金と期間は？", "5ユーロ", "期間については記載がありませんが、料金は5ユーロです。"),
]


@pytest.mark.parametrize(("question", "gold", "answer"), GOLD_IN_PART)
def test_a_partial_answer_that_states_the_gold_is_no_refusal(question: str, gold: str, answer: str):
    assert declines(answer, question, golds=[gold]).abstained is False


@pytest.mark.parametrize(
    ("question", "gold", "answer"),
    [
        ("Is there a refund?", "No", "I have no information on a refund."),
        ("Is the head office in Berlin?", "Yes, in Berlin", "I could not find whether the head office is in Berlin."),
        ("How much is the fee?", "5 EUR", "I cannot confirm whether the fee is 5 EUR."),
        ("How much is the fee?", "5 EUR", "The documents do not mention a fee. The deposit is 50 EUR."),
    ],
)
def test_a_refusal_that_holds_words_of_the_gold_stays_one(question: str, gold: str, answer: str):
    assert declines(answer, question, golds=[gold]).abstained is not False


@pytest.mark.parametrize("answer", ["I'm afraid not.", "Unfortunately not.", "Sorry, no."])
def test_a_polite_no_answers_a_question_that_wants_yes_or_no(answer: str):
    assert declines(answer, "Can I cancel online?").abstained is False
    assert declines("Leider nein.", "Kann ich online kündigen?").abstained is False


@pytest.mark.parametrize(
    "question", ["Hi!", "Hello there", "Guten Tag", "Merci beaucoup !", "안녕하세요", "Thanks a lot!"]
)
def test_a_greeting_cannot_be_declined(question: str):
    assert is_greeting(question)
    assert declines("Hi! What would you like to know about our products?", question).abstained is False


@pytest.mark.parametrize(
    "question", ["Hello, what does it cost?", "Best hotels to stay.", "Do you know the fee?", "No."]
)
def test_a_question_is_no_greeting(question: str):
    assert not is_greeting(question)


def test_an_offer_in_place_of_an_answer_is_neither():
    assert declines("Hi! What would you like to know?", "How much is the fee?").abstained is None


@settings(deadline=None, max_examples=100)
@given(st.text(), st.text())
def test_any_text_has_parts(answer: str, question: str):
    assert len(answer_parts(answer)) <= 200
    part = answering_part(answer, question, lambda text: log_odds(text, question))
    assert part is None or part.text in answer_parts(answer)


ENDING = "Exceptions are listed in the handbook. The documents do not mention any others."
ANSWERS = {
    "right": f"The fee is 5 EUR per month. {ENDING}",
    "wrong": f"The fee is 7 EUR per month. {ENDING}",
    "made-up": f"The company was founded by Maria Lopez. {ENDING}",
    "declined": f"The documents do not say who founded the company. {ENDING}",
    "refused": f"I could not find the fee. {ENDING}",
}


@pytest.mark.reliability("false reds", "right answers with limits and pointers taken for refusals")
def test_only_the_part_that_answers_decides_a_case(project: Project):
    fee = {"question": "How much is the fee?", "gold": {"answer": "5 EUR"}}
    founder = {"question": "Who founded the company?", "answerable": False}
    project.cases({"id": name, **(founder if name in ("made-up", "declined") else fee)} for name in ANSWERS)
    lines = [json.dumps({"id": id, "answer": said}) for id, said in ANSWERS.items()]
    project.write("answers.jsonl", "\n".join(lines))
    project.configure('target = "answers:answers.jsonl"\njudge = "none"')
    project.run()
    failed = {
        name: {gate["metric"] for gate in record["verdict"]["failed_gates"]}
        for name, record in project.records().items()
    }
    assert failed["right"] == failed["declined"] == set()
    assert failed["wrong"] == {"gold_in_answer"}
    assert failed["made-up"] == {"abstention_accuracy"}
    assert "over_abstention" in failed["refused"]
