"""`rageval calibrate`: what a person sees, what a program reads, the page, and the exit codes."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from judge_server import with_own_judges
from project import SOME, Project, a_case

from pytest_rageval.check.calibration_record import CALIBRATIONS, stored_calibrations
from pytest_rageval.cli.main import rageval
from pytest_rageval.errors import RagevalError

JUDGES = """
from pytest_rageval.errors import JudgeError
from pytest_rageval.model import Judgement

class Reader:
    '''Scores what the answer says that it is worth.'''
    model, heuristic, rubrics = "reader/1", False, frozenset({"groundedness"})
    asked = 0

    async def judge(self, request):
        type(self).asked += 1
        answer = request.variables["answer"]
        if answer == "refuse":
            raise JudgeError("timeout", "no reply\\n\\x1b[31m within 1 s")
        if answer == "break":
            raise RuntimeError("lost")
        return Judgement(request.rubric, {"groundedness": float(answer)}, (0.0, 5.0), "so it says", model=self.model)

    async def aclose(self): ...
"""
HOSTILE = "</title><script>alert(1)</script>\x1b[31m\u202e{{ 7 * 7 }}<img src=x onerror=y>"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return with_own_judges(tmp_path, JUDGES, monkeypatch)


def calibrate(*arguments: str, columns: int = 100) -> Result:
    return CliRunner().invoke(rageval, ["calibrate", *arguments], env={"COLUMNS": str(columns)})


def a_label(id: str, score: object, **fields: Any) -> dict[str, Any]:
    """An answer for which the reader gives this score, and that people pass."""
    return {"id": id, "question": "Q?", "answer": str(score), "contexts": ["C."], "human_pass": True} | fields


def labels(*records: dict[str, Any], name: str = "labels.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return name


def as_json(*arguments: str) -> dict[str, Any]:
    result = calibrate(*arguments, "--format", "json")
    return json.loads(result.stdout)


READER = ("--judge", "my_judges:Reader", "--judge-cache", "off")
TWENTY = [
    *(a_label(f"good-{number}", 5, human_score=4) for number in range(9)),
    a_label("strict", 2, human_score=4),
    *(a_label(f"bad-{number}", 1, human_pass=False, human_score=1) for number in range(7)),
    *(a_label(f"lax-{number}", 4.5, human_pass=False, human_score=number) for number in range(3)),
]


def test_a_person_sees_the_verdict_the_table_and_the_worst_disagreements_first():
    result = calibrate(labels(*TWENTY), *READER)
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "reader/1 against people: groundedness >= 3.5, 20 of 20 labelled answers scored"
    assert lines[1].startswith("moderate agreement: kappa 0.60, 95 % ")
    assert "people fail it               7                3" in lines
    assert "people pass it               1                9" in lines
    worst = [line.split(" · ")[0].strip() for line in lines if " · people" in line]
    assert worst == ["lax-0", "lax-1", "lax-2", "strict"]
    assert "  no limit is suggested: too few labels: 10 pass and 10 fail, at least 20 of each are needed" in lines
    assert "note: 20 answers are few: the figures are hints; label 30 or more, drawn at random" in lines


def test_a_limit_is_suggested_as_a_gate():
    many = [*(a_label(f"p{number}", 3) for number in range(40)),
            *(a_label(f"f{number}", 1, human_pass=False) for number in range(40))]  # fmt: skip
    result = calibrate(labels(*many), *READER, columns=160)
    assert "  groundedness >= 2  Youden's J 1.00 held out, 0.00 at groundedness >= 3.5: gain +1.00" in result.output
    assert "beyond chance" in result.output


def test_a_program_reads_every_figure_or_null():
    found = as_json(labels(*TWENTY), *READER)
    assert found["judge"] == {"models": ["reader/1"], "heuristic": False, "prompt_versions": []}
    assert (found["n_labelled"], found["n_scored"], found["n_scored_by_people"]) == (20, 20, 20)
    assert found["confusion"]["tp"] == 7
    assert found["cohens_kappa"]["value"] == pytest.approx(0.6)
    assert found["pass_rate"]["by_people"]["value"] == 0.5
    assert found["pass_rate"]["unlabelled"] is None
    assert found["thresholds"]["youden"]["limit"] is None
    one = as_json(labels(a_label("only", 5)), *READER)
    assert one["cohens_kappa"] is None
    assert one["auroc"] is None
    assert one["verdict"] == "agreement cannot be told"


def test_a_score_by_people_passes_where_it_holds_the_gate():
    found = as_json(
        labels(a_label("a", 5, human_pass=None, human_score=3.5), a_label("b", 5, human_pass=None, human_score=3.4)),
        *READER,
    )
    assert (found["confusion"]["tn"], found["confusion"]["fn"]) == (1, 1)
    stricter = as_json("labels.jsonl", *READER, "--gate", "groundedness >= 80%")
    assert (stricter["gate"], stricter["confusion"]["fn"]) == ("groundedness >= 80%", 2)


def test_the_gate_of_the_project_counts():
    Path("pyproject.toml").write_text('[tool.rageval]\ngates.case = ["groundedness >= 2"]\n', encoding="utf-8")
    assert as_json(labels(*TWENTY), *READER)["gate"] == "groundedness >= 2"


def test_labels_that_contradict_themselves_are_counted_in_a_note():
    result = calibrate(labels(a_label("a", 5, human_score=1), a_label("b", 5)), *READER)
    assert "1 label has a human_score on the other side of groundedness >= 3.5" in result.output


def test_what_could_not_be_judged_is_in_no_figure_and_the_exit_code_is_1():
    result = calibrate(labels(*TWENTY, a_label("x", "refuse"), a_label("y", "break")), *READER)
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert "20 of 22 labelled answers scored" in lines[0]
    assert lines[lines.index("errors, in no figure: 2") + 1 :][:4] == [
        "  1  exception",
        "  1  timeout",
        "  error: no reply \\x1b[31m within 1 s",
        "  error: RuntimeError: lost",
    ]


def test_what_the_judge_does_not_score_is_counted_by_reason():
    says = {"question": "Who?", "answer": "Ada wrote it.", "contexts": ["Ada wrote it."], "human_pass": True}
    found = as_json(
        labels(
            {"id": "scored", **says},
            {"id": "bare", **says, "contexts": []},
            {"id": "blank", **says, "answer": " "},
            {"id": "abstains", **says, "answer": "I don't know."},
        )
    )
    assert found["unscored"] == {"the system abstained": 2, "there is no context to judge by": 1}
    assert found["n_scored"] == 1
    assert found["errors"] == {}


def test_scores_that_came_with_the_labels_need_no_judge():
    scored = [{"id": str(number), "human_pass": number > 2, "judge_score": number} for number in range(6)]
    found = as_json(labels(*scored), "--judge", "my_judges:Missing")
    assert found["n_scored"] == 6
    assert found["auroc"]["value"] == 1
    assert found["judge"]["models"] == []


def test_judgements_come_from_the_cache_the_second_time():
    labels(*TWENTY)
    calibrate("labels.jsonl", "--judge", "my_judges:Reader")
    asked = sys.modules["my_judges"].Reader.asked
    again = calibrate("labels.jsonl", "--judge", "my_judges:Reader", "--judge-cache", "replay")
    assert sys.modules["my_judges"].Reader.asked == asked == 4  # equal answers are judged once
    assert again.exit_code == 0


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(project.path)
    more = [a_case(f"again-{number}") for number in range(6)]
    project.cases([*SOME, *more])
    project.run()
    return project


def test_labels_of_a_runs_cases_take_what_the_run_judged_and_correct_its_pass_rate(project: Project):
    run = project.runs[-1].name
    name = labels(
        {"case_key": "evalcases/a.jsonl::boil", "human_pass": False},
        {"case_key": "evalcases/a.jsonl::freeze", "human_score": 5},
        {"run": "latest", "case_key": "evalcases/a.jsonl::unknown", "human_pass": True},
    )
    found = as_json(name, "--run", run, "--unlabelled", "latest")
    assert found["judge"]["heuristic"]
    assert found["unscored"] == {"the system abstained": 1}
    assert (found["confusion"]["fn"], found["confusion"]["tn"]) == (1, 1)
    more = found["pass_rate"]["unlabelled"]
    assert (more["n"], more["n_labelled"], more["n_without_score"]) == (7, 3, 0)
    assert more["by_judge"]["value"] == 1
    assert more["corrected"]["value"] == 0.5
    assert found["disagreements"][0]["id"] == "evalcases/a.jsonl::boil"


def test_a_named_judge_judges_a_runs_answers_anew(project: Project):
    name = labels({"run": "latest", "case_key": "evalcases/a.jsonl::boil", "human_pass": False})
    found = as_json(name, "--judge", "stub:1.5", "--unlabelled", "latest")
    assert found["confusion"]["tp"] == 1
    assert any("was judged by lexical" in note for note in found["notes"])


def test_cases_that_a_run_does_not_have_are_all_said(project: Project):
    labels(
        {"run": "latest", "case_key": "nowhere", "human_pass": True},
        {"run": "none-such", "case_key": "x", "human_pass": True},
        {"case_key": "y", "human_pass": True},
    )
    with pytest.raises(RagevalError) as caught:
        CliRunner().invoke(rageval, ["calibrate", "labels.jsonl"], catch_exceptions=False)
    run = project.runs[-1].name
    first, second, third = caught.value.problems
    assert first == f"labels.jsonl:1: run {run} has no case 'nowhere'"
    assert second.startswith("labels.jsonl:2: there is no run 'none-such'")
    assert third == "labels.jsonl:3: 'run' is missing: which run is case 'y' of? Or give --run"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rubric", "groundednes"], "--rubric 'groundednes': labels are compared by one of groundedness, "),
        (["--rubric", "citation_accuracy"], "citation_accuracy has no gate: say where passing begins with --gate"),
        (["--gate", "mrr >= 1"], "--gate 'mrr >= 1' is not on groundedness, which the labels are of"),
        (["--gate", "groundedness < 2"], "gate 'groundedness < 2': passing begins at a lower limit"),
        (["--gate", "groundedness >= 2 when category=a"], "without 'run', 'when' and 'off'"),
        (["--judge", "none"], "judge 'none': there is no judge to compare; name one with --judge"),
        (["--judge", "nobody"], "unknown judge 'nobody'"),
        (["--judge-cache", "sometimes"], "judge-cache"),
        (["--unlabelled", "latest"], "run 'latest'"),
        (
            ["--rubric", "relevance", "--judge", "my_judges:Reader"],
            "judge 'reader/1' does not have the rubric relevance",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], said: str):
    with pytest.raises(RagevalError) as caught:
        CliRunner().invoke(rageval, ["calibrate", labels(a_label("a", 5)), *arguments], catch_exceptions=False)
    (problem,) = caught.value.problems
    assert said in problem


def test_hostile_texts_are_shown_and_do_nothing():
    hostile = a_label(HOSTILE, 1, question=HOSTILE)
    result = calibrate(labels(hostile), *READER)
    assert "\\x1b[31m\\u202e{{ 7 * 7 }}" in result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output


def test_where_texts_are_redacted_ids_alone_are_shown():
    Path("pyproject.toml").write_text("[tool.rageval]\nredact = true\n", encoding="utf-8")
    hidden = a_label("only-the-id", 1, question="a private question")
    result = calibrate(labels(hidden), *READER)
    assert "only-the-id" in result.output
    assert "private" not in result.output
    assert "so it says" not in result.output


def judge_rows(project: Project) -> dict[str, str]:
    """The judge section of the newest run's report, written anew: names and texts."""
    project.rageval("report", "latest")
    html = (project.runs[-1] / "report.html").read_text(encoding="utf-8")
    section = html.partition('<section id="judge"')[2].partition("</section>")[0]
    return dict(re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', section))


def test_the_newest_calibration_of_a_run_s_judge_stands_in_its_report(project: Project):
    project.cases(SOME)
    project.run("--rageval-judge", "lexical")
    assert judge_rows(project)["agreement with people"] == "not measured: rageval calibrate measures it"
    words = "Water boils at 100 degrees."
    records = [
        {"id": str(n), "question": "Q?", "answer": words, "contexts": [words], "human_pass": n < 3} for n in range(4)
    ]
    project.write("labels.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    project.rageval("calibrate", "labels.jsonl", "--judge", "lexical")
    shown = unescape(judge_rows(project)["agreement with people: groundedness"])
    assert shown.startswith("0.75 (0.30 to 0.95) of 4 answers on the same side of groundedness >= 3.5, kappa 0.00: ")
    assert "(labels.jsonl, 20" in shown
    project.write("labels.jsonl", "".join(json.dumps(record) + "\n" for record in records[:3]))
    project.rageval("calibrate", "labels.jsonl", "--judge", "lexical")
    assert "of 3 answers" in judge_rows(project)["agreement with people: groundedness"]


def test_the_scores_of_a_run_are_a_calibration_of_its_judge_and_scores_that_labels_bring_are_nobody_s(project: Project):
    project.cases(SOME)
    project.run("--rageval-judge", "lexical")
    key = next(iter(project.records().values()))["case_key"]
    project.write("brought.jsonl", json.dumps(a_label("a", 4.0, judge_score=4.0)) + "\n")
    project.rageval("calibrate", "brought.jsonl")
    assert "agreement with people" in judge_rows(project)
    project.write("labels.jsonl", json.dumps({"id": "a", "case_key": key, "human_pass": True}) + "\n")
    assert project.rageval("calibrate", "labels.jsonl", "--run", "latest").ret == 0
    assert "of 1 answer on" in judge_rows(project)["agreement with people: groundedness"]


@pytest.mark.parametrize("content", ["", "[]", '{"lexical/4": {"groundedness": {"interval": 1}}}', '{"lexical/4": 7}'])
def test_a_damaged_file_of_calibrations_says_nothing(tmp_path: Path, content: str):
    (tmp_path / "cache").mkdir()
    (tmp_path / CALIBRATIONS).write_text(content, encoding="utf-8")
    assert stored_calibrations(tmp_path, {"model": "lexical/4"}) == ()
