"""The claims of an answer as its judge separated them, each with the chunk that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pytest_rageval.runs.records import CUT
from pytest_rageval.views.text_diff import word_set

CLAIM_METRICS = ("groundedness", "faithfulness", "claim_support")
"""Judgements that list claims, by preference."""


class CheckedClaim(NamedTuple):
    """A claim of the answer.

    chunk            the rank of the chunk that the judge names, else of the one with most of the claim's words
    is_named         the judge names the chunk
    is_contradicted  the judge finds that the chunk contradicts the claim
    sentence         the judge's quotation of the chunk
    """

    is_supported: bool
    text: str
    chunk: int | None
    is_named: bool = False
    is_contradicted: bool = False
    sentence: str | None = None


def checked_claims(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> Iterator[CheckedClaim]:
    """Yield the claims that the judge separated, unsupported ones first.

    `line` of observations.jsonl may hold what the judge wrote on single claims: `extra["evidence"]` of its judgement.
    Without it a claim has only the list that it is in, and the chunk that is nearest in words.
    """
    judgements = {**(record.get("judgements") or {}), "groundedness": record.get("groundedness")}
    metric = next((name for name in CLAIM_METRICS if _lists_claims(judgements.get(name))), None)
    if metric is None:
        return
    evidence = _evidence(line, metric)
    chunks = record["retrieved_chunks"]
    ranks = _ranks_of_passages(chunks, line)
    words = _ChunkWords(chunks)
    for name, is_supported in (("unsupported_claims", False), ("supported_claims", True)):
        for text in judgements[metric].get(name) or ():
            if text is not None:
                yield _checked(text, evidence.get(text, {}), ranks, words, is_supported=is_supported)


def _lists_claims(judgement: Mapping[str, Any] | None) -> bool:
    return bool(judgement and (judgement.get("supported_claims") or judgement.get("unsupported_claims")))


def _checked(
    text: str,
    evidence: Mapping[str, Any],
    ranks: Sequence[int],
    words: _ChunkWords,
    *,
    is_supported: bool,
) -> CheckedClaim:
    sentence, named = evidence.get("sentence"), _named(evidence.get("passage"), ranks)
    is_contradicted = not is_supported and evidence.get("verdict") == "contradicted"
    chunk = words.nearest(text) if named is None else named
    quoted = sentence if isinstance(sentence, str) and sentence else None
    return CheckedClaim(is_supported, text, chunk, named is not None, is_contradicted, quoted)


def _named(passage: object, ranks: Sequence[int]) -> int | None:
    """Return the rank of the passage that a judge names by its number from 1; None for any other value."""
    if not isinstance(passage, int) or isinstance(passage, bool):
        return None
    return ranks[passage - 1] if 1 <= passage <= len(ranks) else None


def _evidence(line: Mapping[str, Any] | None, metric: str) -> dict[str, Mapping[str, Any]]:
    """Return the judgement's entry on each claim, as results.jsonl cuts the claim; any judge may have written it."""
    judgement = ((line or {}).get("judgements") or {}).get(metric) or {}
    entries = (judgement.get("extra") or {}).get("evidence")
    if not isinstance(entries, list):
        return {}
    whole = [entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("claim"), str)]
    return {text: entry for entry in whole for text in (entry["claim"], _as_recorded(entry["claim"]))}


def _as_recorded(claim: str) -> str:
    return claim if len(claim) <= CUT else claim[:CUT] + "…"


def _ranks_of_passages(chunks: Sequence[Mapping[str, Any]], line: Mapping[str, Any] | None) -> list[int]:
    """Return the ranks of the passages that the judge read: the top k chunks with a text; see `passages.contexts`."""
    k = (line or {}).get("k")
    return [chunk["rank"] for chunk in chunks[:k] if (chunk["text"] or "").strip()]


class _ChunkWords:
    """The words of the chunks, computed for the first claim that needs them: a judge may name all chunks itself."""

    def __init__(self, chunks: Sequence[Mapping[str, Any]]) -> None:
        self._chunks = chunks

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        return [word_set(chunk["text"] or "") for chunk in self._chunks]

    def nearest(self, claim: str) -> int | None:
        """Return the rank of the chunk with most words of a claim, at least half of them."""
        words = word_set(claim)
        shared = [len(words & chunk) for chunk in self._words]
        most = max(shared, default=0)
        return shared.index(most) + 1 if most and most * 2 >= len(words) else None
