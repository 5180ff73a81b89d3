"""Passages: what an answer was written from, what it cites, and how many documents that is."""

from __future__ import annotations

import pytest

from pytest_rageval.matching.passages import citations, contexts, documents
from pytest_rageval.model import Answer, Chunk, EvalCase, Reference


def a_case(**fields) -> EvalCase:
    return EvalCase("q1", "What?", **fields)


def test_passages_come_in_the_order_of_their_ranks():
    chunks = (Chunk("c2", text="second", rank=2), Chunk("c1", text="first", rank=1))
    assert contexts(a_case(), Answer("So.", chunks=chunks), 1) == [("c1", "first")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("So.", chunks=(Chunk("a#1", rel_path="a.md"), Chunk("a#2", rel_path="a.md"))), {"a.md"}),
        (Answer("So.", chunks=(Chunk("a#1", doc_id="d1"), Chunk("a#2", doc_id="d2"))), {"d1", "d2"}),
        (Answer("So.", chunks=(Chunk("a#1"), Chunk("a#2"), Chunk("b#1"))), {"a", "b"}),
        (Answer("So.", chunks=(Chunk(text="nameless"),)), set()),
        (Answer("So.", references=(Reference(rel_path="a.md"), Reference(rel_path="b.md"))), {"a.md", "b.md"}),
        (Answer("So.", references=(), chunks=(Chunk("a#1"),)), {"a"}),
        (Answer("So."), set()),
    ],
)
def test_a_document_is_known_by_path_id_or_the_beginning_of_its_chunks_ids(answer, expected):
    assert documents(a_case(), answer, 5) == expected


def test_a_reference_by_chunk_id_is_of_the_document_of_that_chunk():
    chunks = (Chunk("x1", rel_path="a.md"), Chunk("x2", rel_path="a.md"), Chunk("x3", rel_path="b.md"))
    answer = Answer("So.", chunks=chunks, references=(Reference("x1"), Reference("x2")))
    assert documents(a_case(), answer, 5) == {"a.md"}


def test_contexts_of_the_case_are_a_document_each():
    assert documents(a_case(contexts=("one", "two", "two")), Answer("So."), 5) == {"one", "two"}


def test_an_answer_without_references_has_no_citations():
    assert citations(Answer("So.")) == citations(Answer("So.", references=())) == []
