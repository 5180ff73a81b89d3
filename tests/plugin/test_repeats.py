"""Several trials of a case, and parts of the cases on several machines."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with, rageval

from pytest_rageval.runs.ratings import Rating, answer_hash, rate, read_ratings
from pytest_rageval.runs.shards import Shard

WAVERING_BOT = """
import bot
calls = {}
def answer(question):
    calls[question] = calls.get(question, -1) + 1
    # Every third answer of the wavering one retrieves nothing.
    if "wavering" in question and calls[question] % 3 == 2:
        return {"answer": "Water boils at 100 degrees at sea level.", "debug": {"retrieved_chunks": []}}
    if "broken" in question and calls[question] % 3 == 1:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""
CASES = [a_case("steady"), a_case("wavering", "wavering boiling"), a_case("broken", "broken boiling")]


@pytest.fixture
def wavering(project: Project) -> Project:
    project.write("wavering.py", WAVERING_BOT)
    project.configure('target = "wavering:answer"\nconcurrency = 1')
    project.cases(CASES[:2])
    return project


def test_the_mean_over_trials_is_gated(wavering: Project):
    wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.6").assert_outcomes(passed=2)
    result = wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.7")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*recall_any@5 is 0.6667, gate >= 0.7*"])


def test_each_trial_is_recorded_and_the_spread_reported(wavering: Project):
    result = wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.6")
    kept = [(one["test_case_id"], one["trial"], one["verdict"]["trial_passed"]) for one in wavering.results()]
    assert sorted(kept) == [
        ("steady", 0, True), ("steady", 1, True), ("steady", 2, True),
        ("wavering", 0, True), ("wavering", 1, True), ("wavering", 2, False),
    ]  # fmt: skip
    metrics = wavering.metrics()
    assert metrics["total_tests"] == 2
    assert metrics["outcomes"]["passed"] == 2
    assert metrics["metrics"]["recall_any@5"]["n_scored"] == 2
    assert metrics["metrics"]["recall_any@5"]["mean"] == pytest.approx((1 + 2 / 3) / 2)
    repeats = metrics["repeats"]
    assert (repeats["trials"], repeats["cases"], repeats["pass_at_n"], repeats["pass_hat_n"]) == (3, 2, 1.0, 0.5)
    assert repeats["spread"]["recall_any@5"] == pytest.approx((0 + (1 / 3) ** 0.5) / 2)
    assert repeats["spread"]["token_f1"] == 0
    result.stdout.fnmatch_lines(["*3 trials a case: 100 % passed at least once, 50 % every time*"])


def test_a_trial_that_breaks_is_an_error_of_its_case(wavering: Project):
    wavering.cases(CASES)
    wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.6").assert_outcomes(passed=2, errors=1)
    metrics = wavering.metrics()
    assert metrics["outcomes"]["error"] == 1
    assert metrics["metrics"]["recall_any@5"]["n_error"] == 1
    assert metrics["repeats"]["cases"] == 2


@pytest.mark.child_process
def test_workers_and_resuming_make_no_difference_to_repeats(wavering: Project):
    wavering.write("wavering.py", "from bot import answer\n")
    wavering.run("--rageval-repeat", "3")
    alone = wavering.stable_metrics()
    wavering.run("--rageval-repeat", "3", "-n", "2")
    assert wavering.stable_metrics() == alone
    path = wavering.runs[-1] / "results.jsonl"
    kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]
    path.write_text("".join(kept), encoding="utf-8")
    wavering.run("--rageval-repeat", "3", "--rageval-resume", wavering.runs[-1].name).assert_outcomes(passed=2)
    assert wavering.stable_metrics() == alone
    assert len(wavering.results()) == 6


PARTLY_SILENT_BOT = """
import bot
calls = {}
def answer(question):
    calls[question] = calls.get(question, -1) + 1
    given = bot.answer(question)
    if calls[question] % 2 == 0:
        del given["debug"]
    return given
"""


def test_a_gate_takes_the_mean_over_the_trials_in_which_it_looks(project: Project):
    project.write("partly.py", PARTLY_SILENT_BOT)
    project.configure('target = "partly:answer"\nconcurrency = 1')
    project.cases([{**a_case("places"), "gold": None}])
    # The first trial, which stands for the case, reports no chunks; the second has its gold at the top.
    result = project.run("--rageval-repeat", "2", "--rageval-gate", "recall_any@5 >= 1")
    result.assert_outcomes(passed=1)
    assert ["recall_any@5" in one["verdict"]["unobserved"] for one in project.results()] == [True, False]


