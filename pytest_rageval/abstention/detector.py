"""The detector of abstentions: a logistic regression whose weights are data.

`weights.bin` holds a line of JSON (the fields of `LearnedWeights`) and, after it, tables of weights as signed bytes, in
steps. A block of features is worth scale x sum of weights / √(features); an answer's log odds are the bias, its blocks
and those of the sentence where they are highest. Sums of integers and `math.fsum` give the same figure on all machines.
Where the retrieved passages are known, the share of the answer that they hold shifts the log odds. Between two limits
the answer is undecided. `benchmarks/train_abstention.py` makes the file.

An answer that sounds like a refusal is none if one of its parts gives what is asked, or the gold answer.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from pytest_rageval.abstention.answering_part import answer_parts, answering_part
from pytest_rageval.abstention.courtesies import is_greeting
from pytest_rageval.abstention.evidence import held_share
from pytest_rageval.abstention.features import (
    TABLE,
    FeatureBlock,
    Word,
    features_of,
    kind_of_question,
    sentences_of,
)
from pytest_rageval.abstention.own_words import own_words
from pytest_rageval.language.gold_content import gold_content
from pytest_rageval.language.gold_search import best_fit
from pytest_rageval.language.words import normalise

LONGEST_TEXT = 20_000
"""Characters of an answer that are searched for a project's own phrases."""
MOST_RISE = 1.5
"""Log odds by which passages that lack the answer raise it at most: a made-up answer must not become an abstention."""
SHORTEST_QUOTE = 20
"""Characters of a gold answer from which a refusal does not hold it by chance; "no" stands in many."""
SURELY = 3.0
"""Log odds above the threshold from which a lone sentence is no claim: without its answer it is easily mistaken."""
IN_PART = 0.75
"""Confidence in an answer that is one in part: 2 of 100 refusals tell something that looks like it."""
SUREST = {True: 6.0, False: 3.0}
"""Log odds beyond which a verdict gets no surer: more abstentions are missed than answers mistaken for one."""


class Detection(NamedTuple):
    """Verdict on an answer: does it decline, how sure is that (0.5 to 1), and which sentence declines most.

    abstained        None if the wording leaves it open: the zone of doubt
    is_announcement  the answer only says what the system is going to do ("Let me look that up."): it neither answers
                     nor declines
    """

    abstained: bool | None
    confidence: float
    phrase: str | None = None
    is_announcement: bool = False


class DoubtZone(NamedTuple):
    """The limits of the zone of doubt, in log odds.

    From `declines` on an answer is an abstention; below `answers` it is none.
    """

    answers: float
    declines: float


class LearnedWeights(NamedTuple):
    """The learned model: linear weights of the wording, and how the retrieved passages shift its log odds.

    limits           where no passages are known
    passage_limits   where they are, after the shift
    evidence_shift   added to the log odds where the passages hold nothing of the answer
    evidence_weight  subtracted from that where they hold all of it, in proportion
    """

    bias: float
    step: float
    limits: DoubtZone
    passage_limits: DoubtZone
    evidence_shift: float
    evidence_weight: float
    tables: list[list[int]]


def declines(
    answer: str,
    question: str = "",
    phrases: Sequence[str] = (),
    passages: Sequence[str] = (),
    golds: Sequence[str] = (),
) -> Detection:
    """Detect whether the answer as a whole declines.

    phrases   refusals of one bot: an answer with one declines
    passages  the texts that were retrieved for the answer, if known
    golds     gold answers of the question: an answer that quotes one does not decline, whatever it sounds like

    >>> declines("The notes do not mention a price.", "What does the camera cost?").abstained
    True
    >>> declines("It costs 40 euros.", "What does the camera cost?").abstained
    False
    """
    own = _phrase_in(answer, phrases)
    if own is not None:
        # The project knows the words of its bot better than any weights do.
        return Detection(True, 0.95, own)
    detection = _detect(answer, question, tuple(passages))
    if detection.abstained is False or not golds:
        return detection
    # A gold such as "There is no deadline" sounds like a refusal.
    if _quotes_one(answer, golds) or _states_one(answer, question, golds):
        return Detection(False, 0.95)
    return detection


def _phrase_in(answer: str, phrases: Sequence[str]) -> str | None:
    if not phrases:
        return None
    folded = _normalised(answer[:LONGEST_TEXT])
    for phrase in phrases:
        if _normalised(phrase) in folded:
            return phrase
    return None


def _quotes_one(answer: str, golds: Sequence[str]) -> bool:
    """Return True if an answer is a gold answer, or holds one that is too long to stand in a refusal by chance."""
    # Spaces at both ends, so that only whole words are found.
    said = f" {normalise(answer[:LONGEST_TEXT])} "
    for gold in golds:
        wanted = f" {normalise(gold)} "
        if wanted == said or (len(wanted) >= SHORTEST_QUOTE and wanted in said):
            return True
    return False


def _states_one(answer: str, question: str, golds: Sequence[str]) -> bool:
    """Return True if a part of an answer that does not decline states all of a gold answer.

    A gold of yes or no is not looked for, since "no information" has it too, nor is one that the question has.
    """
    wanted = []
    for gold in golds:
        content = gold_content(gold, question)
        if content.answers_yes is None and not content.is_old:
            wanted.append(gold)
    if not wanted:
        return False
    for part in answer_parts(own_words(answer[:LONGEST_TEXT]).text):
        if best_fit(part, wanted, question).share == 1 and log_odds(part, question) < weights().limits.answers:
            return True
    return False


