"""A spot check of a run's judge: which answers, what a disagreement is, and where it is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from judge_server import JudgeServer
from project import RUN, SOME, StoredProject, a_case, command, problems
from stored_runs import change_lines

CASES = [*SOME[:2], *(a_case(f"more-{n:02}", f"What is the boiling point of water number {n}?") for n in range(28))]
OTHER = '''
from pytest_rageval import Judgement
from pytest_rageval.errors import JudgeError


class Other:
    """Says what the first judge says, but of freezing, and of water number 7, which it cannot judge."""
    model, heuristic, rubrics, is_local = "other/1", False, frozenset({"groundedness", "correctness"}), True

    async def judge(self, request):
        asked = request.variables["question"]
        if "number 7?" in asked:
            raise JudgeError("timeout", "too long")
        score = 3.5 if "freezing" in asked and request.rubric == "groundedness" else 4.0
        return Judgement(request.rubric, {request.rubric: score}, (0.0, 5.0), model=self.model)

    async def aclose(self):
        pass
'''


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredProject:
    project = StoredProject.new(tmp_path_factory.mktemp("checked"), CASES, 'target = "bot:answer"\njudge = "stub:4"')
    project.pytest()
    project.write("other.py", OTHER)
    return project


@pytest.fixture
def project(run: StoredProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredProject:
    project = run.copied(tmp_path / "p")
    monkeypatch.chdir(project.path)
    monkeypatch.syspath_prepend(project.path)
    monkeypatch.delitem(sys.modules, "other", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return project


def check(*arguments: str) -> list[str]:
    result = command("judge", RUN, "--spot-check", *arguments)
    assert result.exit_code == 0, result.output
    return list(result.output.splitlines())


def reliability(project: StoredProject) -> dict[str, object]:
    return project.json("metrics.json")["judge_reliability"]


def test_judges_that_agree(project: StoredProject):
    lines = check("--second-judge", "stub:5")
    assert lines[0] == "stub/4 and stub/5 on 20 answers"
    assert lines[-1] == "disagreement rate: 0 % of 20 answers"
    assert project.json("metrics.json")["aggregate_metrics"]["judge_reliability"] == {
        "disagreement_rate": 0.0,
        "spot_check_n": 20,
    }


def test_judges_more_than_a_point_apart(project: StoredProject):
    lines = check("--second-judge", "stub:2", "--spot-check-n", "7")
    assert "disagreement rate: 100 % of 7 answers" in lines
    assert lines[-1].startswith("WARNING: the judges disagree on 100 % of the answers")
    found = project.json("metrics.json")["judge_reliability"]
    assert found["by_rubric"]["groundedness"]["disagreement_rate"] == 1.0
    assert {pair["gate"] for pair in found["disagreements"] if pair["rubric"] == "groundedness"} == {
        "groundedness >= 3.5"
    }


def test_the_other_side_of_a_gate_is_a_disagreement_however_near(project: StoredProject):
    project.write("pyproject.toml", '[tool.rageval]\ntarget = "bot:answer"\njudge = "stub:4"\n')
    command("judge", RUN, "--judge", "stub:3.6")
    lines = check("--second-judge", "stub:3.4", "--spot-check-n", "4")
    assert "disagreement rate: 100 % of 4 answers" in lines
    for metric in ("groundedness ", "correctness "):  # both have a default gate at 3.5
        (line,) = [line for line in lines if line.startswith(metric)]
        assert line.split()[1:3] == ["4", "4"]


def test_the_answers_are_the_same_every_time_and_no_score_changes(project: StoredProject):
    before = project.files()
    check("--second-judge", "stub:2")
    once = project.files()
    check("--second-judge", "stub:2")
    assert project.files() == once
    changed = {name for name in before if before[name] != once[name]}
    assert changed == {"reports/metrics.json", "reports/runs/one/metrics.json", "reports/runs/one/summary.md"}


def test_answers_that_the_second_judge_cannot_judge_are_told_and_not_counted(project: StoredProject):
    lines = check("--second-judge", "other:Other", "--spot-check-n", "30")
    assert "1 answer could not be judged; the first: judge_timeout: too long" in lines
    assert reliability(project)["spot_check_n"] == 29
    assert reliability(project)["failed"] == 1
    assert "disagreement rate: 0 % of 29 answers" in lines


def test_a_model_is_asked_once_about_each_answer(project: StoredProject):
    with JudgeServer(score=1) as server:
        spec = f"openai:judge-1@{server.url}/v1"
        check("--second-judge", spec, "--spot-check-n", "5")
        asked = len(server.chats)
        assert asked == 10
        check("--second-judge", spec, "--spot-check-n", "5")
        assert len(server.chats) == asked


def test_the_runs_own_judge_is_no_second_opinion(project: StoredProject):
    (problem,) = problems(command("judge", RUN, "--spot-check", "--second-judge", "stub:4"))
    assert problem.startswith(
        "judge 'stub/4' is the run's own, with the same rubrics; a spot check needs another judge"
    )


def test_a_model_of_the_same_name_at_another_server_is_another_judge(project: StoredProject):
    with JudgeServer() as server, JudgeServer(score=2) as other:
        command("judge", RUN, "--judge", f"openai:judge-1@{server.url}")
        (problem,) = problems(
            command("judge", RUN, "--spot-check", "--second-judge", f"openai:judge-1@{server.url}/v1")
        )
        assert f"judge 'openai:judge-1@{server.url.removeprefix('http://')}/v1' is the run's own" in problem
        assert "disagreement rate: 100 % of 20 answers" in check("--second-judge", f"openai:judge-1@{other.url}")


def test_other_rubrics_can_be_the_second_opinion(project: StoredProject):
    shipped = Path(sys.modules["pytest_rageval"].__path__[0]) / "judges/rubrics/correctness.toml"
    project.write("own/correctness.toml", shipped.read_text(encoding="utf-8") + "\n# mine\n")
    assert check("--rubrics", "own")[0] == "stub/4 and stub/4 on 20 answers"


def test_it_stands_until_another_judge_has_judged(project: StoredProject):
    check("--second-judge", "stub:2")
    found = reliability(project)
    command("score", RUN)
    assert reliability(project) == found
    command("judge", RUN, "--judge", "stub:5")
    assert "judge_reliability" not in project.json("metrics.json")
    assert project.json("metrics.json")["aggregate_metrics"]["judge_reliability"] is None


def test_without_a_second_opinion_or_a_first_one_there_is_nothing_to_check(project: StoredProject):
    for wrong in (
        ["--spot-check"],
        ["--spot-check-n", "5"],
        ["--spot-check", "--second-judge", "stub:1", "--claim-level"],
    ):
        assert command("judge", RUN, *wrong).exit_code == 2
    change_lines(
        project.folder() / "observations.jsonl", lambda line: json.dumps(json.loads(line) | {"judgements": {}})
    )
    assert problems(command("judge", RUN, "--spot-check", "--second-judge", "stub:1")) == [
        f"run {RUN} has no judgements to check; `rageval judge {RUN}` makes some"
    ]
