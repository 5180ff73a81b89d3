"""Sound records are read at once, others key by key: both make the same of a record."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from case_files import a_line, loaded
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.cases import conversion
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.keys import IN_GOLD, KEYS
from pytest_rageval.io.messages import Unsound
from pytest_rageval.model import Edge, EvalCase, Source

ANCHORS = {
    "question": "Why?",
    "answerable": True,
    "expected_key_facts": ["a"],
    "gold_supports": [{"rel_path": "a.md", "heading_path": "# A", "snippets": ["s"]}, {"rel_path": "b.md"}],
    "required_support_groups": [[0], [1]],
    "recency_conflict_rule": "cite_newer",
}
LAYERS = {
    "question": "Why?",
    "gold": {"answer": "a", "doc_chunk_ids": ["c"], "relevance": {"c": 1, "d": 2}, "kg_edges": ["a -b-> c"]},
    "metadata": {"requires_kg": True, "domain": "brand", "difficulty": None, "author": "kim"},
}
SOUND: list[dict[str, Any]] = [
    {"question": "Why?"},
    ANCHORS,
    LAYERS,
    {"question": "Why?", "reference": "a", "tag": "t", "tags": ["s"], "contexts": ["c"]},
    {"query": "Why?", "relevant_ids": ["t01", "t01"], "irrelevant_ids": [], "reference_answer": "a"},
    {"query": "Why?", "relevant_ids": [], "category": "negative"},
    {**ANCHORS, "gold": {"answer": "a"}, "history": [{"role": "user", "text": ""}]},
    {**LAYERS, "id": "q1", "category": " ", "gold_supports": [], "required_support_groups": None, "vaults": None},
    {"question": "Why?", "gold": {"supports": [], "key_facts": ["f"], "chunk_ids": None, "concepts": []}},
]


def outcome(record: dict[str, Any]) -> EvalCase | list[str]:
    """The case that a record becomes, or what is wrong with it; the record is left as it was."""
    before = json.dumps(record)
    try:
        return case_from_record(record, Source("a.jsonl", 1))[0]
    except Unsound as unsound:
        return [str(finding) for finding in unsound.findings.kept]
    finally:
        assert json.dumps(record) == before


def read_both_ways(record: dict[str, Any]) -> tuple[EvalCase | list[str], EvalCase | list[str]]:
    """The outcome of a record, and of one that says its domain twice, so that its keys are read one by one."""
    plain = {**record, "domain": "lab"}
    metadata = plain.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        plain["metadata"] = metadata = {}
    plain["metadata"] = {key: value for key, value in (metadata or {}).items() if key != "domain"}
    return outcome(plain), outcome({**plain, "metadata": {**plain["metadata"], "domain": "lab"}})


@pytest.mark.parametrize("record", [*SOUND, {**ANCHORS, "gold": {"answer": "a"}, "expected_answers": ["a", "b"]}])
def test_a_sound_record_becomes_the_same_case_at_once_and_key_by_key(record: dict[str, Any]):
    at_once, by_key = read_both_ways(record)
    assert isinstance(at_once, EvalCase)
    assert at_once == by_key


@pytest.mark.parametrize("record", SOUND)
def test_a_sound_record_is_read_at_once(record: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    case = outcome(record)
    monkeypatch.setattr(conversion, "_parts_with_care", None)
    assert outcome(record) == case


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
def test_any_record_comes_out_the_same_both_ways(record: dict[str, Any]):
    at_once, by_key = read_both_ways(record)
    assert at_once == by_key


@given(st.data())
def test_a_nearly_sound_record_comes_out_the_same_both_ways(data: st.DataObject):
    record: dict[str, Any] = {}
    for part in data.draw(st.lists(st.sampled_from(SOUND), min_size=1, max_size=2)):
        record |= part
    for key in data.draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=2)):
        record[key] = data.draw(MEANT.get(key, texts) | values)
    at_once, by_key = read_both_ways(record)
    assert at_once == by_key


@given(st.text(alphabet="ab -->|\t\u3000", max_size=12))
def test_an_edge_reads_the_same_by_every_way(written: str):
    try:
        expected: tuple[Edge, ...] | None = (Edge.parse(written),)
    except ValueError:
        expected = None
    try:
        assert IN_GOLD["kg_edges"].read([written]) == expected
    except Unsound:
        assert expected is None


def test_keys_that_nobody_knows_are_not_kept_in_memory(tmp_path: Path):
    before = conversion._plan.cache_info().currsize
    assert loaded(tmp_path, "\n".join(a_line(**{f"k{number}": 1}) for number in range(50))).cases == ()
    assert conversion._plan.cache_info().currsize == before


def test_what_others_froze_stays_frozen(tmp_path: Path):
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        loaded(tmp_path, a_line())
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()
