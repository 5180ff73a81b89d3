"""The detector of abstentions: a logistic regression whose weights are data.

`weights.bin` holds a line of JSON (`bias`, `step`, `threshold`) and, after it, tables of weights as signed bytes, in
steps. A block of features is worth scale x sum of weights / √(features); an answer's score is the bias, its blocks and
those of the sentence where they are highest. Sums of integers and `math.fsum` give the same score on all machines.
`benchmarks/train_abstention.py` makes the file.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from pytest_rageval.abstention.features import TABLE, FeatureBlock, Word, features_of, sentences_of

LONGEST_TEXT = 20_000
"""Characters of an answer that are searched for a project's own phrases."""
SURELY = 3.0
"""Log odds above the threshold from which a lone sentence is no claim: without its answer it is easily mistaken."""
SUREST = {True: 6.0, False: 3.0}
"""Log odds beyond which a verdict gets no surer: more abstentions are missed than answers mistaken for one."""


class Detection(NamedTuple):
    """Verdict on an answer: does it decline, how sure is that (0.5 to 1), and which sentence declines most."""

    abstained: bool
    confidence: float
    phrase: str | None = None


class LearnedWeights(NamedTuple):
    """The learned model: a score of `threshold` or more is an abstention."""

    bias: float
    step: float
    threshold: float
    tables: list[list[int]]


def declines(answer: str, question: str = "", phrases: Sequence[str] = ()) -> Detection:
    """Detect whether the answer as a whole declines. `phrases` are refusals of one bot: an answer with one declines.

    >>> declines("The notes do not mention a price.", "What does the camera cost?").abstained
    True
    >>> declines("It costs 40 euros.", "What does the camera cost?").abstained
    False
    """
    folded = _normalised(answer[:LONGEST_TEXT]) if phrases else ""
    own = next((phrase for phrase in phrases if _normalised(phrase) in folded), None)
    if own is not None:
        return Detection(True, 0.95, own)
    return _detect(answer, question)


@lru_cache(maxsize=1024)
def only_declines(sentence: str) -> bool:
    """Return True if the sentence, read alone, surely declines."""
    return log_odds(sentence) >= weights().threshold + SURELY


def log_odds(answer: str, question: str = "") -> float:
    """Return the log odds of an abstention."""
    return _odds(answer, question)[0]


def _odds(answer: str, question: str) -> tuple[float, list[float]]:
    """Return the log odds of an abstention, and the scores of the answer's sentences."""
    features = features_of(answer, question)
    sentences = [*map(_score_of, features.sentences)]
    return weights().bias + _score_of(features.answer) + max(sentences), sentences


def _score_of(blocks: Sequence[FeatureBlock]) -> float:
    return weights().step * math.fsum([_weight_of(block) for block in blocks])


def _weight_of(block: FeatureBlock) -> float:
    """Return the weight of a block: the words of one answer stand in many others, so theirs are added once."""
    table, scale, places, words = block
    weight_at = weights().tables[table]
    count, total = len(places), sum([weight_at[place] for place in places])
    for word in words:
        sums = word.sums or _add_letters(word)
        count += sums[-1]
        total += sums[table]
    return scale * total / math.sqrt(count or 1)


def _add_letters(word: Word) -> Sequence[int]:
    letters = word.letters()
    word.sums = (*[sum([table[place] for place in letters]) for table in weights().tables], len(letters))
    return word.sums


@lru_cache(maxsize=16)  # several metrics and the judge ask about the same answer, one after the other
def _detect(answer: str, question: str) -> Detection:
    odds, sentences = _odds(answer, question)
    margin = odds - weights().threshold
    confidence = round(1 / (1 + math.exp(-min(abs(margin), SUREST[margin >= 0]))), 3)
    if margin < 0:
        return Detection(False, confidence)
    return Detection(True, confidence, max(zip(sentences, sentences_of(answer), strict=True))[1])


@cache
def weights() -> LearnedWeights:
    """Read the weights, once."""
    head, _, content = (files(__package__) / "weights.bin").read_bytes().partition(b"\n")
    signed = memoryview(content).cast("b")
    tables = [signed[start : start + TABLE].tolist() for start in range(0, len(signed), TABLE)]
    return LearnedWeights(**json.loads(head), tables=tables)


def _normalised(text: str) -> str:
    """Return the text without emphasis, NFKC, case-folded, with single spaces."""
    folded = unicodedata.normalize("NFKC", " ".join(text.replace("*", "").replace("_", " ").split()))
    return folded.casefold().replace("’", "'")
