"""Runs over files of answers as people have them: to another question, by question alone, with foreign keys."""

from __future__ import annotations

import json
from collections.abc import Mapping

from project import Project, a_case


def configured(project: Project, *rows: Mapping[str, object]) -> Project:
    project.cases([a_case("boil"), a_case("freeze", "What is the freezing point of water?")])
    project.write("answers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.configure('target = "answers:answers.jsonl"')
    return project


BOIL: dict[str, object] = {
    "question": "what is the BOILING point of water?",
    "answer": "Water boils at 100 degrees at sea level.",
}
FREEZE: dict[str, object] = {"id": "freeze", "answer": "It freezes at 0 degrees."}


def test_an_answer_to_another_question_is_an_error_of_its_case(project: Project):
    configured(project, BOIL | {"id": "boil", "question": "Who won?"}, FREEZE)
    result = project.run()
    assert project.records()["boil"]["error"]["message"] == (
        "answers.jsonl:1: question is 'Who won?', but the case asks 'What is the boiling point of water?'; "
        "answer that one, or leave question out"
    )
    assert project.records()["freeze"]["error"] is None
    assert result.parseoutcomes()["errors"] == 1


def test_an_answer_without_an_id_is_that_of_the_case_with_its_question(project: Project):
    configured(project, BOIL, FREEZE).run()
    assert project.records()["boil"]["answer"] == BOIL["answer"]


def test_keys_that_are_not_read_are_named_once_with_the_known_ones_that_they_resemble(project: Project):
    configured(project, BOIL | {"retreived_chunks": [], "colour": 1}, FREEZE | {"retreived_chunks": []})
    for lines in (project.run().outlines, project.rageval("run").outlines):
        noted = [line for line in lines if "retreived_chunks" in line]
        assert noted == [
            "answers.jsonl: kept as metadata and not read: colour (line 1), "
            "retreived_chunks; did you mean 'retrieved_chunks'? (line 1)"
        ]


def test_texts_without_a_place_leave_gold_places_unexamined_and_are_no_miss(project: Project):
    contexts: dict[str, object] = {"contexts": ["At sea level water boils at 100 degrees."]}
    configured(project, BOIL | contexts, FREEZE | contexts).run()
    record = project.records()["boil"]
    assert not [name for name in record["scores"] if name.startswith("recall")]
    assert "texts without a place" in record["skipped_metrics"]["recall_any@5"]
    assert record["retrieved_chunks"][0]["text"] == "At sea level water boils at 100 degrees."
