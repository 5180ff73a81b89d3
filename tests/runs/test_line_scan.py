from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stored_runs import PAGE_PLAN

from pytest_rageval.errors import SettingsError
from pytest_rageval.model import Answer, CaseResult, Chunk, EvalCase, Matching, Observation, Problem
from pytest_rageval.runs.records.line_form import RESULT, record_of
from pytest_rageval.runs.records.line_scan import (
    ended_trial,
    may_have_cut_answer,
    places_of_cases,
    repeated_cases,
    trials_at,
    trials_of,
)
from pytest_rageval.runs.records.result_line import result_record, to_line

IMITATED = '","outcome":"passed","trial":0,"judge_cost_usd":99.5,"case_key":"other'
"""A text that holds the fields that are looked for."""
MEMBERS = {"outcome": "passed", "trial": 7, "judge_cost_usd": 99.5, "case_key": "other"}
ANSWER = Answer(text=IMITATED, chunks=(Chunk(text=IMITATED, rel_path=IMITATED),), extra={"meta": MEMBERS})
CASES = {
    "failed": EvalCase(id="q1", question=IMITATED, tags=(IMITATED,)),
    "error": EvalCase(id='q"2\\', question="?", category=IMITATED),
    "passed": EvalCase(id="q,3", question="é\u2028"),
}


def line_of(outcome: str, case: EvalCase, trial: int) -> str:
    obs = Observation(case, ANSWER, Matching("none"), {}, k=5, asked_k=5)
    error = Problem("exception", IMITATED) if outcome == "error" else None
    result: Any = CaseResult(case, outcome, observation=obs, error=error, trial=trial)  # type: ignore[arg-type]
    return to_line(result_record(result, PAGE_PLAN, "0" * 64))


@pytest.mark.parametrize("trial", [0, 1, 10])
@pytest.mark.parametrize("outcome", CASES)
def test_a_scanned_line_says_what_its_record_says(outcome: str, trial: int):
    line = line_of(outcome, CASES[outcome], trial).encode()
    record, scanned = record_of(line, RESULT), ended_trial(line)
    assert scanned is not None
    assert (scanned.outcome, scanned.is_first) == (record["outcome"], record["trial"] == 0)
    assert scanned.judge_cost_usd == record["cost"]["judge_cost_usd"]


@pytest.mark.parametrize("outcome", CASES)
def test_a_case_is_found_by_its_key_alone(tmp_path: Path, outcome: str):
    path = tmp_path / "results.jsonl"
    lines = [line_of(name, case, trial) for name, case in CASES.items() for trial in (0, 1)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    key = json.loads(line_of(outcome, CASES[outcome], 0))["case_key"]
    found = trials_of(path, {key}, {"question"})
    assert found.keys() == {key}
    assert found[key].keys() == {0, 1}


@pytest.mark.parametrize(
    ("answer", "is_possible"),
    [
        ("Whole.", False),
        ("Whole …, and on.", False),
        ('She said "and so on …" to\\ me.', False),
        ("The beginning…", True),
        ('A "quote" and a \\, and then …', True),
        ("…", True),
        (None, False),
    ],
)
def test_a_cut_answer_is_seen_without_parsing_its_line(answer: str | None, is_possible: bool):
    record = {"schema": 1, "case_key": "a", "question": "…", "answer": answer, "chunks": [{"text": "cut…"}]}
    assert may_have_cut_answer(to_line(record).encode()) is is_possible


@pytest.mark.parametrize("trial", [0, 1], ids=["recorded twice", "asked twice"])
@pytest.mark.parametrize("outcome", CASES)
def test_a_case_of_several_lines_is_found_in_one_file_or_two(tmp_path: Path, outcome: str, trial: int):
    path, of_worker = tmp_path / "results.jsonl", tmp_path / "results-gw0.jsonl"
    path.write_text("".join(f"{line_of(name, case, 0)}\n" for name, case in CASES.items()), encoding="utf-8")
    further = line_of(outcome, CASES[outcome], trial)
    of_worker.write_text(f"{further}\n", encoding="utf-8")
    assert repeated_cases([path]) == set()
    assert repeated_cases([path, of_worker]) == {json.loads(further)["case_key"]}


def test_the_places_of_a_case_hold_what_its_lines_say(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    lines = [line_of(name, case, trial) for name, case in CASES.items() for trial in (0, 1, 1)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    keys = {json.loads(line)["case_key"] for line in lines}
    places = places_of_cases(path, keys)
    assert [place.number for of_case in places.values() for place in of_case] == list(range(1, 10))
    read = {key: trials_at(of_case, {"question"}) for key, of_case in places.items()}
    assert read == trials_of(path, keys, {"question"})


def test_a_damaged_line_is_an_error_before_its_case_is_read(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    line = line_of("failed", CASES["failed"], 0)
    path.write_text(f"{line.replace('failed', 'passed', 1)}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"results\.jsonl:1: does not match its checksum"):
        places_of_cases(path, {json.loads(line)["case_key"]})


def test_a_damaged_line_of_a_wanted_case_is_an_error_with_its_place(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    good, other = line_of("failed", CASES["failed"], 0), line_of("passed", CASES["passed"], 0)
    path.write_text(f"{other}\n{good.replace('failed', 'passed', 1)}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"results\.jsonl:2: does not match its checksum"):
        trials_of(path, {json.loads(good)["case_key"]}, {"question"})
    assert trials_of(path, {json.loads(other)["case_key"]}, {"question"})
