"""How far do passages of text bear out a claim? By its words, their order, and what the passages say instead; no model.

Words show what is missing from a passage, seldom that something is wrong. What can be seen of it is weighed heavily: a
figure that no passage has, and a sentence that says nearly the same with another figure, name, unit, opposite or sign.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_rageval.judges.lexical.contradictions import Conflict, conflict
from pytest_rageval.judges.lexical.number_words import is_figure, readings
from pytest_rageval.judges.lexical.statements import (
    LONGEST_TEXT,
    ReadPassage,
    Statement,
    neighbours,
    read_statement,
    weight,
)
from pytest_rageval.text import sentences

SUPPORTED = 0.75
"""A claim counts as supported from this value on."""

WRONG_FIGURE = 0.5
"""What is left of a claim's value when none of its figures is in the passages: the scale's 2 of 5 at best."""

CONTRADICTED = 0.2
"""The most that a contradicted claim is worth: the scale's 1 of 5."""

CONTRADICTING = 0.75
"""What one contradicted claim leaves of the whole; two leave its square, more no less than that."""

ORDER_SHARE = 0.1
"""Of a claim's value: how many of its words follow one another in a sentence near it too."""

MOST_NEAREST = 3
"""Sentences of the passages that a claim is compared with slot by slot."""


@dataclass(frozen=True, slots=True)
class Support:
    """How far a claim is borne out: value in [0, 1], and what speaks against it.

    missing  its words that no passage has, wrong figures not among them
    wrong    its figures that no passage has
    opposed  the passage that says otherwise
    """

    claim: Statement
    value: float
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    opposed: Conflict | None = None


def read_claims(text: str) -> list[Statement]:
    """The sentences of a text as claims; citation marks are no part of them, those without words are dropped.

    So are figures alone, such as the numbers of a list, unless there is nothing else.
    """
    read = (read_statement(sentence) for sentence in sentences(_CITATION.sub(" ", text[:LONGEST_TEXT])))
    claims = [claim for claim in read if claim.words]
    return [claim for claim in claims if claim.figures != claim.content] or claims


def support(claim: Statement, passages: Sequence[ReadPassage], *, to_the_word: bool = True) -> Support:
    """How far the passages together bear out the claim.

    The share of the claim's words that any passage has, small words by half (90 %), and of its neighbouring words that
    are near one another in one of the nearest sentences (10 %); or, where not `to_the_word`, the share of its content
    words alone. Times 0.5 to 1 by the share of its figures found; at most 0.2 where a passage says otherwise.
    """
    weights = {word: weight(word) for word in claim.words} if to_the_word else dict.fromkeys(claim.content, 1.0)
    lacking = [word for word in weights if not _is_in(word, passages)]
    value = 1 - sum(weights[word] for word in lacking) / sum(weights.values())
    nearest = _nearest(claim, passages)
    if to_the_word:
        value = (1 - ORDER_SHARE) * value + ORDER_SHARE * _in_order(claim.words, nearest, value)
    wrong = [word for word in lacking if word in claim.figures]
    if wrong:
        value *= 1 - (1 - WRONG_FIGURE) * len(wrong) / len(claim.figures)
    opposed = conflict(claim, nearest)
    if opposed is not None:
        value = min(value, CONTRADICTED)
    missing = [word for word in lacking if word in claim.content and word not in claim.figures]
    return Support(claim, value, tuple(sorted(missing)), tuple(sorted(wrong)), opposed)


def weighted(supports: Iterable[Support]) -> float:
    """The mean value of claims, each weighing as many content words as it has; at least one claim is needed.

    An answer that contradicts its context in one point is not nearly right: see CONTRADICTING.
    """
    rated = [(len(one.claim.content), one.value, one.opposed is not None) for one in supports]
    mean = sum(weight * value for weight, value, _ in rated) / sum(weight for weight, _, _ in rated)
    return float(mean * CONTRADICTING ** min(2, sum(is_opposed for _, _, is_opposed in rated)))


def _is_in(word: str, passages: Sequence[ReadPassage]) -> bool:
    forms = readings(word) if is_figure(word) else (word,)
    return any(form in passage.words for form in forms for passage in passages)


def _in_order(said: Sequence[str], nearest: Sequence[str], covered: float) -> float:
    """The share of neighbours that are at most three words apart in a sentence; of a single word, what is covered."""
    if len(said) < 2:
        return covered
    pairs = list(pairwise(said))
    there = [neighbours(sentence) for sentence in nearest]
    return sum(any(pair in held for held in there) for pair in pairs) / len(pairs)


def _nearest(claim: Statement, passages: Sequence[ReadPassage]) -> list[str]:
    """The sentences that share the most content words with the claim, the nearest first; earlier ones where equal."""
    shared = Counter(
        (number, place)
        for number, passage in enumerate(passages)
        for word in claim.content
        for place in passage.words.get(word, ())
    )
    found = sorted(((-count, where) for where, count in shared.items()))[:MOST_NEAREST]
    return [passages[number].sentences[place] for _, (number, place) in found]


_CITATION = re.compile(r"\[\^?\d{1,3}(?:[,;\s–-]+\d{1,3})*\]|【[^】\n]{1,80}】")
