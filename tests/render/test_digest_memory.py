"""A digest lists the cases that fail or are flaky, and takes no memory for the others."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from stored_runs import a_record, some_cases, store, store_full

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_list import list_cases
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.result_line import to_line
from pytest_rageval.views.run_digest import FAILING, RunDigest, run_digest

CASES = 3_000


def digest_of(run: StoredRun) -> RunDigest:
    return run_digest(run, run.finished_metrics, run.path / "no-baseline.json")


def test_a_digest_takes_a_fraction_of_the_memory_of_all_cases(tmp_path: Path):
    run = StoredRun(store_full(tmp_path, "now", some_cases(3, cases=CASES)))
    side = side_of_run(run)
    digest_of(run)  # modules are loaded, and the files of the run checked, before memory is measured
    tracemalloc.start()
    list_cases(side)
    _, for_all = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    digest = digest_of(run)
    _, for_digest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(digest.failing) == 3
    assert for_digest - before < for_all / 2


def test_the_failing_cases_of_a_digest_are_those_of_the_whole_list(tmp_path: Path):
    rows = [*some_cases(3, cases=20), *some_cases(2, "error", cases=4)]
    for number, row in enumerate(rows):
        row.key = f"a.jsonl::q{number}"
    run = StoredRun(store_full(tmp_path, "now", rows))
    listed = list_cases(side_of_run(run)).cases
    assert list(digest_of(run).failing) == [case for case in listed if case.outcome in FAILING]


def test_a_case_that_passes_by_most_of_its_trials_is_flaky_in_the_digest(tmp_path: Path):
    passing = some_cases(1, cases=3)
    run = StoredRun(store(tmp_path, "now", passing, records={}))
    wavering = passing[1]
    failed = {"passed": True, "trial_passed": False, "failed_gates": [], "gates_held": 1}
    trial = a_record(wavering, trial=1, verdict=failed)
    lines = [to_line(a_record(row)) for row in passing]
    write_lines(run.path / "results.jsonl", [*lines, to_line(trial)])
    assert [case.key for case in digest_of(run).flaky] == [wavering.key]
