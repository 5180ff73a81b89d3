"""A case as plain data: written and rebuilt exactly, hashed by content, and loadable again as a line."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from case_files import loaded, the_case
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.cases.canonical import case_from_mapping, case_to_mapping, content_hash
from pytest_rageval.errors import CaseError
from pytest_rageval.model import Anchor, Edge, EvalCase, Gold, Source, Turn

texts = st.text(max_size=8)
lists = st.lists(texts, max_size=3).map(tuple)
maybe_lists = st.none() | lists
numbers = st.floats(allow_nan=False, allow_infinity=False)
anchors = st.builds(Anchor, texts, texts, lists, st.none() | texts)
maybe_anchors = st.none() | st.lists(anchors, max_size=3).map(tuple)
whole = st.integers(-3, 3)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
golds = st.builds(
    Gold,
    answers=maybe_lists,
    key_facts=maybe_lists,
    supports=maybe_anchors,
    support_groups=st.none() | st.lists(st.lists(whole, max_size=2).map(tuple), max_size=2).map(tuple),
    irrelevant_supports=maybe_anchors,
    chunk_ids=maybe_lists,
    irrelevant_ids=maybe_lists,
    ids_are_prefixes=st.booleans(),
    relevance=st.none() | st.dictionaries(texts, numbers, max_size=3),
    concepts=maybe_lists,
    constraints=maybe_lists,
    kg_entities=maybe_lists,
    kg_edges=st.none() | st.lists(st.builds(Edge, texts, texts, texts), max_size=2).map(tuple),
    recency_conflict_rule=st.sampled_from([None, "cite_newer", "acknowledge_both", "cite_both"]),
)
cases = st.builds(
    EvalCase,
    id=texts,
    question=texts,
    answerable=st.booleans(),
    category=st.none() | texts,
    difficulty=st.none() | texts,
    domain=st.none() | texts,
    tags=lists,
    vaults=lists,
    folders=lists,
    requires_kg=st.booleans(),
    gold=golds,
    history=st.none() | st.lists(st.builds(Turn, texts, texts), max_size=2).map(tuple),
    contexts=maybe_lists,
    metadata=st.dictionaries(texts, json_values, max_size=3),
    source=st.builds(Source, texts, st.integers(0, 10**6)),
)


@given(cases)
def test_any_case_is_rebuilt_exactly_from_what_was_written(case: EvalCase):
    written = json.dumps(case_to_mapping(case))
    assert case_from_mapping(json.loads(written)) == case


@given(cases)
def test_the_hash_is_of_the_content_and_survives_writing(case: EvalCase):
    rebuilt = case_from_mapping(json.loads(json.dumps(case_to_mapping(case))))
    moved = dataclasses.replace(rebuilt, source=Source("elsewhere.jsonl", 7))
    assert content_hash(case) == content_hash(moved)
    assert len(content_hash(case)) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"id": "q2"},
        {"question": "How?"},
        {"answerable": False},
        {"requires_kg": True},
        {"metadata": {"n": 1}},
        {"contexts": ()},
        {"gold": Gold(answers=("a",))},
        {"gold": Gold(concepts=())},
        {"gold": Gold(ids_are_prefixes=True)},
    ],
)
def test_any_change_of_the_content_changes_the_hash(change: dict[str, Any]):
    case = EvalCase("q1", "Why?")
    assert content_hash(dataclasses.replace(case, **change)) != content_hash(case)


def test_the_hash_stays_what_it_is_from_release_to_release():
    case = EvalCase("q1", "왜?", tags=("a",), gold=Gold(answers=("b",), supports=(Anchor("a.md", "# A"),)))
    assert content_hash(case) == "ceab4d7f0b12090053176e2150ca040629e2a1df6bebb609a4400b1b8f130586"


def test_absent_and_empty_are_kept_apart():
    mapping = case_to_mapping(EvalCase("q1", "Why?", gold=Gold(chunk_ids=(), concepts=())))
    assert mapping["gold"] == {"chunk_ids": [], "concepts": []}
    assert "gold" not in case_to_mapping(EvalCase("q1", "Why?"))


LINES: list[dict[str, Any]] = [
    {"question": "Why?"},
    {"query": "Why?", "relevant_ids": [], "category": "negative"},
    {"query": "Why?", "relevant_ids": ["t01"], "irrelevant_ids": ["t02"], "reference_answer": "a"},
    {"question": "Why?", "gold": {"answer": "a", "concepts": [], "relevance": {"a": 1}, "kg_edges": ["a -b-> c"]}},
    {"question": "Why?", "gold_supports": [{"rel_path": "a.md", "date": "2024"}], "required_support_groups": [[0]]},
    {"question": "Why?", "expected_answers": ["a", "b"], "history": [], "contexts": [], "metadata": {"a": [1.5]}},
    {"question": "Why?", "answerable": False, "gold_supports": [], "vaults": ["v"], "folders": ["f"], "tag": "t"},
]


@pytest.mark.parametrize("line", LINES)
def test_a_loaded_case_written_as_a_line_loads_as_the_same_case(tmp_path: Any, line: dict[str, Any]):
    case = the_case(tmp_path, **line)
    mapping = case_to_mapping(case)
    del mapping["source"]
    file = loaded(tmp_path, json.dumps(mapping))
    assert file.problems == ()
    assert file.cases == (case,)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"id": "q1"}, "recorded case: has no question"),
        ({"id": "q1", "question": 3}, "recorded case: question is 3 (a number), expected a string"),
        ({"id": "q1", "question": "Why?", "foo": 1}, "recorded case: foo is not a known key"),
        (
            {"id": "q1", "question": "Why?", "gold": {"supports": [{"heading_path": "# A"}]}},
            "recorded case: gold.supports[0] has no rel_path",
        ),
        (
            {"id": "q1", "question": "Why?", "gold": {"kg_edges": ["a -b-> c"]}},
            "recorded case: gold.kg_edges[0] is 'a -b-> c' (a string), expected {subject, predicate, object}",
        ),
        (
            {"id": "q1", "question": "Why?", "gold": {"answer": ["a", 1]}},
            "recorded case: gold.answer[1] is 1 (a number), expected a string",
        ),
        ([], "recorded case: is a list, expected {id, question"),
    ],
)
def test_what_was_not_written_by_us_is_refused(record: Any, problem: str):
    with pytest.raises(CaseError) as caught:
        case_from_mapping(record)
    assert caught.value.problems[0].startswith(problem)
