"""A run that died is finished without loss, and a line that is not as it was written is never used."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from processes import ending, kill, wait_until
from project import Project, a_case, a_missed_case
from stored_runs import change_lines, sealed

COUNTING_BOT = """
import asyncio, bot, os
async def answer(question):
    with open("asked.txt", "a") as file:
        file.write(question + "\\n")
    if "slow" in question and not os.path.exists("fast"):
        await asyncio.sleep(600)
    if "broken" in question:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""
CASES = [
    *(a_case(f"q{n}", f"boiling {n}") for n in range(8)),
    a_missed_case("missed", question="boiling missed"),
    a_case("broken", "boiling broken"),
    *(a_case(f"s{n}", f"boiling slow {n}") for n in range(8)),
]


@pytest.fixture
def counting(project: Project) -> Project:
    project.write("counting.py", COUNTING_BOT)
    project.configure('target = "counting:answer"')
    project.cases(CASES)
    return project


def asked(project: Project) -> list[str]:
    return (project.path / "asked.txt").read_text(encoding="utf-8").splitlines()


def start(project: Project, *how: str) -> subprocess.Popen[bytes]:
    return project.start(*how, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait_for_lines(project: Project, pattern: str, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait for so many lines in files of the run that this process writes."""

    def lines() -> int:
        return sum(len(_lines(path)) for run in project.runs for path in run.glob(pattern))

    wait_until(lambda: lines() >= count, f"{count} lines of {pattern}", process)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.child_process
def test_what_was_observed_ahead_is_not_asked_again(counting: Project):
    """The bot answered questions that pytest had not come to when the process died."""
    counting.cases([CASES[-1], *CASES[:8]])
    process = start(counting)
    wait_for_lines(counting, "observations.jsonl", 8, process)
    kill(process)
    ending(process)
    assert not (counting.runs[-1] / "results.jsonl").exists()
    counting.write("fast", "")
    before = len(asked(counting))
    counting.run("--rageval-resume", "latest").assert_outcomes(passed=9)
    assert asked(counting)[before:] == ["boiling slow 7"]


def test_a_torn_last_line_is_dropped_and_said(counting: Project):
    counting.write("fast", "")
    counting.run()
    path = counting.runs[-1] / "results.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text) - 40], encoding="utf-8")
    before = counting.stable_metrics()
    result = counting.run("--rageval-resume", counting.runs[-1].name)
    result.assert_outcomes(passed=16, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*results.jsonl:18: was cut off while it was written, and is left out*"])
    assert counting.stable_metrics() == before
    assert len(counting.records()) == 18


def test_a_resumed_failure_is_shown_as_it_was(counting: Project):
    counting.write("fast", "")
    counting.run()
    result = counting.run("--rageval-resume", "latest")
    result.stdout.fnmatch_lines(
        ["exception: *the index is gone*", "recall_any@5 is 0, gate >= 1*", "  retrieved *water.md*"]
    )


def test_a_redacted_run_is_finished_too(counting: Project):
    counting.write("fast", "")
    counting.run("--rageval-redact", "-k", "not s3", "--rageval-run-id", "most")
    result = counting.run("--rageval-redact", "--rageval-resume", "most")
    result.assert_outcomes(passed=16, failed=1, errors=1)
    result.stdout.fnmatch_lines(["resumed most: 17 results were there already"])
    assert len(asked(counting)) == 18


def test_another_configuration_is_another_run(counting: Project):
    counting.write("fast", "")
    counting.run()
    result = counting.run("--rageval-resume", "latest", "--rageval-k", "7")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--rageval-resume: run * was begun with another configuration: k was 5 and is 7"])
    counting.cases(CASES[:5])
    result = counting.run("--rageval-resume", "latest")
    result.stderr.fnmatch_lines(["*was begun with another configuration: dataset was *"])


@pytest.mark.child_process
def test_a_run_that_is_being_written_cannot_be_resumed(counting: Project):
    process = start(counting)
    wait_for_lines(counting, "results*.jsonl", 8, process)
    result = counting.run("--rageval-resume", "latest")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is being written by another process; wait for it to end"])


@pytest.mark.child_process
@pytest.mark.parametrize(("number", "how"), [("SIGTERM", ["-n", "2"]), ("SIGHUP", [])])
def test_other_signals_end_a_run_as_ctrl_c_does(counting: Project, number: str, how: list[str]):
    signal_number = getattr(signal, number)
    inherited = signal.signal(signal_number, signal.SIG_DFL)  # these tests may themselves run under nohup
    process = start(counting, *how)
    signal.signal(signal_number, inherited)
    wait_for_lines(counting, "results*.jsonl", 8 if not how else 5, process)
    process.send_signal(signal_number)
    output = ending(process)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    assert counting.metrics()["partial"] is True
    assert b"Traceback" not in output
    assert not list(counting.runs[-1].glob("*-gw*"))


@pytest.mark.child_process
def test_a_session_without_a_chosen_case_leaves_no_run(counting: Project):
    counting.write("test_own.py", "def test_own(): pass\n")
    counting.run("-n", "1", "-k", "test_own").assert_outcomes(passed=1)
    assert not counting.runs


READERS = (["gate", "latest"], ["explain", "latest", "q1"], ["compare", "latest", "latest"], ["score", "latest"])


@pytest.fixture
def written(project: Project) -> Project:
    project.write("written.py", COUNTING_BOT)
    # One after the other, so that observations stand in the order of the cases.
    project.configure('target = "written:answer"\nconcurrency = 1')
    project.cases([a_case(f"q{n}", f"boiling {n}") for n in range(6)])
    project.run().assert_outcomes(passed=6)
    return project


def damage(path: Path, number: int, old: str = "boiling", new: str = "boilinG") -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    path.write_text("\n".join(lines), encoding="utf-8")


def test_a_damaged_line_is_named_and_asked_again(written: Project):
    undamaged = written.stable_metrics()
    (run,) = written.runs
    damage(run / "results.jsonl", 3)
    damage(run / "observations.jsonl", 3)
    (written.path / "asked.txt").unlink()
    result = written.run("--rageval-resume", "latest")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [
            "results.jsonl:3: does not match its checksum; it is left out",
            "observations.jsonl:3: does not match its checksum; it is left out",
        ]
    )
    assert (written.path / "asked.txt").read_text() == "boiling 2\n"
    assert written.stable_metrics() == undamaged


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
def test_no_reader_uses_a_damaged_line(written: Project, name: str, command: list[str]):
    (run,) = written.runs
    damage(run / name, 3)
    before = {path: path.read_bytes() for path in run.iterdir()}
    result = written.rageval(*command)
    assert result.ret != 0
    (line,) = [line for line in result.errlines if name in line]
    assert f"{name}:3: does not match its checksum" in line
    assert {path: path.read_bytes() for path in run.iterdir()} == before


def test_a_recorded_answer_that_is_damaged_is_not_scored(written: Project):
    damage(written.runs[-1] / "observations.jsonl", 3)
    result = written.run("--rageval-target", "run:latest")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*observations.jsonl:3:1: does not match its checksum*"])


@pytest.mark.parametrize("command", READERS)
def test_a_run_of_another_schema_is_refused_in_one_line_with_its_remedy(written: Project, command: list[str]):
    (run,) = written.runs
    for name in ("results.jsonl", "observations.jsonl"):
        change_lines(run / name, lambda line: line.replace('"schema":2', '"schema":1', 1))
    (run / "scores.jsonl").unlink()
    result = written.rageval(*command)
    assert result.ret != 0
    (line,) = [line for line in result.errlines if line.strip()]
    assert "jsonl:1: is of schema 1, this version reads 2; run the cases again" in line


@pytest.mark.parametrize("key", ["latency", "outcome"])
def test_a_record_that_lacks_a_key_is_one_line(written: Project, key: str):
    (run,) = written.runs
    path = run / "results.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(first)
    del record[key], record["checksum"]
    path.write_text("".join(line + "\n" for line in [sealed(json.dumps(record)), *rest]), encoding="utf-8")
    (run / "scores.jsonl").unlink()
    for command in READERS:
        result = written.rageval(*command)
        assert result.ret != 0
        assert f"results.jsonl:1: is not a record: it has no {key}" in "\n".join(result.errlines)
        assert "Traceback" not in "\n".join([*result.outlines, *result.errlines])
    result = written.run("--rageval-resume", "latest")
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
@pytest.mark.reliability("disk", "full before, during and after the cases")
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
