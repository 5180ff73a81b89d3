"""New labels for a stored run: whose they are, what may not change, and what follows from them."""

from __future__ import annotations

import json

import pytest
from project import RUN, SOME, StoredProject, a_case, a_missed_case, command, problems

CASES = [*SOME, a_missed_case("missed")]
MENDED = a_case("missed")


def test_labels_that_were_mended_in_place_give_what_a_new_run_gives(project: StoredProject):
    project.cases([*SOME, MENDED])
    assert command("score", RUN, "--cases", "evalcases").exit_code == 0
    project.pytest(run_id="anew")
    again, anew = project.json("metrics.json"), project.json("metrics.json", "anew")
    for metrics in (again, anew):
        del metrics["volatile"]
    assert again == anew
    for name in ("config_hash", "dataset_hash", "dataset_version"):
        assert project.json("config.json")[name] == project.json("config.json", "anew")[name]


def test_the_labels_stay_with_the_run(project: StoredProject):
    project.cases([*SOME, MENDED])
    command("score", RUN, "--cases", "evalcases/a.jsonl")
    files = project.files()
    project.cases(CASES)
    command("score", RUN)
    command("score", RUN, "--cases", "evalcases")
    command("score", RUN, "--cases", project.cases([*SOME, MENDED], "elsewhere/a.jsonl"))
    assert project.files() == files


def test_labels_from_another_file_are_found_by_id_and_leave_the_key(project: StoredProject):
    result = command("score", RUN, "--cases", project.cases([MENDED], "new/labels.jsonl"))
    assert result.exit_code == 0
    assert "4 cases of the run not there, labels kept: evalcases/a.jsonl::boil" in result.output
    record = project.records()["missed"]
    assert (record["case_key"], record["outcome"]) == ("evalcases/a.jsonl::missed", "passed")
    assert record["source"] == {"file": "evalcases/a.jsonl", "line": 5}
    config = project.json("config.json")
    assert config["dataset_version"] == f"content:{config['dataset_hash']}"


def test_a_question_that_changed_is_no_label(project: StoredProject):
    before = project.files()
    changed = [a_case("boil", "When does it boil?"), SOME[1], {**SOME[2], "folders": ["notes"]}, *SOME[3:]]
    path = project.cases(changed)
    assert problems(command("score", RUN, "--cases", path)) == [
        "evalcases/a.jsonl:1: case 'boil': its question changed since it was asked; ask it again with pytest",
        "evalcases/a.jsonl:3: case '남산-높이': its folders changed since it was asked; ask it again with pytest",
    ]
    path = project.write("new/labels.jsonl", '{"id": "boil"}\n{"id": "freeze", "question": 7}\n')
    assert len(problems(command("score", RUN, "--cases", path))) == 2
    assert project.files() == before


def test_an_id_that_several_cases_have_names_none(project: StoredProject):
    project.cases([MENDED], "new/a.jsonl")
    project.cases([MENDED], "new/b.jsonl")
    assert problems(command("score", RUN, "--cases", "new")) == [
        "evalcases/a.jsonl::missed: its id is that of 2 cases (new/a.jsonl:1, new/b.jsonl:1); leave all but one out"
    ]


def test_cases_that_were_not_asked_are_left_out(project: StoredProject):
    project.cases([*CASES, a_case("new")])
    result = command("score", RUN, "--cases", "evalcases")
    assert "1 case there not asked in this run, left out" in result.output
    assert "new" not in project.records()


def test_a_case_that_was_not_answerable_after_all_is_gated_as_such(project: StoredProject):
    path = project.cases([{"id": "boil", "question": SOME[0]["question"], "answerable": False}], "new/labels.jsonl")
    command("score", RUN, "--cases", path)
    record = project.records()["boil"]
    assert record["answerable"] is False
    assert [gate["metric"] for gate in record["verdict"]["failed_gates"]] == ["abstention_accuracy"]
    line = next(line for line in (project.folder() / "observations.jsonl").read_text("utf-8").splitlines())
    assert json.loads(line)["case"]["answerable"] is False


@pytest.mark.parametrize("verb", ["score", "judge", "abstention"])
def test_every_verb_that_decides_again_takes_labels_and_writes_metrics_elsewhere(project: StoredProject, verb: str):
    labels = project.cases([MENDED], "new/labels.jsonl")
    result = command(verb, RUN, "--cases", labels, "--output-metrics", "elsewhere.json")
    assert result.exit_code == 0, result.output
    assert project.records()["missed"]["outcome"] == "passed"
    assert json.loads((project.path / "elsewhere.json").read_text()) == project.json("metrics.json")
    config = project.json("config.json")
    assert config["dataset_version"] == f"content:{config['dataset_hash']}"


@pytest.mark.parametrize("verb", ["score", "judge", "abstention"])
def test_every_verb_that_decides_again_can_aggregate_alone(project: StoredProject, verb: str):
    (project.folder() / "observations.jsonl").unlink()
    (problem,) = problems(command(verb, RUN))
    assert problem.startswith(f"run {RUN} keeps no observations.jsonl, which this needs: ")
    metrics = project.json("metrics.json")
    (project.folder() / "summary.md").unlink()
    result = command(verb, RUN, "--aggregate-only", "--output-metrics", "elsewhere.json")
    assert "no observations" not in result.output
    assert (project.folder() / "summary.md").exists()
    assert json.loads((project.path / "elsewhere.json").read_text()) == metrics == project.json("metrics.json")
