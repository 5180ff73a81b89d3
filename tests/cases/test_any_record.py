"""Whatever stands in a record: it becomes a case, or findings, and is left as it was."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from case_files import a_line, loaded
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_rageval.cases.conversion import case_from_record, usual_case
from pytest_rageval.cases.keys import KEYS
from pytest_rageval.io.messages import Unsound
from pytest_rageval.model import NOWHERE, Edge, EvalCase, Source

pytestmark = pytest.mark.reliability("case files", "generated records")


def outcome(record: dict[str, Any]) -> EvalCase | list[str]:
    """The case that a record becomes, or what is wrong with it; the record is left as it was."""
    before = json.dumps(record)
    try:
        return case_from_record(record, Source("a.jsonl", 1))[0]
    except Unsound as unsound:
        return [str(finding) for finding in unsound.findings.first]
    finally:
        assert json.dumps(record) == before


blank = st.sampled_from(["", " ", "\x1f", "\u3000"])
texts = st.sampled_from(["a", "b", "a.md", "2024-05", "cite_newer", "negative", "a -b-> c", "Why?"])
odd = st.none() | st.booleans() | st.integers(-1, 2) | blank | texts | st.floats(0, 2)
anchors = st.fixed_dictionaries(
    {"rel_path": texts}, optional={"heading_path": texts, "snippets": st.lists(texts | odd)}
)
values = (
    odd
    | st.lists(texts, max_size=3)
    | st.lists(odd, max_size=2)
    | st.lists(anchors, max_size=2)
    | st.lists(st.lists(st.integers(-1, 2), max_size=2), max_size=2)
    | st.dictionaries(texts, odd, max_size=2)
)
MEANT: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("gold_supports", "irrelevant_supports", "supports"), st.lists(anchors, max_size=3)),
    **dict.fromkeys(("required_support_groups", "support_groups"), st.lists(st.lists(st.integers(0, 2), min_size=1))),
    **dict.fromkeys(("answerable", "requires_kg", "ids_are_prefixes"), st.booleans()),
    **dict.fromkeys(("expected_answers", "expected_key_facts", "key_facts", "tags", "contexts"), st.lists(texts)),
    **dict.fromkeys(("relevant_ids", "irrelevant_ids", "chunk_ids", "doc_chunk_ids", "concepts"), st.lists(texts)),
    **dict.fromkeys(("answer", "reference", "reference_answer", "category", "domain", "tag"), texts | blank),
    "relevance": st.dictionaries(texts, st.integers(0, 1), max_size=2),
    "kg_edges": st.lists(st.sampled_from(["a -b-> c", "a|b|c", "a b"]), max_size=2),
    "recency_conflict_rule": st.just("cite_newer"),
}
PARTS_OF_GOLD = (
    "answer",
    "doc_chunk_ids",
    "relevance",
    "concepts",
    "kg_edges",
    "supports",
    "support_groups",
    "chunk_ids",
)


def objects(keys: tuple[str, ...], needed: dict[str, Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the keys, most of their values of the right kind."""
    optional = {key: MEANT.get(key, texts) | st.none() | values for key in keys}
    return st.fixed_dictionaries(needed or {}, optional=optional)


records = st.builds(
    lambda record, gold, metadata: record | {key: value for key, value in (gold, metadata) if value is not None},
    objects((*(KEYS.keys() - {"gold", "metadata", "question"}), "unknown"), {"question": st.just("Why?")}),
    st.tuples(st.just("gold"), st.none() | odd | objects((*PARTS_OF_GOLD, "unknown"))),
    st.tuples(st.just("metadata"), st.none() | odd | objects(("domain", "difficulty", "requires_kg", "author"))),
)


@given(records)
@example({"question": "Why?", "messages": None, "unknown": 1})
@example({"question": "Why?", "turns": None, "unknown": 1})
def test_any_record_becomes_a_case_or_findings_and_is_left_as_it_was(record: dict[str, Any]):
    assert outcome(record)


@given(st.text(alphabet="ab -->|\t\u3000", max_size=12))
def test_an_edge_reads_the_same_by_every_way(written: str):
    try:
        expected: tuple[Edge, ...] | None = (Edge.parse(written),)
    except ValueError:
        expected = None
    try:
        case, _ = case_from_record({"question": "Why?", "gold": {"kg_edges": [written]}}, NOWHERE)
        assert case.gold.kg_edges == expected
    except Unsound:
        assert expected is None


@pytest.mark.parametrize(
    "line",
    [
        '{"question": "Why?", "question": "Why?"}',
        '{"question": "Why?", "question" : "Why?"}',
        '{"question": "Why?", "gold": {"answer"\t:"a", "answer"  :"b"}}',
        '{"question": "a \\":", "id": "a", "id" : "b"}',
        '{"question": "Why?", "gold_supports": [{"rel_path": "a.md", "rel_path"\r: "b.md"}]}',
        '{"question": "Why?", "metadata": {"a": [{"b": 1, "b": 2}]}}',
        '{"question": "Why?", "metadata": {"a": NaN}}',
        '{"question": "Why?", "metadata": {"a": 1e999}}',
        '{"question": "Why?", "category": null}',
        '{"question": "Why?", "sorce": "a"}',
        '{"question": "\\ud800"}',
        '{"id": "a"}',
    ],
)
def test_a_line_that_may_be_wrong_is_not_read_at_once(line: str):
    assert usual_case(line, NOWHERE) is None


@given(records)
def test_a_line_read_at_once_gives_the_same_case(record: dict[str, Any]):
    case = usual_case(json.dumps(record), NOWHERE)
    assert case is None or case == case_from_record(record, NOWHERE)


def test_what_others_froze_stays_frozen(tmp_path: Path):
    loaded(tmp_path, a_line())  # makes what is made once
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        loaded(tmp_path, a_line())
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()
