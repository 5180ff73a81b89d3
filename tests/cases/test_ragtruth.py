"""RAGTruth's two files become cases, answers by model, and labels that `rageval calibrate` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from project import Project

DATA = {"name": "Subway", "hours": None, "WiFi": True, "stars": 3.0, "text": 'It\'s "clean".'}
SOURCES: list[Mapping[str, Any]] = [
    {"source_id": "14312", "task_type": "QA", "source": "MARCO", "prompt": "Briefly answer …", "source_info": {
        "question": "how to boil eggs",
        "passages": "passage 1:Boil: 1  Heat water.\n\npassage 2:Eggs take ten minutes.\n\n"}},
    {"source_id": "11316", "task_type": "Summary", "source": "CNN/DM", "source_info": "Ann won. Bob lost.\n",
     "prompt": "Summarize the following news within 9 words:\nAnn won. Bob lost.\n\noutput:"},
    {"source_id": "13661", "task_type": "Data2txt", "source": "Yelp", "source_info": DATA,
     "prompt": f"Instruction:\nWrite an overview. Structured data:\n{DATA}\nOverview:"},
]  # fmt: skip
SPAN = {"start": 13, "end": 21, "text": "an hour.", "meta": "EVIDENT CONFLICT", "label_type": "Evident Conflict",
        "implicit_true": False, "due_to_null": False}  # fmt: skip


def a_response(id: str, source_id: str, model: str, text: str, *labels: Any, split: str = "test") -> dict[str, Any]:
    return {"id": id, "source_id": source_id, "model": model, "temperature": 0.7, "labels": [*labels], "split": split,
            "quality": "good", "response": text}  # fmt: skip


RESPONSES = [
    a_response("0", "14312", "gpt-4-0613", "Eggs take ten minutes."),
    a_response("1", "14312", "llama-2-7b-chat", "It will take an hour.", SPAN),
    a_response("2", "11316", "gpt-4-0613", "Ann won, Bob lost.", split="train"),
    a_response("3", "13661", "gpt-4-0613", "Subway is clean."),
]


def ragtruth(project: Project, sources: Iterable[Mapping[str, Any]], responses: Iterable[Mapping[str, Any]]) -> None:
    for name, rows in (("source_info", sources), ("response", responses)):
        project.write(f"dataset/{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def lines(project: Project, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.path / name).read_text("utf-8").splitlines()]


def convert(project: Project, *arguments: str) -> Any:
    files = ("-o", "evalcases/r.jsonl", "--answers", "r.answers.jsonl", "--labels", "labels.jsonl")
    return project.rageval("cases", "convert", "dataset", *files, *arguments)


def test_its_answers_are_scored_and_a_judge_is_measured_against_its_people(project: Project):
    ragtruth(project, SOURCES, RESPONSES)
    result = convert(project)
    assert result.ret == 0
    assert "2 systems: answers:FILE#gpt-4-0613 and so on" in result.stderr.str()
    asked = {case["id"]: case for case in lines(project, "evalcases/r.jsonl")}
    assert asked["14312"]["question"] == "how to boil eggs"
    assert asked["14312"]["contexts"] == ["Boil: 1  Heat water.", "Eggs take ten minutes."]
    assert asked["11316"]["question"] == "Summarize the following news within 9 words:"
    assert asked["11316"]["contexts"] == ["Ann won. Bob lost.\n"]
    assert asked["13661"]["question"] == "Instruction:\nWrite an overview. Structured data:"
    assert json.loads(asked["13661"]["contexts"][0]) == DATA
    assert project.rageval("run", "--target", "answers:r.answers.jsonl#gpt-4-0613").ret == 0
    assert project.records()["14312"]["scores"]["groundedness"] == 5.0
    assert [label["human_pass"] for label in lines(project, "labels.jsonl")] == [True, False, True, True]
    figures = json.loads(project.rageval("calibrate", "labels.jsonl", "--format", "json").stdout.str())
    assert (figures["n_labelled"], figures["n_scored"], figures["agreement"]["value"]) == (4, 4, 1.0)


def test_a_split_holds_its_responses_and_their_sources(project: Project):
    ragtruth(project, SOURCES, RESPONSES)
    convert(project, "--split", "train")
    assert [case["id"] for case in lines(project, "evalcases/r.jsonl")] == ["11316"]
    assert [answer["system"] for answer in lines(project, "r.answers.jsonl")] == ["gpt-4-0613"]
    assert [label["id"] for label in lines(project, "labels.jsonl")] == ["2"]


@pytest.mark.parametrize(
    ("sources", "responses", "problem"),
    [
        ([{"source_id": "1"}], RESPONSES[:1], "dataset/source_info.jsonl:1:1: is no source of RAGTruth: "),
        (SOURCES[1:], RESPONSES[:1], "dataset/response.jsonl:1:1: is no response of RAGTruth: '14312' is missing"),
        ([*SOURCES, SOURCES[0]], RESPONSES, "dataset/source_info.jsonl:4:1: source_id '14312' stands twice"),
        (SOURCES, [], "dataset/source_info.jsonl: response.jsonl holds no response"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_by_line_and_nothing_is_written(
    project: Project, sources: Any, responses: Any, problem: str
):
    ragtruth(project, sources, responses)
    result = convert(project)
    assert result.ret == 2
    assert problem in result.stderr.str()
    assert not (project.path / "evalcases/r.jsonl").exists()


def test_a_folder_that_is_none_of_ragtruth_is_said_to_be_none(project: Project):
    project.write("dataset/response.jsonl", "")
    result = project.rageval("cases", "convert", "dataset", "--from", "ragtruth")
    assert result.ret == 2
    assert "dataset is no folder with source_info.jsonl and response.jsonl" in result.stderr.str()
