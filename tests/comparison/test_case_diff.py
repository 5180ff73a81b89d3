"""Records of a few cases, found in a file of many by how their lines begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.comparison.case_diff import records_of
from pytest_rageval.runs.records import to_line

ODD_KEYS = [
    "a.jsonl::plain",
    'a.jsonl::"said", twice',
    "a.jsonl::back\\\\slash",
    'a.jsonl::ends with "',
    "a.jsonl::질문,",
    "",
]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_record_is_found_whatever_its_key_holds(tmp_path: Path, key: str):
    path = tmp_path / "results.jsonl"
    records: list[dict[str, Any]] = [
        {"schema": 2, "case_key": name, "trial": 0, "question": key, "answer": None, "retrieved_chunks": [],
         "abstention": None, "verdict": {"passed": True, "trial_passed": True}, "error": None}
        for name in [*ODD_KEYS, key + '",', key + "x"]
    ]  # fmt: skip
    path.write_text("".join(to_line(record) + "\n" for record in records), encoding="utf-8")
    assert [record["case_key"] for record in records_of(path, {key}).values()] == [key]
