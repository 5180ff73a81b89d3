"""Sound records are taken at once, others with care: both make the same of a record, and nothing slips through."""

from __future__ import annotations

import gc
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from case_files import a_line, loaded
from hypothesis import given
from hypothesis import strategies as st
from test_cases_malformed import malformed_lines

from pytest_rageval.cases.conversion import draft_at_once, draft_with_care
from pytest_rageval.cases.fields import CaseDraft
from pytest_rageval.cases.shapes import read_edges
from pytest_rageval.cases.spellings.spelling import FIELDS
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Edge, EvalCase, Gold

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
    {**ANCHORS, "gold": {"answer": "a"}, "expected_answers": ["a", "b"], "history": [{"role": "user", "text": ""}]},
    {**LAYERS, "id": "q1", "category": " ", "gold_supports": [], "required_support_groups": None, "vaults": None},
    {"question": "Why?", "gold": {"supports": [], "key_facts": ["f"], "chunk_ids": None, "concepts": []}},
]


def made(draft: CaseDraft) -> tuple[EvalCase, tuple[str, ...], set[str]]:
    """All that a draft decides."""
    return EvalCase(**{"id": "", **draft.case}, gold=Gold(**draft.gold)), draft.spelling, set(draft.given)


def both_agree(record: dict[str, Any]) -> bool:
    """Was the record taken at once? Then it must have become what it becomes with care, and be left as it was."""
    before = json.dumps(record)
    try:
        at_once = made(draft_at_once(record))
    except Unsound:
        return False
    finally:
        assert json.dumps(record) == before
    assert at_once == made(draft_with_care(record))
    return True


@pytest.mark.parametrize("record", SOUND)
def test_what_files_usually_hold_is_taken_at_once(record: dict[str, Any]):
    assert both_agree(record)


def malformed_records() -> list[dict[str, Any]]:
    """The records of the malformed lines that are strict JSON."""
    records = []
    for line, _ in (row.values for row in malformed_lines()):
        with suppress(StrictJsonError):
            records.append(parse(line))
    return [record for record in records if isinstance(record, dict)]


@pytest.mark.parametrize("record", malformed_records())
def test_a_malformed_record_is_never_taken_at_once(record: dict[str, Any]):
    assert not both_agree(record)


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
IN_GOLD = ("answer", "doc_chunk_ids", "relevance", "concepts", "kg_edges", "supports", "support_groups", "chunk_ids")


def objects(keys: tuple[str, ...], needed: dict[str, Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the keys, most of their values of the right kind."""
    optional = {key: MEANT.get(key, texts) | st.none() | values for key in keys}
    return st.fixed_dictionaries(needed or {}, optional=optional)


records = st.builds(
    lambda record, gold, metadata: record | {key: value for key, value in (gold, metadata) if value is not None},
    objects((*(FIELDS.keys() - {"gold", "metadata", "question"}), "unknown"), {"question": st.just("Why?")}),
    st.tuples(st.just("gold"), st.none() | odd | objects((*IN_GOLD, "unknown"))),
    st.tuples(st.just("metadata"), st.none() | odd | objects(("domain", "difficulty", "requires_kg", "author"))),
)


@given(records)
def test_both_ways_make_the_same_of_any_record(record: dict[str, Any]):
    both_agree(record)


@given(st.data())
def test_both_ways_make_the_same_of_records_that_are_nearly_sound(data: st.DataObject):
    record: dict[str, Any] = {}
    for part in data.draw(st.lists(st.sampled_from(SOUND), min_size=1, max_size=2)):
        record |= part
    for key in data.draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2)):
        record[key] = data.draw(MEANT.get(key, texts) | values)
    both_agree(record)


@given(st.text(alphabet="ab -->|\t\u3000", max_size=12))
def test_an_edge_reads_the_same_by_every_way(written: str):
    try:
        expected: tuple[Edge, ...] | None = (Edge.parse(written),)
    except ValueError:
        expected = None
    try:
        assert read_edges([written]) == expected
    except Unsound:
        assert expected is None


def test_keys_that_nobody_knows_are_not_kept_in_memory(tmp_path: Path):
    from pytest_rageval.cases.conversion import _plan

    before = _plan.cache_info().currsize
    assert loaded(tmp_path, "\n".join(a_line(**{f"k{number}": 1}) for number in range(50))).cases == ()
    assert _plan.cache_info().currsize == before


def test_what_others_froze_stays_frozen(tmp_path: Path):
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        loaded(tmp_path, a_line())
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()
