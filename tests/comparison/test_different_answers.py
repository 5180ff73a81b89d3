"""Which answers differ from those of the run compared with, and what no gate looked at: as filters and as chips."""

from __future__ import annotations

import re
from typing import Any

import pytest
from project import Project

from pytest_rageval.comparison.baseline import open_side
from pytest_rageval.comparison.case_filter import CaseFilter, FilterError, filtered_keys
from pytest_rageval.config.settings import Settings
from pytest_rageval.render.html.page_run import PageRun, read_page
from pytest_rageval.render.html.report_page import page_start
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.web.opened_runs import cases_of_report
from pytest_rageval.web.side_by_side import SideBySide

BOT = '''
import os

LONG = "Water is a liquid that covers most of the earth. " * 6


def answer(question):
    """Answer in other words once OTHER is set, or in a text that differs only behind what records keep."""
    other = os.environ.get("OTHER")
    if "long" in question:
        return LONG + ("Salt water, that is." if other and "end" in question else "Sweet water, that is.")
    if "broken" in question and other:
        raise ValueError("broken")
    return "In other words." if other and "short" in question else "The same words."
'''
QUESTIONS = {
    "equal": "equal?", "short": "short?", "long": "long?", "end": "long, and another end?", "broken": "broken?",
}  # fmt: skip


def the_page(project: Project) -> PageRun:
    reports = project.path / "reports"
    sides = [open_side(reports, reports / "baseline.json", name) for name in ("after", "before")]
    return read_page(sides[0], sides[1], Settings(), is_chosen=True)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("answers"))
    project.write("bot.py", BOT)
    project.cases({"id": name, "question": question} for name, question in QUESTIONS.items())
    project.configure('target = "bot:answer"')
    project.rageval("run", "--run-id", "before")
    project.rageval("run", "--run-id", "after", OTHER="1")
    return project


@pytest.mark.parametrize(
    ("word", "found"),
    [("different", {"short", "end"}), ("same", {"equal", "long"}), ("unknown", {"broken"})],
)
def test_answers_that_differ_are_found_also_behind_what_records_keep(compared: Project, word: str, found: set[str]):
    page = the_page(compared)
    numbers = CaseFilter(page.listed).numbers(f"answer:{word}")
    assert {page.cases[number].id for number in numbers} == found
    chips = {label: (query, cases) for label, query, cases in page_start(page).chips}
    assert chips["different answers"] == ("answer:different", 2)


def test_the_page_of_two_agents_counts_the_same(compared: Project):
    reports = compared.path / "reports"
    sides = [open_side(reports, reports / "baseline.json", name) for name in ("before", "after")]
    a, b = (cases_of_report(read_page(side, None, Settings(), is_chosen=True)) for side in sides)
    found = {case.b.id for case in SideBySide(a, b).matching("different")}
    assert found == {"short", "end"}


def test_a_cut_answer_is_unknown_once_its_observation_is_gone(compared: Project):
    observations = compared.path / "reports" / "runs" / "before" / "observations.jsonl"
    kept = observations.read_bytes()
    observations.unlink()
    try:
        page = the_page(compared)
    finally:
        observations.write_bytes(kept)
    assert {case.id for case in page.cases if case.answer_change == "unknown"} == {"long", "end", "broken"}


def test_without_another_run_the_filter_says_that_answers_are_compared_with_none(compared: Project):
    reports = compared.path / "reports"
    page = read_page(open_side(reports, reports / "baseline.json", "after"), None, Settings(), is_chosen=True)
    with pytest.raises(FilterError, match="the answers of run after are compared with none here"):
        CaseFilter(page.listed).numbers("answer:different")
    assert "different answers" not in {label for label, _, _ in page_start(page).chips}


OFF = [f'"{metric} off"' for metric in ("recall_any", "recall_all", "hits", "key_fact_recall", "over_abstention")]
LONG = "Seven quite different words stand within this rather extensive golden reply, which nobody shortens."
NOTES: dict[str, tuple[dict[str, Any], str]] = {
    "gates": ({"id": "g", "question": "equal?"}, "examined by no gate"),
    "gold": (
        {"id": "g", "question": "equal?", "gold_supports": [{"rel_path": "a.md"}]},
        "passed though no gate looked at the gold",
    ),
    "facts": ({"id": "g", "question": "equal?", "expected_key_facts": ["words"]}, "key facts that no gate looks at"),
    "answer": (
        {"id": "g", "question": "equal?", "gold": {"answer": LONG}},
        "gold answer that no gate compares",
    ),
}


@pytest.mark.parametrize("word", NOTES)
def test_a_note_on_cases_names_the_filter_that_lists_them(project: Project, word: str):
    case, text = NOTES[word]
    project.write("bot.py", BOT)
    project.cases([case, {"id": "other", "question": "short?", "gold": {"answer": "words"}}])
    gates = f"[tool.rageval.gates]\ncase = [{', '.join(OFF)}]\n"
    project.configure(f'target = "bot:answer"\n{gates}')
    shown = project.rageval("run").stdout.str()
    [note] = [line for line in shown.splitlines() if text in line]
    [found] = re.findall(r"\(filter (\S+)\)$", note)
    keys = filtered_keys(StoredRun(project.runs[-1]), found, "--only")
    assert "evalcases/a.jsonl::g" in keys
    number = int(note.split()[0])
    assert len(keys) == number
