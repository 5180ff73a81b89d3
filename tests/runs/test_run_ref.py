"""One resolver of the names of runs, whichever verb is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from stored_runs import a_result, a_run

from pytest_rageval.cli.compare import compare
from pytest_rageval.cli.explain import explain
from pytest_rageval.cli.export import export
from pytest_rageval.cli.merge import merge
from pytest_rageval.cli.score import score
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.run_ref import find_run

CASES = {"a.jsonl::q1": {"content_hash": "hash", "decision_hash": "a-b", "outcome": "passed", "scores": {}}}
FIRST, SECOND = "20260301_120000", "20260302_120000"
VERBS: dict[str, tuple[Any, ...]] = {
    "compare": (compare, "{}", FIRST),
    "explain": (explain, "{}", "q1"),
    "export": (export, "{}", "--format", "csv", "--output", "-"),
    "score": (score, "{}"),
    "merge": (merge, "{}", "--run-id", "merged"),
}


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two runs, the first of which the baseline came from."""
    monkeypatch.chdir(tmp_path)
    reports = tmp_path / "reports"
    for day, run_id in enumerate((FIRST, SECOND), start=1):
        folder = a_run(reports, run_id, a_result())
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps(config | {"begun": f"2026-03-0{day}T12:00:00+00:00"}))
    metrics = json.loads((reports / "runs" / FIRST / "metrics.json").read_text(encoding="utf-8"))
    (reports / "baseline.json").write_text(json.dumps(metrics | {"cases": CASES}))
    return reports


@pytest.mark.parametrize(
    ("reference", "run_id"),
    [
        ("latest", SECOND),
        ("latest~0", SECOND),
        ("latest~1", FIRST),
        ("baseline", FIRST),
        (FIRST, FIRST),
        (f"reports/runs/{FIRST}", FIRST),
        (f"reports/runs/{FIRST}/", FIRST),
        (f"reports/runs/{FIRST}/metrics.json", FIRST),
        (f"reports/runs/{FIRST}/results.jsonl", FIRST),
    ],
)
def test_a_name_means_a_run(reports: Path, reference: str, run_id: str):
    assert find_run(reports, reference).name == run_id


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("lates", "there is no run 'lates'; did you mean 'latest'?"),
        ("basline", "there is no run 'basline'; did you mean 'baseline'?"),
        (FIRST[:-1], f"there is no run '{FIRST[:-1]}'; did you mean '{FIRST}'?"),
        ("20240101_000000", f"there is no run '20240101_000000'; the last ones are {FIRST}, {SECOND}"),
        ("latest~2", "holds 2 runs; the last one is latest, the one before latest~1"),
        ("latest~x", "holds 2 runs"),
        ("", f"there is no run ''; the last ones are {FIRST}, {SECOND}"),
        (".", "there is no run '.'"),
        ("reports/baseline.json", "there is no run 'reports/baseline.json'"),
    ],
)
def test_a_name_of_no_run_comes_with_what_may_have_been_meant(reports: Path, reference: str, message: str):
    with pytest.raises(SettingsError) as error:
        find_run(reports, reference)
    assert len(error.value.problems) == 1
    assert message in error.value.problems[0]


def test_where_there_are_no_runs_that_is_said(tmp_path: Path):
    with pytest.raises(SettingsError, match="holds no runs"):
        find_run(tmp_path, "mine")
    with pytest.raises(SettingsError, match="holds 0 runs"):
        find_run(tmp_path, "latest")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("reference", ["latest~1", "baseline", f"reports/runs/{FIRST}/config.json"])
def test_every_verb_knows_every_name(reports: Path, verb: str, reference: str):
    command, *arguments = VERBS[verb]
    result = CliRunner().invoke(command, [str(argument).format(reference) for argument in arguments])
    assert not isinstance(result.exception, SettingsError), result.exception


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_suggests_the_same(reports: Path, verb: str):
    command, *arguments = VERBS[verb]
    result = CliRunner().invoke(command, [str(argument).format("lates") for argument in arguments])
    assert isinstance(result.exception, SettingsError)
    assert result.exception.problems == ("there is no run 'lates'; did you mean 'latest'?",)


def test_a_baseline_whose_run_is_gone_names_it(reports: Path):
    for path in (reports / "runs" / FIRST).iterdir():
        path.unlink()
    with pytest.raises(SettingsError, match=f"its run {FIRST} is not in .* any more"):
        find_run(reports, "baseline")


def test_the_baseline_of_the_project_counts(reports: Path):
    (reports / "baseline.json").rename(reports / "mine.json")
    assert find_run(reports, "baseline", reports / "mine.json").name == FIRST
