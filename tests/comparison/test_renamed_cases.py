"""Cases under another id or in another folder: they are told as renamed, not as added, removed or got worse."""

from __future__ import annotations

import pytest
from project import Project, lines_with

BOT = """
def answer(question):
    chunk = {"rel_path": "notes/a.md", "heading_path": "# A", "text": "A card costs 28 euros."}
    return {"answer": "A card costs 28 euros.", "retrieved_chunks": [chunk]}
"""
TABLE = 'target = "bot:answer"\nknown_failures = "ratchet"\n'


def cards(prefix: str, renamed: int = 6) -> list[dict[str, object]]:
    """Six cases, of which the bot answers the first wrong; so many of them with the prefix before their id."""
    gold = [{"rel_path": "notes/a.md", "heading_path": "# A"}]
    return [
        {
            "id": f"{prefix}c{number}" if number < renamed else f"c{number}",
            "question": f"What does card {number} cost?",
            "gold": {"answer": "28 euros" if number else "30 euros"},
            "gold_supports": gold,
        }
        for number in range(6)
    ]


@pytest.fixture
def accepted(project: Project) -> Project:
    project.write("bot.py", BOT)
    project.configure(TABLE)
    project.cases(cards(""))
    project.run("--rageval-update-baseline")
    return project


def test_cases_with_other_ids_are_renamed(accepted: Project):
    accepted.cases(cards("q-", renamed=5))
    result = accepted.run()
    sentence = accepted.metrics()["verdict"]["sentence"]
    assert "1 renamed case fails as before" in sentence
    assert "5 cases were renamed (same question and gold)" in sentence
    assert "removed" not in sentence
    assert "added" not in sentence
    result.stdout.fnmatch_lines(["what to do: Cases were renamed,*"])
    assert not lines_with(result, "is no case any more")


def test_cases_in_another_folder_are_renamed(accepted: Project):
    (accepted.path / "evalcases").rename(accepted.path / "evals")
    accepted.configure(f'{TABLE}cases = ["evals/*.jsonl"]\n')
    result = accepted.run()
    assert result.ret == 1
    sentence = accepted.metrics()["verdict"]["sentence"]
    assert "not comparable with the baseline" in sentence
    assert "6 cases were renamed (same question and gold)" in sentence
    result.stdout.fnmatch_lines(["what to do: Cases were renamed,*"])
    assert not lines_with(result, "is no case any more")


def test_another_gold_is_another_case(accepted: Project):
    others = [case | {"gold": {"answer": "29 euros"}} for case in cards("q-", renamed=5)]
    accepted.cases(others)
    accepted.run()
    assert "renamed" not in accepted.metrics()["verdict"]["sentence"]
