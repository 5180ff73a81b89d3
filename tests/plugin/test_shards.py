"""Parts of a run on different machines, and the whole of them: the same as if it had never been divided."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with, rageval

from pytest_rageval.runs.shards import Shard

CASES = [*SOME, a_missed_case("missed"), *(a_case(f"more-{n}") for n in range(12))]


@pytest.fixture
def sharded(project: Project) -> Project:
    project.cases(CASES[:9], "evalcases/a.jsonl")
    project.cases(CASES[9:], "evalcases/b.jsonl")
    project.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.5"]')
    return project


def test_every_case_is_in_one_shard_and_a_new_case_moves_none():
    keys = [f"evalcases/a.jsonl::{n}" for n in range(200)]
    shards = [[key for key in keys if Shard(number, 3).takes(key)] for number in (1, 2, 3)]
    assert sorted(key for shard in shards for key in shard) == sorted(keys)
    assert all(40 < len(shard) < 95 for shard in shards)
    assert Shard.parse("2/3") == Shard(2, 3)


def test_merged_shards_equal_the_whole(sharded: Project):
    sharded.run("--rageval-run-id", "whole")
    whole = sharded.stable_metrics()
    for number in (1, 2, 3):
        sharded.run("--rageval-shard", f"{number}/3", "--rageval-run-id", f"part{number}")
        assert sharded.metrics()["partial"] is True
    merged = rageval(sharded.path, "merge", "part1", "part3", "part2", "--run-id", "merged")
    assert merged.returncode == 1, merged.stdout + merged.stderr  # one case failed, as in its shard
    assert sharded.stable_metrics() == whole
    keys = [[record["case_key"] for record in sharded.results(run)] for run in ("whole", "merged")]
    assert keys[0] == keys[1]


def test_a_shards_gates_of_the_run_do_not_fail(sharded: Project):
    sharded.configure(
        'target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 1"]\ncase = ["recall_any off"]'
    )
    assert sharded.run("--rageval-run-id", "whole").ret == pytest.ExitCode.TESTS_FAILED
    for number in (1, 2):
        assert sharded.run("--rageval-shard", f"{number}/2", "--rageval-run-id", f"part{number}").ret == 0
    merged = rageval(sharded.path, "merge", "part1", "part2")
    assert merged.returncode == 1
    assert "recall_any@5" in merged.stdout


def test_gaps_overlaps_and_other_configurations_are_errors(sharded: Project):
    for number in (1, 2, 3):
        sharded.run("--rageval-shard", f"{number}/3", "--rageval-run-id", f"part{number}")
    sharded.run("--rageval-shard", "2/3", "--rageval-run-id", "again")
    sharded.run("--rageval-shard", "3/3", "--rageval-k", "3", "--rageval-run-id", "other")
    gap = rageval(sharded.path, "merge", "part1", "part3")
    assert gap.returncode == 2
    assert "merge: shards are missing: 2/3" in gap.stderr
    overlap = rageval(sharded.path, "merge", "part1", "part2", "again", "part3")
    assert overlap.returncode == 2
    assert "merge: part2 and again overlap in" in overlap.stderr
    other = rageval(sharded.path, "merge", "part1", "part2", "other")
    assert other.returncode == 2
    assert "other was run with another configuration than part1: " in other.stderr
    assert "k was 5 and is 3" in other.stderr


def test_a_shard_that_was_cut_short_is_a_gap_with_names(sharded: Project):
    left_out = next(f"more-{n}" for n in range(4, 10) if Shard(2, 2).takes(f"evalcases/b.jsonl::more-{n}"))
    sharded.run("--rageval-shard", "1/2", "--rageval-run-id", "part1")
    sharded.run("--rageval-shard", "2/2", "--rageval-run-id", "part2", "-k", f"not {left_out}")
    gap = rageval(sharded.path, "merge", "part1", "part2")
    assert gap.returncode == 2
    assert f"merge: the runs do not cover all cases: evalcases/b.jsonl::{left_out}" in gap.stderr


@pytest.mark.parametrize("written", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2"])
def test_a_shard_that_is_none_is_a_usage_error(sharded: Project, written: str):
    result = sharded.run(f"--rageval-shard={written}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--rageval-shard: '{written}' is not I/N with I from 1 to N, as in 1/4"])


def test_more_shards_than_cases_leave_some_empty(sharded: Project):
    sharded.cases(CASES[:1], "evalcases/a.jsonl")
    (sharded.path / "evalcases/b.jsonl").unlink()
    codes = {sharded.run("--rageval-shard", f"{number}/3").ret for number in (1, 2, 3)}
    assert codes == {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def test_a_shard_that_is_named_twice_is_said_and_nothing_is_merged(project: Project):
    project.cases([a_case(f"q{number}") for number in range(8)])
    for number in (1, 2):
        project.run("--rageval-shard", f"{number}/2", "--rageval-run-id", f"s{number}")
    result = project.rageval("merge", "s1", "s2", "s1")
    assert result.ret == 2
    assert lines_with(result, "merge: s1 is named 2 times; name each shard once")
    assert [run.name for run in project.runs] == ["s1", "s2"]
