"""The cause of each failing case: the earliest stage that explains it, whatever else fails behind it."""

from __future__ import annotations

from typing import Any

import pytest
from project import Project

from pytest_rageval.runs.causes import TITLES, Cause, causes_of_cases

BOT = '''
def answer(question):
    """Fail in the way that the question names."""
    right = {"chunk_id": "water", "text": "Water boils at 100 degrees."}
    other = {"chunk_id": "other", "text": "Ice melts."}
    if "break" in question:
        raise RuntimeError("request 4711f00dcafe4711 broke\\nat line 3")
    if "nothing" in question:
        return {"answer": "I could not find anything about this in the documents.", "chunks": []}
    if "elsewhere" in question:
        return {"answer": "It boils at 100 degrees.", "chunks": [other]}
    if "half" in question:
        return {"answer": "It boils at 100 degrees.", "chunks": [other, right]}
    if "refuse" in question:
        return {"answer": "I cannot answer this.", "chunks": [right], "abstained": True}
    if "invent" in question:
        return {"answer": "Aunt Mary won the election.", "chunks": [other]}
    if "figure" in question:
        return {"answer": "It boils at 90 degrees.", "chunks": [right]}
    if "either" in question:
        return {"answer": "It boils at 90 degrees or 100 degrees.", "chunks": [right]}
    if "year" in question:
        return {"answer": "It opened in 1989.", "chunks": [right]}
    if "empty" in question:
        return {"answer": " ", "chunks": [right], "abstained": False}
    if "low" in question:
        return {"answer": "It boils at 100 degrees.", "chunks": [other, right]}
    if "omit" in question:
        return {"answer": "It boils when it is hot.", "chunks": [right]}
    return {"answer": "It boils at 100 degrees.", "chunks": [right]}
'''
WATER: dict[str, Any] = {"gold": {"answer": "100 degrees", "chunk_ids": ["water"]}}
CASES = [
    ("right", WATER, None),
    ("break", WATER, "system_error"),
    ("nothing", WATER, "nothing_retrieved"),
    ("elsewhere", WATER, "gold_not_retrieved"),
    ("refuse", WATER, "refused"),
    ("invent", {"answerable": False}, "answered_unanswerable"),
    ("omit", WATER, "not_in_answer"),
    ("another figure", WATER, "wrong_quantity"),
    ("either one", WATER, "not_in_answer"),
    ("another year", {"gold": {"answer": "1984"}}, "wrong_quantity"),
    ("empty", WATER, "empty_answer"),
    ("empty though there is none", {"answerable": False}, "empty_answer"),
    ("low", {**WATER, "category": "ranked"}, "gold_ranked_low"),
    ("omit without places", {"gold": {"answer": "100 degrees"}}, "wrong_answer"),
]


@pytest.fixture(scope="module")
def causes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = Project(tmp_path_factory.mktemp("causes"))
    project.write("bot.py", BOT)
    project.cases({"id": f"c{at}", "question": f"{name}?"} | fields for at, (name, fields, _) in enumerate(CASES))
    gates = '[tool.rageval.gates]\ncase = ["mrr >= 0.6 when category=ranked"]'
    project.configure(f'target = "bot:answer"\n{gates}')
    project.rageval("run")
    return {record["test_case_id"]: record.get("cause") for record in project.results()}


@pytest.mark.parametrize("at", range(len(CASES)), ids=[name for name, _, _ in CASES])
def test_a_failing_case_has_the_cause_of_the_earliest_stage(causes: dict[str, Any], at: int):
    cause, expected = causes[f"c{at}"], CASES[at][2]
    assert (cause["kind"] if cause else None) == expected


def test_equal_errors_are_one_cause_whatever_the_number_of_the_request(causes: dict[str, Any]):
    assert causes["c1"]["detail"] == "bot:answer: RuntimeError: request … broke at line 3 (at bot.py:7)"


def test_causes_are_listed_by_their_number_of_cases_and_equal_ones_by_stage():
    found = [("b", Cause("refused")), ("a", Cause("refused")), ("c", Cause("own_test")), ("d", Cause("system_error"))]
    groups = causes_of_cases(found)
    assert [(group.cause.kind, group.cases) for group in groups] == [
        ("refused", ["a", "b"]),
        ("system_error", ["d"]),
        ("own_test", ["c"]),
    ]


def test_every_kind_has_a_title_for_people():
    assert all(title and title[0].islower() for title in TITLES.values())


def test_a_flaky_case_has_the_cause_of_the_trial_that_failed(project: Project):
    project.write(
        "sometimes.py",
        "calls = []\ndef answer(question):\n    calls.append(question)\n"
        "    return 'It boils at 90 degrees.' if len(calls) == 2 else 'It boils at 100 degrees.'\n",
    )
    gates = '[tool.rageval.gates]\ncase = ["gold_in_answer >= 0.9"]'
    project.configure(f'target = "sometimes:answer"\nconcurrency = 1\n{gates}')
    project.cases([{"id": "water", "question": "When?", "gold": {"answer": "100 degrees"}}])
    project.rageval("run", "--repeat", "3")
    assert [cause["kind"] for cause in project.metrics()["causes"]] == ["wrong_quantity"]
    summary = (project.runs[-1] / "summary.md").read_text(encoding="utf-8")
    assert "It boils at 90 degrees." in summary
    assert "failing, flaky" in summary
