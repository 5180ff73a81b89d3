"""Rubrics of a project's own: a new file is a new metric, a plain prompt is a rubric, mistakes are usage errors."""

from __future__ import annotations

from typing import Any

import pytest
from judge_server import JudgeServer
from project import Project, a_case

POLITENESS = """
version = "1"
scale = [0, 10]
prompt = '''
Is the answer polite?
The marker is {marker}.
<{marker} answer>
{answer}
</{marker} answer>
'''

[scores]
politeness = "score"

[schema]
type = "object"
required = ["score"]

[schema.properties.score]
type = "number"
"""
IN_WORDS = (
    "Compare with what is right.\nQuestion: {question}\nRight: {reference}\nAnswer: {answer}\nBased on: {contexts}\n"
)


@pytest.fixture
def own(project: Project) -> Project:
    project.configure('target = "bot:answer"\nrubrics = "rubrics"')
    project.cases([a_case("boil")])
    project.write("rubrics/README.md", "What {these} files are.")
    return project


def judged(project: Project, *replies: object, metrics: str = "politeness") -> tuple[pytest.RunResult, JudgeServer]:
    with JudgeServer(*replies) as server:
        result = project.run("--rageval-judge", f"openai:judge-1@{server.url}", "--rageval-metrics", metrics)
    return result, server


def record(project: Project) -> Any:
    return project.records()["boil"]


def test_a_new_rubric_is_a_new_metric_that_is_scored_gated_and_kept(own: Project):
    own.write("rubrics/politeness.toml", POLITENESS)
    with JudgeServer({"score": 6.5}) as server:
        options = ["--rageval-judge", f"openai:judge-1@{server.url}", "--rageval-metrics", "politeness"]
        result = own.run(*options)
        assert len(server.chats) == 1
        own.run(*options)
        assert len(server.chats) == 1
    result.stdout.fnmatch_lines(["*politeness is 6.5, gate >= 70% (L5_politeness_fail)*"])
    assert record(own)["scores"]["politeness"] == 6.5
    metric = own.metrics()["metrics"]["politeness"]
    assert (metric["layer"], metric["scale"], metric["better"]) == ("L5", [0, 10], "higher")


def test_a_metric_that_was_named_and_that_the_judge_has_no_words_for_is_missed_aloud(own: Project):
    own.write("rubrics/politeness.toml", POLITENESS)
    said = "politeness: named to be scored, and no case has a value; each case says why (rageval explain)"
    result = own.run("--rageval-metrics", "politeness,mrr")
    assert said in result.outlines
    own.rageval("explain", "latest", "boil").stdout.fnmatch_lines(["*no judge scored this: politeness"])
    own.run("--rageval-metrics", "politeness,mrr", "--rageval-judge", "stub:0.9").stdout.no_fnmatch_line("politeness:*")


def test_a_new_metric_is_scored_only_where_it_is_named(own: Project):
    own.write("rubrics/politeness.toml", POLITENESS)
    own.run("--rageval-judge", "stub:0.9").assert_outcomes(passed=1)
    assert "politeness" not in record(own)["scores"]
    own.run("--rageval-judge", "stub:0.9", "--rageval-gate", "politeness >= 9").assert_outcomes(passed=1)
    assert record(own)["scores"]["politeness"] == 9


def test_a_new_metric_is_listed_and_described_with_the_others(own: Project):
    own.write("rubrics/politeness.toml", POLITENESS)
    own.rageval("metrics").stdout.fnmatch_lines(["*politeness *0 to 10 *higher *Judged: the rubric `politeness` *"])
    own.rageval("metrics", "politeness").stdout.fnmatch_lines(["default gate:*politeness >= 70%*"])


def test_a_run_with_a_new_metric_can_be_gated_scored_and_compared_again(own: Project):
    own.write("rubrics/politeness.toml", POLITENESS)
    own.run("--rageval-judge", "stub:0.9", "--rageval-metrics", "politeness")
    own.rageval("gate", "latest", "--gate", "politeness >= 9.5").stdout.fnmatch_lines(["*politeness*"])
    assert own.rageval("score", "latest").ret == 0
    assert record(own)["scores"]["politeness"] == 9
    own.rageval("explain", "latest", "boil").stdout.fnmatch_lines(["*politeness*9*of 10*"])


