"""Does this retrieved chunk match that gold? One function turns an answer into hits; retrieval is computed from those.

An anchor matches a chunk of the same path whose heading path starts with the anchor's, heading by heading, and that
quotes one of its snippets. An id matches an equal `chunk_id` or `doc_id`, or begins it where ids are prefixes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from pytest_rageval.model import (
    NOTHING,
    Anchor,
    Answer,
    Chunk,
    EvalCase,
    Gold,
    Judgement,
    Matching,
    Observation,
    Reference,
    Timings,
)
from pytest_rageval.text import fold

GoldBy = Literal["anchors", "ids"]
_NO_TIMINGS = Timings()


def observe(
    case: EvalCase,
    answer: Answer,
    *,
    k: int = 5,
    asked_k: int | None = None,
    judgements: Mapping[str, Judgement] = NOTHING,
    timings: Timings = _NO_TIMINGS,
    trial: int = 0,
    gold_by: GoldBy = "anchors",
) -> Observation:
    """Put case and answer together: chunks in the order of their ranks, matched against the gold."""
    if answer.chunks is not None:
        chunks = in_rank_order(answer.chunks)
        if chunks is not answer.chunks:
            answer = replace(answer, chunks=chunks)
    matching = match(case, answer, gold_by)
    return Observation(case, answer, matching, judgements, k, asked_k, timings, trial)


def in_rank_order(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """Sorted by `rank` where every chunk has one (equal ranks keep their order), else as listed."""
    ranks = [chunk.rank for chunk in chunks if chunk.rank is not None]
    if len(ranks) < len(chunks) or ranks == sorted(ranks):
        return chunks
    return tuple(sorted(chunks, key=lambda chunk: chunk.rank or 0))


def match(case: EvalCase, answer: Answer, gold_by: GoldBy = "anchors") -> Matching:
    """Which golds each retrieved chunk and each reference matches; `hits` are in rank order.

    Golds are never mixed: anchors if the case has any, else ids; `gold_by="ids"` the other way round. Where a snippet
    cannot be looked for (no text was reported, or it was cut), path and heading decide in the system's favour: a gold
    counts as hit, an irrelevant one as avoided, and `flags` says so.
    """
    gold = case.gold
    golds: _Golds = _IdGolds((), are_prefixes=False)
    kind: Literal["anchors", "ids", "none"] = "none"
    ids = _relevant_ids(gold)
    if ids and (gold_by == "ids" or not gold.supports):
        golds, kind = _IdGolds(ids, are_prefixes=gold.ids_are_prefixes), "ids"
    elif gold.supports:
        golds, kind = _AnchorGolds(gold.supports, unsure=True), "anchors"
    chunks = None if answer.chunks is None else in_rank_order(answer.chunks)
    hits = None if chunks is None else tuple([golds.hit_by(chunk, at) for at, chunk in enumerate(chunks, start=1)])
    cited = None
    if answer.references is not None:
        named = _Named(chunks or (), hits or ())
        cited = tuple([_cited(reference, at, golds, named) for at, reference in enumerate(answer.references, start=1)])
    irrelevant, more_flags = _irrelevant(gold, chunks)
    return Matching(kind, golds.count, hits, irrelevant, cited, (*golds.flags(), *more_flags))


def _relevant_ids(gold: Gold) -> tuple[str, ...]:
    """Each id once, those graded above 0 included."""
    ids = gold.chunk_ids or ()
    if gold.relevance:
        ids = (*ids, *(chunk_id for chunk_id, grade in gold.relevance.items() if grade > 0))
    return ids if len(ids) < 2 else tuple(dict.fromkeys(ids))


def _irrelevant(gold: Gold, chunks: tuple[Chunk, ...] | None) -> tuple[tuple[bool, ...] | None, tuple[str, ...]]:
    """For each chunk, whether it should not have come; None where the case names nothing of the kind."""
    if chunks is None or not (gold.irrelevant_supports or gold.irrelevant_ids):
        return None, ()
    places = _AnchorGolds(gold.irrelevant_supports or (), unsure=False)
    ids = _IdGolds(gold.irrelevant_ids or (), are_prefixes=gold.ids_are_prefixes)
    unwanted = tuple([bool(ids.hit_by(chunk, at) or places.hit_by(chunk, at)) for at, chunk in enumerate(chunks, 1)])
    return unwanted, places.flags()


# ── golds ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Golds(Protocol):
    count: int

    def hit_by(self, passage: Chunk | Reference, at: int, borrowed: Sequence[Chunk] = (), /) -> frozenset[int]:
        """The golds matched by a chunk, or by a reference with the chunks that it names, at a 1-based position."""

    def flags(self) -> tuple[str, ...]:
        """What could not be decided, with the positions."""


class _IdGolds:
    """Golds by id: the passage's `chunk_id`, then its `doc_id`, is equal to one or begins with one."""

    def __init__(self, ids: Sequence[str], *, are_prefixes: bool) -> None:
        self.count = len(ids)
        self._index = {wanted: frozenset((index,)) for index, wanted in enumerate(ids)}
        self._prefix_lengths = sorted({len(wanted) for wanted in ids}) if are_prefixes else []

    def hit_by(self, passage: Chunk | Reference, _at: int, _borrowed: Sequence[Chunk] = (), /) -> frozenset[int]:
        found = self._called(passage.chunk_id) if passage.chunk_id is not None else _NONE
        return found if passage.doc_id is None else found | self._called(passage.doc_id)

    def _called(self, name: str) -> frozenset[int]:
        found = self._index.get(name, _NONE)
        for length in self._prefix_lengths:
            # A prefix ends where the id goes on with # or -: t01 matches t01#2 and t01-a, not t010.
            if name[length : length + 1] in ("#", "-"):
                found |= self._index.get(name[:length], _NONE)
        return found

    def flags(self) -> tuple[str, ...]:
        return ()


