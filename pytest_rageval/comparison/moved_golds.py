"""Golds whose text was retrieved under another path or id than in the run before: no worse retrieval, but other names.

A gold by its path or id alone has no text of its own; the chunk that matched it in the run before has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from pytest_rageval.comparison.case_diff import Record, place_of
from pytest_rageval.language.words import fold
from pytest_rageval.matching.place_change import place_change
from pytest_rageval.runs.causes import GOLD_ELSEWHERE, Cause

Records = Callable[[Set[str]], Mapping[str, Record]]
"""Returns the records of these cases, as far as they exist."""
EXPLAINED = frozenset({"gold_not_retrieved", "gold_partly_retrieved", "no_paths"})
"""Kinds of causes that a gold under another name explains better."""
MOST_CASES = 1000
"""Cases whose records are read: each takes some 10 kB."""
MOST_CHUNKS = 20
LONGEST = 4000
"""Characters of a chunk that are compared: records come from the system, and may be of any length."""
SHINGLE = 20
"""Characters of the pieces that two texts share; pieces of words would say nothing in scripts without spaces."""
ENOUGH = 0.8
"""Share of a text's pieces in another one. Pages of one template share less; a cut elsewhere leaves more."""
SHORTEST = 2 * SHINGLE


def causes_of_moved_golds(
    causes: Iterable[Mapping[str, Any]], keys: Set[str], before: Records, now: Records
) -> dict[str, Cause]:
    """Return a cause for each of these cases whose gold was retrieved under another name than before.

    causes  those of metrics.json, with the keys of their cases
    """
    failing: set[str] = set()
    for cause in causes:
        if cause["kind"] in EXPLAINED:
            failing.update(keys & {*cause["cases"]})
    if not failing:
        return {}
    read = frozenset(sorted(failing)[:MOST_CASES])
    records_before = before(read)
    records_now = now(read & records_before.keys())
    found: dict[str, Cause] = {}
    for key, record in records_now.items():
        change = _first_change(records_before[key], record)
        if change is not None:
            found[key] = Cause(GOLD_ELSEWHERE, change)
    return found


def _first_change(before: Record, now: Record) -> str | None:
    """Return how the name of the first lost gold changed; None if no new chunk has the text of a lost gold."""
    chunks_before = _first_chunks(before)
    chunks_now = _first_chunks(now)
    names = {_name(chunk) for chunk in chunks_before}
    # A chunk that was retrieved before under the same name is no new name of another one.
    new = [chunk for chunk in chunks_now if _name(chunk) not in names]
    texts = [_text(chunk) for chunk in new]
    for gold_chunk in _lost(chunks_before, now["retrieved_chunks"] or ()):
        wanted = _text(gold_chunk)
        for chunk, text in zip(new, texts, strict=True):
            if is_same_text(wanted, text):
                return _change(gold_chunk, chunk)
    return None


def _first_chunks(record: Record) -> Sequence[Record]:
    chunks: Sequence[Record] = record["retrieved_chunks"] or ()
    return chunks[:MOST_CHUNKS]


def _text(chunk: Record) -> str:
    # Records beside a baseline keep the places of chunks alone.
    return fold((chunk.get("text") or "")[:LONGEST])


def _lost(before: Sequence[Record], now: Sequence[Record]) -> Iterator[Record]:
    """Yield the chunks that matched a gold which no chunk matches now."""
    found: set[int] = set()
    for chunk in now:
        found.update(chunk["matches"])
    for chunk in before:
        if not found.issuperset(chunk["matches"]):
            yield chunk


def is_same_text(one: str, other: str) -> bool:
    """Check whether two folded texts are one passage, possibly cut at other places."""
    if one == other:
        return len(one) >= SHINGLE
    shorter, longer = sorted((one.rstrip("…"), other.rstrip("…")), key=len)
    if len(shorter) < SHORTEST:
        return False
    starts = range(0, len(shorter) - SHINGLE + 1, SHINGLE // 2)
    most_missing = (1 - ENOUGH) * len(starts)
    missing = 0
    for start in starts:
        if shorter[start : start + SHINGLE] not in longer:
            missing += 1
            # Most pairs are of different passages, and end after a few pieces.
            if missing > most_missing:
                return False
    return True


def _name(chunk: Record) -> tuple[str, str | None]:
    return place_of(chunk), chunk["chunk_id"]


def _change(gold: Record, chunk: Record) -> str:
    if place_of(gold) == place_of(chunk) or not (gold["rel_path"] or chunk["rel_path"]):
        return "another id"
    return place_change(gold["rel_path"], chunk["rel_path"])
