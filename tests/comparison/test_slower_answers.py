"""Slower answers: said in one line under the verdict when they clearly are, never a failure, silent about noise."""

from __future__ import annotations

import random

import pytest
from project import Project, a_case

from pytest_rageval.comparison.slower_answers import slowdown

REPEATS = 200
BOT = """
import time

def answer(question):
    time.sleep(SECONDS)
    return {"answer": "100 degrees", "retrieved_chunks": [{"rel_path": "notes/water.md", "text": "100 degrees"}]}
"""


def latencies(draws: random.Random, cases: int, factor: float = 1.0) -> list[float]:
    """Milliseconds of answers as models give them: a long tail, and a case in ten that waits."""
    values = []
    for _ in range(cases):
        usual = 900 * draws.lognormvariate(0, 0.6)
        waiting = 3000 if draws.random() < 0.1 else 0
        values.append(factor * (usual + waiting))
    return values


@pytest.mark.parametrize("cases", [10, 25, 135, 1000])
@pytest.mark.parametrize("drift", [1.0, 1.1])
def test_noise_is_silent(cases: int, drift: float):
    draws = random.Random(cases)
    repeats = max(20, REPEATS * 25 // max(cases, 25))
    said = 0
    for _ in range(repeats):
        said += slowdown(latencies(draws, cases), latencies(draws, cases, drift)) is not None
    assert said <= 0.05 * repeats


@pytest.mark.parametrize(("cases", "least"), [(25, 0.4), (135, 0.98)])
def test_twice_as_long_is_seen(cases: int, least: float):
    draws = random.Random(7)
    seen = [slowdown(latencies(draws, cases), latencies(draws, cases, 2.1)) for _ in range(REPEATS)]
    found = [slower for slower in seen if slower is not None]
    assert len(found) >= least * REPEATS
    assert all(slower["ratio"] > 1.25 for slower in found)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0.2] * 50, [2.0] * 50),
        ([900.0] * 9, [1900.0] * 9),
        ([], []),
        ([0.0] * 50, [100.0] * 50),
        ([1900.0] * 50, [900.0] * 50),
        ([900.0] * 50, [1100.0] * 50),
    ],
)
def test_what_nobody_would_notice_is_silent(before: list[float], after: list[float]):
    assert slowdown(before, after) is None


@pytest.mark.child_process
def test_every_face_says_it_and_the_run_passes(project: Project):
    project.cases([a_case(f"q{number}") for number in range(14)])
    project.configure('target = "bot:answer"')
    project.write("bot.py", BOT.replace("SECONDS", "0.05"))
    arguments = ["--rageval-run-id", "before", "--rageval-update-baseline"]
    assert project.run_process(*arguments).ret == 0
    project.write("bot.py", BOT.replace("SECONDS", "0.4"))
    slow = project.run_process("--rageval-run-id", "slow")
    assert slow.ret == 0
    lines = slow.outlines
    verdict = next(number for number, line in enumerate(lines) if "Passes: " in line)
    assert any("answers take" in line and "times as long: median" in line for line in lines[verdict : verdict + 3])
    for name in ("summary.md",):
        assert "times as long" in (project.path / "reports/runs/slow" / name).read_text(encoding="utf-8")
    compared = project.rageval("compare", "before", "slow")
    assert compared.ret == 0
    assert "times as long: median" in compared.stdout.str()
    assert "times as long" not in project.rageval("compare", "slow", "before").stdout.str()
