"""A small project of somebody's, written into a folder: cases, a bot, and what a run of pytest in it left behind."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from in_process import ALONE, as_result, plain, rageval, run_pytest
from processes import PATIENCE_S, running

BOT = '''
"""Answers from a dictionary; what it does not know it refuses."""
NOTES = {
    "boiling": ("notes/water.md", "# Water > ## Boiling", "Water boils at 100 degrees at sea level."),
    "freezing": ("notes/water.md", "# Water > ## Freezing", "Water freezes at 0 degrees."),
    "탑": ("notes/seoul.md", "# 서울 > ## 남산", "남산서울타워의 높이는 236미터이다."),
}

def answer(question):
    found = [note for word, note in NOTES.items() if word in question.lower()]
    if not found:
        return {"answer": "", "abstained": True, "debug": {"retrieved_chunks": []}}
    chunks = [
        {"chunk_id": f"c{rank}", "rel_path": path, "heading_path": heading, "text": text, "rank": rank}
        for rank, (path, heading, text) in enumerate(found, 1)
    ]
    return {
        "answer": " ".join(chunk["text"] for chunk in chunks),
        "abstained": False,
        "references": [{"chunk_id": chunk["chunk_id"]} for chunk in chunks],
        "debug": {"retrieved_chunks": chunks},
    }
'''


def a_case(id: str, question: str = "What is the boiling point of water?", **fields: Any) -> dict[str, Any]:
    """A case that the bot answers right, unless `fields` say otherwise."""
    case: dict[str, Any] = {"id": id, "question": question, "category": "factual"}
    if fields.get("answerable", True):
        case["gold_supports"] = [{"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"}]
        case["gold"] = {"answer": "Water boils at 100 degrees at sea level."}
    return case | fields


def a_missed_case(id: str, **fields: Any) -> dict[str, Any]:
    """A case whose gold the bot does not retrieve."""
    elsewhere = [{"rel_path": "notes/elsewhere.md", "heading_path": ""}]
    return a_case(id, **{"gold_supports": elsewhere} | fields)


SOME = [
    a_case("boil"),
    a_case("freeze", "What is the freezing point?", category="multi_hop",
           gold_supports=[{"rel_path": "notes/water.md", "heading_path": "# Water > ## Freezing"}],
           gold={"answer": "Water freezes at 0 degrees."}, tags=["cold"]),
    a_case("남산-높이", "남산 탑의 높이는?", gold_supports=[{"rel_path": "notes/seoul.md", "heading_path": ""}],
           gold={"answer": "남산서울타워의 높이는 236미터이다."}, category="reasoning"),
    a_case("unknown", "Who won?", answerable=False, category="general"),
]  # fmt: skip
"""Four cases that pass."""


class ProjectFolder:
    """A folder with files, cases and a configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def cases(self, cases: Iterable[Mapping[str, Any]], name: str = "evalcases/a.jsonl") -> Path:
        return self.write(name, "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases))

    def configure(self, table: str, extra: str = "") -> None:
        self.write("pyproject.toml", f"[tool.rageval]\n{table}\n{extra}")


class Project(ProjectFolder):
    """A folder with cases and a bot, in which pytest and the command are run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._processes = contextlib.ExitStack()
        self.write("bot.py", BOT)
        self.configure('target = "bot:answer"')

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest there, in this process; its workers, if there are to be some, are processes of their own."""
        return as_result(run_pytest(self.path, *arguments))

    def run_process(self, *arguments: str) -> pytest.RunResult:
        """Run pytest there in a process of its own."""
        return self.process(sys.executable, "-m", "pytest", *plain(arguments), **ALONE)

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Start pytest there in a process, and a group of processes, of its own."""
        return self.start_process("-m", "pytest", *plain(arguments), env=os.environ | ALONE, **streams)

    def start_process(self, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
        """Start Python there; what runs at the end of the test is killed."""
        command = [sys.executable, *arguments]
        return self._processes.enter_context(running(command, cwd=self.path, stdin=subprocess.DEVNULL, **options))

    def close(self) -> None:
        self._processes.close()

    def process(self, *command: str, **environment: str) -> pytest.RunResult:
        """Run any command there."""
        done = subprocess.run(
            command, cwd=self.path, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        print(done.stdout, done.stderr)
        return as_result(done)

    def rageval(self, *arguments: str, **environment: str) -> pytest.RunResult:
        """Run the command there, in this process."""
        return as_result(rageval(self.path, *arguments, **environment))

    @property
    def runs(self) -> list[Path]:
        return sorted((self.path / "reports" / "runs").glob("*"))

    def records(self) -> dict[str, dict[str, Any]]:
        """The last run's results.jsonl by case id."""
        # Not splitlines(): texts may hold what it, too, takes for the end of a line.
        lines = (self.runs[-1] / "results.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
        records = [json.loads(line) for line in lines]
        assert len({record["case_key"] for record in records}) == len(records), "a case was recorded twice"
        return {record["test_case_id"]: record for record in records}

    def outcomes(self) -> dict[str, str]:
        return {id: record["outcome"] for id, record in self.records().items()}

    def metrics(self) -> dict[str, Any]:
        """The last run's metrics.json."""
        metrics: dict[str, Any] = json.loads((self.path / "reports" / "metrics.json").read_text(encoding="utf-8"))
        return metrics

    def stable_metrics(self) -> str:
        """The last run's metrics.json, without what may differ between equal runs, as text."""
        metrics = self.metrics()
        del metrics["volatile"]
        return json.dumps(metrics, sort_keys=True, ensure_ascii=False)


def lines_with(result: pytest.RunResult, word: str) -> Sequence[str]:
    """The lines of the output in which a word stands."""
    return [line for line in [*result.outlines, *result.errlines] if word in line]
