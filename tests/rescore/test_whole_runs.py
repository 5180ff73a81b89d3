"""A stored run is held against the number and the identity of its records, by every verb that reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from project import SOME, StoredProject, a_case, a_missed_case, run_pytest
from project import rageval as run_command

MANY = [*SOME, *[a_missed_case(f"missed-{number}") for number in range(3)]]
Lines = list[str]


def without_failures(lines: Lines, _other: Lines) -> Lines:
    return [line for line in lines if "missed-" not in line]


def without_last(lines: Lines, _other: Lines) -> Lines:
    return lines[:-1]


def truncated(lines: Lines, _other: Lines) -> Lines:
    return [*lines[:-1], lines[-1].rstrip("\n")[:-30]]


def emptied(_lines: Lines, _other: Lines) -> Lines:
    return []


def doubled(lines: Lines, _other: Lines) -> Lines:
    return [*lines, lines[0]]


def swapped(lines: Lines, other: Lines) -> Lines:
    """Put the records of a better run in the place of the failures."""
    passed = [line for line in other if "missed-" in line]
    return [*without_failures(lines, other), *passed]


def appended(lines: Lines, other: Lines) -> Lines:
    return [*lines, *[line for line in other if "missed-" in line]]


def exchanged(lines: Lines, other: Lines) -> Lines:
    """Take all records from a better run, whose cases have the same keys."""
    return other


DAMAGES: dict[Callable[[Lines, Lines], Lines], str] = {
    without_failures: "3 of 7 cases have no record in results.jsonl: evalcases/a.jsonl::missed-0, ",
    without_last: "1 of 7 cases has no record in results.jsonl: ",
    truncated: "1 of 7 cases has no record in results.jsonl: ",
    emptied: "7 of 7 cases have no record in results.jsonl: ",
    doubled: "1 record stands in results.jsonl more than once",
    swapped: "results.jsonl holds other records than the run wrote",
    appended: "3 records stand in results.jsonl more than once",
    exchanged: "results.jsonl holds other records than the run wrote",
}
VERBS = {
    "gate": (["gate", "one"], 1),
    "gate --json": (["gate", "one", "--json"], 1),
    "score": (["score", "one"], 2),
    "score --aggregate-only": (["score", "one", "--aggregate-only"], 2),
    "judge": (["judge", "one", "--judge", "lexical"], 2),
    "report": (["report", "one"], 0),
    "compare A": (["compare", "one", "other"], 1),
    "compare B": (["compare", "other", "one"], 1),
    "export": (["export", "one", "--format", "csv"], 0),
    "runs show": (["runs", "show", "one"], 0),
    "comment": (["comment", "one"], 0),
    "as baseline": (["run", "--baseline", "run:one"], 4),
}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> StoredProject:
    """A run with failures, and a better one of the same cases."""
    project = StoredProject.new(tmp_path_factory.mktemp("whole") / "project", MANY)
    project.pytest(run_id="one")
    found = [{"rel_path": "notes/water.md", "heading_path": ""}]
    project.cases([*SOME, *[a_case(f"missed-{number}", gold_supports=found) for number in range(3)]])
    project.pytest(run_id="other")
    project.cases(MANY)
    return project


def damaged(project: StoredProject, damage: Callable[[Lines, Lines], Lines]) -> None:
    """Change results.jsonl of the first run."""
    path = project.folder("one") / "results.jsonl"
    lines, other = [
        (project.folder(run) / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        for run in ("one", "other")
    ]
    path.write_text("".join(damage(lines, other)), encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_a_whole_run_is_said_to_be_whole(two_runs: StoredProject, tmp_path_factory: pytest.TempPathFactory, verb: str):
    project = two_runs.copied(tmp_path_factory.mktemp("copy") / "project")
    done = run_command(project.path, *VERBS[verb][0])
    assert "not whole" not in done.stdout + done.stderr
    assert "records" not in json.loads((project.folder("one") / "metrics.json").read_text())["verdict"]["problems"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_run_is_not_green_for_any_verb(
    two_runs: StoredProject,
    tmp_path_factory: pytest.TempPathFactory,
    damage: Callable[[Lines, Lines], Lines],
    verb: str,
):
    project = two_runs.copied(tmp_path_factory.mktemp("copy") / "project")
    damaged(project, damage)
    before = (project.folder("one") / "results.jsonl").read_bytes()
    arguments, status = VERBS[verb]
    done = run_command(project.path, *arguments)
    shown = " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in shown
    if damage is emptied and verb == "export":
        assert done.returncode == 2
        return
    assert done.returncode == status
    assert DAMAGES[damage] in shown
    assert "the run is not whole" in shown
    assert (project.folder("one") / "results.jsonl").read_bytes() == before


def test_the_report_of_a_damaged_run_says_so_and_is_red(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    damaged(project, without_failures)
    run_command(project.path, "report", "one")
    page = (project.folder("one") / "report.html").read_text(encoding="utf-8")
    assert "3 of 7 cases have no record" in page


def test_a_damaged_run_can_be_resumed_and_is_whole_again(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    damaged(project, without_failures)
    done = run_command(project.path, "run", "--resume", "one")
    assert done.returncode == 1
    assert len(project.records("one")) == 7
    assert "not whole" not in run_command(project.path, "gate", "one").stdout


@pytest.mark.parametrize("how", [["-k", "boil"], ["-x"], ["--rageval-shard", "1/2"], ["--rageval-repeat", "2"]])
def test_a_part_of_a_run_that_was_asked_for_stays_a_part(two_runs: StoredProject, tmp_path: Path, how: list[str]):
    project = two_runs.copied(tmp_path / "project")
    project.pytest(*how, run_id="part")
    config = project.json("config.json", "part")
    assert config["expected"]["cases"] == 7
    assert config["recorded"]["records"] == len((project.folder("part") / "results.jsonl").read_text().splitlines())
    done = run_command(project.path, "gate", "part")
    assert "not whole" not in done.stdout + done.stderr


def test_shards_add_up_to_a_whole_run(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    for number in (1, 2):
        project.pytest("--rageval-shard", f"{number}/2", run_id=f"part-{number}")
    done = run_command(project.path, "merge", "part-1", "part-2", "--run-id", "merged")
    assert done.returncode in (0, 1)
    [merged] = [path for path in project.folder("one").parent.glob("*") if path.name not in
                ("one", "other", "part-1", "part-2")]  # fmt: skip
    config = project.json("config.json", merged.name)
    assert config["recorded"]["cases"] == config["expected"]["cases"] == 7
    assert "not whole" not in run_command(project.path, "gate", merged.name).stdout


def test_a_shard_that_lost_records_is_not_merged(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    for number in (1, 2):
        project.pytest("--rageval-shard", f"{number}/2", run_id=f"part-{number}")
    path = project.folder("part-1") / "results.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    done = run_command(project.path, "merge", "part-1", "part-2")
    assert done.returncode == 2
    assert "has no record in results.jsonl" in done.stderr


def test_a_run_without_its_records_is_not_green_for_the_gates(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    (project.folder("one") / "results.jsonl").unlink()
    done = run_command(project.path, "gate", "one")
    assert done.returncode == 1
    assert "results.jsonl is not there" in done.stdout


def test_a_run_without_a_seal_is_held_against_its_number_of_cases(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    path = project.folder("one") / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    del config["recorded"]
    path.write_text(json.dumps(config), encoding="utf-8")
    assert "not whole" not in run_command(project.path, "gate", "one").stdout
    damaged(project, without_failures)
    done = run_command(project.path, "gate", "one")
    assert done.returncode == 1
    assert "3 of 7 cases have no record" in done.stdout


@pytest.mark.child_process
def test_a_run_with_workers_is_sealed_too(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    assert run_pytest(project.path, "-n", "2", "--rageval-run-id", "workers").returncode == 1
    assert project.json("config.json", "workers")["recorded"]["records"] == 7
    assert "not whole" not in run_command(project.path, "gate", "workers").stdout
    assert run_command(project.path, "run", "--workers", "2", "--run-id", "crew").returncode == 1
    assert project.json("config.json", "crew")["recorded"]["records"] == 7
    assert "not whole" not in run_command(project.path, "gate", "crew").stdout


@pytest.mark.parametrize("damage", [swapped, appended, exchanged], ids=lambda damage: damage.__name__)
def test_a_run_with_records_of_another_one_cannot_be_resumed(
    two_runs: StoredProject, tmp_path: Path, damage: Callable[[Lines, Lines], Lines]
):
    project = two_runs.copied(tmp_path / "project")
    damaged(project, damage)
    done = run_command(project.path, "run", "--resume", "one")
    assert done.returncode == 4
    assert "the run is not whole: run the cases again" in done.stderr
