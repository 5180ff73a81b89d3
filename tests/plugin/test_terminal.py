"""The terminal: tables within its width, the verdict first, and a line of progress on a terminal alone."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from processes import Terminal
from project import ALONE, SOME, Project, a_case, plain
from rich.cells import cell_len
from stored_runs import REGISTRY, a_result

from pytest_rageval.config.settings import Settings
from pytest_rageval.model import CaseResult, Judgement
from pytest_rageval.plan import make_plan
from pytest_rageval.plugin.display.progress_line import WorkersProgress, rows_text
from pytest_rageval.runs.records import result_record
from pytest_rageval.runs.row import Row

CATEGORIES = ("사실관계 확인 질문", "multi_hop", "specificity", "conflict")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_table_is_wider_than_the_terminal(project: Project, monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    cases = [a_case(f"물-{number}", category=CATEGORIES[number % 4], domain="물") for number in range(8)]
    project.cases(cases)
    project.run("--rageval-update-baseline")
    lines = project.run("-v").outlines
    table = lines[next(number for number, line in enumerate(lines) if line.lstrip().startswith("cases")) :]
    table = table[: next(number for number, line in enumerate(table) if line.startswith("judge:"))]
    assert any("사실관계" in line for line in table)
    assert [line for line in table if cell_len(line) > width] == []


def test_the_verdict_is_the_first_line_of_the_summary(project: Project):
    project.cases(SOME)
    lines = project.run().outlines
    head = next(number for number, line in enumerate(lines) if line.startswith("=") and " rageval " in line)
    assert lines[head + 1] == "○ No baseline: 0 cases fail, 0 errors, 4 of 4 pass. No gate of the run is set."


SLOW = """
import bot, os, time
def answer(question):
    try:
        os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        while not os.path.exists("gate"):
            time.sleep(0.02)
    return bot.answer(question)
"""
"""Answers the first question of a run, and the others once there is a gate."""


@pytest.mark.child_process
def test_a_terminal_shows_how_far_asking_is_and_keeps_none_of_it(project: Project):
    project.cases([a_case(f"c{number}") for number in range(3)])
    project.write("slow.py", SLOW)
    arguments = ("--rageval-target", "slow:answer", "--rageval-concurrency", "1")
    shown = on_a_terminal(project, *arguments, gate_at="asked 1, judged 1, in flight 1")
    assert "Captured" not in shown
    assert "asked" not in last_lines(shown)


@pytest.mark.child_process
def test_a_terminal_shows_how_far_the_workers_are_and_keeps_none_of_it(project: Project):
    project.cases([a_case(f"c{number}") for number in range(4)])
    project.write("slow.py", SLOW)
    shown = on_a_terminal(project, "-n", "2", "--rageval-target", "slow:answer", gate_at="asked 1 of 4, judged 1")
    assert "asked" not in last_lines(shown)
    assert "4 passed" in last_lines(shown)


def judged(result: CaseResult, dollars: float) -> CaseResult:
    assert result.observation is not None
    judgement = Judgement("groundedness", {"groundedness": 0.9}, model="judge-1", cost_usd=dollars)
    return replace(result, observation=replace(result.observation, judgements={"groundedness": judgement}))


def test_what_workers_have_sent_is_told_with_what_judging_cost():
    results = [judged(a_result("q1"), 0.01), judged(a_result("q2"), 0.01), a_result("q3")]
    plan = make_plan(Settings(), REGISTRY)
    rows = [Row.of(result_record(result, plan, "hash")) for result in results]
    assert rows_text(rows, 5) == "asked 3 of 5, judged 2, $0.02"
    assert rows_text([], 5) == ""


def test_a_count_that_had_to_wait_for_the_processor_puts_off_no_other():
    counts = list[str]()

    def rows() -> list[Row]:
        counts.append("once more")
        time.sleep(0.1)
        return []

    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: None))
    progress = WorkersProgress(config, rows, lambda: 4)
    for _ in range(2):
        list(progress.pytest_runtest_logfinish())
        time.sleep(0.3)  # less than fifty times what the count waited
    assert len(counts) == 2


@pytest.mark.child_process
@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_a_pipe_gets_no_line_of_progress(project: Project, how: tuple[str, ...]):
    project.cases([a_case("c1")])
    project.write(
        "slow.py", "import bot, time\ndef answer(question):\n    time.sleep(1.2)\n    return bot.answer(question)\n"
    )
    result = project.run_process("--rageval-target", "slow:answer", *how)
    result.assert_outcomes(passed=1)
    assert "asked " not in result.stdout.str()


@pytest.mark.child_process
@pytest.mark.parametrize("width", [60, 80, 120])
def test_korean_names_stand_in_columns_on_a_terminal_of_any_width(project: Project, width: int):
    project.cases([a_case(f"물-{number}", category=CATEGORIES[number % 4]) for number in range(8)])
    shown = on_a_terminal(project, width=width, NO_COLOR="1")
    assert "\x1b[" not in shown.replace("\x1b[K", "")
    lines = last_lines(shown).split("\n")
    start = next(number for number, line in enumerate(lines) if line.split()[:2] == ["cases", "passed"])
    table = [line.rstrip() for line in lines[start : start + 6]]
    assert table[2].split()[0] in CATEGORIES or table[2].startswith("사실관계")
    assert {cell_len(line) for line in table} == {cell_len(table[0])}
    assert cell_len(table[0]) <= width
    assert [line for line in lines if line.startswith("=") and cell_len(line.rstrip()) > width] == []


def on_a_terminal(
    project: Project, *arguments: str, width: int = 80, gate_at: str | None = None, **environment: str
) -> str:
    """What a terminal gets from a run; `gate_at`: what it shows before the run may go on."""
    command = ("-m", "pytest", *plain(arguments))
    settings = {"TERM": "xterm", "COLUMNS": str(width), "NO_COLOR": "", **environment}
    with Terminal(project.path, *command, **ALONE | settings) as terminal:
        terminal.resize(width, 24)
        if gate_at is not None:
            terminal.until(gate_at)
            project.write("gate", "")
        terminal.ended()
    return terminal.written


def last_lines(shown: str) -> str:
    """What stands there in the end: text behind the cursor is gone where a line was wiped, or written over."""
    rows = []
    for line in shown.replace("\r\n", "\n").split("\n"):
        cells: dict[int, str] = {}
        at = 0
        text = line
        while text:
            if text.startswith("\x1b[K"):
                cells = {place: cell for place, cell in cells.items() if place < at}
                text = text[3:]
            elif text.startswith("\x1b["):
                end = next(number for number, letter in enumerate(text[2:], 2) if letter.isalpha())
                at -= int(text[2:end]) if text[end] == "D" else 0
                text = text[end + 1 :]
            else:
                cells[at] = text[0]
                at, text = at + 1, text[1:]
        rows.append("".join(cells[place] for place in sorted(cells)))
    return "\n".join(rows)
