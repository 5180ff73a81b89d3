"""A report holds the records of one case at a time, and no second copy of its own text."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import pytest
from stored_pages import page_between
from stored_runs import PAGE_PLAN, a_result, a_run, an_error, some_cases, store_full

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_list import list_cases
from pytest_rageval.io.atomic import write_parts
from pytest_rageval.render.html.case_view import read_case_lines
from pytest_rageval.render.html.report_page import report_html, report_parts
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.runs.columns import read_scores
from pytest_rageval.runs.reader import StoredRun

CASES = 200


def test_the_lines_of_cases_are_found_without_holding_their_records(tmp_path: Path):
    run = StoredRun(store_full(tmp_path, "now", some_cases(3, cases=CASES)))
    keys = {case.key for case in page_between(tmp_path, None, "now").cases}
    read_case_lines(run, keys)  # modules and patterns are loaded once
    tracemalloc.start()
    lines = read_case_lines(run, keys)
    found, _ = tracemalloc.get_traced_memory()
    every_line = list(lines.values())
    parsed = tracemalloc.get_traced_memory()[0] - found
    tracemalloc.stop()
    assert len(every_line) == CASES
    assert found < parsed / 4


def test_an_observation_damaged_after_it_was_found_costs_itself_alone(tmp_path: Path):
    folder = store_full(tmp_path, "now", some_cases(3, cases=4))
    keys = {case.key for case in page_between(tmp_path, None, "now").cases}
    damages: list[str] = []
    lines = read_case_lines(StoredRun(folder), keys, damages)
    path = folder / "observations.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"x" + whole[1:])
    assert sum(bool(case.observations) for case in lines.values()) == 3
    assert len(damages) == 1
    assert "observations.jsonl:1: " in damages[0]


@pytest.mark.parametrize("budget", [None, 2])
def test_a_report_in_parts_is_the_report(tmp_path: Path, budget: int | None):
    store_full(tmp_path, "now", some_cases(3, cases=5))
    page = page_between(tmp_path, None, "now")
    path = tmp_path / "report.html"
    write_parts(path, report_parts(page, budget=budget))
    assert path.read_text(encoding="utf-8") == report_html(page, budget=budget)


def test_places_of_records_are_kept_where_they_are_asked_for(tmp_path: Path):
    run = StoredRun(store_full(tmp_path, "now", some_cases(1, cases=3)))
    side = side_of_run(run)
    assert not list_cases(side).places
    listed = list_cases(side, with_places=True)
    assert listed.places.keys() == {case.key for case in listed.cases}


def test_the_aggregates_of_a_run_are_read_once_for_all_its_reports(tmp_path: Path):
    run = StoredRun(a_run(tmp_path, "now", a_result("q1"), an_error("q2", "no answer within 5 s")))
    scores = read_scores(run.path)
    assert scores is not None
    opened: list[str] = []
    is_watched = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if is_watched and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)  # cannot be removed
    write_all_reports(run, PAGE_PLAN, scores, tmp_path / "baseline.json", exit_status=1)
    is_watched = False
    assert (run.path / "report.html").is_file()
    assert opened.count(str(run.path / "metrics.json")) == 1
