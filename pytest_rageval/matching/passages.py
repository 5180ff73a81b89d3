"""Passages that an answer uses or cites, as shown to a judge, and their documents."""

from __future__ import annotations

from typing import NamedTuple

from pytest_rageval.matching.places import in_rank_order
from pytest_rageval.model import Answer, Chunk, EvalCase, Reference


class Passage(NamedTuple):
    """A text with its id in the system, if any."""

    chunk_id: str | None
    text: str


class Citation(NamedTuple):
    """One reference of an answer: its 1-based position, and its chunk, source and text as far as known."""

    number: int
    chunk_id: str | None
    source: str | None
    text: str | None


def contexts(case: EvalCase, answer: Answer, k: int) -> list[Passage]:
    """Return the texts of the top k chunks; if there are none, of the references; else the case's contexts.

    Absent and blank texts are left out.
    """
    for sources in (in_rank_order(answer.chunks or ())[:k], answer.references or ()):
        cited = [(source.chunk_id, source.text) for source in sources]
        passages = [Passage(chunk_id, text) for chunk_id, text in cited if text and not text.isspace()]
        if passages:
            return passages
    return [Passage(None, text) for text in case.contexts or () if text and not text.isspace()]


def context_texts(case: EvalCase, answer: Answer, k: int) -> list[str]:
    """Return the texts of `contexts`."""
    return [passage.text for passage in contexts(case, answer, k)]


def citations(answer: Answer) -> list[Citation]:
    """Return the references of an answer in order; one without text gets the text of the chunk with its id."""
    texts: dict[str | None, str | None] = {
        chunk.chunk_id: chunk.text for chunk in answer.chunks or () if chunk.chunk_id
    }
    return [
        Citation(
            number,
            reference.chunk_id,
            _place(reference),
            reference.text if reference.text is not None else texts.get(reference.chunk_id),
        )
        for number, reference in enumerate(answer.references or (), start=1)
    ]


def documents(case: EvalCase, answer: Answer, k: int) -> frozenset[str]:
    """Return the distinct documents that the answer cites; if it cites none, those of its context.

    A document is identified by its path, else its id, else the part of a chunk's id before `#`; each context given with
    the case is a document.
    """
    paths = {chunk.chunk_id: chunk.rel_path or chunk.doc_id for chunk in answer.chunks or ()}
    cited_documents = [
        _document(reference) or paths.get(reference.chunk_id) or _stem(reference)
        for reference in answer.references or ()
    ]
    context_documents = [_document(chunk) or _stem(chunk) for chunk in in_rank_order(answer.chunks or ())[:k]]
    for candidates in (cited_documents, context_documents, case.contexts or ()):
        names = frozenset(name for name in candidates if name)
        if names:
            return names
    return frozenset()


def _document(passage: Chunk | Reference) -> str | None:
    return passage.rel_path or passage.doc_id


def _stem(passage: Chunk | Reference) -> str | None:
    return passage.chunk_id and passage.chunk_id.partition("#")[0]


def _place(reference: Reference) -> str | None:
    """Return `path > heading`, as far as known."""
    return " > ".join(filter(None, (_document(reference), reference.heading_path))) or None
