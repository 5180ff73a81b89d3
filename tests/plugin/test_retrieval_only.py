"""Runs that judge nothing: retrieval is scored, and abstention where the system's word or its phrasing tells it."""

from __future__ import annotations

import pytest
from project import Project, a_case

NOBODY = {"answerable": False, "category": "general"}
BOT = """
CHUNK = {"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": "Water boils at 100 degrees."}
ANSWERS = %r

def answer(question):
    return {"retrieved_chunks": [CHUNK]} | ANSWERS
"""


@pytest.fixture
def retrieving(project: Project) -> Project:
    project.cases([a_case("boil"), a_case("unknown", "Who won?", **NOBODY)])
    return project


@pytest.mark.parametrize(
    ("answer", "scores", "decided_by"),
    [
        ({"answer": "At 100 degrees."}, (0.0, 0.0), "phrasing"),
        ({"answer": "I cannot find this in the documents."}, (1.0, 1.0), "phrasing"),
        ({"answer": "At 100.", "abstained": True}, (1.0, 1.0), "response"),
        ({"answer": "", "abstained": False}, (0.0, 0.0), "response"),
    ],
)
def test_abstention_is_scored_by_flag_and_phrasing(retrieving: Project, answer, scores, decided_by: str):
    retrieving.write("bot.py", BOT % answer)
    retrieving.run("-q", "--rageval-retrieval-only")
    records = retrieving.records()
    boil, unknown = records["boil"], records["unknown"]
    assert (boil["scores"]["over_abstention"], unknown["scores"]["abstention_accuracy"]) == scores
    assert boil["abstention"]["decided_by"] == decided_by
    assert not {"token_f1", "groundedness"} & {*boil["scores"], *boil["skipped_metrics"]}
    assert boil["judge"] is None


@pytest.mark.parametrize("answer", [{}, {"answer": ""}, {"answer": None}])
def test_without_an_answer_abstention_does_not_apply(retrieving: Project, answer):
    retrieving.write("bot.py", BOT % answer)
    retrieving.run("-q", "--rageval-retrieval-only")
    for record in retrieving.records().values():
        assert {"over_abstention", "abstention_accuracy", "hallucinated"} <= record["skipped_metrics"].keys()
        assert record["outcome"] != "error"
    assert retrieving.metrics()["metrics"]["empty_response_rate"]["mean"] == 0
