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
    """A claim of the answer."""

    is_supported: bool
    text: str
    chunk: int | None
    """The rank of the chunk that the judge names, else of the one with most of the claim's words."""
    is_named: bool = False
    """The judge names the chunk."""
    is_contradicted: bool = False
    """The judge finds that the chunk contradicts the claim."""
    sentence: str | None = None
    """The judge's quotation of the chunk."""


def checked_claims(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> Iterator[CheckedClaim]:
    """Yield the claims that the judge separated, unsupported ones first.

    `line` of observations.jsonl may hold what the judge wrote on single claims: `extra["evidence"]` of its judgement.
    Without it a claim has only the list that it is in, and the chunk that is nearest in words.
    """
    judgements = {**(record.get("judgements") or {}), "groundedness": record.get("groundedness")}
    metric = _metric_with_claims(judgements)
    if metric is None:
        return
    evidence = _evidence(line, metric)
    chunks = record["retrieved_chunks"]
    # A judge counts the passages that it read: the top k chunks with a text; see `passages.contexts`.
    read_chunks = chunks[: (line or {}).get("k")]
    ranks = [chunk["rank"] for chunk in read_chunks if (chunk["text"] or "").strip()]
    words: list[frozenset[str]] = []
    for name, is_supported in LISTS.items():
        for text in judgements[metric].get(name) or ():
            if text is None:
                continue
            about = evidence.get(text, {})
            named = _named_rank(about.get("passage"), ranks)
            chunk = named
            if named is None:  # a judge may name all chunks itself: their words are split only if it does not
                words = words or [word_set(chunk["text"] or "") for chunk in chunks]
                chunk = _nearest(text, words)
            sentence = about.get("sentence")
            yield CheckedClaim(
                is_supported,
                text,
                chunk,
                is_named=named is not None,
                is_contradicted=not is_supported and about.get("verdict") == "contradicted",
                sentence=sentence if isinstance(sentence, str) and sentence else None,
            )


def _metric_with_claims(judgements: Mapping[str, Any]) -> str | None:
    """Return the preferred metric whose judgement lists claims."""
    for metric in CLAIM_METRICS:
        judgement = judgements.get(metric) or {}
        if any(judgement.get(name) for name in LISTS):
            return metric
    return None


def _named_rank(passage: Any, ranks: Sequence[int]) -> int | None:
    """Return the rank of the passage that a judge names by its number, from 1; None if it names none."""
    if not isinstance(passage, int) or isinstance(passage, bool):
        return None
    if not 1 <= passage <= len(ranks):
        return None
    return ranks[passage - 1]


def _evidence(line: Mapping[str, Any] | None, metric: str) -> dict[str, Mapping[str, Any]]:
    """Return the judgement's entry on each claim, as results.jsonl cuts the claim; any judge may have written it."""
    judgement = ((line or {}).get("judgements") or {}).get(metric) or {}
    entries = (judgement.get("extra") or {}).get("evidence")
    found: dict[str, Mapping[str, Any]] = {}
    if not isinstance(entries, list):
        return found
    for entry in entries:
        claim = entry.get("claim") if isinstance(entry, Mapping) else None
        if not isinstance(claim, str):
            continue
        found[claim] = entry
        if len(claim) > CUT:
            found[claim[:CUT] + "…"] = entry
    return found


def _nearest(claim: str, chunks: Sequence[frozenset[str]]) -> int | None:
    """Return the rank of the chunk with most words of a claim, at least half of them."""
    words = word_set(claim)
    shared = [len(words & chunk) for chunk in chunks]
    most = max(shared, default=0)
    if not most or most * 2 < len(words):
        return None
    return shared.index(most) + 1
