"""The answers at a point, cut from those at a wider one, and whether that is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_rageval.matching.dialects import ANY_PLACES, PlaceRules
from pytest_rageval.matching.places import GoldBy, observe
from pytest_rageval.model import Chunk, Observation
from pytest_rageval.tune.sweep.grid import Family, Point

Listing = tuple[tuple[object, ...], ...]
"""The chunks of an answer in order, by their identity."""


def why_not_derivable(observations: Iterable[Observation], cuts: Sequence[str]) -> str | None:
    """Return why lists cannot be cut: the system reports no chunks, or no scores; None if they can."""
    for observation in observations:
        chunks = observation.answer.chunks
        if chunks is None:
            return f"no retrieved chunks are reported, as for {observation.case.id}"
        if "min_score" in cuts and any(chunk.score_final is None for chunk in chunks):
            return f"chunks come without score_final, as for {observation.case.id}"
    return None


def cut_to(
    observation: Observation, point: Point, k: int, gold_by: GoldBy, rules: PlaceRules = ANY_PLACES
) -> Observation:
    """Derive a case's observation at a point from the one at the widest point; `k` is the point's."""
    least = point.params.get("min_score")
    chunks: Sequence[Chunk] = observation.answer.chunks or ()
    if least is not None:
        chunks = [chunk for chunk in chunks if chunk.score_final is not None and chunk.score_final >= least]
    answer = replace(observation.answer, chunks=tuple(chunks[:k]))
    return observe(
        observation.case, answer, k=k, asked_k=k, gold_by=gold_by, refusals=observation.refusals, rules=rules
    )


def probe_of(observation: Observation, family: Family, k_of: Callable[[Point], int], gold_by: GoldBy) -> Point:
    """Return the point that best shows whether a case's list is cut: the highest threshold, with a k of its own.

    That is the smallest k for which there is still room below the chunks over the threshold: a system that adds others
    when it finds few fills it. If none has room, the smallest k of all: there a list is cut by number.
    """
    points = family.by_score
    for point in points:
        k = k_of(point)
        chunks = cut_to(observation, point, k + 1, gold_by).answer.chunks or ()
        if len(chunks) < k:
            return point
    return points[0]


def listing(observation: Observation) -> Listing:
    """Return the retrieved chunks in order, with their scores; the text of the answer if no chunks are reported."""
    if observation.answer.chunks is None:
        return ((observation.answer.text,),)
    return tuple(map(_identity, observation.answer.chunks))


def _identity(chunk: Chunk) -> tuple[object, ...]:
    """Return what tells a chunk from another: its id and place, or without an id its text."""
    chunk_id = chunk.chunk_id or chunk.doc_id
    text = None if chunk_id else chunk.text
    return chunk_id, chunk.rel_path, chunk.heading_path, chunk.start_line, chunk.score_final, text


def differing(derived: Mapping[str, Observation], real: Mapping[str, Observation]) -> list[str]:
    """Return the keys of cases that retrieve something else when asked, or could not be asked."""

    def differs(key: str) -> bool:
        return key not in real or listing(derived[key]) != listing(real[key])

    return [key for key in derived if differs(key)]
