"""Claims of an answer as its judge took them: supported, not supported or contradicted, and by which chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pytest_rageval.page.text_diff import word_set
from pytest_rageval.runs.record_texts import CUT

METRICS = ("groundedness", "faithfulness", "claim_support")
"""Judgements that list claims, the first that is there."""


class CheckedClaim(NamedTuple):
    """A statement of the answer.

    chunk            the rank of the chunk that the judge names, else of the one that has most of the claim's words
    is_named         does the judge name the chunk?
    is_contradicted  does the judge say that the chunk says otherwise?
    sentence         what the judge quotes of the chunk
    """

    is_supported: bool
    text: str
    chunk: int | None
    is_named: bool = False
    is_contradicted: bool = False
    sentence: str | None = None


def checked_claims(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> Iterator[CheckedClaim]:
    """The claims that the judge told apart, those without support first.

    `line` of observations.jsonl holds what the judge said of single claims, if it said so: `extra["evidence"]` of its
    judgement. Without it nothing is said but which list a claim stands in, and which chunk is nearest in words.
    """
    judgements = {**(record.get("judgements") or {}), "groundedness": record.get("groundedness")}
    metric = next((name for name in METRICS if _lists_claims(judgements.get(name))), None)
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
    """The rank of the passage that a judge names by its number from 1; None where there is none such."""
    if not isinstance(passage, int) or isinstance(passage, bool):
        return None
    return ranks[passage - 1] if 1 <= passage <= len(ranks) else None


def _evidence(line: Mapping[str, Any] | None, metric: str) -> dict[str, Mapping[str, Any]]:
    """By claim, as results.jsonl cuts it, what the judgement says of it alone; any judge may have written it."""
    judgement = ((line or {}).get("judgements") or {}).get(metric) or {}
    entries = (judgement.get("extra") or {}).get("evidence")
    if not isinstance(entries, list):
        return {}
    whole = [entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("claim"), str)]
    return {text: entry for entry in whole for text in (entry["claim"], _as_recorded(entry["claim"]))}


def _as_recorded(claim: str) -> str:
    return claim if len(claim) <= CUT else claim[:CUT] + "…"


def _ranks_of_passages(chunks: Sequence[Mapping[str, Any]], line: Mapping[str, Any] | None) -> list[int]:
    """The rank of each passage that the judge was shown: the top k chunks with a text; see `passages.contexts`."""
    k = (line or {}).get("k")
    return [chunk["rank"] for chunk in chunks[:k] if (chunk["text"] or "").strip()]


class _ChunkWords:
    """The words of the chunks, looked up when the first claim needs them: a judge may name all chunks itself."""

    def __init__(self, chunks: Sequence[Mapping[str, Any]]) -> None:
        self._chunks = chunks

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        return [word_set(chunk["text"] or "") for chunk in self._chunks]

    def nearest(self, claim: str) -> int | None:
        """The rank of the chunk that has most words of a claim, at least half of them."""
        words = word_set(claim)
        shared = [len(words & chunk) for chunk in self._words]
        most = max(shared, default=0)
        return shared.index(most) + 1 if most and most * 2 >= len(words) else None
