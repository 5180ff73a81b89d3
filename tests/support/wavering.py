"""A project whose bot answers as a file says: right, wrong or with an error, in turn for each question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from project import Project, a_case

BOT = '''
import json, threading
from pathlib import Path
import bot

LOCK = threading.Lock()
ASKED = {}

def answer(question):
    """Answer by the question's list in answers.json, again from its beginning after the last; right without one."""
    name = question.split(":")[0]
    turns = json.loads(Path("answers.json").read_text()).get(name, ["right"])
    with LOCK:
        number = ASKED[name] = ASKED.get(name, -1) + 1
        with open("asked.txt", "a") as asked:
            asked.write(name + "\\n")
    turn = turns[number % len(turns)]
    if turn == "error":
        raise ValueError("the index is gone")
    if turn == "wrong":
        return {"answer": "No idea at all.", "abstained": False, "references": [], "debug": {"retrieved_chunks": []}}
    return bot.answer("What is the boiling point of water?")
'''
NAMES = ("a", "b", "c", "d")


def wavering_project(project: Project, names: Sequence[str] = NAMES, **fields: Any) -> Project:
    """Give the project a case for each name, which the bot answers as `answers` says."""
    project.write("wavering.py", BOT)
    project.configure('target = "wavering:answer"\nconcurrency = 4\nreport = false\nallow_regressions = true')
    project.cases([a_case(name, f"{name}: what is the boiling point of water?", **fields) for name in names])
    answers(project)
    return project


def answers(project: Project, turns: Mapping[str, Sequence[str]] | None = None) -> None:
    """Set how the bot answers from now on, and forget what it was asked."""
    project.write("answers.json", json.dumps(turns or {}))
    project.write("asked.txt", "")


def asked(project: Project) -> dict[str, int]:
    """Return how often each question was asked."""
    lines = (project.path / "asked.txt").read_text().split()
    return {name: lines.count(name) for name in dict.fromkeys(sorted(lines))}


def with_baseline(project: Project, *options: str) -> Project:
    """Accept a run in which all answers are right."""
    result = project.run("-q", "--rageval-update-baseline", *options)
    assert result.ret == 0
    answers(project)
    return project


def outcomes(project: Project) -> dict[str, int]:
    """Return how many cases of the last run ended in which outcome."""
    return {outcome: number for outcome, number in project.metrics()["outcomes"].items() if number}
