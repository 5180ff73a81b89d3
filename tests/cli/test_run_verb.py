"""`rageval run` does what pytest does, outside of it: records, metrics, gates, reports, exit codes, resume."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with

ROOT = Path(__file__).parents[2]
OF_THE_CLOCK = ("latency", "checksum", "cost")


def records_of(run: Path) -> dict[str, dict[str, Any]]:
    """Lines of results.jsonl by key, without what the clock decides."""
    lines = (run / "results.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    records = [json.loads(line) for line in lines]
    stable = ({name: value for name, value in record.items() if name not in OF_THE_CLOCK} for record in records)
    return {record["case_key"]: record for record in stable}


def stable_bytes(run: Path) -> bytes:
    """metrics.json without `volatile`, as it would be written."""
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    del metrics["volatile"]
    return json.dumps(metrics, ensure_ascii=False).encode()


def last_json(result: pytest.RunResult) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(result.outlines[-1])
    return content


# ── the same as pytest ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def demo(project: Project) -> Project:
    """The shipped cases with their baseline."""
    shutil.copytree(ROOT / "evalcases", project.path / "evalcases")
    (project.path / "reports").mkdir()
    shutil.copy(ROOT / "reports" / "baseline.json", project.path / "reports")
    project.configure('target = "demo"\nknown_failures = "ratchet"')
    return project


@pytest.mark.parametrize(("option", "code"), [([], 0), (["param", "min_score=0.9"], 1)])
def test_metrics_and_exit_code_are_those_of_pytest_on_the_demo(demo: Project, option: list[str], code: int):
    own = [f"--{option[0]}", option[1]] if option else []
    of_plugin = [f"--rageval-{option[0]}", option[1]] if option else []
    assert demo.rageval("run", "--run-id", "own", "--ignore-invariants", *own).ret == code
    assert demo.run("-q", "--rageval-run-id", "by-pytest", "--rageval-ignore-invariants", *of_plugin).ret == code
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


def test_a_broken_case_file_is_exit_code_2_with_every_problem(project: Project):
    project.write("evalcases/a.jsonl", '{"id": "a"}\n{"id": "b", "question": 3}\n')
    result = project.rageval("run")
    assert result.ret == project.run().ret == 2
    assert len([line for line in result.errlines if line.startswith("ERROR: evalcases/a.jsonl:")]) == 2
    assert not project.runs


def test_without_cases_it_is_exit_code_5(project: Project):
    result = project.rageval("run")
    assert result.ret == project.run().ret == 5
    result.stderr.fnmatch_lines(["ERROR: no case files; looked for *"])


def test_without_a_target_it_says_so_in_its_own_words(project: Project):
    project.cases(SOME)
    project.configure("k = 5")
    result = project.rageval("run")
    assert result.ret == project.run().ret == 4
    result.stderr.fnmatch_lines(["ERROR: no target: say which system to ask with --target, *"])


def test_a_failing_case_is_a_line_as_soon_as_it_fails(project: Project):
    project.cases([*SOME, a_missed_case("missed")])
    result = project.rageval("run")
    assert result.ret == 1
    assert lines_with(result, "FAILED")[0].startswith("FAILED evalcases/a.jsonl::missed - recall_any@5 is 0, gate >= 1")


def test_known_failures_and_skipped_cases_end_as_in_pytest(project: Project):
    project.configure('target = "answers:answers.jsonl"\nknown_failures = "report"')
    project.cases([*SOME, a_missed_case("missed")])
    answers = [{"id": "boil", "answer": "Water boils at 100 degrees."}, {"id": "missed", "answer": "no idea"}]
    project.write("answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))
    assert project.rageval("run", "--run-id", "own", "--allow-partial").ret == 0
    assert project.run("--rageval-run-id", "by-pytest", "--rageval-allow-partial").ret == 0
    own, by_pytest = (project.path / "reports" / "runs" / name for name in ("own", "by-pytest"))
    assert records_of(own) == records_of(by_pytest)


def test_repeats_are_recorded_by_trial(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--repeat", "2").ret == 0
    assert project.metrics()["repeats"]["trials"] == 2
    assert len((project.runs[-1] / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 2 * len(SOME)


def test_a_dry_run_asks_nothing_and_writes_nothing(project: Project):
    project.cases(SOME)
    result = project.rageval("run", "--dry-run")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["dry run: 4 cases; *"])
    assert not project.runs


# ── which cases ───────────────────────────────────────────────────────────────────────────────────────────────


def test_files_and_folders_choose_cases_and_the_run_is_partial(project: Project):
    project.cases(SOME[:2])
    project.cases(SOME[2:], "evalcases/more/b.jsonl")
    assert project.rageval("run", "evalcases/more").ret == 0
    assert project.outcomes().keys() == {case["id"] for case in SOME[2:]}
    assert project.metrics()["partial"]
    assert project.metrics()["selection"]["by"] == {"paths": "evalcases/more"}
    project.cases([a_case("elsewhere")], "other.jsonl")
    assert project.rageval("run", "other.jsonl").ret == 0
    assert project.outcomes().keys() == {"elsewhere"}


@pytest.mark.parametrize(
    ("place", "problem"),
    [("gone.jsonl", "there is no such file or folder"), ("empty", "no case file is below it")],
)
def test_a_place_without_cases_is_said(project: Project, place: str, problem: str):
    project.cases(SOME)
    (project.path / "empty").mkdir()
    result = project.rageval("run", place)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {place}: {problem}*"])


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ("outcome:failed", {"missed", "cold"}),
        ("outcome:failed,passed category:multi_hop", {"freeze"}),
        ("tag:cold", {"freeze", "cold"}),
        ("tag:cold -outcome:failed", {"freeze"}),
        ("recall_any<1", {"missed", "cold"}),
        ("recall_any@5>=1 -id:boil", {"freeze", "남산-높이"}),
        ('"남산 탑"', {"남산-높이"}),
        ("layer:L2", {"missed", "cold"}),
        ("latency>=0 id:boil", {"boil"}),
    ],
)
def test_only_takes_cases_of_an_earlier_run_in_the_words_of_its_report(project: Project, only: str, ids: set[str]):
    project.cases([*SOME, a_missed_case("missed"), a_missed_case("cold", tags=["cold"])])
    assert project.rageval("run", "--run-id", "first").ret == 1
    project.rageval("run", "--only", only, "--from", "first", "--run-id", "second")
    assert {record["test_case_id"] for record in records_of(project.path / "reports/runs/second").values()} == ids
    by = json.loads((project.path / "reports/runs/second/metrics.json").read_text())["selection"]["by"]
    assert by == {"--only": f"{only} --from first"}


def test_only_changed_worse_are_the_cases_that_newly_fail(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--update-baseline").ret == 0
    project.write("bot.py", (project.path / "bot.py").read_text().replace('"freezing"', '"melting"'))
    assert project.rageval("run", "--run-id", "worse").ret == 1
    assert project.rageval("run", "--only", "changed:worse", "--from", "worse", "--run-id", "again").ret == 1
    assert records_of(project.path / "reports/runs/again").keys() == {"evalcases/a.jsonl::freeze"}


@pytest.mark.parametrize(
    ("only", "problem"),
    [
        ("outcome:fialed", "no case has outcome 'fialed'"),
        ("changed:worse", "was compared with no baseline"),
        ("category:nope", "no case has category 'nope'"),
        ("recal_any<1", "'recal_any' is nothing to filter by; did you mean 'recall_any@5'?"),
        ("mrr<high", "'mrr<high' needs a comparison with a number"),
        ("mrr:1", "'mrr:1' needs a comparison with a number"),
        (" ", "no term"),
    ],
)
def test_a_filter_that_means_nothing_is_a_line(project: Project, only: str, problem: str):
    project.cases(SOME)
    project.rageval("run", "--run-id", "first")
    result = project.rageval("run", "--only", only, "--from", "first")
    assert result.ret == 4
    assert problem in result.stderr.str()
    assert len(project.runs) == 1


def test_a_filter_that_leaves_no_case_is_exit_code_5(project: Project):
    project.cases(SOME)
    project.rageval("run", "--run-id", "first")
    assert project.rageval("run", "--only", "outcome:failed").ret == 5
    assert project.rageval("run", "--from", "first").ret == 4


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_skipped_layers_are_an_option_of_pytest_as_well(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--skip-retrieval-metrics").ret == 0
    own = project.stable_metrics()
    assert project.run("--rageval-skip", "retrieval").ret == 0
    assert project.stable_metrics() == own
    result = project.rageval("run", "--skip", "retrieva")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --skip: 'retrieva' is not a layer; did you mean 'retrieval'?"])


def test_a_judge_that_cannot_be_asked_is_reported_and_the_other_steps_go_on(project: Project):
    project.cases(SOME)
    result = project.rageval("run", "--judge", "openai:m@http://127.0.0.1:9", OPENAI_API_KEY="k")
    assert result.ret == 1
    result.stderr.fnmatch_lines(["ERROR: judging failed, the other steps go on: judge *"])
    result.stdout.fnmatch_lines(["judge its answers later: rageval judge * --judge openai:m@http://127.0.0.1:9"])
    metrics = project.metrics()
    assert metrics["outcomes"]["passed"] == len(SOME)
    assert metrics["judge"] is None
    assert project.rageval("judge", project.runs[-1].name, "--judge", "lexical").ret == 0
    assert project.metrics()["judge"]


def test_first_calls_that_all_fail_alike_end_the_run_as_in_pytest(project: Project):
    project.write("gone.py", "async def answer(question):\n    raise ConnectionError('no')\n")
    project.cases([a_case(f"q{n}") for n in range(40)])
    project.configure('target = "gone:answer"')
    own = project.rageval("run", "--run-id", "own")
    by_pytest = project.run("--rageval-run-id", "by-pytest")
    assert own.ret == by_pytest.ret == 1
    runs = [project.path / "reports" / "runs" / name for name in ("own", "by-pytest")]
    assert len(records_of(runs[0])) == len(records_of(runs[1]))


# ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────


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

    monkeypatch.setattr("pytest_rageval.cli.run.pipeline.write_reports", refuse)
    project.cases(SOME)
    result = project.rageval("run")
    assert result.ret == 1
    result.stderr.fnmatch_lines(
        ["ERROR: report failed, the other steps go on: summary.md cannot be written: No space*"]
    )
    assert project.metrics()["outcomes"]["passed"] == len(SOME)


def test_the_description_is_kept(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--description", "smaller chunks").ret == 0
    assert project.metrics()["description"] == "smaller chunks"


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────

SLOW = """
import asyncio, bot
async def answer(question):
    await asyncio.sleep(30 if "slow" in question else 0)
    return bot.answer(question)
