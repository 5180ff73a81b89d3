"""A run whose baseline comes from a run that is damaged, or no longer there: it ends, and has its report."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from project import ALONE_AND_WITH_WORKERS, Project, a_case

TEXT = "Water boils at one hundred degrees Celsius at the level of the sea, and earlier on a mountain."
BOT = f"""
import time
from pathlib import Path

def answer(question):
    folder = Path("folder").read_text()
    if folder == "moved":
        time.sleep(0.15)
    chunk = {{"rel_path": folder + "/water.md", "text": question + {TEXT!r}}}
    return {{"answer": "Water boils at 100 degrees at sea level.", "retrieved_chunks": [chunk]}}
"""
TARGET = ("--rageval-target", "bot:answer")


def damage(results: Path) -> None:
    results.write_bytes(results.read_bytes().replace(b"100 degrees at", b"101 degrees at"))


def remove_run(results: Path) -> None:
    shutil.rmtree(results.parent)


@pytest.fixture
def moved(project: Project) -> Project:
    """A project with an accepted run, whose passages are in another folder since."""
    project.write("bot.py", BOT)
    project.write("folder", "notes")
    cases = [a_case(f"c{at}", f"Why {at}?", gold_supports=[{"rel_path": "notes/water.md"}]) for at in range(12)]
    project.cases(cases)
    project.run(*TARGET, "--rageval-run-id", "one", "--rageval-update-baseline")
    project.write("folder", "moved")
    return project


@ALONE_AND_WITH_WORKERS
@pytest.mark.parametrize("fault", [damage, remove_run])
@pytest.mark.reliability("disk", "the run of the baseline is damaged or removed", costs="lost")
def test_a_run_ends_whatever_became_of_the_run_of_its_baseline(moved: Project, fault, how: list[str]):
    fault(moved.path / "reports/runs/one/results.jsonl")
    result = moved.run(*TARGET, "--rageval-run-id", "two", *how)
    assert result.ret == 1
    said = result.stdout.str() + result.stderr.str()
    assert "12 × the gold was not retrieved" in said
    assert "not written" not in said
    assert "newly failing" in (moved.path / "reports/runs/two/report.html").read_text("utf-8").lower()
    assert moved.metrics()["outcomes"]["failed"] == 12


@pytest.mark.reliability("disk", "two runs of which one is damaged are compared")
def test_a_damaged_run_is_compared_and_named(moved: Project):
    moved.run(*TARGET, "--rageval-run-id", "two")
    damage(moved.path / "reports/runs/one/results.jsonl")
    compared = moved.rageval("compare", "one", "two", "--json")
    assert "does not match its checksum" in compared.stdout.str() + compared.stderr.str()
