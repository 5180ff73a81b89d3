"""Answers that neither decline plainly nor answer plainly, and those that only announce, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import Project, lines_with

from pytest_rageval.abstention.detector import declines

LABELLED = Path(__file__).parents[1] / "data" / "abstention" / "labelled.jsonl"


def an_open_answer() -> tuple[str, str]:
    """A real question and answer in the zone of doubt, whatever the weights are today."""
    for line in LABELLED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if len(row["answer"]) < 600 and declines(row["answer"], row["question"]).abstained is None:
            return row["question"], row["answer"]
    raise AssertionError("no labelled answer is in the zone of doubt")


def answers(project: Project, texts: dict[str, str], judge: str = "none") -> None:
    lines = [json.dumps({"id": id, "answer": text}) for id, text in texts.items()]
    project.write("answers.jsonl", "\n".join(lines))
    project.configure(f'target = "answers:answers.jsonl"\njudge = "{judge}"')


@pytest.mark.parametrize("judge", ["none", "lexical"])
def test_an_answer_in_doubt_is_gated_neither_way_and_counted(project: Project, judge: str):
    question, answer = an_open_answer()
    project.cases(
        [
            {"id": "open", "question": question, "answerable": False},
            {"id": "open-answerable", "question": question, "gold": {"answer": "a gold answer that nobody gives here"}},
        ]
    )
    answers(project, {"open": answer, "open-answerable": answer}, judge)
    result = project.run()
    records = project.records()
    for record in records.values():
        assert record["abstention"]["abstained"] is None
        assert record["abstention"]["undecided"] is True
        assert not {"abstention_accuracy", "over_abstention", "hallucinated"} & record["scores"].keys()
    gated = [gate["metric"] for record in records.values() for gate in record["verdict"]["failed_gates"]]
    assert "over_abstention" not in gated
    assert records["open"]["outcome"] == "skipped"
    assert project.metrics()["undecided"] == 2
    assert lines_with(result, "2 answers neither answer nor decline plainly: undecided")


@pytest.mark.parametrize("is_answerable", [True, False])
def test_an_announcement_is_no_answer(project: Project, is_answerable: bool):
    case = {"id": "one", "question": "What does the Pro plan cost?", "answerable": is_answerable}
    if is_answerable:
        case["gold"] = {"answer": "59 euros"}
    project.cases([case])
    answers(project, {"one": "Great question! Let me look that up for you."})
    result = project.run()
    record = project.records()["one"]
    assert (record["outcome"], record["error"]["kind"]) == ("error", "no_answer")
    assert lines_with(result, "the system only said what it is going to do")


def test_what_the_system_says_of_itself_decides_over_its_wording(project: Project):
    project.cases([{"id": "one", "question": "What does the Pro plan cost?", "answerable": False}])
    project.write("answers.jsonl", json.dumps({"id": "one", "answer": "Let me look that up.", "abstained": True}))
    project.configure('target = "answers:answers.jsonl"\njudge = "none"')
    project.run()
    assert project.outcomes() == {"one": "passed"}


def test_passages_that_hold_the_answer_speak_for_it(project: Project):
    passage = "The Pro plan costs 59 euros a month and includes five seats."
    project.cases([{"id": "one", "question": "What is the price of Pro?", "gold": {"answer": "59 euros"}}])
    line = {"id": "one", "answer": "Thanks for asking! 59 euros a month.", "retrieved_chunks": [{"text": passage}]}
    project.write("answers.jsonl", json.dumps(line))
    project.configure('target = "answers:answers.jsonl"\njudge = "none"')
    project.run()
    assert project.records()["one"]["abstention"]["abstained"] is False


@pytest.mark.parametrize("judge", ["none", "lexical"])
def test_an_answer_that_quotes_the_gold_is_no_abstention(project: Project, judge: str):
    gold = "Dazu gibt es keine Angaben zur Gebühr, sie entfällt."
    project.cases([{"id": "one", "question": "Was kostet der Ausweis?", "gold": {"answer": gold}}])
    answers(project, {"one": f"Gerne! {gold}"}, judge)
    project.run()
    assert project.records()["one"]["abstention"]["abstained"] is False
    project.cases([{"id": "one", "question": "Was kostet der Ausweis?", "answerable": False}])
    project.run()
    assert project.records()["one"]["abstention"]["abstained"] is not False


def test_a_language_without_training_is_named(project: Project):
    project.cases([{"id": "one", "question": "Quanto costa il piano Pro?", "gold": {"answer": "59 euro"}}])
    answers(project, {"one": "Il piano Pro costa 59 euro al mese, come si legge nella pagina dei prezzi del sito."})
    result = project.run()
    assert project.metrics()["untrained_languages"] == {"Italian": 1}
    assert lines_with(result, "1 answer is in Italian: abstentions were detected without training in it")


def test_a_made_up_answer_that_no_passage_holds_is_no_abstention(project: Project):
    passage = "The gym is on the second floor, next to the sauna, and has showers and lockers for all members."
    project.cases([{"id": "one", "question": "When does the gym open?", "answerable": False}])
    line = {"id": "one", "answer": "At nine on weekdays, dear guest.", "retrieved_chunks": [{"text": passage}]}
    project.write("answers.jsonl", json.dumps(line))
    project.configure('target = "answers:answers.jsonl"\njudge = "none"')
    project.run()
    assert project.outcomes() == {"one": "failed"}
