"""A gate that was not measured fixed nothing, and figures of different metrics or cases are not compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project import Project, a_case, lines_with

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
    assert verdict["sentence"].startswith("Not worse: 0 cases newly fail, 0 fixed, 6 of 6 pass; 1 case that failed was")
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
    assert "overall score: no change is shown, not of the same metrics: " in compared
    assert "L5: no change is shown, not of the same metrics: " in compared


def test_tiles_of_whole_runs_show_no_change_where_the_cases_are_others(settled: Project):
    settled.run("-k", "q1 or q2")
    page = (settled.runs[-1] / "report.html").read_text(encoding="utf-8")
    tiles = page[page.index('<section class="tiles"') : page.index('<div class="two">')]
    speed = tiles[tiles.index("p95 latency") :]
    assert "was" not in re.sub(r"<[^>]+>", " ", speed).split()
    assert "no change: not of the same cases" in speed
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
