"""The indexes by their parameters: each is built once, at the first need, and kept for later requests."""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.demo.chunking import CHUNKER, Cut, TokenBudget, cut_note
from pytest_rageval.demo.folders import Folders
from pytest_rageval.demo.index import Index
from pytest_rageval.demo.knowledge import Graph, load_graph
from pytest_rageval.demo.notes import Note, read_notes
from pytest_rageval.demo.parameters import Ask, merged_budget

INDEXES_KEPT = 6
"""A sweep comes back to its budgets; the index used longest ago goes first."""
DOC_TYPE = "markdown"


@dataclass(frozen=True, slots=True)
class Built:
    """One index and what belongs to it. `graph` is None where the corpus has none."""

    index: Index
    folders: Folders
    coverage: dict[str, Any]
    graph: Graph | None


class Library:
    """The notes of a corpus and an index for each budget asked for. May be used from any thread."""

    def __init__(self, corpus: Path, graph: Path | None) -> None:
        self._corpus = corpus
        self._graph_path = graph
        self._graph: Graph | None = None
        self._notes: tuple[Note, ...] | None = None
        self._budget = TokenBudget()
        self._built: OrderedDict[TokenBudget, Built] = OrderedDict()
        self._lock = threading.RLock()

    def is_ready(self, ask: Ask | None = None) -> bool:
        """True if the index for this question is there, and free; never waits. None stands for no question."""
        budget = self._budget_of(ask)
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return budget in self._built
        finally:
            self._lock.release()

    def index_for(self, ask: Ask | None = None) -> Built:
        """The index with the budget of this question, built now if need be. Raises `BadRequest` and OSError."""
        budget = self._budget_of(ask)
        with self._lock:
            if budget not in self._built:
                self._built[budget] = self._build(budget)
                while len(self._built) > INDEXES_KEPT:
                    self._built.popitem(last=False)
            self._built.move_to_end(budget)
            return self._built[budget]

    def rebuild(self, chunk_max_tokens: int | None = None, chunk_overlap: int | None = None) -> Built:
        """Reads the corpus afresh; the given parts of the budget stay for those who name none."""
        with self._lock:
            self._budget = merged_budget(self._budget, chunk_max_tokens, chunk_overlap)
            self._notes = None
            self._built.clear()
            return self.index_for()

    def _budget_of(self, ask: Ask | None) -> TokenBudget:
        if ask is None:
            return self._budget
        return merged_budget(self._budget, ask.chunk_max_tokens, ask.chunk_overlap)

    def _build(self, budget: TokenBudget) -> Built:
        if self._notes is None:
            self._notes = read_notes(self._corpus)
            self._graph = load_graph(self._graph_path) if self._graph_path else None
        cuts = [cut_note(note, budget) for note in self._notes]
        chunks = [chunk for cut in cuts for chunk in cut.chunks]
        index = Index(chunks, budget)
        return Built(index, Folders(chunks), coverage(self._notes, cuts, budget, index.version), self._graph)


def coverage(notes: Sequence[Note], cuts: Sequence[Cut], budget: TokenBudget, version: str) -> dict[str, Any]:
    """`debug.indexing_coverage`: counts, reasons, sizes and versions; `cuts` holds what became of each note.

    `chunks_embedded` are those in the index, which here is one of words: the name is that of the contract.
    """
    skipped: Counter[str] = Counter()
    for cut in cuts:
        skipped.update(cut.skipped)
    without = [(note, why_empty(note, cut)) for note, cut in zip(notes, cuts, strict=True) if not cut.chunks]
    embedded = sum(len(cut.chunks) for cut in cuts)
    sizes = sorted(chunk.token_count for cut in cuts for chunk in cut.chunks)
    return {
        "docs_processed": len(notes),
        "docs_with_0_chunks": len(without),
        "docs_with_0_chunks_reasons": dict(sorted(Counter(reason for _, reason in without).items())),
        "docs_without_chunks": [
            {"vault": note.vault, "rel_path": note.rel_path, "reason": reason} for note, reason in without
        ],
        "chunks_attempted": embedded + skipped.total(),
        "chunks_embedded": embedded,
        "chunks_skipped": skipped.total(),
        "chunks_skipped_reasons": dict(sorted(skipped.items())),
        "chunk_token_stats": _sizes(sizes),
        "coverage_by_doc_type": {
            DOC_TYPE: {
                "processed": len(notes),
                "with_0_chunks": len(without),
                "chunks_embedded": embedded,
                "chunks_skipped": skipped.total(),
            }
        },
        "chunker_version": CHUNKER,
        "index_version": version,
        "parameters": budget._asdict(),
    }


def why_empty(note: Note, cut: Cut) -> str:
    """Why a note has no chunk."""
    if note.problem is not None:
        return note.problem
    if cut.skipped:
        return max(sorted(cut.skipped), key=cut.skipped.__getitem__)
    return "headings_only" if any(line.strip() for line in note.lines) else "empty"


def _sizes(sizes: Sequence[int]) -> dict[str, float]:
    """Least, most, mean and 95th percentile (nearest rank) of the chunks' tokens; empty where there is no chunk."""
    if not sizes:
        return {}
    return {
        "min": sizes[0],
        "max": sizes[-1],
        "mean": round(sum(sizes) / len(sizes), 2),
        "p95": sizes[math.ceil(0.95 * len(sizes)) - 1],
    }
