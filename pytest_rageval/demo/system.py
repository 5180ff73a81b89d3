"""The demo system: answers a question with the response of the native contract, references and debug part included."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.demo.answer import CHUNKS_READ, PROMPT, Written, checked, write
from pytest_rageval.demo.chunking import CHUNKER, NoteChunk
from pytest_rageval.demo.draft import PROMPT as LLM_PROMPT
from pytest_rageval.demo.draft import LanguageModel
from pytest_rageval.demo.folders import Folders
from pytest_rageval.demo.index import Hit
from pytest_rageval.demo.library import Built, Library
from pytest_rageval.demo.parameters import Ask, BadRequest
from pytest_rageval.demo.rerank import Reranked, passage, rerank
from pytest_rageval.demo.retrieval import Retrieved, milliseconds_since, retrieve

HERE = Path(__file__).parent


class System:
    """The demo over a corpus, its own by default; see `create_app`.

    May be used from any thread and event loop; with a language model, from that model's loop only.
    """

    def __init__(self, corpus: Path | None = None, graph: Path | None = None, llm: LanguageModel | None = None) -> None:
        if corpus is None:
            corpus, graph = HERE / "corpus", graph or HERE / "knowledge" / "graph.toml"
        self.library = Library(corpus, graph)
        self._llm = llm

    async def ask(self, ask: Ask, built: Built, *, debug: bool) -> dict[str, Any]:
        """The response to a question over the index that the library has for it, ready for JSON.

        The same for the same question, apart from `debug.latency` and from what a language model says. Waits for
        nothing but that model. Raises `BadRequest`, and LlmError where the model was to write and did not.
        """
        _check_scope(ask, built.folders)
        retrieved = retrieve(ask, built.index, built.folders)
        reranked = await rerank(ask, retrieved, built.index.rarity, self._llm) if ask.rerank else None
        hits = retrieved.hits if reranked is None else reranked.hits
        began = time.perf_counter()
        written = await self._written(ask, retrieved.terms, hits, built)
        generation_ms = milliseconds_since(began)
        response: dict[str, Any] = {
            "answer": written.text,
            "references": [_place(chunk) for chunk in written.cited],
            "abstained": written.abstain_reason is not None,
            "abstain_reason": written.abstain_reason,
        }
        if debug:
            response["debug"] = _debug(ask, built, retrieved, generation_ms)
            if reranked is not None:
                _add_reranking(response["debug"], reranked, ask.rerank_threshold)
            if self._llm is not None:
                response["debug"]["versions"] |= {"llm": self._llm.name, "prompt": LLM_PROMPT}
            if written.remarks:
                response["debug"]["remarks"] = list(written.remarks)
        return response

    async def _written(self, ask: Ask, terms: Sequence[str], hits: Sequence[Hit], built: Built) -> Written:
        if self._llm is None or not hits:
            return write(ask.question, terms, hits, built.index.rarity)
        shown = [hit.chunk for hit in hits[:CHUNKS_READ]]
        draft = await self._llm.write(ask.question, ask.history, [passage(chunk) for chunk in shown])
        return checked(ask.question, draft, shown)


def _check_scope(ask: Ask, folders: Folders) -> None:
    """Refuses a vault or a folder that no chunk is in: it would silently answer nothing."""
    problems = [
        f"unknown vault {name!a}; known are {', '.join(folders.vaults)}"
        for name in ask.vaults
        if name not in folders.vaults
    ]
    problems += [
        f"unknown folder {name!a}; known are {', '.join(folders.names)}"
        for name in ask.folders
        if not folders.has(name)
    ]
    if problems:
        raise BadRequest(*problems)


def _debug(ask: Ask, built: Built, retrieved: Retrieved, generation_ms: float) -> dict[str, Any]:
    debug: dict[str, Any] = {
        "retrieved_chunks": [_retrieved_chunk(rank, hit) for rank, hit in enumerate(retrieved.hits, start=1)],
        "folder_selection": {
            "mode": ask.folder_mode,
            "folders": list(retrieved.selection.folders) if retrieved.selection else [],
            "reasoning": retrieved.selection.reasoning if retrieved.selection else "folder selection is off",
            "fallback": retrieved.fallback,
        },
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
    if built.graph is not None:
        debug["trace"] = built.graph.understand(ask.question).trace()
    return debug


def _add_reranking(debug: dict[str, Any], reranked: Reranked, threshold: float) -> None:
    """Puts the chunks that were relevant in place of those that were retrieved, in their own order."""
    retrieved = {chunk["chunk_id"]: chunk for chunk in debug["retrieved_chunks"]}
    debug["retrieved_chunks"] = [
        retrieved[hit.chunk.chunk_id] | {"score_rerank": hit.score, "score_final": hit.score, "rank": rank}
        for rank, hit in enumerate(reranked.hits, start=1)
    ]
    debug["latency"]["rerank_ms"] = reranked.rerank_ms
    debug["rerank"] = {"by": reranked.by, "threshold": threshold, "dropped": reranked.dropped}
    if reranked.problem is not None:
        debug["rerank"]["problem"] = reranked.problem


def _retrieved_chunk(rank: int, hit: Hit) -> dict[str, Any]:
    return _place(hit.chunk) | {
        "start_line": hit.chunk.start_line,
        "end_line": hit.chunk.end_line,
        "score_lexical": hit.score,
        # Without embeddings the lexical weight counts as 1, whatever weights are asked for.
        "score_final": hit.score,
        "text": hit.chunk.text,
        "rank": rank,
        "token_count": hit.chunk.token_count,
    }


def listed_chunk(chunk: NoteChunk) -> dict[str, Any]:
    """A chunk as the list of the index gives it."""
    return _place(chunk) | {"text": chunk.text, "token_count": chunk.token_count}


def _place(chunk: NoteChunk) -> dict[str, Any]:
    """Where a chunk stands: what references and retrieved chunks both say of it."""
    place = {
        "chunk_id": chunk.chunk_id,
        "vault": chunk.vault,
        "rel_path": chunk.rel_path,
        "heading_path": chunk.heading_path,
    }
    return place | {key: chunk.meta[key] for key in ("doc_id", "date", "author") if chunk.meta.get(key)}
