"""A number that is not finite is refused where it enters: JSON has none, and null would be read as not known."""

from __future__ import annotations

import json

import pytest
from project import Project, a_case

TARGET = """
import math
import pytest
from pytest_rageval import Answer, Chunk
from pytest_rageval.model import Reference, Trace
class Target:
    name = "own"
    async def ask(self, request):
        return {answer}
    async def aclose(self):
        pass
@pytest.fixture(scope="session")
def rag_client():
    return Target()
"""
PLACES = {
    "score_final": "Answer(text='x', chunks=(Chunk(text='a', rel_path='a.md', score_final={value}),))",
    "score_vector": "Answer(text='x', chunks=(Chunk(text='a', rel_path='a.md', score_vector={value}),))",
    "retrieved_chunks": "Answer(text='x', chunks=(Chunk(text='a', rel_path='a.md', extra={{'own': [{value}]}}),))",
    "references": "Answer(text='x', references=(Reference(rel_path='a.md', extra={{'own': {value}}}),))",
    "latency": "Answer(text='x', latency={{'retrieval_ms': {value}}})",
    "usage": "Answer(text='x', usage={{'cost': {value}}})",
    "versions": "Answer(text='x', versions={{'llm': {value}}})",
    "indexing_coverage": "Answer(text='x', indexing_coverage={{'docs_processed': {value}}})",
    "trace": "Answer(text='x', trace=Trace(extra={{'own': {{'deep': {value}}}}}))",
    "meta": "Answer(text='x', extra={{'meta': {{'own': {value}}}}})",
}
VALUES = {"nan": "math.nan", "inf": "math.inf", "-inf": "-math.inf"}


EACH = [*((place, "nan") for place in PLACES), ("latency", "inf"), ("meta", "-inf")]


@pytest.mark.parametrize(("place", "value"), EACH)
def test_a_number_in_an_answer_is_an_error_with_its_place_and_value(project: Project, place: str, value: str):
    project.cases([a_case("boil")])
    project.write("conftest.py", TARGET.format(answer=PLACES[place].format(value=VALUES[value])))
    assert project.run().ret == 1
    [record] = project.records().values()
    assert record["error"]["kind"] == "invalid_response"
    message = record["error"]["message"]
    assert place in message
    assert f"is {value}" in message
    assert "expected" in message
    for name in ("results.jsonl", "observations.jsonl"):
        lines = (project.path / "reports" / "runs").glob(f"*/{name}")
        for line in "".join(path.read_text(encoding="utf-8") for path in lines).splitlines():
            json.loads(line, parse_constant=pytest.fail)
