"""The last whole run of the same agent, dataset and source: what a run begun in the browser is compared with."""

from __future__ import annotations

from pathlib import Path

from stored_pair import store
from two_runs import a_row

from pytest_rageval.runs.disk.reader import last_whole_run

ROWS = [a_row("a.jsonl::q", mrr=1.0)]
ORIGIN = {"agent": "shop", "dataset": "products", "source": "connector"}


def a_run(reports: Path, number: int, *, partial: bool = False, **origin: str) -> None:
    config = {"origin": ORIGIN | origin, "begun": f"2026-11-2{number}T10:00:00+00:00", "config_hash": "x"}
    store(reports, f"run{number}", ROWS, config=config, partial=partial, records={})


def test_it_is_the_last_whole_run_of_all_three(tmp_path: Path):
    a_run(tmp_path, 1)
    a_run(tmp_path, 2, agent_version="2")
    a_run(tmp_path, 3, source="uploaded answers")
    a_run(tmp_path, 4, dataset="others")
    a_run(tmp_path, 5, partial=True)
    store(tmp_path, "by-pytest", ROWS, config={"begun": "2026-11-29T10:00:00+00:00"})
    assert last_whole_run(tmp_path, **ORIGIN) == "run2"
    assert last_whole_run(tmp_path, **ORIGIN | {"source": "uploaded answers"}) == "run3"
    assert last_whole_run(tmp_path, **ORIGIN | {"agent": "other"}) is None
    assert last_whole_run(tmp_path / "nowhere", **ORIGIN) is None
