"""Eight projects, each with a baseline and a run against it that ends in another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from project import Project

BOT = '''
"""Answers questions about the heights of peaks from notes; parameters make it worse."""
from collections import Counter

CALLS = Counter()


def answer(question, *, request):
    params = request.params
    number = int(question.split()[-1].rstrip("?"))
    CALLS[number] += 1
    if "top_k" in params:
        raise ValueError("status 400: unknown parameter top_k")
    score = 0.4 if number <= params.get("weak", 0) else 0.8
    if score < params.get("min_score", 0):
        return {"answer": "I do not know.", "abstained": True, "retrieved_chunks": []}
    place = {"rel_path": "peaks.md", "heading_path": f"# Peaks > ## Peak {number}"}
    height = 1000 + number
    if number in params.get("misses", ()):
        place = {"rel_path": "other.md", "heading_path": "# Other"}
    if number in params.get("wrong", ()) or (number == params.get("flaky") and CALLS[number] % 2 == 0):
        height = 999
    text = f"Peak {number} is {height} metres high."
    return {"answer": text, "retrieved_chunks": [{"chunk_id": f"c{number}", "text": text, "score": score, **place}]}
'''
GATES = '[tool.rageval.gates]\ncase = ["gold_in_answer >= 0.9", "recall_any >= 1"]\n'


def a_peak(number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question": f"How high is peak {number}?",
        "category": ("factual", "lookup", "multi_hop")[number % 3],
        "gold": {"answer": f"Peak {number} is {1000 + number} metres high."},
        "gold_supports": [{"rel_path": "peaks.md", "heading_path": f"# Peaks > ## Peak {number}"}],
    }


@dataclass(frozen=True)
class Ending:
    """A way in which a run ends: what the baseline is run with, what the run, and how many cases there are."""

    before: str = ""
    after: str = ""
    options: Sequence[str] = ()
    cases: int = 12
    table: str = ""


ENDINGS = {
    "green": Ending(),
    "five failing": Ending("weak = 5", "weak = 5\nmin_score = 0.5"),
    "hundred failing for one cause": Ending("weak = 100", "weak = 100\nmin_score = 0.5", cases=110),
    "all errors": Ending("", "top_k = 5"),
    "partial": Ending("weak = 5", "weak = 5\nmin_score = 0.5", options=("--shard", "1/4")),
    "retrieval only": Ending(options=("--retrieval-only",)),
    "known failure with a new gate": Ending(
        "misses = [3]", "misses = [3]\nwrong = [3]", table='known_failures = "ratchet"\n'
    ),
    "flaky": Ending("", "flaky = 4", options=("--repeat", "3")),
}


def begun(project: Project, ending: Ending) -> None:
    """Write the project and its baseline, then what the run is made with."""
    project.write("bot.py", BOT)
    project.cases(map(a_peak, range(1, ending.cases + 1)), "evalcases/peaks.jsonl")
    project.configure(_table(ending, ending.before))
    made = project.rageval("run", "--update-baseline", "--run-id", "before")
    assert "baseline updated" in made.stdout.str()
    project.configure(_table(ending, ending.after))


def _table(ending: Ending, params: str) -> str:
    return f'target = "bot:answer"\n{ending.table}\n[tool.rageval.params]\n{params}\n{GATES}'


def options_of_pytest(options: Sequence[str]) -> list[str]:
    """Return the options of `rageval run` as pytest spells them."""
    return [option.replace("--", "--rageval-") for option in options]
