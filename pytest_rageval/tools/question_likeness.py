"""Questions that ask nearly the same, by the pairs of words that they share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

from pytest_rageval.words import normalise

LEAST_LIKENESS = 0.8
"""Of the pairs of words of two questions, the share that both have, from which on they are near duplicates."""


def shingles(question: str) -> frozenset[tuple[str, str]]:
    """The pairs of neighbouring words, begin and end among them."""
    words = ["", *normalise(question).split(), ""]
    return frozenset(pairwise(words))


def likeness(first: frozenset[tuple[str, str]], second: frozenset[tuple[str, str]]) -> float:
    """Shared pairs as a share of all pairs, 0 to 1."""
    return len(first & second) / len(first | second) if first or second else 1.0


def near_duplicates(questions: Sequence[str], least: float = LEAST_LIKENESS) -> Iterator[tuple[int, int]]:
    """Each question that is like an earlier one, with the first that it is like: (later, earlier)."""
    sets = [shingles(question) for question in questions]
    counts = Counter(shingle for members in sets for shingle in members)
    # Sets that are alike share one of their rarest pairs: only those are looked up (prefix filtering).
    by_rare: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for later, members in enumerate(sets):
        rarest = sorted(members, key=lambda shingle: (counts[shingle], shingle))
        prefix = rarest[: len(rarest) - ceil(least * len(rarest)) + 1]
        candidates = sorted({earlier for shingle in prefix for earlier in by_rare[shingle]})
        match = next((earlier for earlier in candidates if likeness(members, sets[earlier]) >= least), None)
        if match is not None:
            yield later, match
        for shingle in prefix:
            by_rare[shingle].append(later)
