"""What the process that writes a run makes of records that came by two ways."""

from __future__ import annotations

from pathlib import Path

from kept_runs import REGISTRY, a_result

from pytest_rageval.config.settings import Settings
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.config import run_config
from pytest_rageval.runs.reader import RESULTS
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.runs.results_file import Keeper


def test_a_result_that_an_interrupt_left_unnoted_is_not_taken_from_its_worker_once_more(tmp_path: Path):
    plan, result = make_plan(Settings(enabled=("recall_any@k",)), REGISTRY), a_result()
    config = run_config(plan, (result.case,), (), tmp_path, "bot:answer", None)
    writer = Keeper.new(tmp_path, plan, config)
    line = to_line(result_record(result, plan, config["config_hash"]))
    (writer.folder.path / "results-gw0.jsonl").write_text(line + "\n")
    writer.folder.append(RESULTS, line)  # and here the second Ctrl-C came
    writer.take_over()
    writer.folder.close()
    assert (writer.folder.path / RESULTS).read_text() == line + "\n"
    assert len(writer.rows) == 1