class _Place(NamedTuple):
    gold: int
    headings: tuple[str, ...]
    snippets: tuple[str, ...]


class _AnchorGolds:
    """Golds by place. `unsure` says what counts where a snippet cannot be looked for."""

    def __init__(self, anchors: Sequence[Anchor], *, unsure: bool) -> None:
        self.count = len(anchors)
        self._unsure = unsure
        self._doubts: dict[str, dict[str, None]] = {}
        self._by_path: dict[str, list[_Place]] = {}
        for index, anchor in enumerate(anchors):
            snippets = tuple(filter(None, map(fold, anchor.snippets)))
            place = _Place(index, headings(anchor.heading_path), snippets)
            self._by_path.setdefault(_path(anchor.rel_path), []).append(place)

    def hit_by(self, passage: Chunk | Reference, at: int, borrowed: Sequence[Chunk] = (), /) -> frozenset[int]:
        if passage.rel_path is None:
            return _NONE
        places = self._by_path.get(_path(passage.rel_path))
        if places is None:
            return _NONE
        came = headings(passage.heading_path or "")
        return frozenset(
            [
                place.gold
                for place in places
                if came[: len(place.headings)] == place.headings
                and (not place.snippets or self._quotes(place.snippets, passage, at, borrowed))
            ]
        )

    def _quotes(
        self, snippets: tuple[str, ...], passage: Chunk | Reference, at: int, borrowed: Sequence[Chunk]
    ) -> bool:
        passages = (passage, *borrowed)
        texts = [one.text for one in passages if one.text is not None]
        for text in texts:
            folded = fold(text)
            if any(snippet in folded for snippet in snippets):
                return True
        if not texts:
            reason = "snippet not looked for, no text was reported"
        elif any(isinstance(one, Chunk) and one.text_truncated for one in passages):
            reason = "snippet not found, but the text was cut"
        else:
            return False
        where = f"{'chunk' if isinstance(passage, Chunk) else 'reference'} {at}"
        self._doubts.setdefault(reason if self._unsure else f"irrelevant gold: {reason}", {})[where] = None
        return self._unsure

    def flags(self) -> tuple[str, ...]:
        return tuple(f"{reason}: {_first_few(list(where))}" for reason, where in self._doubts.items())


def _first_few(where: list[str], few: int = 10) -> str:
    return ", ".join(where[:few]) + (f" and {len(where) - few} more" if len(where) > few else "")


_NONE: frozenset[int] = frozenset()


def headings(heading_path: str) -> tuple[str, ...]:
    """`# Tips > ## Sorting` → ('Tips', 'Sorting'): markers stripped, white space collapsed, empty parts dropped."""
    # The same few headings come again and again; none of those that a cache should not keep is this long.
    return _known_headings(heading_path) if len(heading_path) <= 500 else _read_headings(heading_path)


def _read_headings(heading_path: str) -> tuple[str, ...]:
    parts = unicodedata.normalize("NFC", heading_path).split(">")
    return tuple(filter(None, (" ".join(part.lstrip("# \t").split()) for part in parts)))


_known_headings = lru_cache(maxsize=16_384)(_read_headings)


def _path(rel_path: str) -> str:
    return (rel_path if rel_path.isascii() else unicodedata.normalize("NFC", rel_path)).replace("\\", "/")


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────


class _Named:
    """Finds the retrieved chunks that a reference names: by its chunk_id, else by its path and heading."""

    def __init__(self, chunks: Sequence[Chunk], hits: Sequence[frozenset[int]]) -> None:
        self._by_id: dict[str, list[tuple[Chunk, frozenset[int]]]] = {}
        self._by_place: dict[tuple[str, tuple[str, ...]], list[tuple[Chunk, frozenset[int]]]] = {}
        for chunk, hit in zip(chunks, hits, strict=True):
            if chunk.chunk_id is not None:
                self._by_id.setdefault(chunk.chunk_id, []).append((chunk, hit))
            if chunk.rel_path is not None:
                place = _path(chunk.rel_path), headings(chunk.heading_path or "")
                self._by_place.setdefault(place, []).append((chunk, hit))

    def by(self, reference: Reference) -> Sequence[tuple[Chunk, frozenset[int]]]:
        if reference.chunk_id is not None and reference.chunk_id in self._by_id:
            return self._by_id[reference.chunk_id]
        if reference.rel_path is None:
            return ()
        return self._by_place.get((_path(reference.rel_path), headings(reference.heading_path or "")), ())


def _cited(reference: Reference, at: int, golds: _Golds, named: _Named) -> frozenset[int]:
    """A reference matches what the chunks that it names match; if that is nothing, its own fields decide."""
    found = named.by(reference)
    matched = _NONE.union(*(hit for _, hit in found))
    return matched or golds.hit_by(reference, at, [chunk for chunk, _ in found])