"""
QUICK = "import bot\nasync def answer(question):\n    return bot.answer(question)\n"


def started(project: Project, *arguments: str, stdin: int = subprocess.DEVNULL, **streams: Any) -> Any:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest_rageval", "run", *arguments],
        cwd=project.path, start_new_session=True, stdin=stdin, **streams,
    )  # fmt: skip


def wait_for_records(project: Project, number: int) -> None:
    until = time.monotonic() + 60
    while sum(path.read_bytes().count(b"\n") for path in project.path.glob("reports/runs/*/results.jsonl")) < number:
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


@pytest.mark.child_process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_a_partial_run_that_can_be_finished(project: Project, number: signal.Signals, times: int):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 6 else "boiling slow") for n in range(12)])
    process = started(project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for_records(project, 6)
    for _ in range(times):
        process.send_signal(number)
    output = process.communicate(timeout=20)[0].decode()
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
    process = started(project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    until = time.monotonic() + 60
    while not project.runs:
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=20)[0].decode()
    assert process.returncode == 2, output
    assert "interrupted" in output
    assert "Traceback" not in output
    assert not project.runs


@pytest.mark.child_process
def test_a_terminal_shows_progress_and_is_asked_for_a_description(project: Project):
    project.write("slow.py", SLOW.replace("30 if", "2.5 if"))
    project.configure('target = "slow:answer"')
    project.cases([a_case("q1", "boiling"), a_case("q2", "boiling slow")])
    ours, theirs = pty.openpty()
    process = started(project, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    is_answered = False
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if not is_answered and b"Description of this run" in seen:
            is_answered = True
            os.write(ours, "größere Stücke\n".encode())
    os.close(ours)
    assert process.wait(timeout=20) == 0, seen.decode()
    assert is_answered
    assert "case 1 of 2" in seen.decode()
    assert project.metrics()["description"] == "größere Stücke"
