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
        # Blank passages would be numbered, and could support nothing.
        with_text = [source for source in sources if not _is_blank(source.text)]
        if with_text:
            return [Passage(source.chunk_id, source.text or "") for source in with_text]
    return [Passage(None, text) for text in case.contexts or () if not _is_blank(text)]


def _is_blank(text: str | None) -> bool:
    return not text or text.isspace()


def context_texts(case: EvalCase, answer: Answer, k: int) -> list[str]:
    """Return the texts of `contexts`."""
    return [passage.text for passage in contexts(case, answer, k)]


def citations(answer: Answer) -> list[Citation]:
    """Return the references of an answer in order; one without text gets the text of the chunk with its id."""
    texts: dict[str | None, str | None] = {}
    for chunk in answer.chunks or ():
        if chunk.chunk_id:
            texts[chunk.chunk_id] = chunk.text
    cited: list[Citation] = []
    for number, reference in enumerate(answer.references or (), start=1):
        text = reference.text if reference.text is not None else texts.get(reference.chunk_id)
        cited.append(Citation(number, reference.chunk_id, _place(reference), text))
    return cited


def documents(case: EvalCase, answer: Answer, k: int) -> frozenset[str]:
    """Return the distinct documents that the answer cites; if it cites none, those of its context.

    A document is identified by its path, else its id, else the part of a chunk's id before `#`; each context given with
    the case is a document.
    """
    documents_by_id = {chunk.chunk_id: _document(chunk) for chunk in answer.chunks or ()}

    def cited_document(reference: Reference) -> str | None:
        return _document(reference) or documents_by_id.get(reference.chunk_id) or _stem(reference)

    cited = map(cited_document, answer.references or ())
    in_context = [_document(chunk) or _stem(chunk) for chunk in in_rank_order(answer.chunks or ())[:k]]
    for candidates in (cited, in_context, case.contexts or ()):
        names = frozenset(filter(None, candidates))
        if names:
            return names
    return frozenset()


def _document(passage: Chunk | Reference) -> str | None:
    return passage.rel_path or passage.doc_id


def _stem(passage: Chunk | Reference) -> str | None:
    """Return the part of a chunk's id before `#`, by which many systems name the document."""
    return passage.chunk_id and passage.chunk_id.partition("#")[0]


def _place(reference: Reference) -> str | None:
    """Return `path > heading`, as far as known."""
    parts = filter(None, (_document(reference), reference.heading_path))
    return " > ".join(parts) or None
