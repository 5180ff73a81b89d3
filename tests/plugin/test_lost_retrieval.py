"""Retrieval that is no longer measured: chunks vanished from answers, or a system never reported any."""

from __future__ import annotations

from typing import Any

import pytest
from project import Project, a_case, lines_with

from pytest_rageval.metrics import load_registry
from pytest_rageval.runs.reservations import OF_RETRIEVAL

pytestmark = pytest.mark.reliability("false greens", "retrieval that nothing measured", costs="false green")

WHOLE = """
def answer(question):
    chunk = {"rel_path": "water.md", "text": "Water boils at 100 degrees."}
    return {"answer": "Water boils at 100 degrees.", "retrieved_chunks": [chunk]}
"""
WITHOUT_CHUNKS = """
def answer(question):
    reply = {"answer": "Water boils at 100 degrees."}
    return reply | ({"retrieved_chunks": []} if "nothing" in question else {})
"""
GOLD = {"gold": {"answer": "100 degrees"}, "gold_supports": [{"rel_path": "water.md"}]}


def places(count: int) -> list[dict[str, Any]]:
    return [a_case(f"q{number}", f"boiling point {number}?", **GOLD) for number in range(count)]


@pytest.fixture
def measured(project: Project) -> Project:
    """A project whose baseline measured the retrieval of four cases, and whose system now reports it in one."""
    project.write("whole.py", WHOLE)
    project.write("silent.py", WITHOUT_CHUNKS)
    project.configure('target = "whole:answer"\nknown_failures = "ratchet"')
    project.cases([*places(3), a_case("empty", "nothing?", **GOLD)])
    project.run("--rageval-update-baseline")
    project.configure('target = "silent:answer"\nknown_failures = "ratchet"')
    return project


OFF = ("--rageval-gate", "recall_any >= 0")
"""A gate of the user's own, that every case passes which has a value."""


def test_retrieval_that_the_baseline_measured_is_missed_in_the_verdict(measured: Project):
    measured.cases(places(3))
    result = measured.run()
    verdict = measured.metrics()["verdict"]
    words = "nothing got worse, but retrieval was not measured in 3 cases that the baseline measured"
    assert f"Passes: {words}." in verdict["sentence"]
    assert (verdict["tone"], verdict["word"], result.ret) == ("amber", "Retrieval unmeasured", 0)
    assert words in " ".join(measured.rageval("compare", "baseline", "latest").stdout.str().split())
    assert words in measured.rageval("comment", "latest").stdout.str()
    assert words in (measured.runs[-1] / "report.html").read_text(encoding="utf-8")


def test_means_over_different_cases_are_not_equal(measured: Project):
    whole = "def answer(question):\n    import whole, silent\n    where = whole if '0' in question else silent\n"
    measured.write("partly.py", f"{whole}    return where.answer(question)\n")
    measured.configure('target = "partly:answer"\nknown_failures = "ratchet"')
    measured.cases(places(3))
    measured.run()
    compared = measured.metrics()["comparison"]
    assert (compared["metrics"]["recall_any@5"]["verdict"], compared["metrics"]["recall_any@5"]["lost"]) == (
        "unmeasured", 2,
    )  # fmt: skip
    assert compared["layers"]["L2"]["delta"] is None
    assert [gate["passed"] for gate in measured.metrics()["gates"]] == [None]
    shown = measured.rageval("compare", "baseline", "latest")
    assert any("recall_any@5" in line and "lost in 2 cases" in line for line in shown.outlines)
    assert "lost in 2 cases" in (measured.runs[-1] / "report.html").read_text(encoding="utf-8")


def test_a_gate_that_the_user_wrote_fails_the_case_though_another_examined_it(measured: Project):
    result = measured.run(*OFF)
    assert measured.outcomes() == {"q0": "failed", "q1": "failed", "q2": "failed", "empty": "passed"}
    assert lines_with(result, "unmeasured: the baseline has recall_any@5; the system reports no retrieved chunks")
    causes = measured.metrics()["causes"]
    assert [(cause["kind"], len(cause["cases"])) for cause in causes] == [("unmeasured", 3)]
    outcomes = measured.metrics()["outcomes"]
    assert measured.rageval("gate", measured.runs[-1].name).ret == 1
    assert measured.metrics()["outcomes"] == outcomes


def test_without_a_baseline_the_verdict_counts_the_cases_whose_places_went_unmeasured(project: Project):
    project.write("silent.py", WITHOUT_CHUNKS)
    project.configure('target = "silent:answer"')
    project.cases([*places(4), a_case("plain", gold={"answer": "100 degrees"}, gold_supports=[])])
    project.run()
    sentence = project.metrics()["verdict"]["sentence"]
    assert "there is no baseline yet, but retrieval was not measured in 4 cases. 5 of 5 pass" in sentence
    project.rageval("score", "latest")
    assert project.metrics()["retrieval_unmeasured"] == 4


@pytest.mark.parametrize(
    "how",
    [("--rageval-skip", "retrieval"), ("--rageval-metrics", "gold_in_answer"), ("--rageval-gate", "recall_any off")],
)
def test_what_was_switched_off_is_not_missed(measured: Project, how: tuple[str, ...]):
    measured.cases(places(3))
    measured.run(*how, "--rageval-baseline", "none")
    assert "retrieval was not measured" not in measured.metrics()["verdict"]["sentence"]
    if how[0] != "--rageval-gate":
        measured.run(*how)
        assert "retrieval was not measured" not in measured.metrics()["verdict"]["sentence"]


def test_every_metric_that_compares_chunks_with_gold_counts_as_retrieval():
    needy = {
        metric.name for metric in load_registry() if {"chunks", "gold"} <= {*metric.needs} and metric.layer == "L2"
    }
    # Unanswerable cases have no gold place; the searches of an agent may be missing where its chunks are reported.
    others = {"negative_accuracy", "search_recall", "searches_to_gold"}
    assert needy - others == OF_RETRIEVAL


def test_an_answer_that_declines_loses_no_retrieval(measured: Project):
    declines = "    return whole.answer(question) | {'answer': 'I do not know.', 'abstained': True}\n"
    measured.write("declines.py", f"import whole\ndef answer(question):\n{declines}")
    measured.configure('target = "declines:answer"\nknown_failures = "ratchet"')
    measured.run()
    assert "retrieval was not measured" not in measured.metrics()["verdict"]["sentence"]
