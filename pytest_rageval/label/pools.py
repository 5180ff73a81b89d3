"""The chunks that a person is shown for one case, merged from several systems and a word search."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.marks import Kind, Marks, Place, gold_of
from pytest_rageval.language.words import fold
from pytest_rageval.matching.dialects import PlaceRules
from pytest_rageval.matching.places import in_rank_order, match
from pytest_rageval.matching.spellings import path_form, read_headings
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase
from pytest_rageval.text import counted

MOST_READ_PATHS = 20
"""Paths of chunks that are searched for the names of notes."""


class Retrieval(NamedTuple):
    """The chunks that one system gave for a question; `problem` says why there are none."""

    system: str
    chunks: tuple[Chunk, ...] = ()
    problem: str | None = None


class Rank(NamedTuple):
    """The rank and the score of a chunk in one system."""

    system: str
    rank: int
    score: float | None

    @property
    def note(self) -> str:
        """Return the rank as `dense #2 0.731`."""
        score = "" if self.score is None else f" {self.score:.3g}"
        return f"{self.system} #{self.rank}{score}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One chunk of a pool.

    ranks       its ranks in the tested systems that retrieved it
    search_rank its rank in the word search
    is_listed   True if the case names the place, and neither a system nor the search gave it
    """

    chunk: Chunk
    ranks: tuple[Rank, ...] = ()
    search_rank: int | None = None
    is_listed: bool = False

    @property
    def best_rank(self) -> int:
        ranks = [rank.rank for rank in self.ranks]
        if self.search_rank:
            ranks.append(self.search_rank)
        return min(ranks)

    def origin(self, *, is_gold: bool, hides_ranks: bool) -> str:
        """Return which systems gave the chunk, as a note; blank if there is nothing to add."""
        if self.ranks and not hides_ranks:
            notes = [rank.note for rank in self.ranks]
            if self.search_rank:
                notes.append("search")
            return " · ".join(notes)
        if self.search_rank and not self.ranks:
            return "the tested system did not retrieve this" if is_gold else "S = only the word search found it"
        return "– = named by the case, given by nobody" if self.is_listed else ""


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one case in the order in which they are shown, and who was asked for them."""

    candidates: tuple[Candidate, ...] = ()
    problems: tuple[str, ...] = ()
    asked: str = "the case"

    def with_more(self, other: Pool) -> Pool:
        """Append the new candidates of another question."""
        seen = {_identity(candidate.chunk) for candidate in self.candidates}
        more = [candidate for candidate in other.candidates if _identity(candidate.chunk) not in seen]
        return replace(self, candidates=(*self.candidates, *more), problems=other.problems)

    def with_places(self, case: EvalCase, marks: Marks) -> Pool:
        """Append the marked places that no candidate matches."""
        listed = [candidate for candidate in self.candidates if not candidate.is_listed]
        hits = matched_marks(case, marks, [candidate.chunk for candidate in listed])
        unmatched = [*_unmatched(marks.golds, hits.golds), *_unmatched(marks.irrelevant, hits.irrelevant)]
        more = [Candidate(chunk_at(place), is_listed=True) for place in dict.fromkeys(unmatched)]
        return replace(self, candidates=(*listed, *more))

    def kind(self, marks: Marks) -> Kind:
        """Return whether places are marked, or ids since no chunk has a place and none is marked."""
        has_places = any(candidate.chunk.rel_path for candidate in self.candidates)
        if marks.kind == "ids" or marks.golds or marks.irrelevant or has_places or not self.candidates:
            return marks.kind
        return "ids"


def chunk_at(place: Place) -> Chunk:
    """Return a chunk that stands for a marked place."""
    if isinstance(place, Anchor):
        text = "\n".join(place.snippets) or None
        return Chunk(rel_path=place.rel_path, heading_path=place.heading_path, text=text)
    return Chunk(chunk_id=place)


class MatchedMarks(NamedTuple):
    """The golds and irrelevant places that each chunk matches, by position in the marks."""

    golds: tuple[frozenset[int], ...]
    irrelevant: tuple[frozenset[int], ...]


def matched_marks(case: EvalCase, marks: Marks, chunks: Sequence[Chunk]) -> MatchedMarks:
    """Match chunks to the marks on a case."""
    answer = Answer(chunks=tuple(replace(chunk, rank=None) for chunk in chunks))
    none = (frozenset[int](),) * len(chunks)

    def hits(marks: Marks) -> tuple[frozenset[int], ...]:
        return match(replace(case, gold=gold_of(marks, case)), answer, rules=PlaceRules(is_strict=True)).hits or none

    golds = hits(marks) if marks.golds else none
    irrelevant = none
    if marks.irrelevant:
        irrelevant = hits(replace(marks, golds=marks.irrelevant, irrelevant=(), groups=()))
    return MatchedMarks(golds, irrelevant)


def merged(
    case: EvalCase,
    retrievals: Sequence[Retrieval],
    found: Sequence[Chunk] | None = None,
    *,
    is_shuffled: bool = False,
) -> Pool:
    """Return one pool of what the systems retrieved and the search found, by the best rank that each chunk has.

    A found section counts as the chunk that a system retrieved of it, if any did. `is_shuffled` is for a blind
    labeller: the order then follows from the case alone and says nothing about ranks.
    """
    candidates: dict[tuple[str, ...], Candidate] = {}
    for retrieval in retrievals:
        _add_retrieval(candidates, retrieval)
    for rank, section in enumerate(found or (), start=1):
        place = _place(section)
        retrieved = [identity for identity, known in candidates.items() if known.ranks and _place(known.chunk) == place]
        for identity in retrieved or [_identity(section)]:
            known = candidates.setdefault(identity, Candidate(section))
            candidates[identity] = replace(known, search_rank=known.search_rank or rank)
    ordered = sorted(candidates.values(), key=lambda candidate: candidate.best_rank)
    if is_shuffled:
        ordered.sort(key=lambda candidate: _blind_order(case, candidate.chunk))
    problems = tuple(f"{retrieval.system}: {retrieval.problem}" for retrieval in retrievals if retrieval.problem)
    asked = []
    if retrievals:
        asked.append(counted(len(retrievals), "system"))
    if found is not None:
        asked.append("search")
    return Pool(tuple(ordered), problems, " + ".join(asked) or "the case")


def _add_retrieval(candidates: dict[tuple[str, ...], Candidate], retrieval: Retrieval) -> None:
    """Add a system's ranks, the first one of each chunk."""
    for rank, chunk in enumerate(in_rank_order(retrieval.chunks), start=1):
        known = candidates.setdefault(_identity(chunk), Candidate(chunk))
        if all(other.system != retrieval.system for other in known.ranks):
            scores = (chunk.score_final, chunk.score_vector, chunk.score_lexical)
            score = next((score for score in scores if score is not None), None)
            ranks = (*known.ranks, Rank(retrieval.system, rank, score))
            candidates[_identity(chunk)] = replace(known, ranks=ranks)


