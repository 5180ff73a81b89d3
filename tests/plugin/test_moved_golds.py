"""Golds that were retrieved under another path or id: a renamed folder or a new index is named as the cause."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project

TOPICS = ("water", "steam", "frost", "cloud", "river", "ocean")
PAGE = "The page about {topic} says what everybody knows of {topic}, how warm it is, and where {topic} is found."
SYSTEM = """
import json, pathlib
LAYOUT = json.loads(pathlib.Path("layout.json").read_text())

def answer(question):
    topic = question.split()[-1].rstrip("?")
    chunk = {key: value.replace("TOPIC", topic) for key, value in LAYOUT.items()}
    return {"answer": "It is 7 degrees.", "retrieved_chunks": [chunk]}
"""
TEXT = PAGE.replace("{topic}", "TOPIC")
OLD = {"rel_path": "docs/TOPIC.md", "chunk_id": "TOPIC-17", "text": TEXT}
NEW = {**OLD, "rel_path": "docs/new/TOPIC.md"}
TITLE = "the text of the gold was retrieved under another name"


@pytest.fixture
def moving(project: Project) -> Project:
    project.write("moving.py", SYSTEM)
    project.configure('target = "moving:answer"\nstrict_places = true')
    return project


def cases(project: Project, **gold: Any) -> None:
    written = []
    for topic in TOPICS:
        content = json.loads(json.dumps(gold).replace("TOPIC", topic))
        written.append({"id": topic, "question": f"What about {topic}?", **content})
    project.cases(written)


def run(project: Project, layout: dict[str, str], *arguments: str) -> str:
    project.write("layout.json", json.dumps(layout))
    return project.run(*arguments).stdout.str()


def causes(project: Project) -> dict[str, int]:
    return {cause["text"]: len(cause["cases"]) for cause in project.metrics()["causes"]}


def test_a_renamed_folder_is_named_without_a_run_to_compare_with_if_the_gold_has_a_snippet(moving: Project):
    cases(moving, gold_supports=[{"rel_path": "docs/TOPIC.md", "snippets": ["what everybody knows of TOPIC"]}])
    shown = run(moving, NEW, "-v")
    assert causes(moving) == {f"{TITLE}: in docs/new, not in docs": 6}
    assert f"6 × {TITLE}: in docs/new, not in docs" in " ".join(shown.split())
    assert "set path_prefix, or correct the golds" in " ".join(shown.split())
    filtered = moving.rageval("explain", "latest", "water").stdout.str()
    assert "missed, though a chunk holds its text" in filtered


@pytest.mark.parametrize(
    ("gold", "now", "change"),
    [
        ({"gold_supports": [{"rel_path": "docs/TOPIC.md"}]}, NEW, "in docs/new, not in docs"),
        (
            {"gold_supports": [{"rel_path": "docs/TOPIC.md"}]},
            {**OLD, "rel_path": "guide/TOPIC.md"},
            "in guide, not in docs",
        ),
        ({"gold": {"chunk_ids": ["TOPIC-17"]}}, {**OLD, "chunk_id": "TOPIC-part-3"}, "another id"),
        ({"gold": {"chunk_ids": ["TOPIC-17"]}}, {**NEW, "chunk_id": "x-TOPIC"}, "in docs/new, not in docs"),
        (
            {"gold": {"chunk_ids": ["TOPIC-17"]}},
            {**OLD, "chunk_id": "TOPIC-18", "text": f"A new first line.\n\n{TEXT}"},
            "another id",
        ),
    ],
)
def test_a_gold_without_a_text_is_known_by_the_chunk_of_the_run_before(
    moving: Project, gold: dict[str, Any], now: dict[str, str], change: str
):
    cases(moving, **gold)
    run(moving, OLD, "--rageval-run-id", "before", "--rageval-update-baseline")
    shown = " ".join(run(moving, now, "--rageval-run-id", "after").split())
    assert causes(moving) == {f"{TITLE}: {change}": 6}
    assert f"6 × {TITLE}: {change}" in shown
    compared = " ".join(moving.rageval("compare", "before", "after").stdout.str().split())
    assert f"6 × {TITLE}: {change}" in compared
    explained = moving.rageval("explain", "after", "water").stdout.str()
    assert change in explained
    page = (moving.path / "reports/runs/after/report.html").read_text(encoding="utf-8")
    assert change in page


@pytest.mark.parametrize(
    "now",
    [
        {**NEW, "text": "Something else stands in this chunk, and it is long enough to be told from the other."},
        {**NEW, "text": PAGE.replace("{topic}", "another thing altogether, not the subject of the gold")},
        {**NEW, "text": ""},
    ],
)
def test_another_text_is_no_moved_gold(moving: Project, now: dict[str, str]):
    cases(moving, gold_supports=[{"rel_path": "docs/TOPIC.md"}])
    run(moving, OLD, "--rageval-update-baseline")
    run(moving, now)
    assert causes(moving) == {"the gold was not retrieved": 6}


def test_a_snippet_of_a_few_letters_shows_no_moved_gold(moving: Project):
    cases(moving, gold_supports=[{"rel_path": "docs/TOPIC.md", "snippets": ["of TOPIC"]}])
    run(moving, NEW)
    assert causes(moving) == {"the gold was not retrieved": 6}
