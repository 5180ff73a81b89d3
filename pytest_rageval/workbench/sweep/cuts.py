"""Points derived from one retrieval pass: lists of chunks cut by number and score, and whether that is what comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_rageval.matching import GoldBy, observe
from pytest_rageval.model import Chunk, Observation
from pytest_rageval.workbench.sweep.grid import Family, Point

Listing = tuple[tuple[object, ...], ...]
"""The chunks of an answer in order, by what tells them apart."""


def why_not_derivable(observations: Iterable[Observation], cuts: Sequence[str]) -> str | None:
    """Why lists cannot be cut: the system reports no chunks, or none with a score; None where they can."""
    for observation in observations:
        chunks = observation.answer.chunks
        if chunks is None:
            return f"no retrieved chunks are reported, as for {observation.case.id}"
        if "min_score" in cuts and any(chunk.score_final is None for chunk in chunks):
            return f"chunks come without score_final, as for {observation.case.id}"
    return None


def cut_to(observation: Observation, point: Point, k: int, gold_by: GoldBy) -> Observation:
    """What the case retrieves at a point, from what it retrieved at the widest one; `k` is that of the point."""
    least = point.params.get("min_score")
    chunks: Sequence[Chunk] = observation.answer.chunks or ()
    if least is not None:
        chunks = [chunk for chunk in chunks if chunk.score_final is not None and chunk.score_final >= least]
    answer = replace(observation.answer, chunks=tuple(chunks[:k]))
    return observe(observation.case, answer, k=k, asked_k=k, gold_by=gold_by)


def probe_of(observation: Observation, family: Family, k_of: Callable[[Point], int], gold_by: GoldBy) -> Point:
    """The point at which a case shows best whether its list is cut: the highest threshold, with a k of its own.

    That is the smallest k for which there is still room below the chunks over the threshold: a system that looks for
    others where it found few fills it. Where none has room, the smallest k of all: there a list is cut by number.
    """
    points = family.by_score
    for point in points:
        k = k_of(point)
        if len(cut_to(observation, point, k + 1, gold_by).answer.chunks or ()) < k:
            return point
    return points[0]


def listing(observation: Observation) -> Listing:
    """The chunks that came, in order, with their scores."""
    return tuple(
        (chunk.chunk_id or chunk.doc_id, chunk.rel_path, chunk.heading_path, chunk.start_line, chunk.score_final,
         None if chunk.chunk_id or chunk.doc_id else chunk.text)
        for chunk in observation.answer.chunks or ()
    )  # fmt: skip


def differing(derived: Mapping[str, Observation], real: Mapping[str, Observation]) -> tuple[str, ...]:
    """Keys of the cases that retrieve otherwise when they are asked, or that could not be asked."""
    return tuple(key for key in derived if key not in real or listing(derived[key]) != listing(real[key]))
