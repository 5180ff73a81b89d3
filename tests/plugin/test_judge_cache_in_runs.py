"""The judge cache in a run: kept between runs, never smaller, replayed offline, and no reason to fail."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project, lines_with

JUDGE = """
import pytest


class Examiner:
    model, scale = "examiner/1", (0, 5)

    async def score_groundedness(self, answer, context):
        with open("asked.txt", "a") as asked:
            asked.write("asked\\n")
        return 5.0 if answer in context else 1.0


@pytest.fixture(scope="session")
def rag_judge():
    return Examiner()
"""


@pytest.fixture
def judged(project: Project) -> Project:
    project.cases(SOME[:3])
    project.write("conftest.py", JUDGE)
    return project


def cache_of(project: Project) -> Path:
    return project.path / "reports" / "cache" / "judge_cache.sqlite"


def asked(project: Project) -> int:
    """How often the judge was asked since this was last called."""
    file = project.path / "asked.txt"
    number = len(file.read_text().splitlines()) if file.exists() else 0
    file.unlink(missing_ok=True)
    return number


def kept(project: Project) -> int:
    with closing(sqlite3.connect(cache_of(project))) as connection:
        (number,) = connection.execute("SELECT count(parts) FROM judgements").fetchone()
    return int(number)


def scores(project: Project) -> dict[str, Any]:
    return {id: record["scores"] for id, record in project.records().items()}


def test_a_second_run_asks_the_judge_nothing_and_scores_the_same(judged: Project):
    judged.run()
    first = scores(judged)
    assert (asked(judged), kept(judged)) == (3, 3)
    judged.run()
    assert (asked(judged), scores(judged)) == (0, first)


def test_a_run_of_fewer_cases_never_makes_the_cache_smaller(judged: Project):
    judged.run()
    judged.run("-k", "boil", "--rageval-judge-cache", "refresh")
    assert kept(judged) == 3


def test_in_replay_a_miss_is_an_error_of_its_case_that_names_the_nearest(judged: Project):
    judged.run("-k", "not boil")
    asked(judged)
    result = judged.run("--rageval-judge-cache", "replay")
    assert asked(judged) == 0
    assert judged.outcomes() == {"boil": "error", "freeze": "passed", "남산-높이": "passed"}
    error = judged.records()["boil"]["error"]
    assert error["kind"] == "judge_cache_miss"
    assert "; nearest: other question '" in error["message"]
    assert lines_with(result, "no judgement is stored for question 'What is the boiling point of water?'")


def test_the_nearest_of_a_miss_is_about_the_same_answer_before_the_same_question(judged: Project):
    judged.run()
    freezing = '"notes/water.md", "# Water > ## Freezing", "Water freezes at 0 degrees."'
    boiling = '"notes/water.md", "# Water > ## Boiling", "Water boils at 100 degrees at sea level."'
    judged.write("bot.py", (judged.path / "bot.py").read_text(encoding="utf-8").replace(boiling, freezing))
    judged.run("-k", "boil", "--rageval-judge-cache", "replay")
    message = judged.records()["boil"]["error"]["message"]
    assert (
        "; nearest: other question 'What is the freezing point?', same answer, same contexts, same citations; run"
        in message
    )


def _scribbled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [_scribbled, _a_folder])
def test_a_spoilt_cache_changes_no_score_and_is_said_once(judged: Project, spoil):
    judged.run()
    first = scores(judged)
    asked(judged)
    spoil(cache_of(judged))
    result = judged.run()
    result.assert_outcomes(passed=3)
    assert (asked(judged), scores(judged)) == (3, first)
    assert len(lines_with(result, "judge_cache.sqlite: ")) == 1
