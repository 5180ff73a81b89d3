"""What a case costs, counted and not timed: requests, hand-overs to another thread, JSON written and read, tracebacks.

Counts are those of a case more: of a run with twice as many cases less that of the smaller one.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from json.decoder import JSONDecoder
from json.encoder import JSONEncoder
from typing import Any

import pytest
from _pytest._code.code import ExceptionInfo
from fault_server import FaultServer, gives
from project import Project, a_case, a_missed_case

from pytest_rageval.io import sealed_lines
from pytest_rageval.run.prefetch import BackgroundLoop
from pytest_rageval.runs.records.line_form import Members

FEW, MANY = 3, 6
ANSWER = "Water boils at 100 degrees at sea level."
CHUNK = {"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": ANSWER}
RESPONSE = {"answer": ANSWER, "abstained": False, "debug": {"retrieved_chunks": [CHUNK]}}
LEAST = 'target = "answers:answers.jsonl"\njudge = "none"\nreport = false\nmetrics = { enabled = ["mrr"] }'


WAITS_AFTER_ALL = """
import asyncio
import pytest
from pytest_rageval.model import Answer

class Target:
    name, answers_at_once = "mine", True

    async def ask(self, request):
        await asyncio.sleep(0)
        return Answer("yes")

    async def aclose(self):
        pass

@pytest.fixture(scope="session")
def rag_client():
    return Target()
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of the things below was done."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **options)

        return call

    for name, of, function in (
        ("hand-overs", BackgroundLoop, "start"),
        ("waits", BackgroundLoop, "wait"),
        ("written", JSONEncoder, "iterencode"),
        ("written", sealed_lines, "compact_json"),
        ("read", JSONDecoder, "raw_decode"),
        ("read of ours", Members, "of"),
        ("tracebacks", ExceptionInfo, "getrepr"),
        ("hooks looked up", pytest.Session, "gethookproxy"),
    ):
        monkeypatch.setattr(of, function, counted(name, getattr(of, function)))
    return counts


def of_a_case(project: Project, counts: Counter[str], make: Callable[..., dict[str, Any]] = a_case) -> dict[str, float]:
    """How often each is done for one case more."""
    totals = []
    for number in (FEW, MANY):
        cases = [make(f"q{at}") for at in range(number)]
        project.cases(cases)
        project.write("answers.jsonl", "".join(json.dumps({"id": case["id"]} | RESPONSE) + "\n" for case in cases))
        shutil.rmtree(project.path / "reports", ignore_errors=True)  # else the earlier run would be read as well
        counts.clear()
        project.run("-p", "no:cacheprovider")
        totals.append(Counter(counts))
        assert len(project.records()) == number
    few, many = totals
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in many if many[name] != few[name]}


def test_a_recorded_case_is_written_twice_read_back_for_the_report_alone_and_never_leaves_its_thread(
    project: Project, counts: Counter[str]
):
    project.configure(LEAST)
    assert of_a_case(project, counts) == {
        # Observation and result; for all hashes its gold and its tags.
        "written": 3,
        "read of ours": 1,  # by report.json: where the lines stand
    }
    assert counts["hand-overs"] == 0


def test_judging_by_words_waits_for_nothing_either(project: Project, counts: Counter[str]):
    project.configure('target = "answers:answers.jsonl"\nreport = false')
    assert {"hand-overs", "waits"}.isdisjoint(of_a_case(project, counts))
    assert counts["hand-overs"] == 0


def test_an_earlier_run_is_judged_from_the_cache_without_a_hand_over(project: Project, counts: Counter[str]):
    project.configure('target = "bot:answer"\njudge = "stub:4"\nreport = false')
    project.cases([a_case("q1"), a_case("q2")])
    project.run("--rageval-run-id", "first")
    assert counts["hand-overs"] == 1
    counts.clear()
    project.run("--rageval-target", "run:first", "--rageval-judge-cache", "replay")
    assert counts["hand-overs"] == 0
    assert project.metrics()["outcomes"]["passed"] == 2


def test_a_target_that_says_that_it_never_waits_and_does_is_told_so(project: Project):
    project.write("conftest.py", WAITS_AFTER_ALL)
    project.configure('judge = "none"\nreport = false')
    project.cases([a_case("q1")])
    project.run()
    assert "`answers_at_once` is said of a target or judge that waits" in project.records()["q1"]["error"]["message"]


def test_cases_that_are_asked_are_handed_over_together(project: Project, counts: Counter[str]):
    project.configure('target = "bot:answer"\njudge = "none"\nreport = false')
    assert "hand-overs" not in of_a_case(project, counts)
    assert counts["hand-overs"] == 1


def test_a_case_is_one_request_to_its_target(project: Project):
    with FaultServer(gives(RESPONSE)) as server:
        project.configure(f'target = "{server.url}"\njudge = "none"\nreport = false')
        project.cases([a_case(f"q{at}") for at in range(MANY)])
        project.run()
    assert len(server.requests) == MANY


def test_no_traceback_is_rendered_of_a_case_that_fails_or_is_known_to(project: Project, counts: Counter[str]):
    project.configure('target = "bot:answer"\nreport = false')
    assert "tracebacks" not in of_a_case(project, counts, a_missed_case)
    project.configure('target = "bot:answer"\nreport = false\nknown_failures = "report"')
    assert "tracebacks" not in of_a_case(project, counts, a_missed_case)
    assert set(project.outcomes().values()) == {"xfailed"}
