"""The demo system: its indexes, and the response to a question with references and debug part."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_rageval.demo.answer import CHUNKS_READ, PROMPT, WrittenAnswer, checked, write
from pytest_rageval.demo.chunking import CHUNKER, OVER_BUDGET, CutNote, NoteChunk, TokenBudget, cut_note
from pytest_rageval.demo.knowledge import Graph, load_graph
from pytest_rageval.demo.note_files import Note, read_notes
from pytest_rageval.demo.parameters import Ask, BadRequest, IndexBudget, merged_budget
from pytest_rageval.demo.rerank import MODEL_PROMPT, rerank
from pytest_rageval.demo.retrieval import Folders, Hit, Index, RetrievedChunks, milliseconds_since, retrieve
from pytest_rageval.demo.rewriting import reply_to_courtesy, standalone_question

if TYPE_CHECKING:
    from pytest_rageval.demo.llm import Llm

INDEXES_KEPT = 6
"""Indexes to keep, since a sweep returns to its budgets; the oldest one is dropped."""
DOC_TYPE = "markdown"


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """One index and what belongs to it. `graph` is None if the corpus has none."""

    index: Index
    folders: Folders
    coverage: dict[str, Any]
    graph: Graph | None


class Library:
    """The notes of a corpus and an index for each requested budget. May be used from any thread."""

    def __init__(self, corpus: Path, graph: Path | None) -> None:
        self._corpus = corpus
        self._graph_path = graph
        self._graph: Graph | None = None
        self._notes: tuple[Note, ...] | None = None
        self._budget = TokenBudget()
        self._built: dict[TokenBudget, BuiltIndex] = {}
        self._lock = threading.RLock()

    def built(self, ask: Ask | None = None) -> BuiltIndex | None:
        """Return the index for this question if it is built; never wait. None stands for no question."""
        return self._built.get(self._budget_of(ask))

    def index_for(self, ask: Ask | None = None) -> BuiltIndex:
        """Return the index with the budget of this question, built if necessary. Raises `BadRequest` and OSError."""
        budget = self._budget_of(ask)
        with self._lock:
            if budget not in self._built:
                self._built[budget] = self._build(budget)
                if len(self._built) > INDEXES_KEPT:
                    del self._built[next(iter(self._built))]
            return self._built[budget]

    def rebuild(self, wanted: IndexBudget) -> BuiltIndex:
        """Read the corpus again; the given parts of the budget become the defaults."""
        with self._lock:
            self._budget = merged_budget(self._budget, wanted)
            self._notes = None
            self._built.clear()
            return self.index_for()

    def _budget_of(self, ask: Ask | None) -> TokenBudget:
        return self._budget if ask is None else merged_budget(self._budget, ask)

    def _build(self, budget: TokenBudget) -> BuiltIndex:
        if self._notes is None:
            self._notes = read_notes(self._corpus)
            self._graph = load_graph(self._graph_path) if self._graph_path else None
        cuts = [cut_note(note, budget) for note in self._notes]
        chunks = list(chain.from_iterable(cut.chunks for cut in cuts))
        index = Index(chunks, budget)
        return BuiltIndex(index, Folders(chunks), coverage(self._notes, cuts, budget, index.version), self._graph)


def coverage(notes: Sequence[Note], cuts: Sequence[CutNote], budget: TokenBudget, version: str) -> dict[str, Any]:
    """Return `debug.indexing_coverage`: counts, reasons, sizes and versions; `cuts` holds the result for each note.

    `chunks_embedded` are those in the index, which here is one of words: the name is that of the contract.
    """
    without = [(note, why_empty(note, cut)) for note, cut in zip(notes, cuts, strict=True) if not cut.chunks]
    reasons = Counter(reason for _, reason in without)
    chunks = chain.from_iterable(cut.chunks for cut in cuts)
    sizes = sorted(chunk.token_count for chunk in chunks)
    embedded = len(sizes)
    skipped = sum(cut.skipped for cut in cuts)
    of_type = {
        "processed": len(notes),
        "with_0_chunks": len(without),
        "chunks_embedded": embedded,
        "chunks_skipped": skipped,
    }
    named = [{"vault": note.vault, "rel_path": note.rel_path, "reason": reason} for note, reason in without]
    return {
        "docs_processed": len(notes),
        "docs_with_0_chunks": len(without),
        "docs_with_0_chunks_reasons": dict(sorted(reasons.items())),
        "docs_without_chunks": named,
        "chunks_attempted": embedded + skipped,
        "chunks_embedded": embedded,
        "chunks_skipped": skipped,
        "chunks_skipped_reasons": {OVER_BUDGET: skipped} if skipped else {},
        "chunk_token_stats": _token_stats(sizes),
        "coverage_by_doc_type": {DOC_TYPE: of_type},
        "chunker_version": CHUNKER,
        "index_version": version,
        "parameters": budget._asdict(),
    }


def _token_stats(sizes: Sequence[int]) -> dict[str, float]:
    """Return the figures of sorted sizes; none without chunks."""
    if not sizes:
        return {}
    n = len(sizes)
    nearest_rank = math.ceil(0.95 * n) - 1
    return {"min": sizes[0], "max": sizes[-1], "mean": round(sum(sizes) / n, 2), "p95": sizes[nearest_rank]}


def why_empty(note: Note, cut: CutNote) -> str:
    """Return why a note has no chunk."""
    if note.problem is not None or cut.skipped:
        return note.problem or OVER_BUDGET
    return "headings_only" if any(line.strip() for line in note.lines) else "empty"


async def answer(ask: Ask, built: BuiltIndex, llm: Llm | None, *, debug: bool) -> dict[str, Any]:
    """Answer a question over an index, in words of the model if there is one; the response is ready for JSON.

    The same for the same question, apart from `debug.latency` and from a language model's text. Waits for nothing but
    that model. Raises `BadRequest`, and LlmError if the model fails to write.
    """
    _check_scope(ask, built.folders)
    courtesy = reply_to_courtesy(ask.question)
    question = standalone_question(ask)
    # Thanks ask nothing, so nothing is looked up.
    retrieved = retrieve("" if courtesy else question, ask, built.index, built.folders)
    hits = retrieved.hits
    reranking = None
    began = time.perf_counter()
    if ask.rerank:
        hits, reranking = await rerank(ask, retrieved, built.index.rarity, llm)
    rerank_ms = milliseconds_since(began)
    began = time.perf_counter()
    if courtesy:
        written = WrittenAnswer(courtesy)
    elif llm is None or not hits:
        written = write(question, retrieved.terms, hits, built.index.rarity)
    else:
        shown = [hit.chunk for hit in hits[:CHUNKS_READ]]
        written = checked(ask.question, await llm.write(ask, shown), shown)
    generation_ms = milliseconds_since(began)
    response: dict[str, Any] = {
        "answer": written.text,
        "references": [_place(chunk) for chunk in written.cited],
        "abstained": written.abstain_reason is not None,
        "abstain_reason": written.abstain_reason,
    }
    if debug:
        part = _debug(ask, question, built, retrieved, generation_ms)
        if reranking is not None:
            part["retrieved_chunks"] = _reranked_chunks(part["retrieved_chunks"], hits)
            part["latency"]["rerank_ms"] = rerank_ms
            part["rerank"] = reranking
        if llm is not None:
            part["versions"] |= {"llm": llm.name, "prompt": MODEL_PROMPT}
        if written.remarks:
            part["remarks"] = list(written.remarks)
        response["debug"] = part
    return response


def _reranked_chunks(retrieved: Sequence[dict[str, Any]], hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Return the retrieved chunks that reranking kept, with their new scores and ranks."""
    by_id = {chunk["chunk_id"]: chunk for chunk in retrieved}
    chunks: list[dict[str, Any]] = []
    for rank, hit in enumerate(hits, start=1):
        scores = {"score_rerank": hit.score, "score_final": hit.score, "rank": rank}
        chunks.append(by_id[hit.chunk.chunk_id] | scores)
    return chunks


