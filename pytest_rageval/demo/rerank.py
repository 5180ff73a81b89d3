"""Reranking of the retrieved chunks by their relevance to the question, by a language model or by words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytest_rageval.demo.chunking import NoteChunk
from pytest_rageval.demo.parameters import Ask, LlmError
from pytest_rageval.demo.retrieval import Hit, RetrievedChunks, text_terms

if TYPE_CHECKING:
    from pytest_rageval.demo.llm import Llm

MODEL_PROMPT = "cited-1"
"""Version of the prompts for writing and ranking."""


MOST = 50
"""Chunks to rerank at most, the best retrieved ones; others are dropped."""

LEXICAL = "lexical"
"""The ranker without a model."""


async def rerank(
    ask: Ask, retrieved: RetrievedChunks, rarity: Callable[[str], float], llm: Llm | None
) -> tuple[list[Hit], dict[str, Any]]:
    """Return the retrieved chunks by relevance, their score, and `debug.rerank`.

    Those below `rerank_threshold` or `min_score` are dropped. If the model fails, all scores are lexical: those of two
    scales are never mixed. Equal ones keep their order.
    """
    hits = retrieved.hits[:MOST]
    scores: list[float] | None = None
    debug: dict[str, Any] = {"by": LEXICAL, "threshold": ask.rerank_threshold}
    if llm is not None and hits:
        try:
            scores = await llm.relevance(ask, [hit.chunk for hit in hits])
            debug["by"] = llm.name
        except LlmError as error:
            debug["problem"] = str(error)
    if scores is None:
        scores = [passage_relevance(retrieved.terms, hit.chunk, rarity) for hit in hits]
    least = max(ask.rerank_threshold, ask.min_score)
    relevant = [Hit(hit.chunk, score) for hit, score in zip(hits, scores, strict=True) if score >= least]
    debug["dropped"] = len(retrieved.hits) - len(relevant)
    return sorted(relevant, key=lambda hit: -hit.score), debug


def passage_relevance(terms: Sequence[str], chunk: NoteChunk, rarity: Callable[[str], float]) -> float:
    """Return coverage to the power 0.6: the share of the terms in text, headings and folder, weighted by their rarity.

    The power is for questions of many parts: a chunk that covers a third of the question reaches the threshold.
    """
    present = {*text_terms(f"{chunk.heading_path} {chunk.folder} {chunk.text}")}
    total = math.fsum(map(rarity, terms))
    covered = math.fsum(rarity(term) for term in terms if term in present)
    return round((covered / total) ** 0.6, 6) if total else 0.0
