"""Retrieval in conversations against figures of ir-measures, with passages that people labelled."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from project import Project

DATA = Path(__file__).parents[1] / "data" / "conversations"
OF_RANKS = {
    "R@5": "context_recall@5",
    "RR@5": "mrr@5",
    "P@5": "precision@5",
    "Success@5": "recall_any@5",
}
OF_TREC_EVAL = {"AP@5": "map@5", "nDCG@5": "ndcg@5"}
FORMS = ("lastturn", "questions", "rewrite")
BOT = """
import json
from pathlib import Path

RETRIEVED = json.loads((Path(__file__).parent / "retrieved.json").read_text("utf-8"))

def answer(question, history):
    asked = [turn["text"] for turn in history if turn["role"] == "user"]
    chunks = RETRIEVED[(asked + [question])[0]][str(len(asked) + 1)]
    return {"answer": "", "retrieved_chunks": [{"chunk_id": chunk} for chunk in chunks]}
"""


def lines(name: str) -> list[dict[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def expected(form: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / "expected.json").read_text("utf-8"))[form]
    return content


def retrieved(form: str, *, is_last_id_first: bool) -> dict[str, dict[str, list[str]]]:
    """The passages retrieved, by first question and number of the turn, those of equal scores in this order."""
    first_questions = {each["id"]: each["turns"][0]["question"] for each in lines("conversations.jsonl")}
    by_question: dict[str, dict[str, list[str]]] = {}
    for line in lines("retrieved.jsonl"):
        conversation, _, number = line["task_id"].partition("<::>")
        if line["form"] == form:
            by_id = sorted(line["retrieved"], reverse=is_last_id_first)
            ranked = sorted(by_id, key=lambda passage: -passage[1])
            by_question.setdefault(first_questions[conversation], {})[number] = [name for name, _ in ranked]
    return by_question


@pytest.fixture(params=FORMS)
def asked(request: pytest.FixtureRequest, project: Project) -> tuple[Project, str]:
    """A project with all conversations, and a form of the query."""
    project.write("found.py", BOT)
    project.cases(lines("conversations.jsonl"))
    project.configure('target = "found:answer"', '[tool.rageval.metrics.precision]\ndenominator = "k"')
    return project, request.param


def run(project: Project, form: str, *names: str) -> None:
    """Run with a system that retrieves what this form of the query does."""
    # In ir-measures AP and nDCG are trec_eval's, which ranks equal scores by falling id; the others rank by rising id.
    found = retrieved(form, is_last_id_first="ndcg@5" in names)
    project.write("retrieved.json", json.dumps(found))
    project.run("--rageval-metrics", ",".join(names))


def test_each_turn_and_each_mean_are_those_of_ir_measures_to_the_last_digit(asked: tuple[Project, str]):
    project, form = asked
    theirs = expected(form)
    compared = 0
    for names in (OF_RANKS, OF_TREC_EVAL):
        run(project, form, *names.values())
        records = project.records()
        for task, figures in theirs["turns"].items():
            conversation, _, number = task.partition("<::>")
            scores = records[f"{conversation}[{number}]"]["scores"]
            for their, ours in names.items():
                assert round(scores[ours], 6) == figures[their], (task, their)
                compared += 1
        for their, ours in names.items():
            metric = project.metrics()["metrics"][ours]
            assert round(metric["mean"], 6) == theirs["mean"][their]
            assert (metric["n_scored"], metric["n_independent"]) == (72, 10)
    assert compared == 72 * 6


def test_recall_of_first_and_of_later_turns_is_that_of_ir_measures(asked: tuple[Project, str]):
    project, form = asked
    theirs = expected(form)
    run(project, form, "context_recall@5", "turn_decay@context_recall@5")
    metrics = project.metrics()
    by_turn = {number: group["metrics"].get("context_recall@5") for number, group in metrics["by_turn"].items()}
    recalls = {number: round(metric["mean"], 4) for number, metric in by_turn.items() if metric}
    assert recalls == theirs["recall@5 by turn"]
    first = [figures["R@5"] for task, figures in theirs["turns"].items() if task.endswith("<::>1")]
    later = [figures["R@5"] for task, figures in theirs["turns"].items() if not task.endswith("<::>1")]
    decay = metrics["metrics"]["turn_decay@context_recall@5"]
    assert math.isclose(decay["mean"], fmean(later) - fmean(first), abs_tol=1e-6)
    low, high = decay["ci"]
    assert low < decay["mean"] < high
    if form == "lastturn":
        # The question alone finds what a later one is about much less often.
        assert decay["mean"] < -0.3
