"""The estimate of what judging may cost is for what is still to be judged."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, lines_with

from pytest_rageval.plugin import controller
from pytest_rageval.runs.shards import Shard


@pytest.fixture
def counting(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of which the estimate says its number of cases: a server of one's own has no list prices."""
    monkeypatch.setattr(controller, "estimate", lambda judge, plan, cases: f"{cases} cases to ask")
    project.cases(SOME)
    return project


def test_cases_that_are_deselected_cost_nothing(counting: Project):
    assert lines_with(counting.run("-k", "boil"), "1 cases to ask")


def test_cases_that_a_resumed_run_has_done_cost_nothing(counting: Project):
    counting.run()
    path = counting.runs[-1] / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:3]), encoding="utf-8")
    assert lines_with(counting.run("--rageval-resume", counting.runs[-1].name), "1 cases to ask")


@pytest.mark.child_process
def test_cases_of_other_shards_cost_nothing_before_workers_start(counting: Project):
    cases = [a_case(f"boil-{number}") for number in range(8)]
    counting.cases(cases)
    of_first = sum(Shard(1, 2).takes(f"evalcases/a.jsonl::{case['id']}") for case in cases)
    assert 0 < of_first < len(cases)
    result = counting.run("-n", "1", "--rageval-shard", "1/2")
    assert lines_with(result, f"{of_first} cases to ask")
