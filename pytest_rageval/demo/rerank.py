"""Reranking of the retrieved chunks by their relevance to the question, by a language model or by words."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pytest_rageval.demo.chunking import NoteChunk
from pytest_rageval.demo.parameters import Ask, LlmError
from pytest_rageval.demo.retrieval import Hit, RetrievedChunks, milliseconds_since, text_terms

if TYPE_CHECKING:
    from pytest_rageval.demo.llm import Llm

MODEL_PROMPT = "cited-1"
"""Version of the prompts for writing and ranking."""


MOST = 50
"""Chunks to rerank at most, the best retrieved ones; others are dropped."""

FROM_ADJACENCY = 0.2
"""The part of the lexical score that depends on adjacency; the rest depends on coverage."""

NEAR = 3
"""Two terms are adjacent if they are at most this many places apart, in either order."""

LEXICAL = "lexical"
"""The ranker without a model."""

_BORDER = ("",) * NEAR
"""A gap between headings, folder and text: the end of one is not adjacent to the beginning of the next."""


class RerankedChunks(NamedTuple):
    """The relevant chunks, best first; the score of each hit is its relevance.

    `by` names the model, or is LEXICAL; `problem` says why a model that was asked did not rank.
    """

    hits: list[Hit]
    by: str
    dropped: int
    problem: str | None
    rerank_ms: float


async def rerank(
    ask: Ask, retrieved: RetrievedChunks, rarity: Callable[[str], float], llm: Llm | None
) -> RerankedChunks:
    """Rank the retrieved chunks by relevance, without those below `rerank_threshold` or `min_score`.

    If the model fails, all scores are lexical: those of two scales are never mixed. Equal ones keep their order.
    """
    began = time.perf_counter()
    hits = retrieved.hits[:MOST]
    by, problem, scores = LEXICAL, None, None
    if llm is not None and hits:
        try:
            scores = await llm.relevance(ask, [hit.chunk for hit in hits])
            by = llm.name
        except LlmError as error:
            problem = str(error)
    if scores is None:
        scores = [passage_relevance(retrieved.terms, hit.chunk, rarity) for hit in hits]
    least = max(ask.rerank_threshold, ask.min_score)
    relevant = [Hit(hit.chunk, score) for hit, score in zip(hits, scores, strict=True) if score >= least]
    relevant.sort(key=lambda hit: -hit.score)
    return RerankedChunks(relevant, by, len(retrieved.hits) - len(relevant), problem, milliseconds_since(began))


def passage_relevance(terms: Sequence[str], chunk: NoteChunk, rarity: Callable[[str], float]) -> float:
    """Return the share of the question that a chunk covers, from 0 to 1: √(0.8 × coverage + 0.2 × adjacency).

    coverage    share of the question's terms in text, headings and folder, each weighted by its rarity
    adjacency   the same share of the pairs of neighbouring terms, of those that stand together there too; a question of
                one term has none, and its coverage counts alone

    The root is for questions of many parts: a chunk that covers a quarter of the question reaches the threshold.
    """
    parts = map(text_terms, (chunk.heading_path, chunk.folder, chunk.text))
    places: defaultdict[str, set[int]] = defaultdict(set)
    for place, term in enumerate(term for part in parts for term in (*part, *_BORDER)):
        places[term].add(place)
    weight = {term: rarity(term) for term in terms}
    coverage = _share((weight[term], term in places) for term in terms)
    pairs = list(pairwise(terms))
    if not pairs:
        return round(math.sqrt(coverage), 6)
    adjacency = _share(
        (
            weight[first] + weight[second],
            any(place + apart in places[second] for place in places[first] for apart in range(-NEAR, NEAR + 1)),
        )
        for first, second in pairs
    )
    return round(math.sqrt((1 - FROM_ADJACENCY) * coverage + FROM_ADJACENCY * adjacency), 6)


def _share(weighed: Iterable[tuple[float, bool]]) -> float:
    total = true = 0.0
    for weight, is_true in weighed:
        total += weight
        true += weight * is_true
    return true / total if total else 0.0
