"""A line that is not as it was written is never used, and a full disk ends the run in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import Project, a_case
from stored_runs import change_lines, sealed

COUNTING_BOT = """
import bot
def answer(question):
    with open("asked.txt", "a") as file:
        file.write(question + "\\n")
    return bot.answer(question)
"""

READERS = (["gate", "latest"], ["explain", "latest", "q1"], ["compare", "latest", "latest"], ["score", "latest"])


@pytest.fixture
def counting(project: Project) -> Project:
    project.write("counting.py", COUNTING_BOT)
    # One after the other, so that observations stand in the order of the cases.
    project.configure('target = "counting:answer"\nconcurrency = 1')
    project.cases([a_case(f"q{n}", f"boiling {n}") for n in range(6)])
    project.run().assert_outcomes(passed=6)
    return project


def damage(path: Path, number: int, old: str = "boiling", new: str = "boilinG") -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    path.write_text("\n".join(lines), encoding="utf-8")


def test_a_damaged_line_is_named_and_asked_again(counting: Project):
    undamaged = counting.stable_metrics()
    (run,) = counting.runs
    damage(run / "results.jsonl", 3)
    damage(run / "observations.jsonl", 3)
    (counting.path / "asked.txt").unlink()
    result = counting.run("--rageval-resume", "latest")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [
            "results.jsonl:3: does not match its checksum; it is left out",
            "observations.jsonl:3: does not match its checksum; it is left out",
        ]
    )
    assert (counting.path / "asked.txt").read_text() == "boiling 2\n"
    assert counting.stable_metrics() == undamaged


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("results.jsonl", ["explain", "latest", "q0"]),
        ("results.jsonl", ["gate", "latest"]),
        ("results.jsonl", ["score", "latest"]),
        ("results.jsonl", ["score", "latest", "--aggregate-only"]),
        ("results.jsonl", ["merge", "latest"]),
        ("observations.jsonl", ["explain", "latest", "q0"]),
        ("observations.jsonl", ["score", "latest"]),
        ("observations.jsonl", ["judge", "latest", "--judge", "stub:4", "--metrics", "relevance"]),
    ],
)
def test_no_reader_uses_a_damaged_line(counting: Project, name: str, command: list[str]):
    (run,) = counting.runs
    damage(run / name, 3)
    before = {path: path.read_bytes() for path in run.iterdir()}
    result = counting.rageval(*command)
    assert result.ret != 0
    (line,) = [line for line in result.errlines if name in line]
    assert f"{name}:3: does not match its checksum" in line
    assert {path: path.read_bytes() for path in run.iterdir()} == before


def test_an_export_leaves_a_damaged_line_out_and_says_so(counting: Project):
    damage(counting.runs[-1] / "results.jsonl", 3)
    result = counting.rageval("export", "latest", "--format", "csv", "--output", "-")
    assert "results.jsonl:3: does not match its checksum; it is left out" in result.errlines
    assert len(result.outlines) == 1 + 5


def test_a_recorded_answer_that_is_damaged_is_not_scored(counting: Project):
    damage(counting.runs[-1] / "observations.jsonl", 3)
    result = counting.run("--rageval-target", "run:latest")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*observations.jsonl:3:1: does not match its checksum*"])


@pytest.mark.parametrize("command", READERS)
def test_a_run_of_another_schema_is_refused_in_one_line_with_its_remedy(counting: Project, command: list[str]):
    (run,) = counting.runs
    for name in ("results.jsonl", "observations.jsonl"):
        change_lines(run / name, lambda line: line.replace('"schema":2', '"schema":1', 1))
    (run / "scores.jsonl").unlink()
    result = counting.rageval(*command)
    assert result.ret != 0
    (line,) = [line for line in result.errlines if line.strip()]
    assert "jsonl:1: is of schema 1, this version reads 2; run the cases again" in line


@pytest.mark.parametrize("key", ["latency", "outcome"])
def test_a_record_that_lacks_a_key_is_one_line(counting: Project, key: str):
    (run,) = counting.runs
    path = run / "results.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(first)
    del record[key], record["checksum"]
    path.write_text("".join(line + "\n" for line in [sealed(json.dumps(record)), *rest]), encoding="utf-8")
    (run / "scores.jsonl").unlink()
    for command in (
        ["gate", "latest"],
        ["explain", "latest", "q1"],
        ["compare", "latest", "latest"],
        ["score", "latest"],
    ):
        result = counting.rageval(*command)
        assert result.ret != 0
        assert f"results.jsonl:1: is not a record: it has no {key}" in "\n".join(result.errlines)
        assert "Traceback" not in "\n".join([*result.outlines, *result.errlines])
    result = counting.run("--rageval-resume", "latest")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines([f"results.jsonl:1: is not a record: it has no {key}; it is left out"])


LIMITED = """
import resource

def pytest_runtest_setup(item):
    # As a full disk does, this stops a file from growing: 30,000 bytes, a few results.
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
"""


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_a_full_disk_ends_the_run_in_one_line(project: Project, how: list[str]):
    project.cases([a_case(f"q{n}", f"boiling {n}") for n in range(60)])
    project.write("conftest.py", LIMITED if not how else LIMITED.replace("runtest_setup(item)", "configure(config)"))
    result = project.run_process("-p", "no:cacheprovider", *how)  # the limit is of the process
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    output = "\n".join([*result.outlines, *result.errlines])
    assert "results.jsonl cannot be written: File too large; mend that, and finish the run with --rageval-r" in output
    assert "Traceback" not in output
    *whole, _torn = (project.runs[-1] / "results.jsonl").read_text(encoding="utf-8").split("\n")
    assert len(whole) > 1
    for line in whole:
        json.loads(line)
    (project.path / "conftest.py").unlink()
    project.run("--rageval-resume", "latest").assert_outcomes(passed=60)
    assert len(project.records()) == 60
