"""Two stored runs side by side: what may be compared, what moved, and for which cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from stored_runs import a_chunk, a_plan, a_row, change_lines, compared_runs, sealed, store

from pytest_rageval.comparison.case_diff import records_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.records.result_line import to_line


def some(scores: Sequence[float], **fields: Any) -> list[Any]:
    rows = [
        a_row(f"a.jsonl::q{number}", recall_any_at_5=score, mrr=score, **fields) for number, score in enumerate(scores)
    ]
    return [replace(row, outcome="passed" if row.scores["mrr"] else "failed") for row in rows]


def test_what_got_worse_fails_the_gates_of_the_project(tmp_path: Path):
    store(tmp_path, "a", some([1] * 10))
    store(tmp_path, "b", some([0] * 7 + [1] * 3))
    found = compared_runs(tmp_path, "a", "b")
    assert found.verdict.failed_gates == ("recall_any@5 drop",)
    assert found.content["metrics"]["recall_any@5"]["delta"] == pytest.approx(-0.7)
    assert found.content["metrics"]["recall_any@5"]["verdict"] == "regressed"
    assert not compared_runs(tmp_path, "a", "b", tolerated=("recall_any@k drop 0.8",)).verdict.failed_gates
    assert not compared_runs(tmp_path, "b", "a").verdict.failed_gates
    same = compared_runs(tmp_path, "a", "a").content
    assert same["configuration"] == []
    assert {one["verdict"] for one in same["metrics"].values()} <= {"unchanged", "new"}


def changed(tmp_path: Path, **config: Any) -> dict[str, Any]:
    store(tmp_path, "a", some([1]), config={"params": {"size": 200}})
    store(tmp_path, "b", some([1]), config={"params": {"size": 200}} | config)
    return dict(compared_runs(tmp_path, "a", "b").content)


def test_settings_that_differ_are_listed_with_both_values(tmp_path: Path):
    content = changed(tmp_path, params={"size": 40}, settings={"judge_temperature": 0.0, "gold_by": "ids"})
    assert content["configuration"] == [
        {"name": "params.size", "before": 200, "after": 40},
        {"name": "gold_by", "before": None, "after": "ids"},
    ]


BOTH = {"index_build_version": "i2", "retriever_version": "r2"}


@pytest.mark.parametrize(
    ("config", "said", "warning"),
    [
        ({"answerer_version": "a2"}, "answerer changed", False),
        ({"answerer_version": "a2", "index_build_version": "i2"}, "index and answerer changed: more than one", True),
        ({"params": {"size": 40}, **BOTH}, "index and retriever changed, both with size", False),
        ({"params": {"size": 40, "overlap": 3}, **BOTH}, "index and retriever changed: more than one", True),
        ({"index_build_version": None}, "no recorded version changed; index has no version on both sides", False),
    ],
)
def test_versions_that_changed_are_named_and_more_than_one_is_a_warning(
    tmp_path: Path, config: dict[str, Any], said: str, warning: bool
):
    content = changed(tmp_path, **config)
    assert content["changed"]["said"].startswith(said)
    assert content["changed"]["warning"] is warning
    assert (content["versions"]["index"]["changed"] is None) == ("has no version" in said)


def test_metrics_at_different_cut_offs_are_paired_by_their_names(tmp_path: Path):
    store(tmp_path, "a", some([1, 1]))
    rows = [a_row(f"a.jsonl::q{number}", recall_any_at_10=1.0, mrr=1.0) for number in range(2)]
    store(tmp_path, "b", rows, plan=a_plan("recall_any", "mrr", k=10), config={"k": 10})
    found = compared_runs(tmp_path, "a", "b")
    assert found.is_compared
    one = found.content["metrics"]["recall_any@10"]
    assert (one["label"], one["n_paired"], one["verdict"]) == ("recall_any@5 → @10", 2, "unchanged")
    assert "recall_any@5" not in found.content["metrics"]
    assert found.content["gates"][0]["metric"] == "recall_any@10"


def test_a_cut_off_that_both_sides_have_pairs_with_itself(tmp_path: Path):
    store(tmp_path, "a", some([1, 1]))
    rows = [a_row(f"a.jsonl::q{number}", recall_any_at_10=1.0, recall_any_at_5=1.0) for number in range(2)]
    store(tmp_path, "b", rows, plan=a_plan("recall_any@5", "recall_any@10", k=10), config={"k": 10})
    metrics = compared_runs(tmp_path, "a", "b").content["metrics"]
    assert {name: one["verdict"] for name, one in metrics.items() if "@" in name} == {
        "recall_any@5": "unchanged",
        "recall_any@10": "new",
    }


def test_flipped_cases_come_worst_first(tmp_path: Path):
    names = ("mild", "worst", "better")
    before = [a_row(f"a.jsonl::{name}", mrr=mrr) for name, mrr in zip(names, (0.5, 1.0, 0.0), strict=True)]
    before[2] = replace(before[2], outcome="failed")
    after = [replace(row, scores={"mrr": mrr}) for row, mrr in zip(before, (0.2, 0.0, 1.0), strict=True)]
    after = [replace(row, outcome=outcome) for row, outcome in zip(after, ("failed", "failed", "passed"), strict=True)]
    store(tmp_path, "a", before)
    store(tmp_path, "b", after)
    content = compared_runs(tmp_path, "a", "b").content
    assert [one["case_key"] for one in content["flipped_to_fail"]] == ["a.jsonl::worst", "a.jsonl::mild"]
    assert [one["case_key"] for one in content["flipped_to_pass"]] == ["a.jsonl::better"]
    assert content["flipped_to_fail"][0]["scores"] == [{"metric": "mrr", "before": 1.0, "after": 0.0}]
    assert content["flipped_to_fail"][0]["detail"] is None


def test_a_flipped_case_says_what_became_of_its_chunks_and_its_answer(tmp_path: Path):
    before = [a_chunk(1, "a.md", [0]), a_chunk(2, "b.md", [1]), a_chunk(3, "c.md")]
    after = [a_chunk(1, "new.md"), a_chunk(2, "a.md", [0]), a_chunk(3, "d.md", [2])]
    store(tmp_path, "a", some([1]), records={"a.jsonl::q0": {"retrieved_chunks": before, "answer": "Yes."}})
    rows = [replace(row, failed=(("mrr", "low"),)) for row in some([0])]
    store(tmp_path, "b", rows, records={"a.jsonl::q0": {"retrieved_chunks": after, "answer": "No."}})
    (flip,) = compared_runs(tmp_path, "a", "b").content["flipped_to_fail"]
    detail = flip["detail"]
    assert [(one["gold"], one["rank_before"], one["rank_after"]) for one in detail["golds"]] == [
        (1, 1, 2),
        (2, 2, None),
        (3, None, 3),
    ]
    assert [(one["place"], one["rank_before"], one["rank_after"], one["state"]) for one in detail["chunks"]] == [
        ("new.md", None, 1, "new"),
        ("a.md", 1, 2, "moved"),
        ("b.md", 2, None, "gone"),
        ("d.md", None, 3, "new"),
        ("c.md", 3, None, "gone"),
    ]
    assert (detail["answer_before"], detail["answer_after"]) == ("Yes.", "No.")
    assert detail["failed_gates_after"] == [{"metric": "mrr", "value": 0.0, "threshold": ">= 1", "tag": "low"}]


def test_of_several_trials_one_that_ended_as_the_case_did_is_shown(tmp_path: Path):
    def trials(*passed: bool) -> list[Any]:
        return [
            a_row("a.jsonl::q", trial=number, mrr=float(all(passed)), outcome="passed" if all(passed) else "failed",
                  trial_passed=one) for number, one in enumerate(passed)
        ]  # fmt: skip

    store(tmp_path, "a", trials(True, True), records={})
    folder = store(tmp_path, "b", trials(True, False), records={})
    numbers = count()

    def tell_apart(text: str) -> str:
        line, number = json.loads(text), next(numbers)
        verdict = line["verdict"] | {"passed": False, "trial_passed": number == 0}
        return json.dumps(line | {"answer": f"answer {number}", "verdict": verdict}, separators=(",", ":"))

    change_lines(folder / "results.jsonl", tell_apart)
    (flip,) = compared_runs(tmp_path, "a", "b").content["flipped_to_fail"]
    assert flip["detail"]["answer_after"] == "answer 1"


def test_categories_are_compared_over_the_cases_of_both_sides(tmp_path: Path):
    rows = some([1, 1])
    other = replace(a_row("a.jsonl::other", mrr=1.0), groups={**rows[0].groups, "category": ("b",)})
    store(tmp_path, "a", [*rows, other])
    worse = replace(rows[0], scores={"mrr": 0.0}, outcome="failed")
    store(tmp_path, "b", [worse, rows[1]], partial=True)
    found = compared_runs(tmp_path, "a", "b", ignore=True).content["by_category"]
    assert list(found) == ["a"]
    assert (found["a"]["cases"], found["a"]["passed_before"], found["a"]["passed_after"]) == (2, 2, 1)
    assert found["a"]["metrics"]["mrr"] == {"before": 1.0, "after": 0.5, "delta": -0.5, "n": 2}


def test_errors_are_counted_by_kind_and_their_cases_named(tmp_path: Path):
    store(tmp_path, "a", some([1, 1]))
    broken = replace(some([1])[0], scores={}, outcome="error", error_kind="timeout")
    store(tmp_path, "b", [broken, some([1, 1])[1]])
    content = compared_runs(tmp_path, "a", "b").content
    assert content["errors"] == {"before": {}, "after": {"a.jsonl::q0": "timeout"}}
    assert content["unmeasured"][0]["case_key"] == "a.jsonl::q0"


def test_aggregates_alone_are_compared_without_evidence(tmp_path: Path):
    store(tmp_path, "a", some([1, 1]))
    store(tmp_path, "b", some([0, 0]))
    lone = tmp_path / "kept.json"
    lone.write_bytes((tmp_path / "runs/a/metrics.json").read_bytes().replace(b'"a"', b'"elsewhere"'))
    found = compared_runs(tmp_path, str(lone), "b")
    one = found.content["metrics"]["mrr"]
    assert (one["before"], one["after"], one["n_paired"], one["p"]) == (1.0, 0.0, 0, None)
    assert found.verdict.failed_gates == ("recall_any@5 drop",)
    assert found.content["by_category"] is None
    assert "holds no cases" in found.content["notes"][0]


@pytest.mark.parametrize("rest", ['"trial":0}', '"trial":', '"trial":{}}'])
def test_a_damaged_record_of_a_flipped_case_is_said_in_one_line(tmp_path: Path, rest: str):
    store(tmp_path, "a", some([1]), records={})
    folder = store(tmp_path, "b", some([0]), records={})
    line = sealed(f'{{"schema":2,"case_key":"a.jsonl::q0",{rest}')
    (folder / "results.jsonl").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"results\.jsonl:1: is "):
        compared_runs(tmp_path, "a", "b")


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
