"""`rageval gate`, `score`, `abstention`, `judge`: how they are called, and what they say when they cannot go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import command, problems

pytestmark = pytest.mark.usefixtures("here")

VERBS = ("abstention", "gate", "judge", "score")


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_that_is_not_there_is_said(verb: str):
    assert problems(command(verb, "nowhere")) == [
        f"there is no run 'nowhere'; {Path.cwd() / 'reports' / 'runs'} holds no runs"
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "x", "--aggregate-only", "--metrics", "mrr"],
        ["score", "x", "--cases", "gone"],
        ["judge", "x", "--aggregate-only", "--judge", "lexical"],
        ["judge", "x", "--spot-check", "--cases", "."],
        ["abstention", "x", "--cases", "gone"],
        ["judge", "x", "--spot-check-n", "5"],
        ["judge", "x", "--second-judge", "lexical"],
        ["judge", "x", "--spot-check", "--claim-level"],
        ["judge", "x", "--spot-check", "--spot-check-n", "0"],
        ["judge", "x", "--judge-cache", "sometimes"],
        ["gate"],
    ],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_wrong_usage(arguments: list[str]):
    assert command(*arguments).exit_code == 2


def test_wrong_numbers_are_said_in_a_line():
    (problem,) = problems(command("judge", "x", "--max-cost", "much"))
    assert problem.startswith("--rageval-max-cost is 'much' (a string), expected ")
