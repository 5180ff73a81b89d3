"""`rageval run` does what pytest does, outside of it: records, gates, reports, exit codes, Ctrl-C, a terminal."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from processes import Terminal, ending, wait_until
from project import SOME, TABLE, Project, a_case, a_missed_case
from stored_runs import records_of, stable_bytes

from pytest_rageval.render import run_reports

ROOT = Path(__file__).parents[2]


def last_json(result: pytest.RunResult) -> dict[str, Any]:
    return json.loads(result.outlines[-1])


@pytest.fixture
def demo(project: Project) -> Project:
    """The shipped cases with their baseline."""
    shutil.copytree(ROOT / "evalcases", project.path / "evalcases")
    (project.path / "reports").mkdir()
    shutil.copy(ROOT / "reports" / "baseline.json", project.path / "reports")
    project.configure('target = "demo"\nknown_failures = "ratchet"')
    return project


def test_metrics_and_exit_code_are_those_of_pytest_on_the_demo(demo: Project):
    words = ("ignore-invariants", "param=min_score=0.9")
    assert demo.rageval("run", "--run-id", "own", *(f"--{word}" for word in words)).ret == 1
    assert demo.run("-q", "--rageval-run-id", "by-pytest", *(f"--rageval-{word}" for word in words)).ret == 1
    by_command, by_pytest = (demo.path / "reports" / "runs" / name for name in ("own", "by-pytest"))
    assert stable_bytes(by_command) == stable_bytes(by_pytest)
    assert records_of(by_command) == records_of(by_pytest)
    assert {path.name for path in by_command.iterdir()} == {path.name for path in by_pytest.iterdir()}


WRONG: list[tuple[str, list[str], int]] = [
    ("an unknown metric", ["--gate", "recal >= 1"], 4),
    ("an unknown option", ["--gatee", "mrr >= 1"], 4),
    ("a value of another type", ["--k", "five"], 4),
    ("a gate for cases that do not exist", ["--gate", "mrr >= 1 when category=none"], 4),
    ("a target that is none", ["--target", "nothing"], 4),
    ("nothing listens there", ["--target", "http://127.0.0.1:9"], 4),
    ("a run that is not there", ["--resume", "gone"], 4),
]


@pytest.mark.parametrize(("what", "options", "code"), WRONG, ids=[what for what, _, _ in WRONG])
def test_what_is_wrong_is_a_line_and_has_the_exit_code_of_pytest(
    project: Project, what: str, options: list[str], code: int
):
    project.cases(SOME)
    result = project.rageval("run", *options)
    assert result.ret == code
    assert result.errlines
    assert "--rageval-" not in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert not project.runs
    assert project.run(*(f"--rageval-{word[2:]}" if word.startswith("--") else word for word in options)).ret == code


def test_a_case_names_the_options_of_the_command(project: Project):
    project.cases([a_case("boil")])
    project.write("bot.py", "def answer(question): return {'answer': None}")
    screen = project.rageval("run", "--target", "bot:answer").stdout.str()
    assert "and --retrieval-only measures" in screen
    assert "--rageval-" not in screen


BROKEN = '{"id": "a"}\n{"id": "b", "question": 3}\n'


@pytest.mark.parametrize(
    ("cases", "table", "code", "said"),
    [
        (BROKEN, TABLE, 2, ["ERROR: evalcases/a.jsonl:1*", "ERROR: evalcases/a.jsonl:2*"]),
        ("", TABLE, 5, ["ERROR: no case files; looked for *"]),
        ('{"id": "a", "question": "Why?"}', "k = 5", 4, ["ERROR: no target: say which system to ask with --target, *"]),
    ],
    ids=["broken cases", "no cases", "no target"],
)
def test_what_is_missing_or_broken_is_said_in_its_own_words_with_the_exit_code_of_pytest(
    project: Project, cases: str, table: str, code: int, said: list[str]
):
    if cases:
        project.write("evalcases/a.jsonl", cases)
    project.configure(table)
    result = project.rageval("run")
    assert result.ret == project.run().ret == code
    result.stderr.fnmatch_lines(said)
    assert not project.runs


def test_known_failures_and_skipped_cases_end_as_in_pytest(project: Project):
    project.configure('target = "answers:answers.jsonl"\nknown_failures = "report"')
    project.cases([*SOME, a_missed_case("missed")])
    answers = [{"id": "boil", "answer": "Water boils at 100 degrees."}, {"id": "missed", "answer": "no idea"}]
    project.write("answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))
    assert project.rageval("run", "--run-id", "own", "--allow-partial").ret == 0
    assert project.run("--rageval-run-id", "by-pytest", "--rageval-allow-partial").ret == 0
    own, by_pytest = (project.path / "reports" / "runs" / name for name in ("own", "by-pytest"))
    assert records_of(own) == records_of(by_pytest)


def test_a_dry_run_asks_nothing_and_writes_nothing(project: Project):
    project.cases(SOME)
    result = project.rageval("run", "--dry-run")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["dry run: 4 cases; *"])
    assert not project.runs


def test_steps_are_left_out(project: Project):
    project.cases(SOME)
    project.configure(
        'target = "bot:answer"\nmetrics = { enabled = ["retrieval", "answer", "abstention", "groundedness"] }'
    )
    assert project.rageval("run").ret == 0
    layers = {metric["layer"] for metric in project.metrics()["metrics"].values()}
    assert {"L2", "L5", "abstention"} <= layers
    assert project.metrics()["judge"]
    project.rageval("run", "--skip-retrieval-metrics", "--skip-abstention-metrics", "--skip-judges")
    layers = {metric["layer"] for metric in project.metrics()["metrics"].values()}
    assert not {"L2", "abstention"} & layers
    assert "L5" in layers
    assert project.metrics()["judge"] is None
    assert project.rageval("run", "--retrieval-only").ret == 0
    assert "L5" not in {metric["layer"] for metric in project.metrics()["metrics"].values()}


@pytest.mark.parametrize("judge", ["openai:m@http://127.0.0.1:9", "http://127.0.0.1:9"])
def test_a_judge_that_cannot_be_asked_is_reported_and_the_other_steps_go_on(project: Project, judge: str):
    project.cases(SOME)
    result = project.rageval("run", "--judge", judge, OPENAI_API_KEY="k")
    assert result.ret == 1
    result.stderr.fnmatch_lines(["ERROR: judging failed, the other steps go on: judge *"])
    result.stdout.fnmatch_lines([f"judge its answers later: rageval judge * --judge {judge}"])
    metrics = project.metrics()
    assert metrics["outcomes"]["passed"] == len(SOME)
    assert metrics["judge"] is None
    assert project.rageval("judge", project.runs[-1].name, "--judge", "lexical").ret == 0
    assert project.metrics()["judge"]


def test_json_is_the_last_line_and_says_what_to_call_next(project: Project):
    project.cases([*SOME, a_missed_case("missed")])
    content = last_json(project.rageval("run", "--json", "--run-id", "one"))
    assert content["exit_code"] == 1
    assert content["run"] == "one"
    assert content["outcomes"]["failed"] == 1
    assert content["sentence"] == project.metrics()["verdict"]["sentence"]
    assert content["next"][0] == "rageval explain one evalcases/a.jsonl::missed"
    assert last_json(project.rageval("run", "--json", "--k", "no"))["problems"] == [
        "--k is 'no' (a string), expected a whole number from 1 to 10,000"
    ]


def test_a_report_that_cannot_be_written_is_reported_and_the_verdict_stands(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device", "summary.md")

    monkeypatch.setattr("pytest_rageval.render.run_reports.write_reports", refuse)
    project.cases(SOME)
    result = project.rageval("run")
    assert result.ret == 1
    result.stderr.fnmatch_lines(
        ["ERROR: report failed, the other steps go on: summary.md cannot be written: No space*"]
    )
    assert project.metrics()["outcomes"]["passed"] == len(SOME)


def test_files_of_the_run_that_cannot_be_written_are_exit_code_3_and_the_run_can_be_finished(project: Project):
    spoiler = (
        "import bot, pathlib\n"
        "def answer(question):\n"
        "    pathlib.Path('reports/runs/one/metrics.json').mkdir(exist_ok=True)\n"
        "    return bot.answer(question)\n"
    )
    project.write("spoiler.py", spoiler)
    project.configure('target = "spoiler:answer"')
    project.cases(SOME)
    result = project.rageval("run", "--run-id", "one", "--json")
    assert result.ret == 3
    result.stderr.fnmatch_lines(["ERROR: *metrics.json cannot be written: *rageval run --resume one"])
    assert last_json(result)["next"] == ["rageval run --resume one"]
    (project.path / "reports/runs/one/metrics.json").rmdir()
    resumed = project.rageval("run", "--resume", "one")
    assert resumed.ret == 0
    assert project.metrics()["outcomes"]["passed"] == len(SOME)


def test_a_page_of_too_many_cases_is_left_out_and_can_be_written_all_the_same(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_reports, "MOST_OF_A_PAGE", len(SOME))
    project.cases(SOME)
    assert project.rageval("run", "--run-id", "a").ret == 0
    assert (project.runs[-1] / "report.html").is_file()
    project.cases([*SOME, a_case("one-more")])
    result = project.rageval("run", "--run-id", "b")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["report.html is left out, *: these are 5, more than 4; `rageval report b` writes *"])
    assert not (project.runs[-1] / "report.html").exists()
    assert (project.runs[-1] / "summary.md").is_file()
    assert project.rageval("report", "b").ret == 0
    assert (project.runs[-1] / "report.html").is_file()


SLOW = """
import asyncio, bot
async def answer(question):
    if "slow" in question:
        open("asked", "w").close()
        await asyncio.sleep(600)
    return bot.answer(question)
