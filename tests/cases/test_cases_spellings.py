"""Four spellings load into one case; what is absent stays absent, and empty stays empty where it means something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from case_files import a_line, loaded, the_case

from pytest_rageval.model import Anchor, Edge, EvalCase, Gold, Source, Turn


def test_the_anchors_spelling(tmp_path: Path):
    case = the_case(
        tmp_path,
        question="What are the known timing issues?",
        answerable=True,
        expected_key_facts=["off by one", "41 ms"],
        expected_answers=["Two of them.", "2"],
        gold_supports=[
            {"rel_path": "a.md", "heading_path": "# A > ## B", "snippets": ["off by one"], "date": "2024-05-31"},
            {"rel_path": "b.md"},
        ],
        required_support_groups=[[0, 1], [1]],
        irrelevant_supports=[{"rel_path": "c.md", "heading_path": None}],
        recency_conflict_rule="cite_newer",
        tags=["timing"],
        vaults=["lab"],
        folders=["data", ""],
        category="multi_hop",
        difficulty="hard",
    )
    assert case == EvalCase(
        id="q1",
        question="What are the known timing issues?",
        category="multi_hop",
        difficulty="hard",
        tags=("timing",),
        vaults=("lab",),
        folders=("data", ""),
        gold=Gold(
            answers=("Two of them.", "2"),
            key_facts=("off by one", "41 ms"),
            supports=(Anchor("a.md", "# A > ## B", ("off by one",), "2024-05-31"), Anchor("b.md")),
            support_groups=((0, 1), (1,)),
            irrelevant_supports=(Anchor("c.md"),),
            recency_conflict_rule="cite_newer",
        ),
        source=Source("a.jsonl", 1),
    )


def test_the_layers_spelling(tmp_path: Path):
    case = the_case(
        tmp_path,
        question="Which products does Laneige have?",
        gold={
            "answer": "One.",
            "doc_chunk_ids": ["c1", "c2"],
            "relevance": {"c1": 2, "c3": 0},
            "kg_entities": ["laneige"],
            "kg_edges": ["laneige -hasProduct-> B08XYZ", "a|b|c", {"subject": "s", "predicate": "p", "object": "o"}],
            "concepts": ["product"],
            "constraints": [],
        },
        metadata={"domain": "brand", "difficulty": "easy", "author": "kim"},
    )
    assert case.gold == Gold(
        answers=("One.",),
        chunk_ids=("c1", "c2"),
        relevance={"c1": 2.0, "c3": 0.0},
        kg_entities=("laneige",),
        kg_edges=(Edge("laneige", "hasProduct", "B08XYZ"), Edge("a", "b", "c"), Edge("s", "p", "o")),
        concepts=("product",),
        constraints=(),
    )
    assert (case.requires_kg, case.domain, case.difficulty) == (True, "brand", "easy")
    assert case.metadata == {"author": "kim"}


def test_the_reference_spelling(tmp_path: Path):
    case = the_case(tmp_path, question="Why?", reference="Because.", tag="short", tags=["a"], contexts=["x", ""])
    assert case.gold == Gold(answers=("Because.",))
    assert case.tags == ("a", "short")
    assert case.contexts == ("x", "")


def test_the_ids_spelling(tmp_path: Path):
    case = the_case(
        tmp_path,
        query="Why?",
        relevant_ids=["t01", "t02", "t01"],
        irrelevant_ids=["t09"],
        category="specificity",
        reference_answer="Because.",
    )
    gold = Gold(answers=("Because.",), chunk_ids=("t01", "t02"), irrelevant_ids=("t09",), ids_are_prefixes=True)
    assert case.gold == gold
    assert case.question == "Why?"
    assert case.answerable


def test_the_canonical_spelling(tmp_path: Path):
    case = the_case(
        tmp_path,
        question="Why?",
        requires_kg=True,
        domain="lab",
        history=[{"role": "user", "text": "Hello"}, {"role": "agent", "content": ""}],
        gold={"supports": [{"rel_path": "a.md"}], "support_groups": [[0]], "chunk_ids": ["c1"], "key_facts": ["f"]},
    )
    assert case.gold == Gold(supports=(Anchor("a.md"),), support_groups=((0,),), chunk_ids=("c1",), key_facts=("f",))
    assert case.history == (Turn("user", "Hello"), Turn("agent", ""))
    assert (case.requires_kg, case.domain) == (True, "lab")


def test_a_bare_question_is_a_case(tmp_path: Path):
    assert the_case(tmp_path, question="왜?") == EvalCase("q1", "왜?", source=Source("a.jsonl", 1))


def test_a_line_may_combine_spellings(tmp_path: Path):
    case = the_case(
        tmp_path, question="Why?", gold_supports=[{"rel_path": "a.md"}], gold={"answer": "Because."}, tag="x"
    )
    assert case.gold == Gold(answers=("Because.",), supports=(Anchor("a.md"),))


def test_one_part_may_be_said_twice_if_it_is_the_same(tmp_path: Path):
    case = the_case(tmp_path, question="Why?", query="Why?", reference="a", reference_answer="a", gold={"answer": "a"})
    assert case.gold == Gold(answers=("a",))


@pytest.mark.parametrize("single", [{"gold": {"answer": "b"}}, {"reference": "b"}, {"reference_answer": "b"}])
def test_an_answer_beside_a_list_must_be_in_it_and_the_list_counts(tmp_path: Path, single: dict[str, Any]):
    for line in ({"expected_answers": ["a", "b"], **single}, {**single, "expected_answers": ["a", "b"]}):
        assert the_case(tmp_path, question="Why?", **line).gold.answers == ("a", "b")


@pytest.mark.parametrize(
    ("line", "spelling", "requires_kg"),
    [
        ({}, (), False),
        ({"gold": {}}, (), False),
        ({"gold": {"answer": "a"}}, ("layers",), False),
        ({"gold": {"answer": "a", "kg_entities": ["x"]}}, ("layers",), True),
        ({"gold": {"kg_edges": ["x -p-> y"]}}, ("layers",), True),
        ({"gold": {"answer": "a", "kg_entities": []}}, ("layers",), False),
        ({"gold": {"kg_entities": ["x"]}, "requires_kg": False}, ("layers",), False),
        ({"gold": {"answer": "a"}, "metadata": {"requires_kg": False}}, ("layers",), False),
        ({"gold": {"answer": "a"}, "requires_kg": False}, ("layers",), False),
        ({"gold": {"concepts": []}, "gold_supports": [{"rel_path": "a.md"}]}, ("anchors", "layers"), False),
        ({"gold": {"answer": "a"}, "gold_supports": [{"rel_path": "a.md"}]}, ("anchors",), False),
        ({"gold": {"answer": "a"}, "gold_supports": None}, ("layers",), False),
        ({"gold": {"answer": "a", "chunk_ids": ["c"]}}, ("canonical",), False),
        ({"reference": "a"}, ("reference",), False),
        ({"relevant_ids": ["a"]}, ("ids",), False),
        ({"expected_key_facts": ["a"], "tag": "b"}, ("anchors", "reference"), False),
    ],
)
def test_a_case_requires_the_graph_where_it_has_gold_of_it_unless_told(
    tmp_path: Path, line: dict[str, Any], spelling: tuple[str, ...], requires_kg: bool
):
    file = loaded(tmp_path, a_line(**line))
    assert file.problems == ()
    assert dict(file.spellings) == {spelling: 1}
    assert file.cases[0].requires_kg is requires_kg


def test_what_metadata_says_of_the_case_is_lifted_in_every_spelling(tmp_path: Path):
    case = the_case(tmp_path, question="Why?", metadata={"domain": "lab", "difficulty": None, "n": None})
    assert (case.domain, case.difficulty, case.metadata) == ("lab", None, {"n": None})


def test_chunks_graded_above_zero_are_relevant(tmp_path: Path):
    gold = the_case(tmp_path, question="Why?", gold={"relevance": {"a": 0, "b": 1, "c": 0.5, "d": -1}}).gold
    assert gold.chunk_ids == ("b", "c")
    assert gold.relevance == {"a": 0, "b": 1, "c": 0.5, "d": -1}
    gold = the_case(tmp_path, question="Why?", gold={"doc_chunk_ids": ["x"], "relevance": {"b": 1}}).gold
    assert gold.chunk_ids == ("x", "b")


@pytest.mark.parametrize("key", ["gold_supports", "expected_key_facts", "required_support_groups", "relevant_ids"])
@pytest.mark.parametrize("value", [[], None])
def test_empty_retrieval_gold_means_unlabelled(tmp_path: Path, key: str, value: Any):
    gold = the_case(tmp_path, question="Why?", **{key: value}).gold
    assert (gold.supports, gold.key_facts, gold.support_groups, gold.chunk_ids) == (None, None, None, None)


@pytest.mark.parametrize("part", ["concepts", "constraints", "kg_entities", "kg_edges"])
def test_empty_extraction_gold_means_that_nothing_is_expected(tmp_path: Path, part: str):
    assert getattr(the_case(tmp_path, question="Why?", gold={part: []}).gold, part) == ()
    assert getattr(the_case(tmp_path, question="Why?", gold={part: None}).gold, part) is None


def test_a_negative_ids_case_expects_nothing_and_has_no_answer(tmp_path: Path):
    case = the_case(tmp_path, query="Why?", relevant_ids=[], category="negative")
    assert (case.gold.chunk_ids, case.answerable) == ((), False)


def test_a_negative_ids_case_without_the_key_has_no_answer_either(tmp_path: Path):
    case = the_case(tmp_path, query="Why?", category="negative")
    assert (case.gold.chunk_ids, case.answerable) == (None, False)


def test_in_other_spellings_a_negative_case_says_nothing_of_what_is_retrieved(tmp_path: Path):
    case = the_case(tmp_path, question="Why?", category="negative", gold={"doc_chunk_ids": []})
    assert (case.gold.chunk_ids, case.answerable) == (None, False)


SPELLINGS = [
    {"question": "Why?"},
    {"question": "Why?", "gold": {}},
    {"query": "Why?"},
    {"question": "Why?", "tag": "x"},
]


@pytest.mark.parametrize("keys", SPELLINGS)
@pytest.mark.parametrize(("category", "answerable"), [("general", False), ("negative", False), ("factual", True)])
def test_whether_a_case_is_answerable_follows_from_its_category(
    tmp_path: Path, keys: dict[str, object], category: str, answerable: bool
):
    assert the_case(tmp_path, **keys, category=category).answerable is answerable


@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("category", ["general", "factual"])
def test_a_label_says_more_than_the_category(tmp_path: Path, category: str, label: bool):
    assert the_case(tmp_path, question="Why?", category=category, answerable=label).answerable is label


@pytest.mark.parametrize(
    "gold", [{"gold_supports": [{"rel_path": "a.md"}]}, {"gold": {"doc_chunk_ids": ["t1"]}}, {"relevant_ids": ["t1"]}]
)
def test_a_case_that_names_where_its_answer_stands_is_answerable_in_every_category(
    tmp_path: Path, gold: dict[str, object]
):
    assert the_case(tmp_path, question="Why?", category="general", **gold).answerable


@pytest.mark.parametrize("key", ["category", "difficulty", "domain", "tag"])
def test_a_blank_label_says_nothing(tmp_path: Path, key: str):
    assert the_case(tmp_path, question="Why?", **{key: " "}) == the_case(tmp_path, question="Why?")


def test_empty_snippets_set_no_condition(tmp_path: Path):
    case = the_case(tmp_path, question="Why?", gold_supports=[{"rel_path": "a.md", "snippets": []}])
    assert case.gold.supports == (Anchor("a.md"),)


def test_a_row_without_id_gets_a_hash_of_its_content_however_it_is_spelled(tmp_path: Path):
    one = loaded(tmp_path, '{"question": "Why?", "reference": "a", "tag": "t"}').cases[0].id
    other = loaded(
        tmp_path, '\n{"tags": ["t"], "query": "Why?", "id": null, "gold": {"answer": "a"}, "requires_kg": false}'
    )
    row = loaded(tmp_path, "question,reference,tag\nWhy?,a,t\n", "b.csv")
    assert len(one) == 12
    assert one == other.cases[0].id == row.cases[0].id


def test_ids_are_kept_as_they_are_written(tmp_path: Path):
    ids = [" a b ", "시장-점유율-1", "a::b[c]", "\u001b", "ü"]
    file = loaded(tmp_path, "\n".join(a_line(id=one) for one in ids))
    assert [case.id for case in file.cases] == ids
