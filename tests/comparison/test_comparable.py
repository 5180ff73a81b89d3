"""May two runs be compared? The regression gate and `rageval compare` give one answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_runs import PLAN, a_plan, a_row, accept, compared_runs, store

from pytest_rageval.comparison.baseline import read_baseline
from pytest_rageval.comparison.compared_sides import compare_with_baseline
from pytest_rageval.runs.row import Row

JUDGE = {"model": "m-1", "heuristic": False, "prompt_versions": {"groundedness": "1-aa"}}
JUDGED = a_plan("mrr", "groundedness", "overall_score")
REPORTED = ["chunks", "references"]


def rows_of(*names: str, **fields: Any) -> list[Row]:
    return [a_row(f"a.jsonl::{name}", mrr=1.0, **fields) for name in names]


def problems(
    reports: Path, before: list[Row], after: list[Row], changed: dict[str, Any], **metrics: Any
) -> tuple[list[str], list[str]]:
    """What the regression gate and what `rageval compare` say of how the two differ beside the system."""
    config = {"reported_fields": REPORTED, "settings": {"judge_temperature": 0.0}}
    accept(reports, store(reports, "a", before, config=config), before)
    run = store(reports, "b", after, config=config | changed, **metrics)
    current, described = (
        json.loads((run / name).read_text(encoding="utf-8")) for name in ("metrics.json", "config.json")
    )
    baseline = read_baseline(reports / "baseline.json", is_required=True)
    assert baseline is not None
    gate = compare_with_baseline(current, after, baseline, PLAN, described)
    paired = compared_runs(reports, "baseline", "b")
    return said(gate.problems, gate.content), said(paired.mismatches, paired.content)


def said(problems: Iterable[object], content: Mapping[str, Any]) -> list[str]:
    assert content["compared"] != bool([*problems])
    return [*map(str, problems), *content["differences"]]


@pytest.mark.parametrize(
    ("before", "after", "config", "says"),
    [
        (rows_of("q1"), rows_of("q1"), {}, []),
        (rows_of("q1"), rows_of("q1", "q2"), {}, []),
        (rows_of("q1", "q2"), rows_of("q1"), {}, []),
        (rows_of("q1"), rows_of("q1"), {"reported_fields": [*REPORTED, "trace.x"]}, ["now sends trace.x, which"]),
        (rows_of("q1"), rows_of("q1"), {"reported_fields": ["chunks"]}, ["no longer sends references"]),
        (rows_of("q1", judge=JUDGE), rows_of("q1", judge=JUDGE | {"model": "m-2"}), {}, ["judge was m-1 and is m-2"]),
        (
            rows_of("q1", judge=JUDGE),
            rows_of("q1", judge=JUDGE | {"prompt_versions": {"groundedness": "2-bb"}}),
            {},
            ["prompt of groundedness was 1-aa and is 2-bb"],
        ),
        (
            rows_of("q1", judge=JUDGE),
            rows_of("q1", judge=JUDGE),
            {"settings": {"judge_temperature": 0.7}},
            ["judge temperature was 0.0 and is 0.7"],
        ),
        (
            rows_of("q1", judge=JUDGE | {"heuristic": True}),
            rows_of("q1", judge=JUDGE | {"heuristic": True}),
            {"settings": {"judge_temperature": 0.7}},
            [],
        ),
        (rows_of("q1", "q2"), rows_of("q1", "q2", content_hash="new"), {}, ["2 changed (a.jsonl::q1, a.jsonl::q2)"]),
        (rows_of("q1"), rows_of("q2"), {}, ["no case is on both sides"]),
    ],
)  # fmt: skip
def test_the_gate_and_the_command_agree_on_what_differs_and_only_strangers_are_not_compared(
    tmp_path: Path, before: list[Row], after: list[Row], config: dict[str, Any], says: list[str]
):
    of_gate, of_command = problems(tmp_path, before, after, config)
    assert of_gate == of_command
    assert len(of_gate) == len(says)
    assert all(part in problem for part, problem in zip(says, of_gate, strict=True))


def test_a_partial_run_need_not_have_met_all_that_the_system_reports(tmp_path: Path):
    rows = rows_of("q1")
    assert problems(tmp_path, rows, rows, {"reported_fields": ["chunks"]}, partial=True) == ([], [])


def test_of_a_system_that_answered_nothing_it_is_not_known_what_it_reports(tmp_path: Path):
    broken = [replace(row, outcome="error", error_kind="connect", scores={}) for row in rows_of("q1")]
    assert problems(tmp_path, rows_of("q1"), broken, {"reported_fields": []}) == ([], [])


def test_the_same_model_at_another_server_is_another_judge(tmp_path: Path):
    rows = rows_of("q1", judge=JUDGE)
    config = {"judge": {"model": "m-1", "identity": "openai:m-1@here/v1"}}
    accept(tmp_path, store(tmp_path, "a", rows, config=config), rows)
    elsewhere = {"judge": {"model": "m-1", "identity": "openai:m-1@elsewhere/v1"}}
    store(tmp_path, "b", rows, config=elsewhere)
    assert compared_runs(tmp_path, "baseline", "b").content["differences"] == [
        "judge was openai:m-1@here/v1 and is openai:m-1@elsewhere/v1"
    ]
    # Nobody knows where the judge of an older run was.
    store(tmp_path, "c", rows, config={"judge": {"model": "m-1"}})
    assert compared_runs(tmp_path, "baseline", "c").content["differences"] == []


def test_what_another_judge_scored_is_not_compared_and_the_rest_is(tmp_path: Path):
    def judged(model: str) -> list[Row]:
        judge = JUDGE | {"model": model}
        return [
            a_row(f"a.jsonl::q{n}", mrr=1.0, groundedness=5.0 if model == "m-1" else 1.0, judge=judge) for n in range(6)
        ]

    store(tmp_path, "a", judged("m-1"), plan=JUDGED)
    store(tmp_path, "b", judged("m-2"), plan=JUDGED)
    content = compared_runs(tmp_path, "a", "b").content
    metrics = content["metrics"]
    assert (metrics["groundedness"]["verdict"], metrics["groundedness"]["delta"]) == ("incomparable", None)
    assert metrics["mrr"]["n_paired"] == 6
    assert "not compared, since judged otherwise: groundedness" in " ".join(content["notes"])
    assert {gate["metric"]: gate["passed"] for gate in content["gates"]}["groundedness"] is None
    assert (metrics["overall_score"]["delta"], metrics["overall_score"]["why"]) == (
        None,
        "judged otherwise: groundedness",
    )
    assert content["layers"]["L5"] == {"delta": None, "why": "judged otherwise: groundedness"}
    assert content["layers"]["L2"]["delta"] == 0
    ignored = compared_runs(tmp_path, "a", "b", ignore=True).content
    assert ignored["metrics"]["groundedness"]["delta"] == -4
