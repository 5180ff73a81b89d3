"""Indexing coverage: what of the corpus got into the index, what did not, and why; equal for every question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pytest_rageval.demo.chunking import CHUNKER, Cut, TokenBudget
from pytest_rageval.demo.notes import Note

DOC_TYPE = "markdown"


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
