"""Metrics that fall in a run that passes: the verdict names them with their values, and what to do."""

from __future__ import annotations

from project import Project, a_case

BOT = """
import os

def answer(question):
    chunk = {"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": "Water boils."}
    text = os.environ.get("PREFIX", "") + "Water boils at 100 degrees at sea level."
    return {"answer": text, "retrieved_chunks": [chunk]}
"""


def test_a_run_that_passes_names_the_metrics_that_fell(project: Project, monkeypatch):
    project.write("bot.py", BOT)
    project.cases([a_case(f"q{number}", f"When does water boil, {number}?") for number in range(6)])
    project.run("--rageval-update-baseline")
    monkeypatch.setenv("PREFIX", "Happy to help! According to all of our documents and to the best of my belief: ")
    result = project.run()
    verdict = project.metrics()["verdict"]
    assert (result.ret, verdict["tone"], verdict["word"]) == (0, "amber", "Worse")
    assert "without a gate got worse (" in verdict["sentence"]
    assert "token_f1 1.000 → 0." in verdict["sentence"]
    result.stdout.fnmatch_lines(["what to do: Look at the cases that fell (filter fell:*"])
