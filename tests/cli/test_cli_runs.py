"""`rageval runs` and `rageval export`: what is listed, removed and written; verbs on what is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from processes import Terminal
from project import command, problems
from rich.cells import cell_len
from stored_runs import a_result, a_run, at

from pytest_rageval.cli.main import rageval

pytestmark = pytest.mark.usefixtures("here")

REPORTS = Path("reports")


def runs(*arguments: str) -> Result:
    return CliRunner().invoke(rageval, ["runs", *arguments])


def left() -> list[str]:
    return sorted(path.name for path in (REPORTS / "runs").iterdir())


@pytest.fixture
def three() -> None:
    for number, name in enumerate("abc", start=1):
        a_run(REPORTS, name, ended=at(number))


A_CASE = {"content_hash": "0", "decision_hash": "a-b", "outcome": "passed", "scores": {}}


def a_baseline_of(run_id: str) -> None:
    metrics = json.loads((REPORTS / "runs" / run_id / "metrics.json").read_text())
    (REPORTS / "baseline.json").write_text(json.dumps(metrics | {"cases": {"a.jsonl::q1": A_CASE}}))


def test_the_list_has_a_line_a_run_with_what_is_special_about_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    a_run(REPORTS, "a", ended=at(1), description="first\x1b[31m\ntry")
    a_run(REPORTS, "남산", a_result(outcome="failed"), ended=at(2), missing=["x"])
    a_run(REPORTS, "20270101_000000", is_finished=False)
    a_baseline_of("a")
    result = runs("list")
    assert result.exit_code == 0
    head, first, korean, dead, total = result.output.splitlines()
    assert head.split() == ["run", "ended", "(UTC)", "cases", "passed", "failed", "error", "overall", "size"]
    assert first.split()[:7] == ["a", "2026-03-01", "01:00", "1", "1", "0", "0"]
    assert first.endswith("  baseline; first\\x1b[31m try")
    assert korean.startswith("남산             2026-03-01 02:00")
    assert korean.endswith("  partial")
    assert (dead.split()[3:7], dead.endswith("  interrupted")) == (["–"] * 4, True)
    assert total.startswith("3 runs, ")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    a_run(REPORTS, "서울-가장-오래된-카페", a_result(outcome="xfailed"), ended=at(1), description="k를 5로 늘렸다")
    a_run(REPORTS, "b", ended=at(2))
    lines = runs("list").output.splitlines()
    assert [line for line in lines if cell_len(line) > width] == []
    assert "k를 5로 늘렸다" in " ".join(map(str.strip, lines))


def test_the_list_as_json(three):
    a_baseline_of("b")
    whole = json.loads(runs("list", "--json").output)
    assert [(run["run_id"], run["timestamp"], run["state"], run["is_baseline"]) for run in whole["runs"]] == [
        ("a", at(1), "complete", False), ("b", at(2), "complete", True), ("c", at(3), "complete", False)
    ]  # fmt: skip
    assert whole["bytes"] == sum(run["bytes"] for run in whole["runs"])


def test_where_nothing_is_kept_that_is_said():
    assert runs("list").output.endswith("reports/runs holds no runs\n")


def test_a_run_is_shown_with_configuration_versions_files_and_aggregates():
    a_run(REPORTS, "a", ended=at(1), params={"chunk_max_tokens": 200})
    lines = [line.split() for line in runs("show", "latest").output.splitlines()]
    assert lines[0] == ["a", "2026-03-01", "01:00:00", "UTC"]
    for expected in (["k", "5"], ["params.chunk_max_tokens", "200"], ["answerer_version"], ["passed", "1"],
                     ["mrr", "0.500", "1", "of", "1"], ["results.jsonl"]):  # fmt: skip
        assert any(line[: len(expected)] == expected for line in lines), expected


def test_a_run_that_died_and_one_that_is_broken_are_shown_as_far_as_they_go():
    a_run(REPORTS, "dead", is_finished=False)
    broken = a_run(REPORTS, "broken")
    (broken / "metrics.json").write_text("{")
    assert "  interrupted\n" in runs("show", "dead").output
    assert "  broken\n" in runs("show", "broken").output
    assert json.loads(runs("show", "broken", "--json").output)["aggregates"] is None


def test_prune_removes_nothing_unless_it_is_told_what_may_go_and_off_a_terminal_yes(three):
    result = runs("prune")
    assert result.exit_code == 2
    assert "say what may go: --keep, --older-than, or both" in result.output
    (problem,) = problems(runs("prune", "--keep", "1"))
    assert problem == "2 runs would be removed, and nobody can be asked here; say --yes, or --dry-run"
    assert left() == ["a", "b", "c"]


def test_a_dry_run_says_what_would_go(three):
    result = runs("prune", "--keep", "1", "--dry-run")
    assert [line.split()[:3] for line in result.output.splitlines()] == [["would", "go:", "a"], ["would", "go:", "b"]]
    assert left() == ["a", "b", "c"]


def test_prune_says_what_it_removed_and_the_room_it_made_and_keeps_the_baseline_s(three):
    a_baseline_of("a")
    result = runs("prune", "--keep", "1", "--yes")
    assert result.exit_code == 0
    stays, removed, total = result.output.splitlines()
    assert stays == "stays: a: the baseline came from it"
    assert removed.startswith("removed: b  2026-03-01 02:00  ")
    assert total.startswith("removed 1 run, ")
    assert total.endswith(" kB; 2 left")
    assert left() == ["a", "c"]


def test_a_baseline_that_cannot_be_read_stops_a_removal_and_no_listing(three):
    (REPORTS / "baseline.json").write_text("{")
    (problem,) = problems(runs("prune", "--keep", "0", "--yes"))
    assert "is not JSON" in problem
    assert left() == ["a", "b", "c"]
    assert runs("list").exit_code == 0


@pytest.mark.child_process
@pytest.mark.parametrize(("reply", "kept"), [("y\n", ["b", "c"]), ("n\n", ["a", "b", "c"]), ("\n", ["a", "b", "c"])])
def test_on_a_terminal_prune_asks_first(three, reply: str, kept: list[str]):
    with Terminal(Path.cwd(), "-m", "pytest_rageval", "runs", "prune", "--keep", "2") as terminal:
        terminal.until("Remove 1 run? [y/N]")
        terminal.type(reply)
        assert terminal.ended() == 0
    assert left() == kept


def test_a_verb_in_a_sub_folder_finds_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pyproject.toml").write_text('[tool.rageval]\nreports = "kept"\n', encoding="utf-8")
    below = tmp_path / "notes" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    result = CliRunner().invoke(rageval, ["runs", "list"])
    assert f"{tmp_path / 'kept' / 'runs'} holds no runs" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "x", "--aggregate-only", "--metrics", "mrr"],
        ["score", "x", "--cases", "gone"],
        ["judge", "x", "--aggregate-only", "--judge", "lexical"],
        ["judge", "x", "--spot-check", "--cases", "."],
        ["abstention", "x", "--cases", "gone"],
        ["judge", "x", "--spot-check-n", "5"],
        ["judge", "x", "--second-judge", "lexical"],
        ["judge", "x", "--spot-check", "--claim-level"],
        ["judge", "x", "--spot-check", "--spot-check-n", "0"],
        ["judge", "x", "--judge-cache", "sometimes"],
        ["gate"],
    ],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_wrong_usage(arguments: list[str]):
    assert command(*arguments).exit_code == 2


def test_wrong_numbers_are_said_in_a_line():
    (problem,) = problems(command("judge", "x", "--max-cost", "much"))
    assert problem.startswith("--rageval-max-cost is 'much' (a string), expected ")
