"""Runs in time: their metrics, what was configured otherwise than before, and which of them may go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stored_runs import a_result, a_row, a_run, at, compared_runs, rewrite, store

from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.config_diff import (
    SettingChange,
    change_text,
    config_changes,
    flat_settings,
    setting_changes,
    setting_text,
)
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.history import (
    PastRun,
    PruneResult,
    RunSummary,
    read_history,
    remove,
    run_summaries,
    run_summary,
    runs_to_prune,
)
from pytest_rageval.runs.reader import StoredRun


def history(reports: Path) -> list[PastRun]:
    runs, skipped = read_history(reports)
    assert skipped == []
    return runs


def told(run: PastRun) -> dict[str, tuple[object, object]]:
    return {name: (before, after) for name, before, after in run.changes}


def test_runs_come_in_the_order_in_which_they_ended_whatever_they_are_called(tmp_path: Path):
    for name, hour in [("b", 1), ("a", 3), ("c", 2)]:
        a_run(tmp_path, name, ended=at(hour))
    assert [run.run_id for run in history(tmp_path)] == ["b", "c", "a"]


def test_times_of_other_zones_are_told_and_sorted_as_utc(tmp_path: Path):
    a_run(tmp_path, "east", ended="2026-03-01T10:00:00+09:00")
    a_run(tmp_path, "utc", ended=at(2))
    assert [(run.run_id, run.timestamp) for run in history(tmp_path)] == [("east", at(1)), ("utc", at(2))]


def test_a_metric_is_found_by_its_name_and_at_the_run_s_own_k(tmp_path: Path):
    a_run(tmp_path, "a", a_result(scores={"recall_any@10": 0.25}), k=10)
    (run,) = history(tmp_path)
    assert run.value("recall_any") == run.value("recall_any@k") == run.value("recall_any@10") == 0.25
    assert run.value("recall_any@5") is None
    assert run.value("groundedness") is None


def test_a_run_in_which_the_system_reported_nothing_is_no_change_of_the_system(tmp_path: Path):
    for number in range(3):
        a_run(tmp_path, f"r{number}", ended=at(number))
    rewrite(tmp_path / "runs/r1/config.json", lambda config: config.update(observed={}, answerer_version=None))
    rewrite(tmp_path / "runs/r2/config.json", lambda config: config.update(observed={"llm": "crow"}))
    assert [told(run) for run in history(tmp_path)] == [{}, {}, {"observed.llm": ("parrot", "crow")}]


def test_the_index_is_told_by_what_the_system_reports_of_it_and_by_its_hash_where_that_says_nothing():
    before = flat_settings({"k": 5, "observed": {"index": "i1"}, "index_build_version": "aa"})
    named = flat_settings({"k": 5, "observed": {"index": "i2"}, "index_build_version": "bb"})
    unnamed = flat_settings({"k": 5, "observed": {"index": "i1"}, "index_build_version": "bb"})
    assert [*setting_changes(before, named)] == [("observed.index", "i1", "i2")]
    assert [*setting_changes(before, unnamed)] == [("index_build_version", "aa", "bb")]


def test_a_parameter_that_is_called_like_a_setting_of_ours_has_a_name_of_its_own():
    flat = flat_settings({"k": 5, "params": {"target": "x", "deep": {"er": 1}}, "target": "bot:answer"})
    assert (flat["target"], flat["params.target"], flat["params.deep.er"]) == ("bot:answer", "x", 1)


def test_within_a_group_changes_are_those_since_its_last_run_and_at_its_beginning_those_since_the_run_before(tmp_path):
    a_run(tmp_path, "a", a_result("q1"), ended=at(1), k=5)
    a_run(tmp_path, "b", a_result("q2"), ended=at(2), k=7)
    a_run(tmp_path, "c", a_result("q1"), ended=at(3), k=5)
    _, new, back = history(tmp_path)
    assert told(new).keys() == {"dataset", "k"}
    assert told(back) == {}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: (run / "metrics.json").unlink(), "not finished: it has no metrics.json"),
        (lambda run: (run / "config.json").unlink(), "no run: it has no config.json"),
        (lambda run: _cut(run / "metrics.json"), "is not JSON"),
        (lambda run: _cut(run / "config.json"), "is not JSON"),
        (lambda run: (run / "config.json").write_text("[]"), "holds no JSON object"),
        (lambda run: (run / "config.json").write_bytes(b"\xff"), "is not JSON"),
        (lambda run: (run / "metrics.json").write_text("{}"), "is not what a run writes"),
        (lambda run: (run / "metrics.json").write_text('{"a":' * 10**5), "metrics.json"),
        (lambda run: rewrite(run / "metrics.json", lambda m: m["metrics"].update(mrr=3)), "is not what a run writes"),
        (
            lambda run: rewrite(run / "metrics.json", lambda m: m["metrics"]["mrr"].update(mean="1")),
            "metrics.mrr.mean is '1' (a string), expected a number",
        ),
        (
            lambda run: rewrite(run / "metrics.json", lambda m: m.update(overall_score=float("nan"))),
            "overall_score is NaN",
        ),
        (
            lambda run: rewrite(run / "metrics.json", lambda m: m["volatile"].update(timestamp="?")),
            "volatile.timestamp is '?', expected a date and time",
        ),
        (lambda run: rewrite(run / "config.json", lambda c: c.pop("k")), "k is missing"),
    ],
)
def test_a_folder_that_holds_no_whole_run_is_passed_over_and_said(tmp_path: Path, spoil, said: str):
    a_run(tmp_path, "good")
    spoil(a_run(tmp_path, "spoilt"))
    runs, ((run_id, reason),) = read_history(tmp_path)
    assert [run.run_id for run in runs] == ["good"]
    assert run_id == "spoilt"
    assert said in reason
    assert "\n" not in reason


def test_a_file_where_the_runs_should_be_is_said(tmp_path: Path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_history(tmp_path)


BEFORE: dict[str, Any] = {
    "k": 5,
    "asked_k": 5,
    "target": "bot:answer",
    "judge": {"model": "m-1", "heuristic": False},
    "rerank_weights": {"vector": 0.5, "lexical": 0.5},
    "params": {"rerank": "on"},
    "metrics": ["recall_any@5", "mrr"],
    "gates": {"case": ["mrr >= 0.5"], "run": [], "regression": []},
    "observed": {"llm": "parrot"},
    "reported_fields": ["chunks", "references"],
    "libraries": {"pytest": "8.0"},
}


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"reported_fields": ["chunks"]}, ["reported_fields"]),
        ({"rerank_weights": {"vector": 0.7, "lexical": 0.3}}, ["rerank_weights.lexical", "rerank_weights.vector"]),
        ({"params": {"rerank": "off"}}, ["params.rerank"]),
        ({"judge": {"model": "m-2", "heuristic": True}}, ["judge.model"]),
        ({"judge": None, "target": "http://b"}, ["target", "judge.model"]),
        ({"k": 10, "asked_k": 10, "metrics": ["recall_any@10", "mrr"]}, ["k"]),
        ({"asked_k": 20}, ["asked_k"]),
        ({"gates": {"case": ["mrr >= 0.6"], "run": [], "regression": []}}, ["gates.case"]),
        ({"settings": {"gold_by": "ids"}}, ["gold_by"]),
        ({"observed": {"llm": "crow"}}, ["observed.llm"]),
        ({"libraries": {"pytest": "8.1"}}, ["libraries.pytest"]),
    ],
)
def test_history_and_compare_tell_the_same_differences(tmp_path: Path, changed: dict[str, Any], names: list[str]):
    rows = [a_row("a.jsonl::q1", mrr=1.0)]
    for day, config in enumerate((BEFORE, BEFORE | changed), start=1):
        store(tmp_path, f"r{day}", rows, config=config, volatile={"timestamp": f"2026-03-0{day}T12:00:00+00:00"})
    (_, after), _ = read_history(tmp_path)
    of_history = [change._asdict() for change in after.changes]
    assert of_history == compared_runs(tmp_path, "r1", "r2", ignore=True).content["configuration"]
    assert [change["name"] for change in of_history] == names


def test_of_a_list_what_is_gone_and_what_is_new_is_told():
    (change,) = config_changes(BEFORE, BEFORE | {"metrics": ["mrr", "map@5"]})
    assert change == SettingChange("metrics", ["recall_any@k"], ["map@k"])
    assert change_text(change) == "metrics (added map@k; removed recall_any@k)"


def test_other_cases_are_told_first():
    changes = config_changes(
        BEFORE | {"dataset_hash": "a", "dataset_version": "v1"},
        BEFORE | {"dataset_hash": "b", "dataset_version": "v2", "k": 7, "metrics": ["recall_any@7", "mrr"]},
    )
    assert [*map(change_text, changes)] == ["dataset was v1 and is v2", "k was 5 and is 7"]


def test_where_nothing_was_reported_nothing_of_the_system_is_known_to_have_changed():
    before = BEFORE | {"index_build_version": "aa"}
    assert config_changes(before, BEFORE | {"observed": {}, "reported_fields": [], "index_build_version": None}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("", "''"),
        ("on", "on"),
        (0.5, "0.5"),
        ({"a": [1]}, '{"a": [1]}'),
        ("content:" + "0123456789abcdef" * 4, "0123456789ab"),
        ("a\nb\x1b[2J", "a b\\x1b[2J"),
    ],
)
def test_a_setting_is_text_on_one_line(value: Any, text: str):
    assert setting_text(value) == text


def ids(runs: Iterable[RunSummary]) -> list[str]:
    return [run.run_id for run in runs]


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def going(
    runs: Sequence[RunSummary],
    keep: int | None = None,
    older_than_days: float | None = None,
    baseline: str | None = None,
) -> PruneResult:
    return runs_to_prune(runs, keep=keep, older_than_days=older_than_days, baseline=baseline)


def test_a_run_that_another_process_holds_is_being_written(tmp_path: Path):
    path = a_run(tmp_path, "a", is_finished=False)
    writer = RunFolder(path)
    writer.lock()
    assert run_summary(StoredRun(path)).state == "being written"
    writer.close()
    assert run_summary(StoredRun(path)).state == "interrupted"


@pytest.mark.parametrize("name", ["config.json", "metrics.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"a":' * 10**5])
def test_a_run_that_cannot_be_read_is_broken_and_listed_all_the_same(tmp_path: Path, name: str, content: bytes):
    path = a_run(tmp_path, "20260301_070000")
    (path / name).write_bytes(content)
    run = run_summary(StoredRun(path))
    if name == "config.json" and content == b"{}":
        assert run.state == "complete"  # nothing of it is needed here
    else:
        # metrics.json says when it ended; without that its id says when it began.
        assert (run.state, run.timestamp.isoformat()) == ("broken", at(12 if name == "config.json" else 7))


def test_folders_and_links_that_are_no_runs_are_not_listed(tmp_path: Path):
    elsewhere = a_run(tmp_path / "other", "a")
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    (tmp_path / "runs" / "link").symlink_to(elsewhere)
    assert run_summaries(tmp_path) == []


@pytest.fixture
def five(tmp_path: Path) -> list[RunSummary]:
    """Runs a to e, 50, 40, … 10 days old."""
    for number, name in enumerate("abcde"):
        a_run(tmp_path, name, ended=days_ago(50 - 10 * number))
    return run_summaries(tmp_path)


@pytest.mark.parametrize(
    ("keep", "older_than", "gone"),
    [(2, None, "abc"), (0, None, "abcde"), (9, None, ""), (None, 25, "abc"), (None, 0, "abcde"), (4, 25, "a"),
     (1, 35, "ab")],
)  # fmt: skip
def test_those_go_for_which_all_that_is_told_holds(five: list[RunSummary], keep, older_than, gone: str):
    found = going(five, keep, older_than)
    assert ids(found.removed) == list(gone)
    assert found.kept == []


def test_a_run_that_is_being_written_stays_whatever_its_state_was(five: list[RunSummary]):
    writer = RunFolder(five[0].path)
    writer.lock()
    found = going(five, keep=4)
    assert (found.removed, [reason for _, reason in found.kept]) == ([], ["it is being written"])
    done = remove(five[:2])
    assert (ids(done.removed), [(run.run_id, why) for run, why in done.kept]) == (["b"], [("a", "it is being written")])
    writer.close()
    assert five[0].path.exists()


def test_removing_takes_the_folder_and_nothing_that_it_links_to(tmp_path: Path, five: list[RunSummary]):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("x")
    (five[0].path / "link").symlink_to(precious)
    assert ids(remove(five[:1]).removed) == ["a"]
    assert (precious / "thesis.txt").exists()
    assert sorted(os.listdir(tmp_path / "runs")) == ["b", "c", "d", "e"]


def test_a_run_that_is_gone_already_is_said_and_the_others_go(five: list[RunSummary]):
    assert ids(remove(five[:1]).removed) == ["a"]
    done = remove(five[:2])
    assert ids(done.removed) == ["b"]
    ((run, reason),) = done.kept
    assert (run.run_id, reason.startswith("it cannot be deleted: No such file")) == ("a", True)
