"""What the process that writes a run makes of records that came by two ways."""

from __future__ import annotations

from pathlib import Path

from stored_runs import REGISTRY, a_result

from pytest_rageval.config.settings import Settings
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.config import run_config
from pytest_rageval.runs.reader import RESULTS
from pytest_rageval.runs.records import RecordLine, result_record, to_line
from pytest_rageval.runs.results_file import RunWriter


def test_a_result_that_an_interrupt_left_unnoted_is_not_taken_from_its_worker_once_more(tmp_path: Path):
    plan, result = make_plan(Settings(enabled=("recall_any@k",)), REGISTRY), a_result()
    config = run_config(plan, (result.case,), (), tmp_path, "bot:answer", None)
    writer = RunWriter.new(tmp_path, plan, config)
    line = to_line(result_record(result, plan, config["config_hash"]))
    (writer.folder.path / "results-gw0.jsonl").write_text(line + "\n")
    writer.folder.append(RESULTS, line)  # and here the second Ctrl-C came
    writer.collect_results()
    writer.folder.close()
    assert (writer.folder.path / RESULTS).read_text() == line + "\n"
    assert len(writer.rows) == 1


def test_records_that_cost_nothing_are_written_in_blocks_and_none_is_lost(tmp_path: Path):
    plan = make_plan(Settings(enabled=("recall_any@k",)), REGISTRY)
    results = [a_result(id=f"q{number}") for number in range(3)]
    config = run_config(plan, [result.case for result in results], (), tmp_path, "bot:answer", None)
    writer = RunWriter.new(tmp_path, plan, config)
    records = [result_record(result, plan, config["config_hash"]) for result in results]
    writer.add([RecordLine(to_line(record).encode(), record) for record in records], is_paid=False)
    path = writer.folder.path / RESULTS
    assert len(path.read_text().splitlines()) < 3
    writer.reconcile()
    writer.folder.close()
    assert path.read_text() == "".join(f"{to_line(record)}\n" for record in records)
    assert len(writer.rows) == 3
