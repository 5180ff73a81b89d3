"""A case passes where a gate has looked at its gold; what could not be looked at, or is not asked for, is no pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from project import ASSERT_GATES, Project, a_case, lines_with

pytestmark = pytest.mark.reliability("false greens", "gold that no gate reads", costs="false green")

TALKER = "def answer(question):\n    return 'Water boils at 100 degrees at sea level.'\n"
PLACES = {**a_case("places"), "gold": None}
"""A case that is labelled with places alone."""


def settings(project: Project, target: str, extra: str = "") -> None:
    project.configure(f'target = "{target}"', extra)


def silent(project: Project, source: str = TALKER) -> None:
    """A bot that talks, and says nothing of what it found."""
    project.write("talker.py", source)
    settings(project, "talker:answer")


def test_gold_of_which_the_system_reports_nothing_skips_the_case_with_the_reason(project: Project):
    silent(project)
    project.cases([PLACES, a_case("both")])
    result = project.run("-rs")
    result.assert_outcomes(passed=1, skipped=1)
    assert project.outcomes() == {"places": "skipped", "both": "passed"}
    assert lines_with(result, "its gold could not be looked at (recall_any@5): the system reports no retrieved chunks")
    assert result.ret == 0


def test_gold_that_no_gate_is_meant_for_may_pass_and_is_counted(project: Project):
    silent(project)
    project.cases([PLACES, {"id": "facts", "question": "What is the boiling point of water?",
                            "expected_key_facts": ["100 degrees"]}])  # fmt: skip
    result = project.run("--rageval-gate", "recall_any off", "--rageval-gate", "key_fact_recall off")
    result.assert_outcomes(passed=2)
    assert lines_with(result, "2 cases passed though no gate looked at the gold")
    assert project.metrics()["gold_without_gate"] == 2


def test_a_gold_answer_that_no_gate_compares_is_counted_though_its_places_are_gated(project: Project):
    long = "At sea level, where a column of air weighs most, clean water boils at a hundred degrees"
    project.cases([a_case("long", gold={"answer": long}), a_case("short", gold={"answer": "100 degrees"})])
    result = project.run()
    result.assert_outcomes(passed=2)
    assert lines_with(result, "1 case has a gold answer that no gate compares")
    assert project.metrics()["answers_without_gate"] == 1
    project.run("--rageval-gate", "token_recall >= 0.1")
    assert project.metrics()["answers_without_gate"] == 0
    project.rageval("score", "latest")
    assert project.metrics()["answers_without_gate"] == 0


LONG = "At sea level, where a column of air weighs most, clean water boils at a hundred degrees"


@pytest.mark.parametrize(
    ("gold", "is_gated"),
    [
        ({"answer": "at a hundred degrees, it boils"}, True),
        ({"answer": LONG}, False),
        ({"answer": [LONG, "a hundred degrees"]}, False),
        ({"answer": LONG, "doc_chunk_ids": ["c1"]}, True),
        ({"answer": LONG, "concepts": []}, True),
        ({"answer": "清洁的水在海平面一百度沸腾"}, False),
        ({"answer": "一百度"}, True),
    ],
)
def test_the_default_gate_on_token_f1_looks_at_short_gold_answers_and_at_layered_cases(
    project: Project, gold: dict[str, Any], is_gated: bool
):
    silent(project, "def answer(question):\n    return 'It turns into steam.'\n")
    project.cases([{"id": "boiling", "question": "When does water boil?", "gold": gold}])
    result = project.run()
    assert project.outcomes() == {"boiling": "failed" if is_gated else "passed"}
    assert bool(lines_with(result, "1 case passed though no gate looked at the gold")) is not is_gated


def test_a_gate_may_ask_for_long_gold_answers_and_leaves_the_default_one_to_the_rest(project: Project):
    silent(project, "def answer(question):\n    return 'It turns into steam.'\n")
    project.cases([
        {"id": "long", "question": "When?", "gold": {"answer": LONG}},
        {"id": "short", "question": "Where?", "gold": {"answer": "at sea level"}},
    ])  # fmt: skip
    project.run("--rageval-gate", "token_f1 >= 0.9 when answer=long")
    assert project.outcomes() == {"long": "failed", "short": "failed"}
    assert lines_with(project.run("--rageval-gate", "token_f1 >= 0.9 when answer=longish"), "expected short or long")


@pytest.mark.parametrize("how", [[], pytest.param(["-n", "1"], marks=pytest.mark.child_process)])
def test_what_the_baseline_examined_and_this_run_does_not_is_unmeasured(project: Project, how: list[str]):
    project.cases([PLACES, a_case("both")])
    project.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    assert project.run("--rageval-update-baseline").ret == 0
    project.write("talker.py", TALKER)
    result = project.run("--rageval-target", "talker:answer", "--rageval-ignore-invariants", *how)
    assert project.outcomes() == {"places": "failed", "both": "passed"}
    assert lines_with(result, "unmeasured: the baseline has recall_any@5; the system reports no retrieved chunks")


def test_decided_again_from_its_records_a_case_ends_as_it_did(project: Project):
    silent(project)
    project.cases([PLACES, a_case("both")])
    project.run()
    outcomes = project.metrics()["outcomes"]
    run = project.runs[-1].name
    assert project.rageval("gate", run).ret == 0
    assert project.rageval("score", run).ret == 0
    assert project.metrics()["outcomes"] == outcomes
    assert lines_with(project.rageval("gate", run, "--gate", "recall_any off"), "2 cases: 2 passed")


GRAPH_GOLD = {"doc_chunk_ids": ["c1"], "kg_entities": ["water"]}
GRAPH = {"id": "graph", "question": "What is the boiling point of water?",
         "gold": {"doc_chunk_ids": ["c1"], "kg_entities": ["water"]}}  # fmt: skip


def test_where_the_graph_is_not_reported_recall_of_ids_gates(project: Project):
    project.cases([GRAPH, {**GRAPH, "id": "missed", "gold": {**GRAPH_GOLD, "doc_chunk_ids": ["c9"]}}])
    result = project.run()
    assert project.outcomes() == {"graph": "passed", "missed": "failed"}
    assert lines_with(result, "context_recall@5 is 0, gate >= 0.8 (L2_doc_retrieval_fail)")


def test_where_the_graph_is_reported_it_gates_in_the_place_of_recall(project: Project):
    project.write(
        "graphbot.py",
        "import bot\ndef answer(question):\n    given = bot.answer(question)\n"
        "    given['debug']['trace'] = {'kg_entities': ['water'], 'entities': [{'id': 'water'}]}\n    return given\n",
    )
    settings(project, "graphbot:answer")
    project.cases([{**GRAPH, "gold": {**GRAPH_GOLD, "doc_chunk_ids": ["c9"]}}])
    project.run().assert_outcomes(passed=1)


ANSWERED = {"id": "answered", "question": "What is the boiling point of water?", "gold": {"answer": "100 degrees"}}
CHUNKS = [{"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": "x"}]
NOTHING = {"answer": None, "debug": {"retrieved_chunks": CHUNKS}}


def check_no_answer(project: Project, *arguments: str) -> None:
    result = project.run(*arguments)
    result.assert_outcomes(errors=1)
    assert project.records()["answered"]["error"]["kind"] == "no_answer"
    assert lines_with(result, "no_answer: ")
    assert project.metrics()["metrics"]["error_rate"]["mean"] == 1


@pytest.mark.parametrize(
    "source",
    ["def answer(question):\n    return None\n", f"def answer(question):\n    return {NOTHING!r}\n",
     "from pytest_rageval import Answer\ndef answer(question):\n    return Answer()\n"],
)  # fmt: skip
def test_no_answer_of_a_function_is_an_error_of_its_own_kind(project: Project, source: str):
    silent(project, source)
    project.cases([ANSWERED])
    check_no_answer(project)


def test_no_answer_in_a_file_or_in_a_run_is_the_same_error(project: Project):
    project.cases([ANSWERED])
    project.write("given.answers.jsonl", '{"id": "answered", "answer": null}\n')
    check_no_answer(project, "--rageval-target", "answers:given.answers.jsonl")
    check_no_answer(project, "--rageval-target", f"run:{project.runs[-1].name}")


def test_who_declines_or_is_not_asked_for_an_answer_has_one(project: Project):
    silent(project, "def answer(question):\n    return {'answer': None, 'abstained': True}\n")
    project.cases([{**ANSWERED, "answerable": False}, {"id": "open", "question": "What is water?"}])
    project.run()
    assert "error" not in project.outcomes().values()


def test_in_a_retrieval_only_run_a_missing_answer_leaves_retrieval_to_be_measured(project: Project):
    silent(project, f"def answer(question):\n    return {NOTHING!r}\n")
    project.cases([a_case("boil")])
    assert project.run("--rageval-retrieval-only").ret == 0
    record = project.records()["boil"]
    assert record["scores"]["recall_any@5"] == 1
    assert not {"token_f1", "abstention_accuracy", "over_abstention"} & record["scores"].keys()


WRONG = """
import bot
def answer(question):
    return bot.answer(question) | ({"answer": "Never."} if "wrong" in question else {})