MISTAKES = {
    "groundednes.toml": (POLITENESS, "unknown rubric 'groundednes'; did you mean 'groundedness'?"),
    "Correctness.md": (IN_WORDS, "unknown rubric 'Correctness'; did you mean 'correctness'?"),
    "be polite.md": (IN_WORDS, "'be polite' cannot be a metric's name"),
    "kindness.toml": (POLITENESS, 'scores holds politeness, expected kindness = "FIELD"'),
    "politeness.toml": (
        POLITENESS + "enum = [0, 5, 11]\n",
        "schema.properties.score.enum holds 11, beyond the scale [0, 10]; change one of them",
    ),
    "warmth.md": ("Is it polite?", "prompt has no {answer}, without which there is nothing to judge"),
    "tact.txt": ("Is {answer} {claim}?", "prompt has {claim}, which only claim_support is given"),
    "order.txt": ("Is {answr} ok?", "unknown placeholder {answr}; did you mean 'answer'? allowed: {answer}, "),
    "correctness.txt": ("{question} {answer} {Truth}", "unknown placeholder {Truth}; allowed: {answer}, "),
    "calm.md": ("Is {answer} calm?", ""),
    "calm.toml": (POLITENESS.replace("politeness", "calm"), "calm.md is the same rubric; keep one of the two"),
}


def test_mistakes_in_rubrics_are_a_line_each_before_anything_is_asked(own: Project):
    for name, (text, _) in MISTAKES.items():
        own.write(f"rubrics/{name}", text)
    result = own.run("--rageval-judge", "stub:0.9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for name, (_, problem) in MISTAKES.items():
        lines = [line for line in result.errlines if f"rubrics/{name}" in line]
        assert [problem in line for line in lines] == [True] * bool(problem), name
    assert not own.runs


def test_a_rubric_is_not_called_as_a_metric_that_no_judge_scores(own: Project):
    own.write("rubrics/mrr.md", IN_WORDS)
    result = own.run("--rageval-judge", "stub:0.9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*rubrics/mrr: 'mrr' is a metric already, which no judge scores; rename the file*"])


def test_a_prompt_in_plain_text_replaces_the_wording_of_a_shipped_rubric(own: Project):
    own.write("rubrics/correctness.txt", IN_WORDS)
    _, server = judged(own, {"score": 4.5, "reasoning": "so"}, metrics="correctness")
    assert record(own)["scores"]["correctness"] == 4.5
    instructions, material = (message["content"] for message in server.chats[0].json["messages"])
    assert "Right: (the reference answer, given below)" in instructions
    assert '"score" (a number from 0 to 5)' in instructions
    assert '"Water boils at 100 degrees at sea level."' in material
    assert all(f" {label}>" in material for label in ("question", "reference answer", "answer", "context"))


def test_a_prompt_in_plain_text_is_a_new_metric_from_0_to_1(own: Project):
    own.write("rubrics/politeness.md", 'Is {answer} polite? Reply as {"score": 0.5}.')
    result, server = judged(own, {"score": 0.65, "explanation": "curt"})
    assert record(own)["scores"]["politeness"] == 0.65
    assert 'Reply as {"score": 0.5}.' in server.chats[0].json["messages"][0]["content"]
    result.assert_outcomes(failed=1)


def test_a_rubric_that_reads_a_gold_answer_is_not_asked_where_there_is_none(own: Project):
    own.cases([a_case("boil", gold={})])
    own.write("rubrics/agreement.md", "Does {answer} say {reference}?")
    _, server = judged(own, {"score": 1, "reasoning": ""}, metrics="agreement")
    assert not server.chats
    assert record(own)["skipped_metrics"]["agreement"] == "no gold answer is labelled"