def _check_scope(ask: Ask, folders: Folders) -> None:
    """Refuse a vault or a folder without chunks: it would silently answer nothing."""
    vaults = ", ".join(folders.vaults)
    names = ", ".join(folders.names)
    problems = [f"unknown vault {name!a}; known are {vaults}" for name in ask.vaults if name not in folders.vaults]
    problems += [f"unknown folder {name!a}; known are {names}" for name in ask.folders if not folders.has(name)]
    if problems:
        raise BadRequest(*problems)


def _debug(
    ask: Ask, question: str, built: BuiltIndex, retrieved: RetrievedChunks, generation_ms: float
) -> dict[str, Any]:
    folder_selection: dict[str, Any] = {
        "mode": ask.folder_mode,
        "folders": [],
        "reasoning": "folder selection is off",
        "fallback": retrieved.fallback,
    }
    if retrieved.selection is not None:
        folder_selection["folders"] = list(retrieved.selection.folders)
        folder_selection["reasoning"] = retrieved.selection.reasoning
    debug: dict[str, Any] = {
        "retrieved_chunks": [_retrieved_chunk(rank, hit) for rank, hit in enumerate(retrieved.hits, start=1)],
        "folder_selection": folder_selection,
        "latency": {
            "folder_selection_ms": retrieved.folder_selection_ms,
            "retrieval_ms": retrieved.retrieval_ms,
            "generation_ms": generation_ms,
        },
        "indexing_coverage": built.coverage,
        "versions": {
            "llm": "extractive",
            "embedding": None,
            "prompt": PROMPT,
            "chunker": CHUNKER,
            "index": built.index.version,
        },
    }
    if question != ask.question:
        debug["rewritten_question"] = question
    if built.graph is not None:
        debug["trace"] = built.graph.trace(question)
    return debug


def _retrieved_chunk(rank: int, hit: Hit) -> dict[str, Any]:
    # Without embeddings the lexical weight counts as 1, whatever weights are asked for.
    scores = {"score_lexical": hit.score, "score_final": hit.score, "rank": rank}
    return listed_chunk(hit.chunk) | {"start_line": hit.chunk.start_line, "end_line": hit.chunk.end_line} | scores


def listed_chunk(chunk: NoteChunk) -> dict[str, Any]:
    """Return a chunk as in the list of the index."""
    return _place(chunk) | {"text": chunk.text, "token_count": chunk.token_count}


def _place(chunk: NoteChunk) -> dict[str, Any]:
    place = {
        "chunk_id": chunk.chunk_id,
        "vault": chunk.vault,
        "rel_path": chunk.rel_path,
        "heading_path": chunk.heading_path,
    }
    return place | {key: chunk.meta[key] for key in ("doc_id", "date", "author") if chunk.meta.get(key)}