def _place(chunk: Chunk) -> tuple[str, ...]:
    """Return the path and the headings of a chunk, whatever its system separates headings by."""
    return (path_form(chunk.rel_path or ""), *read_headings(chunk.heading_path or "").parts)


def _identity(chunk: Chunk) -> tuple[str, ...]:
    """Return a key that is equal for chunks with the same text at the same place, whatever their ids."""
    name = "" if chunk.rel_path else chunk.chunk_id or chunk.doc_id or ""
    return (*_place(chunk), "\0", name, fold(chunk.text or ""))


def _blind_order(case: EvalCase, chunk: Chunk) -> bytes:
    return hashlib.sha256("\0".join((case.key, *_identity(chunk))).encode("utf-8", "replace")).digest()


def path_prefix(notes: Path, paths: Collection[str]) -> str:
    """Return the prefix of these paths before a note's path within its folder: nothing, `notes/` and so on."""
    folders = notes.resolve().parts[1:]
    ends = ["/".join(folders[at:]) + "/" for at in reversed(range(len(folders)))]
    # The shortest first, which is taken of those that fit alike.
    prefixes = ["", *ends, *_prefixes_of(list(paths)[:MOST_READ_PATHS], notes)]

    def fit(prefix: str) -> tuple[int, int]:
        """Return how many notes exist after the prefix, then how many paths begin with it."""
        rests = [path[len(prefix) :] for path in paths if path.startswith(prefix)]
        existing = sum((notes / rest).is_file() for rest in rests)
        return existing, len(rests) if prefix else 0  # every path begins with none, which says nothing

    return max(prefixes, key=fit)


def _prefixes_of(paths: Iterable[str], notes: Path) -> Iterator[str]:
    """Yield what stands before the name of a note in these paths, such as `https://host/notes/`."""
    for path in paths:
        folders, _, name = path.rpartition("/")
        parts = folders.split("/")
        for at in range(len(parts), 0, -1):
            rest = "/".join([*parts[at:], name])
            if (notes / rest).is_file():
                yield path.removesuffix(rest)


def _unmatched(places: Sequence[Place], hits: Sequence[frozenset[int]]) -> Iterator[Place]:
    """Yield the places that no candidate matches; `hits` are the positions that each candidate matches."""
    matched = frozenset[int]().union(*hits)
    for at, place in enumerate(places):
        if at not in matched:
            yield place