@pytest.mark.parametrize("broken", [0, 1])
def test_a_run_that_is_resumed_knows_of_the_trial_that_broke(project: Project, broken: int):
    project.write(
        "sometimes.py",
        "import bot\ncalls = []\ndef answer(question):\n    calls.append(question)\n"
        f"    if len(calls) == {broken + 1}:\n        raise ValueError('the index is gone')\n"
        "    return bot.answer(question)\n",
    )
    project.configure('target = "sometimes:answer"\nconcurrency = 1')
    project.cases(CASES[:2])
    project.run("--rageval-repeat", "2").assert_outcomes(passed=1, errors=1)
    project.run("--rageval-repeat", "2", "--rageval-resume", project.runs[-1].name).assert_outcomes(passed=1, errors=1)


SHARDED_CASES = [*SOME, a_missed_case("missed"), *(a_case(f"more-{n}") for n in range(12))]


@pytest.fixture
def sharded(project: Project) -> Project:
    project.cases(SHARDED_CASES[:9], "evalcases/a.jsonl")
    project.cases(SHARDED_CASES[9:], "evalcases/b.jsonl")
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
    assert "named to be scored" not in merged.stdout, "nobody named one"
    assert "--update-baseline" not in merged.stdout  # a failing run is not to be accepted
    assert merged.returncode == 1, merged.stdout + merged.stderr  # one case failed, as in its shard
    assert sharded.stable_metrics() == whole
    keys = [[record["case_key"] for record in sharded.results(run)] for run in ("whole", "merged")]
    assert keys[0] == keys[1]


def test_merged_shards_keep_the_thumbs_and_notes_of_all_parts(sharded: Project):
    rated = {}
    for number in (1, 2):
        sharded.run("--rageval-shard", f"{number}/2", "--rageval-run-id", f"part{number}")
        record = sharded.results(f"part{number}")[0]
        rated[record["case_key"]] = Rating("down", f"note {number}", answer=answer_hash(record["answer"]))
        rate(sharded.runs[-1], record["case_key"], rated[record["case_key"]])
    rageval(sharded.path, "merge", "part1", "part2", "--run-id", "merged")
    assert read_ratings(sharded.path / "reports" / "runs" / "merged") == rated
    exported = rageval(sharded.path, "export", "merged", "--format", "labels", "-o", "-").stdout
    assert exported.count('"down"') == 2 or len(exported.splitlines()) == 2
    part = sharded.path / "reports" / "runs" / "part1" / "ratings.json"
    part.write_text("{", encoding="utf-8")
    refused = rageval(sharded.path, "merge", "part1", "part2", "--run-id", "again")
    assert "ratings.json" in refused.stderr
    assert not (sharded.path / "reports" / "runs" / "again").exists()


def test_a_shards_gates_of_the_run_do_not_fail(sharded: Project):
    sharded.configure(
        'target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 1"]\ncase = ["recall_any off"]'
    )
    assert sharded.run("--rageval-run-id", "whole").ret == pytest.ExitCode.TESTS_FAILED
    for number in (1, 2):
        assert sharded.run("--rageval-shard", f"{number}/2", "--rageval-run-id", f"part{number}").ret == 0
    merged = rageval(sharded.path, "merge", "part1", "part2")
    assert (merged.returncode, "recall_any@5" in merged.stdout) == (1, True)


def test_gaps_overlaps_and_other_configurations_are_errors(sharded: Project):
    for number in (1, 2, 3):
        sharded.run("--rageval-shard", f"{number}/3", "--rageval-run-id", f"part{number}")
    sharded.run("--rageval-shard", "2/3", "--rageval-run-id", "again")
    sharded.run("--rageval-shard", "3/3", "--rageval-k", "3", "--rageval-run-id", "other")
    gap = rageval(sharded.path, "merge", "part1", "part3")
    assert "merge: shards are missing: 2/3" in gap.stderr
    overlap = rageval(sharded.path, "merge", "part1", "part2", "again", "part3")
    assert "merge: part2 and again overlap in" in overlap.stderr
    other = rageval(sharded.path, "merge", "part1", "part2", "other")
    assert gap.returncode == overlap.returncode == other.returncode == 2
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
    sharded.cases(SHARDED_CASES[:1], "evalcases/a.jsonl")
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
    assert lines_with(project.rageval("merge", "s1", "s2", "--run-id", "../x"), "ERROR: --run-id: '../x' is not a ")
