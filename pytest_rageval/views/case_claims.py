"""The claims of an answer as its judge separated them, each with the chunk that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.runs.records.record_texts import CUT
from pytest_rageval.views.text_diff import word_set

CLAIM_METRICS = ("groundedness", "faithfulness", "claim_support")
"""Judgements that list claims, by preference."""
LISTS = {"unsupported_claims": False, "supported_claims": True}
"""Their lists of claims, and whether these are supported."""


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
    listing = (name for name in CLAIM_METRICS if any((judgements.get(name) or {}).get(claims) for claims in LISTS))
    if (metric := next(listing, None)) is None:
        return
    evidence, chunks = _evidence(line, metric), record["retrieved_chunks"]
    # A judge counts the passages that it read: the top k chunks with a text; see `passages.contexts`.
    ranks = [chunk["rank"] for chunk in chunks[: (line or {}).get("k")] if (chunk["text"] or "").strip()]
    words: list[frozenset[str]] = []
    for name, is_supported in LISTS.items():
        for text in (claim for claim in judgements[metric].get(name) or () if claim is not None):
            about = evidence.get(text, {})
            passage: Any = about.get("passage")
            sentence = about.get("sentence")
            is_number = isinstance(passage, int) and not isinstance(passage, bool)
            named = ranks[passage - 1] if is_number and 1 <= passage <= len(ranks) else None
            if named is None:  # a judge may name all chunks itself
                words = words or [word_set(chunk["text"] or "") for chunk in chunks]
            yield CheckedClaim(
                is_supported,
                text,
                _nearest(text, words) if named is None else named,
                named is not None,
                not is_supported and about.get("verdict") == "contradicted",
                sentence if isinstance(sentence, str) and sentence else None,
            )


def _evidence(line: Mapping[str, Any] | None, metric: str) -> dict[str, Mapping[str, Any]]:
    """Return the judgement's entry on each claim, as results.jsonl cuts the claim; any judge may have written it."""
    judgement = ((line or {}).get("judgements") or {}).get(metric) or {}
    entries = (judgement.get("extra") or {}).get("evidence")
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(claim := entry.get("claim"), str):
            found[claim] = found[claim if len(claim) <= CUT else claim[:CUT] + "…"] = entry
    return found


def _nearest(claim: str, chunks: Sequence[frozenset[str]]) -> int | None:
    """Return the rank of the chunk with most words of a claim, at least half of them."""
    words = word_set(claim)
    shared = [len(words & chunk) for chunk in chunks]
    most = max(shared, default=0)
    return shared.index(most) + 1 if most and most * 2 >= len(words) else None