"""
WAITS = "while not __import__('os').path.exists('gate'): await asyncio.sleep(0.02)"
QUICK = "import bot\nasync def answer(question):\n    return bot.answer(question)\n"


def started(project: Project) -> subprocess.Popen[bytes]:
    return project.start_process("-m", "pytest_rageval", "run", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def records_on_disk(project: Project) -> int:
    return sum(path.read_bytes().count(b"\n") for path in project.path.glob("reports/runs/*/results.jsonl"))


@pytest.mark.child_process
@pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_ctrl_c_leaves_a_partial_run_that_can_be_finished(project: Project, number: signal.Signals, times: int):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 6 else "boiling slow") for n in range(12)])
    process = started(project)
    wait_until(lambda: records_on_disk(project) >= 6, "the quick cases are recorded", process)
    for _ in range(times):
        process.send_signal(number)
    output = ending(process).decode()
    assert process.returncode == 2, output
    run_id = project.runs[-1].name
    assert f"rageval run --resume {run_id} finishes" in output
    assert "Traceback" not in output
    assert project.metrics()["partial"]
    assert len(project.records()) == project.metrics()["selection"]["recorded"] == 6
    project.write("slow.py", QUICK)
    assert project.rageval("run", "--resume", run_id).ret == 0
    assert len(project.records()) == 12
    assert not project.metrics()["partial"]
    resumed = stable_bytes(project.runs[-1])
    assert project.run("--rageval-run-id", "whole").ret == 0
    assert stable_bytes(project.path / "reports/runs/whole") == resumed


@pytest.mark.child_process
def test_ctrl_c_before_the_first_answer_leaves_a_line(project: Project):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case("q", "boiling slow")])
    process = started(project)
    wait_until((project.path / "asked").exists, "the first question is asked", process)
    process.send_signal(signal.SIGINT)
    output = ending(process).decode()
    assert process.returncode == 2, output
    assert "interrupted before anything was answered: nothing is kept" in output
    assert "--resume" not in output
    assert "Traceback" not in output
    assert not project.runs


@pytest.mark.child_process
def test_a_terminal_shows_progress_and_is_asked_for_a_description(project: Project):
    project.write("slow.py", SLOW.replace("await asyncio.sleep(600)", WAITS))
    project.configure('target = "slow:answer"')
    project.cases([a_case("q1", "boiling"), a_case("q2", "boiling slow")])
    with Terminal(project.path, "-m", "pytest_rageval", "run") as terminal:
        terminal.until("Description of this run")
        terminal.type("größere Stücke\n")
        terminal.until("case 1 of 2")
        project.write("gate", "")
        assert terminal.ended() == 0, terminal.written
    assert project.metrics()["description"] == "größere Stücke"