"""
RETRIEVAL = "--rageval-retrieval-only"


@pytest.fixture
def settled(project: Project) -> Project:
    """A project whose baseline has a wrong answer, which the present bot gives right."""
    project.write("wrong.py", WRONG)
    project.cases([a_case(f"q{n}", f"boiling {'wrong' if n == 0 else 'fine'} {n}?") for n in range(6)])
    project.run("--rageval-target", "wrong:answer", "--rageval-update-baseline")
    return project


def test_a_retrieval_only_run_fixes_no_answer_and_gives_no_advice_to_accept_it(settled: Project):
    result = settled.run(RETRIEVAL)
    comparison, verdict = settled.metrics()["comparison"], settled.metrics()["verdict"]
    assert (comparison["flipped_to_pass"], comparison["not_measured"]) == ([], ["evalcases/a.jsonl::q0"])
    passes = "Passes: nothing got worse, but answers were not measured. 6 of 6 pass, was 5; 1 case that failed was"
    assert verdict["sentence"].startswith(passes)
    assert not lines_with(result, "--rageval-update-baseline")
    assert lines_with(result, "failed in the baseline by gates that were not measured now")
    compared = settled.rageval("compare", "baseline", "latest")
    assert "Failed before, and the gates that failed were not measured now (1)" in compared.stdout.str()


def test_what_is_measured_again_is_fixed(settled: Project):
    result = settled.run()
    assert settled.metrics()["comparison"]["flipped_to_pass"] == ["evalcases/a.jsonl::q0"]
    assert settled.metrics()["verdict"]["word"] == "Better"
    assert lines_with(result, "tighten it with --rageval-update-baseline")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ([RETRIEVAL], "the run is retrieval-only"),
        (["--rageval-skip", "answer"], "1 case that failed was not measured: evalcases/a.jsonl::q0"),
    ],
)
def test_it_becomes_the_baseline_by_force_alone(settled: Project, how: list[str], why: str):
    file = settled.path / "reports" / "baseline.json"
    before = file.read_text(encoding="utf-8")
    result = settled.run(*how, "--rageval-update-baseline")
    assert (result.ret, file.read_text(encoding="utf-8")) == (pytest.ExitCode.TESTS_FAILED, before)
    assert lines_with(result, f"baseline not updated: {why}")
    assert settled.run(*how, "--rageval-update-baseline", "--rageval-force").ret == 0
    assert file.read_text(encoding="utf-8") != before


def test_layers_and_the_overall_score_of_other_metrics_show_no_change_and_why(settled: Project):
    settled.run(RETRIEVAL)
    comparison = settled.metrics()["comparison"]
    overall, answer = comparison["metrics"]["overall_score"], comparison["layers"]["L5"]
    assert (overall["delta"], answer["delta"], comparison["layers"]["L2"]["delta"]) == (None, None, 0)
    assert overall["why"].startswith("not of the same metrics: ")
    assert answer["why"].startswith("not of the same metrics: ")
    compared = settled.rageval("compare", "baseline", "latest").stdout.str()
    assert "overall score: not compared, since only one of the runs has a value of " in compared
    assert "L5: not compared, since only one of the runs has a value of " in compared


def test_tiles_of_whole_runs_show_no_change_where_the_cases_are_others(settled: Project):
    settled.run("-k", "q1 or q2")
    page = (settled.runs[-1] / "report.html").read_text(encoding="utf-8")
    tiles = page[page.index('<section class="tiles"') : page.index('<div class="two">')]
    speed = tiles[tiles.index("p50 latency") :]
    assert "was" not in re.sub(r"<[^>]+>", " ", speed).split()
    assert 'title="not of the same cases">–<' in speed
    assert settled.metrics()["comparison"]["metrics"]["overall_score"]["why"] == "not of the same cases"


def test_heat_colours_the_change_and_not_the_level(settled: Project):
    settled.run("--rageval-run-id", "fixed")
    page = report(settled.runs[-1])
    assert "heat rise shade" in page
    assert "heat fall" not in page
    settled.run("--rageval-update-baseline")
    settled.run("--rageval-target", "wrong:answer", "--rageval-run-id", "worse")
    assert "heat fall shade" in report(settled.path / "reports/runs/worse")
    settled.run("--rageval-baseline", "none", "--rageval-run-id", "alone")
    alone = report(settled.path / "reports/runs/alone")
    assert "heat  shade0" in alone
    assert "heat fall" not in alone
    assert "heat rise" not in alone


def report(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_a_rate_that_is_bad_when_high_rose(project: Project):
    stray = "import bot\ndef answer(question):\n    return bot.answer(question) | {'abstained': True}\n"
    project.write("stray.py", stray)
    project.cases([a_case(f"q{n}", f"boiling {n}?") for n in range(6)])
    project.run("--rageval-update-baseline")
    project.run("--rageval-target", "stray:answer")
    page = report(project.runs[-1])
    row = page[page.index("over_abstention", page.index('id="metrics"')) :]
    assert "6 cases rose</summary>" in row[: row.index("</details>")]
    assert "6 rose</a>" in page


@pytest.mark.parametrize("case_id", ["one", "one::two"])
def test_questions_without_gold_are_no_measured_answers_whatever_their_ids(project: Project, case_id: str):
    silent(project)
    project.cases([{"id": case_id, "question": "What boils?"}])
    assert project.run().ret == 0
    assert "answers were not measured" in project.metrics()["verdict"]["sentence"]


def test_a_test_of_the_project_measures_answers_by_itself(project: Project):
    silent(project)
    project.cases([{"id": "one::two", "question": "What boils?"}])
    project.own_test("evalcases/a.jsonl", ASSERT_GATES)
    project.run("test_own.py").assert_outcomes(passed=1)
    assert "answers were not measured" not in project.metrics()["verdict"]["sentence"]
