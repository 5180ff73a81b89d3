"""Columns of Parquet files: lists, structs, maps, decimals, times and dictionaries as what they mean in JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from project import Project

arrow = pytest.importorskip("pyarrow", reason="needs the extra 'parquet'")
parquet = pytest.importorskip("pyarrow.parquet")
QUESTIONS = ["When does water boil?", "What does it cost?"]


def converted(project: Project, verb: str, columns: dict[str, Any]) -> list[dict[str, Any]]:
    parquet.write_table(arrow.table(columns), project.path / "a.parquet")
    result = project.rageval(verb, "convert", "a.parquet", "-o", "new.jsonl")
    assert result.ret == 0, result.stderr.str()
    return [json.loads(line) for line in (project.path / "new.jsonl").read_text(encoding="utf-8").splitlines()]


def test_expected_tools_have_the_arguments_of_their_own_tool_alone(project: Project):
    arguments = arrow.struct(
        [
            ("city", arrow.string()),
            ("most", arrow.int32()),
            ("price", arrow.decimal128(10, 2)),
            ("ids", arrow.list_(arrow.int64())),
        ]
    )
    calls = [
        [{"name": "weather", "arguments": {"city": "Seoul", "most": 3, "price": None, "ids": None}}],
        [{"name": "buy", "arguments": {"city": None, "most": None, "price": Decimal("1.50"), "ids": [1, 2]}}],
    ]
    kind = arrow.list_(arrow.struct([("name", arrow.string()), ("arguments", arguments)]))
    first, second = converted(
        project, "cases", {"question": QUESTIONS, "expected_tools": arrow.array(calls, kind), "id": [1, 2]}
    )
    assert first["expected_tools"] == [{"name": "weather", "args": {"city": "Seoul", "most": 3}}]
    assert second["expected_tools"] == [{"name": "buy", "args": {"price": 1.5, "ids": [1, 2]}}]


def test_other_kinds_of_columns_keep_their_values(project: Project):
    columns = {
        "question": arrow.array(QUESTIONS).dictionary_encode(),
        "answer": ["At 100 degrees.", "2 euros"],
        "settings": arrow.array([[("k", 5)], None], arrow.map_(arrow.string(), arrow.int64())),
        "price": arrow.array([Decimal("2.00"), Decimal("0.25")], arrow.decimal128(10, 2)),
        "asked": arrow.array([datetime(2026, 1, 2, tzinfo=UTC), None], arrow.timestamp("ns", tz="UTC")),
        "day": [date(2026, 1, 2), None],
        "category": arrow.array(["a", "b"]).dictionary_encode(),
    }
    first, second = converted(project, "cases", columns)
    assert (first["question"], first["category"], second["category"]) == (QUESTIONS[0], "a", "b")
    assert first["metadata"] == {
        "k": 5,
        "price": 2,
        "asked": "2026-01-02 00:00:00+00:00",
        "day": "2026-01-02",
    }
    assert second["metadata"] == {"price": 0.25}


def test_answers_with_lists_and_structs_are_read(project: Project):
    chunk = arrow.struct([("text", arrow.string()), ("score", arrow.float32())])
    columns = {
        "question": QUESTIONS,
        "response": ["At 100 degrees.", None],
        "retrieved_contexts": arrow.array(
            [[{"text": "It boils at 100.", "score": 0.5}], [{"text": "Two euros.", "score": None}]], arrow.list_(chunk)
        ),
    }
    first, second = converted(project, "answers", columns)
    assert [part["text"] for part in first["retrieved_chunks"]] == ["It boils at 100."]
    assert [part["text"] for part in second["retrieved_chunks"]] == ["Two euros."]
