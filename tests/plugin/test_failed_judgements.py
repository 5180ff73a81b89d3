"""A judgement that failed is an error of its metrics: of the case only where a gate reads one of them."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from typing import Any

import pytest
from project import Project, a_case, lines_with

pytestmark = pytest.mark.reliability("false greens", "failed judgements", costs="false green")

JUDGE = """
import pytest
from pytest_rageval import Judgement
from pytest_rageval.errors import JudgeError

class Judge:
    model = "own-judge-2026-01-01"
    heuristic = False
    rubrics = frozenset({{"abstention", "groundedness", "correctness", "relevance", "faithfulness", "composite"}})
    async def judge(self, request):
        if request.rubric in {failing} and "bad" in request.variables["question"]:
            raise JudgeError("timeout", "the judge said nothing")
        names = request.wording.scores
        low, high = request.wording.scale
        score = 0.0 if request.rubric == "abstention" else high
        return Judgement(request.rubric, dict.fromkeys(names, score), (low, high), model=self.model)
    async def aclose(self):
        pass

@pytest.fixture(scope="session")
def rag_judge():
    return Judge()
"""
OPEN_BOT = """
import bot
def answer(question):
    reply = bot.answer(question)
    del reply["abstained"]
    return reply
"""


def judged(project: Project, *failing: str, gates: str = "") -> Project:
    """Two cases, of which the judgements by these rubrics fail for the bad one."""
    project.cases([a_case("good", "boiling good"), a_case("bad", "boiling bad")])
    project.write("open.py", OPEN_BOT)
    project.write("conftest.py", JUDGE.format(failing=set(failing) or "()"))
    project.configure(f'target = "open:answer"\njudge_cache = "off"\n[tool.rageval.gates]\n{gates}')
    return project


def scores(project: Project, case: str) -> set[str]:
    return {name for name in project.records()[case]["scores"] if name in ("groundedness", "correctness")}


UNGATED = 'case = ["groundedness off"]'


def test_a_failed_judgement_that_a_gate_reads_is_an_error_of_its_case(project: Project):
    judged(project, "groundedness")
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    record = project.records()["bad"]
    assert (record["outcome"], record["error"]["kind"], record["scores"]) == ("error", "judge_timeout", {})
    assert record["judge"]["failed"]["groundedness"]["message"] == "the judge said nothing"
    metrics = project.metrics()["metrics"]
    assert (metrics["groundedness"]["n_error"], metrics["groundedness"]["n_scored"]) == (1, 1)
    assert metrics["judge_error_rate"]["mean"] == 0.5


def test_one_that_no_gate_reads_leaves_the_other_scores(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    result = project.run()
    result.assert_outcomes(passed=2)
    record = project.records()["bad"]
    assert (record["outcome"], record["error"]) == ("passed", None)
    assert record["metric_errors"] == {"groundedness": "judge_timeout: the judge said nothing"}
    assert "groundedness" not in record["skipped_metrics"]
    assert scores(project, "bad") == {"correctness"}
    assert record["scores"]["recall_any@5"] == 1
    metrics = project.metrics()
    counts = {name: metrics["metrics"][name]["n_error"] for name in ("groundedness", "correctness", "recall_any@5")}
    assert counts == {"groundedness": 1, "correctness": 0, "recall_any@5": 0}
    assert metrics["metrics"]["judge_error_rate"]["mean"] == 0.5
    assert metrics["judge_errors"] == ["evalcases/a.jsonl::bad"]


def test_every_face_flags_it(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    said = "judgements of 1 case failed (see judge.failed): evalcases/a.jsonl::bad"
    assert lines_with(project.run(), said)
    run = project.runs[-1]
    assert "judgements of 1 case failed" in (run / "summary.md").read_text(encoding="utf-8")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert said in page
    blocks = page.partition('id="blocks">')[2].partition("</script>")[0].split("\n")
    bodies = "".join(zlib.decompress(b64decode(block)).decode() for block in blocks)
    assert "groundedness has no score: judge_timeout: the judge said nothing" in bodies
    assert lines_with(project.rageval("explain", "latest", "bad"), "judge_timeout: the judge said nothing")


@pytest.mark.parametrize(
    "gate",
    [
        'run = ["groundedness >= 3"]',
        'case = ["groundedness >= 1"]',
        'case = ["groundedness >= 1 when category=factual"]',
    ],
)
def test_every_gate_in_effect_makes_it_an_error(project: Project, gate: str):
    judged(project, "groundedness", gates=gate)
    assert project.run().ret == 1
    assert project.outcomes()["bad"] == "error"


def test_a_gate_that_is_for_other_cases_does_not(project: Project):
    gates = 'case = ["groundedness off", "groundedness >= 1 when category=other"]'
    judged(project, "groundedness", gates=gates)
    project.cases([a_case("good"), a_case("bad", "boiling bad"), a_case("other", category="other")])
    assert project.run().ret == 0
    assert project.outcomes()["bad"] == "passed"


def test_a_metric_of_several_judgements_is_an_error_if_one_of_them_failed(project: Project):
    metrics = '[tool.rageval.metrics]\nenabled = ["recall_any", "composite", "relevance", "synthesis"]'
    judged(project, "composite", gates='case = ["relevance off", "over_abstention off"]\n' + metrics)
    project.run().assert_outcomes(passed=2)
    record = project.records()["bad"]
    assert set(record["metric_errors"]) == {"composite", "relevance"}
    assert record["scores"]["synthesis"] == 1  # by rule, of a single source
    assert record["scores"]["recall_any@5"] == 1


def test_where_the_classifier_failed_nobody_knows_what_applies(project: Project):
    names = ("groundedness", "correctness", "over_abstention", "gold_in_answer", "citation_recall")
    off = f"case = {[f'{name} off' for name in names]}"
    judged(project, "abstention", gates=off)
    project.run().assert_outcomes(passed=2)
    record = project.records()["bad"]
    assert {"groundedness", "correctness", "over_abstention", "token_f1"} <= set(record["metric_errors"])
    assert record["abstention"] is None
    assert record["scores"]["recall_any@5"] == 1


def test_a_metric_of_the_project_that_asks_for_it_is_an_error_too(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    own = (
        "\nfrom pytest_rageval import metric\n@metric(layer='L5', better='higher', needs=('judge:groundedness',))\n"
        "def own(obs):\n    return obs.judged('groundedness').scores['groundedness'] / 5\n"
        "def pytest_rageval_metrics(config):\n    return [own]\n"
    )
    project.write("conftest.py", (project.path / "conftest.py").read_text() + own)
    project.run().assert_outcomes(passed=2)
    assert set(project.records()["bad"]["metric_errors"]) == {"groundedness", "own"}


def test_trials_of_which_one_judgement_failed_have_no_mean_of_it(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    sometimes = (
        (project.path / "conftest.py")
        .read_text()
        .replace(" in request.variables", " in str(request.trial) + request.variables")
    )
    project.write("conftest.py", sometimes.replace('"bad"', '"1boiling bad"'))
    project.run("--rageval-repeat", "2")
    assert project.metrics()["metrics"]["groundedness"]["n_scored"] == 1
    assert project.metrics()["metrics"]["groundedness"]["n_error"] == 1
    assert project.metrics()["metrics"]["judge_error_rate"]["mean"] == 0.5


def test_what_is_stored_decides_again_as_the_run_did(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    project.run()
    run = project.runs[-1]
    kept = {name: (run / name).read_bytes() for name in ("results.jsonl", "metrics.json")}
    assert project.rageval("score", "latest").ret == 0
    assert {name: (run / name).read_bytes() for name in kept} == kept
    judged(project, "groundedness")  # its default gate is in effect again
    result = project.rageval("gate", "latest")
    assert result.ret == 1
    assert lines_with(result, "ERROR evalcases/a.jsonl::bad - the judge said nothing")


def test_shards_that_are_merged_keep_it(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    project.cases([a_case("bad", "boiling bad"), *(a_case(f"good{n}", f"boiling {n}") for n in range(8))])
    project.run("--rageval-run-id", "one", "--rageval-shard", "1/2")
    project.run("--rageval-run-id", "two", "--rageval-shard", "2/2")
    assert project.rageval("merge", "one", "two").ret == 0
    assert project.metrics()["judge_errors"] == ["evalcases/a.jsonl::bad"]
    assert project.metrics()["metrics"]["groundedness"]["n_error"] == 1


def test_no_baseline_is_made_of_it_unless_forced(project: Project):
    judged(project, "groundedness", gates=UNGATED)
    result = project.run("--rageval-update-baseline")
    assert result.ret == 1
    assert lines_with(result, "baseline not updated: judgements of 1 case failed")
    assert project.run("--rageval-update-baseline", "--rageval-force").ret == 0


def test_a_comparison_says_that_it_is_not_measured_now(project: Project):
    judged(project, gates=UNGATED)
    project.run("--rageval-update-baseline").assert_outcomes(passed=2)
    judged(project, "groundedness", gates=UNGATED)
    project.run()
    compared: dict[str, Any] = json.loads((project.runs[-1] / "metrics.json").read_text())["comparison"]
    assert compared["metrics"]["groundedness"]["n_unmeasured"] == 1
    assert compared["metrics"]["correctness"]["n_unmeasured"] == 0


def test_a_case_without_any_score_shows_no_mean(project: Project):
    judged(
        project, "groundedness", gates='case = ["groundedness off"]\n[tool.rageval.metrics]\nenabled = ["groundedness"]'
    )
    project.cases([a_case("bad", "boiling bad")])
    result = project.run("--rageval-gate", "over_abstention off", "--rageval-skip", "abstention")
    assert project.metrics()["metrics"]["groundedness"]["mean"] is None
    assert project.metrics()["overall_score"] is None
    assert project.records()["bad"]["outcome"] == "skipped"
    assert result.ret == 1
