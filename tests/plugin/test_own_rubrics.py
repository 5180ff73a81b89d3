"""Rubrics and ontologies of the project's own."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from judge_server import JudgeServer
from project import Project, a_case, lines_with

from pytest_rageval.demo import __file__ as demo

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


FOLDER = demo.rpartition("/")[0] + "/knowledge"
BOT = """
def answer(question):
    wrong = "boiling" in question
    types = {"moru": "Brand", "korea": "Market", "pad": "Product"} | ({"onda": ["Brand", "Market"]} if wrong else {})
    inference = {"subject": "moru", "predicate": "hasProduct", "object": "onda" if wrong else "pad"}
    trace = {"inferences": [inference], "entity_types": types}
    return {"answer": "Water boils at 100 degrees at sea level.", "trace": trace}
"""
TOML = 'ontology = "ontology.toml"'
SHACL = 'ontology = ["ontology.ttl", "ontology.shacl.ttl"]'


@pytest.fixture
def shop(project: Project) -> Project:
    """A project whose bot infers something right or, asked about boiling, something wrong."""
    project.write("bot.py", BOT)
    for name in ("ontology.toml", "ontology.ttl", "ontology.shacl.ttl"):
        shutil.copy(f"{FOLDER}/{name}", project.path / name)
    project.cases([a_case("wrong", gold_supports=[]), a_case("right", "What is it?", gold_supports=[])])
    return project


def configured(shop: Project, table: str, more: str = "") -> Project:
    shop.configure(f'target = "bot:answer"\n{table}\n', more)
    return shop


@pytest.mark.parametrize("table", [TOML, SHACL])
def test_what_violates_the_ontology_fails_its_gates_in_either_form(shop, table):
    result = configured(shop, table).run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shop.outcomes() == {"wrong": "failed", "right": "passed"}
    record = shop.records()["wrong"]
    assert [gate["tag"] for gate in record["verdict"]["failed_gates"]] == [
        "L4_constraint_violation", "L4_type_inconsistency",
    ]  # fmt: skip
    assert (record["scores"]["constraint_violation_rate"], record["scores"]["type_consistency_rate"]) == (1, 0.75)
    assert "self_reported" not in record["score_details"]["constraint_violation_rate"]


def test_without_an_ontology_nothing_of_l4_is_scored(shop):
    assert configured(shop, "").run().ret == 0
    assert "no ontology is configured" in shop.records()["wrong"]["skipped_metrics"]["constraint_violation_rate"]
    assert shop.config()["ontology"] is None


def test_a_change_within_the_ontology_is_a_change_of_the_configuration(shop):
    configured(shop, TOML).run("--rageval-run-id", "1")
    before = shop.config()
    with (shop.path / "ontology.toml").open("a", encoding="utf-8") as file:
        file.write("# more\n")
    shop.run("--rageval-run-id", "2")
    assert before["ontology"] != shop.config()["ontology"]
    assert before["config_hash"] != shop.config()["config_hash"]


def test_a_redacted_record_says_how_many_but_not_what(shop):
    configured(shop, TOML).run("--rageval-redact")
    details = shop.records()["wrong"]["score_details"]
    assert details["constraint_violation_rate"] == {"inferences": 1, "violating": 1}
    assert details["type_consistency_rate"] == {"entities": 4, "inconsistent": 1}


def test_all_that_is_wrong_with_an_ontology_stops_the_run_with_other_problems(shop):
    shop.write("ontology.toml", 'classes.A = { parents = ["B"] }\nproperties.p = { domain = "C" }\n')
    result = configured(shop, TOML + '\ngates.case = ["mrrr >= 1"]').run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for said in (
        "ontology.toml: classes.A.parents is 'B', no class of it; known: A",
        "ontology.toml: properties.p.domain is 'C', no class of it; known: A",
        "unknown metric 'mrrr'; did you mean 'mrr'?",
    ):
        assert lines_with(result, said)
    assert not lines_with(result, "Traceback")


@pytest.mark.parametrize(
    ("table", "more", "said"),
    [
        ('ontology = "none.toml"', "", "ontology: none.toml cannot be read: No such file or directory; mend the path"),
        ("ontology = 3", "", "ontology is 3 (a number), expected a path or a list of paths"),
        ('ontology = ["a.ttl", 3]', "", "ontology[1] is 3 (a number), expected a string"),
        (TOML, '[tool.rageval.metrics]\nconstraint_violation_rate = { ontology = "ontology.toml" }',
         "metrics.constraint_violation_rate.ontology is not an option of this metric"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_said_in_one_line(shop, table, more, said):
    result = configured(shop, table, more).run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, said)
