"""What differs between two configurations: the same under the same names, whoever asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stored_runs import a_row, compared_runs, store

from pytest_rageval.runs.config_diff import SettingChange, change_text, config_changes, setting_text
from pytest_rageval.runs.history import read_history

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
    assert change_text(change) == "metrics +map@k -recall_any@k"


def test_other_cases_are_told_first():
    changes = config_changes(
        BEFORE | {"dataset_hash": "a", "dataset_version": "v1"},
        BEFORE | {"dataset_hash": "b", "dataset_version": "v2", "k": 7, "metrics": ["recall_any@7", "mrr"]},
    )
    assert [*map(change_text, changes)] == ["dataset was v1 and is v2", "k was 5 and is 7"]


def test_where_nothing_was_reported_nothing_of_the_system_is_known_to_have_changed():
    assert config_changes(BEFORE, BEFORE | {"observed": {}, "reported_fields": []}) == []


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
