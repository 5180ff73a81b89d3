"""The detector of abstentions: a logistic regression whose weights are data.

`weights.bin` holds a line of JSON (`bias`, `step`, `threshold`) and, after it, a signed byte for each bucket: its
weight in steps. An answer's score is the bias plus, for each block of features, scale x sum of weights / √(buckets).
Sums of integers and `math.fsum` give the same score on all machines. `benchmarks/train_abstention.py` makes the file.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from pytest_rageval.abstention.features import features_of, sentences_of

LONGEST_TEXT = 20_000
"""Characters of an answer in which a project's own phrases are looked for."""


class Declined(NamedTuple):
    """Whether an answer declines, how sure that is (0.5 a toss-up, 1 certain), and the sentence that says so most."""

    abstained: bool
    confidence: float
    phrase: str | None = None


class LearnedWeights(NamedTuple):
    """The learned model: a score of `threshold` or more is an abstention."""

    bias: float
    step: float
    threshold: float
    of_buckets: memoryview


def declines(answer: str, question: str = "", phrases: Sequence[str] = ()) -> Declined:
    """Tell whether the answer as a whole declines. `phrases` are refusals of one bot: an answer with one declines.

    >>> declines("The notes do not mention a price.", "What does the camera cost?").abstained
    True
    >>> declines("It costs 40 euros.", "What does the camera cost?").abstained
    False
    """
    folded = _folded(answer[:LONGEST_TEXT]) if phrases else ""
    own = next((phrase for phrase in phrases if _folded(phrase) in folded), None)
    if own is not None:
        return Declined(True, 0.95, own)
    return _detected(answer, question)


def only_declines(sentence: str) -> bool:
    """Tell whether the sentence, read by itself, declines."""
    return log_odds(sentence) >= weights().threshold


def log_odds(answer: str, question: str = "") -> float:
    """Return how much speaks for an abstention, in log odds."""
    bias, step, _, of_buckets = weights()
    sums = (
        block.scale * sum([of_buckets[bucket] for bucket in block.buckets]) / math.sqrt(len(block.buckets) or 1)
        for block in features_of(answer, question)
    )
    return bias + step * math.fsum(sums)


@lru_cache(maxsize=16)  # several metrics and the judge ask about the same answer, one after the other
def _detected(answer: str, question: str) -> Declined:
    margin = log_odds(answer, question) - weights().threshold
    confidence = round(1 / (1 + math.exp(-min(abs(margin), 30))), 3)
    if margin < 0:
        return Declined(False, confidence)
    return Declined(True, confidence, max(sentences_of(answer), key=lambda sentence: log_odds(sentence, question)))


@cache
def weights() -> LearnedWeights:
    """Read the weights, once."""
    head, _, of_buckets = (files(__package__) / "weights.bin").read_bytes().partition(b"\n")
    known = json.loads(head)
    return LearnedWeights(known["bias"], known["step"], known["threshold"], memoryview(of_buckets).cast("b"))


def _folded(text: str) -> str:
    """Return the text without emphasis, NFKC, case-folded, with single spaces."""
    folded = unicodedata.normalize("NFKC", " ".join(text.replace("*", "").replace("_", " ").split()))
    return folded.casefold().replace("’", "'")
