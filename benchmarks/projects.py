"""Projects to measure in: a folder with cases and what answers them, written for one benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from server import ANSWER

PEERS = Path(__file__).with_name("peers")
CONFTEST = '''
"""A judge behind HTTP: one call for each answer."""
import json

import pytest

from pytest_rageval.http.client import SlottedClient
from pytest_rageval.model import Judgement


class LoopbackJudge:
    model, heuristic, rubrics = "loopback", False, frozenset({"groundedness"})

    def __init__(self):
        self._client = SlottedClient(slots=IN_FLIGHT)

    async def judge(self, request):
        reply = await self._client.request("POST", "URL/judge", json=dict(request.variables))
        said = json.loads(reply.body)
        return Judgement(
            request.rubric, {request.rubric: said["score"]}, scale=(0, 5), reasoning=said["reasoning"],
            model=self.model, prompt_version=request.prompt_version,
        )

    async def aclose(self):
        await self._client.aclose()


@pytest.fixture(scope="session")
def rag_judge():
    return LoopbackJudge()
'''
NO_OP_ITEMS = '''
"""As many tests that do nothing, with ids like those of cases."""
import pytest


@pytest.mark.parametrize("case", [f"case-{number:06}" for number in range(ITEMS)])
def test_case(case):
    pass
'''


def a_case(number: int) -> dict[str, Any]:
    """A case of 0.5 kB that the server's answer passes."""
    return {
        "id": f"case-{number:06}",
        "question": f"How is pump number {number} primed, and which valve has to be opened for it?",
        "category": "factual",
        "difficulty": "easy",
        "domain": "manual",
        "tags": ["pump"],
        "gold": {"answer": "The pump is primed by opening valve 3 and turning the crank until water shows."},
        "gold_supports": [
            {"rel_path": "manual/pump.md", "heading_path": "# Pump > ## Priming", "snippets": ["opening valve 3"]},
            {"rel_path": "manual/pump.md", "heading_path": "# Pump > ## Part 2"},
        ],
    }


def asking_project(folder: Path, cases: int, url: str, in_flight: int) -> None:
    """Cases that are asked and judged over HTTP, with all default metrics, records and the judge cache."""
    write_lines(folder / "evalcases" / "cases.jsonl", map(a_case, range(cases)))
    configure(folder, f'target = "{url}"')
    conftest = CONFTEST.replace("URL", url).replace("IN_FLIGHT", str(in_flight))
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")


def recorded_project(folder: Path, cases: int, settings: str = "") -> None:
    """Cases whose answers are in a file already."""
    write_lines(folder / "evalcases" / "cases.jsonl", map(a_case, range(cases)))
    write_lines(folder / "answers.jsonl", ({"id": f"case-{number:06}"} | ANSWER for number in range(cases)))
    configure(folder, f'target = "answers:answers.jsonl"\n{settings}')


def no_op_project(folder: Path, items: int) -> None:
    """Plain parametrized tests."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_items.py").write_text(NO_OP_ITEMS.replace("ITEMS", str(items)), encoding="utf-8")


def by_hand_project(folder: Path, cases: int, url: str) -> None:
    """The same questions in a test module that somebody wrote with pytest and httpx, one after the other."""
    write_lines(folder / "cases.jsonl", map(a_case, range(cases)))
    written = (PEERS / "by_hand.py").read_text(encoding="utf-8")
    (folder / "test_by_hand.py").write_text(written.replace("http://localhost:8080", url), encoding="utf-8")


def configure(folder: Path, table: str) -> None:
    """Write the table of settings."""
    (folder / "pyproject.toml").write_text(f"[tool.rageval]\n{table}\n", encoding="utf-8")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
