"""A bot with scores, a threshold and an index, and the cases for it: what a sweep is tried on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from project import Project

BOT = '''
"""Five notes a question, with falling scores; says in calls.jsonl what it was asked. MODE makes it odd."""
import json
from pathlib import Path

MODE = "honest"
CALLS = Path(__file__).with_name("calls.jsonl")

def answer(question, *, request):
    params = dict(request.params)
    with CALLS.open("a") as file:
        file.write(json.dumps({"question": question, "k": request.k, **params}) + "\\\\n")
    if params.get("min_score", 0) == "none" or params.get("fails"):
        raise ValueError("no such threshold")
    topic = question.split()[-1].strip("?")
    start = 0.5 if topic == "nothing" else 0.9
    names = [f"other-{topic}", f"{topic}-b", topic, f"{topic}-c", f"{topic}-d"] if topic.startswith("deep") else \\\\
            [topic if topic != "nothing" else "rumour", f"{topic}-b", f"{topic}-c", f"{topic}-d", f"{topic}-e"]
    step = 0.1 if params.get("chunk_max_tokens", 400) == 400 else 0.15
    chunks = [{"chunk_id": name, "text": name, "score_final": round(start - step * at, 3)}
              for at, name in enumerate(names)]
    least = params.get("min_score", 0.0)
    if MODE == "second look" and topic == "odd" and least > 0.3:
        least = 0.0  # a system that looks again where it found little
    if MODE == "always second look" and least > 0.3:
        chunks.reverse()
    if MODE == "no scores":
        chunks = [{name: value for name, value in chunk.items() if name != "score_final"} for chunk in chunks]
    else:
        chunks = [chunk for chunk in chunks if chunk["score_final"] >= least]
    if MODE == "no chunks":
        return {"answer": "so it is"}
    return {"answer": "so it is", "debug": {"retrieved_chunks": chunks[: request.k]}}
'''


class ScoredBot:
    """A project with this bot, and what it was asked."""

    def __init__(self, project: Project, mode: str = "honest") -> None:
        self.project = project
        project.write("scored.py", BOT.replace("\\\\", "\\").replace('"honest"', f'"{mode}"', 1))
        project.configure('target = "scored:answer"')
        project.cases([*_labelled(14), *_negative(6)])

    def sweep(self, *arguments: str, code: int = 0) -> str:
        """`rageval sweep` to its output, and errors."""
        result = self.project.rageval("sweep", *arguments)
        assert result.ret == code, result.outlines + result.errlines
        return "\n".join([*result.outlines, *result.errlines])

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.project.path / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def folder(self) -> Path:
        """That of the last sweep."""
        return sorted((self.project.path / "reports" / "sweeps").iterdir())[-1]

    @property
    def results(self) -> dict[str, Any]:
        """eval_results.json of the last sweep."""
        return json.loads((self.folder / "eval_results.json").read_text(encoding="utf-8"))


def _labelled(number: int) -> list[dict[str, Any]]:
    shallow = number // 2
    topics = ["odd", *(f"topic{at}" for at in range(shallow)), *(f"deep{at}" for at in range(number - shallow - 1))]
    return [{"id": topic, "question": f"What about {topic}?", "gold": {"chunk_ids": [topic]}} for topic in topics]


def _negative(number: int) -> list[dict[str, Any]]:
    return [{"id": f"none{at}", "question": f"{at}: what about nothing?", "answerable": False} for at in range(number)]