@lru_cache(maxsize=1024)
def only_declines(sentence: str) -> bool:
    """Return True if the sentence, read alone, surely declines."""
    return log_odds(sentence) >= weights().limits.declines + SURELY


def log_odds(answer: str, question: str = "") -> float:
    """Return the log odds of an abstention."""
    return _odds(answer, question)[0]


def _odds(answer: str, question: str) -> tuple[float, list[float]]:
    """Return the log odds of an abstention, and the scores of the answer's sentences."""
    # Courtesies and quotations are off: "I'd be happy to help!" made 114 of 300 right answers refusals.
    features = features_of(own_words(answer).text, question)
    sentences = [_score_of(blocks) for blocks in features.sentences]
    odds = weights().bias + _score_of(features.answer) + max(sentences)
    return odds, sentences


def _score_of(blocks: Sequence[FeatureBlock]) -> float:
    return weights().step * math.fsum([_weight_of(block) for block in blocks])


def _weight_of(block: FeatureBlock) -> float:
    """Return the weight of a block: the words of one answer stand in many others, so theirs are added once."""
    table, scale, places, words = block
    # Integers, so any order of adding them gives the same figure.
    count = len(places)
    total = sum(map(weights().tables[table].__getitem__, places))
    for word in words:
        sums = word.sums or _add_letters(word)
        count += sums[-1]
        total += sums[table]
    # By the root of their number, so that a long answer weighs no more than a short one.
    return scale * total / math.sqrt(count or 1)


def _add_letters(word: Word) -> Sequence[int]:
    letters = word.letters()
    sums = [sum(map(table.__getitem__, letters)) for table in weights().tables]
    word.sums = (*sums, len(letters))
    return word.sums


@lru_cache(maxsize=16)  # several metrics and the judge ask about the same answer, one after the other
def _detect(answer: str, question: str, passages: tuple[str, ...]) -> Detection:
    own = own_words(answer)
    if own.is_announcement:
        return Detection(False, 1.0, is_announcement=True)
    if is_greeting(question) or _is_plain_no(own.text, question):
        return Detection(False, 0.9)
    if own.is_offer:
        return Detection(None, 0.5)
    odds, sentences = _odds(answer, question)
    limits = weights().limits
    if passages:
        limits = weights().passage_limits
        odds = _shifted(odds, limits, question, own.text, passages)
    if odds < limits.answers:
        return Detection(False, _confidence(limits.answers - odds, SUREST[False]))
    part = answering_part(own.text, question, lambda text: log_odds(text, question))
    if part is not None and part.is_clear:
        return Detection(False, IN_PART)
    if part is not None or odds < limits.declines:
        return Detection(None, 0.5)
    _, most_declining = max(zip(sentences, sentences_of(own.text), strict=True))
    return Detection(True, _confidence(odds - limits.declines, SUREST[True]), most_declining)


def _is_plain_no(answer: str, question: str) -> bool:
    """Return True for "I'm afraid not." as the answer to a question that wants yes or no."""
    return kind_of_question(question.casefold()) == "choice" and _PLAIN_NO.fullmatch(answer) is not None


_PLAIN_NO = re.compile(
    r"\W*(?:(?:i'm|i am|we're|we are) afraid not|(?:unfortunately|regrettably|sadly|sorry)\W+(?:not|no)"
    r"|leider (?:nein|nicht)|malheureusement (?:non|pas)|infelizmente\W+não"
    r"|(?:lamentablemente|desafortunadamente|por desgracia)\W+no"
    r"|(?:아쉽지만|안타깝지만|죄송하지만)\W*(?:아니요|아닙니다|안 됩니다|불가능합니다)"
    r"|(?:残念ながら|申し訳ございませんが|申し訳ありませんが)\W*(?:いいえ|できません)"
    r"|(?:很遗憾|抱歉)\W*(?:不行|不可以|不能))\W*",
    re.IGNORECASE,
)


def _shifted(odds: float, zone: DoubtZone, question: str, own: str, passages: tuple[str, ...]) -> float:
    """Return the log odds with the passages; they are read only where they can change the verdict."""
    shift = weights().evidence_shift
    weight = weights().evidence_weight
    highest = odds + MOST_RISE
    lowest = odds + shift - weight
    # Most verdicts are clear already, and passages are long.
    if highest < zone.answers:
        return highest
    if lowest >= zone.declines:
        return lowest
    return odds + shift_by(held_share(question, own, passages), shift, weight)


def shift_by(share: float, shift: float, weight: float) -> float:
    """Return what a share that the passages hold adds to the log odds: at most `MOST_RISE`."""
    return min(shift - weight * share, MOST_RISE)


def _confidence(margin: float, surest: float) -> float:
    return round(1 / (1 + math.exp(-min(margin, surest))), 3)


@cache
def weights() -> LearnedWeights:
    """Read the weights, once."""
    written = (files(__package__) / "weights.bin").read_bytes()
    head, _, content = written.partition(b"\n")
    signed = memoryview(content).cast("b")
    tables = [signed[start : start + TABLE].tolist() for start in range(0, len(signed), TABLE)]
    fields = json.loads(head)
    fields["limits"] = DoubtZone(*fields["limits"])
    fields["passage_limits"] = DoubtZone(*fields["passage_limits"])
    return LearnedWeights(**fields, tables=tables)


def _normalised(text: str) -> str:
    """Return the text without emphasis, NFKC, case-folded, with single spaces."""
    bare = text.replace("*", "").replace("_", " ")
    folded = unicodedata.normalize("NFKC", " ".join(bare.split()))
    return folded.casefold().replace("’", "'")
