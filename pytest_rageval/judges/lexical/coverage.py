"""Coverage of claims by passages: the share of a claim's information that the passages hold, term by term.

It sees what is missing from the passages. It does not see what is said wrongly in their own words: swapped figures and
names, a negation more or less; nor that other words say the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pytest_rageval.io.suggestions import listed
from pytest_rageval.judges.lexical.terms import Claim, terms_by_sentence
from pytest_rageval.text import counted

SUPPORTED = 0.75
"""A claim counts as supported from this value on."""

SMALL_SHARE = 0.5
"""Of its information, what a small word counts for."""

SENTENCE_SHARE = 0.25
"""Of a claim's value, what a single sentence has to hold: words from everywhere are easily there."""

MISSING_FIGURES = 0.5
"""What is left of a claim none of whose figures is in the passages: a word may be said otherwise, a figure is wrong."""

LONGEST_QUOTATION = 120
"""Characters of a sentence or term that are shown."""

MOST_SHOWN = 8
"""Terms that are named; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far passages cover a claim: value in [0, 1], the claim's information, and its content terms that none has."""

    claim: Claim
    value: float
    information: float
    missing: tuple[str, ...] = ()


class Evidence:
    """The passages that claims are compared with, and how informative each term is among them.

    The information of a term is log(1 + N / n): N sentences, n of which have it; a term that none has counts as if one
    had. A word that is everywhere says little.
    """

    def __init__(self, passages: Iterable[str]) -> None:
        self._sentences = [terms for passage in passages for terms in terms_by_sentence(passage)]
        self._counts: Mapping[str, int] = Counter(chain.from_iterable(self._sentences))
        self._different_sentences = {*self._sentences}

    def coverage(self, claim: Claim, *, small_share: float = SMALL_SHARE) -> Coverage:
        """The share of the claim's information that the passages have: 3/4 of it together, 1/4 in the best sentence.

        Times 0.5 to 1 by the share of its figures that are there.
        """
        terms, content, counts, sentences = claim.terms, claim.content, self._counts, max(1, len(self._sentences))
        weights = {
            term: math.log(1 + sentences / counts.get(term, 1)) * (1.0 if term in content else small_share)
            for term in terms
        }
        total = math.fsum(weights.values())
        together = math.fsum([weight for term, weight in weights.items() if term in counts]) / total
        shared = [terms & of_sentence for of_sentence in self._different_sentences]
        nearest = max([math.fsum(map(weights.__getitem__, each)) for each in shared], default=0.0) / total
        value = (1 - SENTENCE_SHARE) * together + SENTENCE_SHARE * nearest
        missing = content - counts.keys()
        if claim.figures:
            value *= 1 - (1 - MISSING_FIGURES) * len(claim.figures & missing) / len(claim.figures)
        return Coverage(claim, value, total, tuple(sorted(missing)))


def weighted(coverages: Sequence[Coverage]) -> float:
    """The mean value of at least one coverage, each weighing as much as its claim informs."""
    total = math.fsum(coverage.information for coverage in coverages)
    return math.fsum(coverage.information * coverage.value for coverage in coverages) / total


def account(coverages: Sequence[Coverage], where: str) -> str:
    """One bounded line: how many sentences are borne out by `where`, the weakest one, and the terms not found."""
    held = sum(coverage.value >= SUPPORTED for coverage in coverages)
    weakest = min(coverages, key=lambda coverage: coverage.value)
    missing = sorted({term for coverage in coverages for term in coverage.missing})
    return "".join(
        (
            f"heuristic: {held} of {counted(len(coverages), 'sentence is', 'sentences are')} borne out by {where}",
            f"; weakest: {_quoted(weakest.claim.text)}" if weakest.value < SUPPORTED else "",
            first_items("; not found", missing),
        )
    )


def first_items(label: str, items: Sequence[str]) -> str:
    """The first items after their label; nothing where there are none."""
    return f"{label}: {listed([item[:LONGEST_QUOTATION] for item in items], MOST_SHOWN)}" if items else ""


def _quoted(text: str) -> str:
    shown = " ".join(text[: 4 * LONGEST_QUOTATION].split())
    return repr(shown if len(shown) <= LONGEST_QUOTATION else f"{shown[: LONGEST_QUOTATION - 1]}…")
