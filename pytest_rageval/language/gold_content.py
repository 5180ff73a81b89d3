"""What a gold answer wants: its words and figures that its question does not have, with their weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pytest_rageval.language.gold_list import WHOLE_WEIGHT, items_of
from pytest_rageval.language.identifiers import Identifier, acronyms_of, identifiers_of
from pytest_rageval.language.opposites import asks_for_exception
from pytest_rageval.language.polarity_words import CHOICES, GENERAL_NOUNS, NEGATORS, YES_OR_NO_GOLDS
from pytest_rageval.language.stated_quantities import Quantity
from pytest_rageval.language.stated_words import StatedWord
from pytest_rageval.language.statements import LONGEST, Statement, read

LAST_NAME_WEIGHT_IN_LISTS = 3
"""Of several persons the last names alone are an answer."""

# More than half in both: "Rock Island" alone answers "Rock Island, Illinois" at a gate of 0.5, as "Curie" answers
# "Marie Curie"; neither "Illinois" nor "Marie" does.
GENERAL_WEIGHT = 0.5
FIRST_PLACE_WEIGHT = 1.2
LAST_NAME_WEIGHT = 1.1


@dataclass(frozen=True)
class GoldContent:
    """The content of a gold that the question does not have."""

    gold: str
    question: str
    answers_yes: bool | None
    words: tuple[StatedWord, ...]
    quantities: tuple[Quantity, ...]
    runs: tuple[StatedWord, ...]
    weighted: tuple[tuple[StatedWord, float], ...]
    whole_weight: float
    """What a list weighs for being whole; 0 for another gold."""
    has_choice: bool
    is_asked_negatively: bool
    """Whether the question denies: then an answer may repeat the negation."""
    has_year: bool
    is_old: bool
    """Whether the question has all of it."""
    stated: Statement
    """All that the gold says."""

    # Few golds need these, and their patterns try every place of the question.
    @cached_property
    def identifiers(self) -> tuple[Identifier, ...]:
        return identifiers_of(self.gold, self.question)

    @cached_property
    def acronyms(self) -> tuple[str, ...]:
        return acronyms_of(self.gold)

    @property
    def asks_for_person(self) -> bool:
        return _asks_for_person(self.question)

    @property
    def asks_who(self) -> bool:
        return _asks_who(self.question)

    @cached_property
    def is_version(self) -> bool:
        """Check whether the figures are versions: then 3.10 is not 3.1."""
        return _VERSION.search(f"{self.question}\n{self.gold}") is not None


@lru_cache(maxsize=4096)
def gold_content(gold: str, question: str) -> GoldContent:
    stated = _read_gold(gold)
    asked = read(question)
    answers_yes = None
    all_words = _words_beside_figures(stated)
    runs = stated.runs
    if _may_be_polar(stated) and stated.opening.alone in YES_OR_NO_GOLDS:
        answers_yes = stated.opening.says_yes
        # What follows is a detail, which an answer may leave out or word otherwise; only its figures must agree.
        all_words = ()
        runs = ()
    new_words = tuple(word for word in all_words if word.form not in asked.affirmed)
    new_quantities = _new_quantities(stated, asked)
    words = all_words
    quantities = stated.quantities
    if new_words or new_quantities or answers_yes is not None:
        words = new_words
        quantities = new_quantities
    items = () if answers_yes is not None or quantities else items_of(gold, question)
    items = tuple(item for item in items if item.runs or not item.affirmed <= asked.affirmed)
    is_list = len(items) > 1
    if is_list and runs:
        runs = tuple(run for item in items for run in item.runs)
    has_only_words = bool(all_words) and not stated.quantities and not runs and answers_yes is None
    is_choice = bool(quantities) and any(quantity.is_choice for quantity in quantities)
    return GoldContent(
        gold=gold,
        question=question,
        answers_yes=answers_yes,
        words=words,
        quantities=quantities,
        runs=runs,
        weighted=tuple(_weighted_items(words, items, question) if is_list else _weighted(words, gold, question)),
        whole_weight=WHOLE_WEIGHT if is_list else 0.0,
        has_choice=is_choice or not CHOICES.isdisjoint(gold.casefold().split()),
        is_asked_negatively=asked.is_denying or asks_for_exception(question),
        has_year=bool(quantities) and any(_is_year(quantity.figure) for quantity in quantities),
        is_old=has_only_words and not new_words and not _offers_answers(question),
        stated=stated,
    )


@lru_cache(maxsize=256)
def _offers_answers(question: str) -> bool:
    """Check for a question that has either answer in it, and asks for it: is it red or blue?"""
    return "or" in question[:LONGEST].casefold().split()


@lru_cache(maxsize=256)
def _asks_who(question: str) -> bool:
    """Check whether a question asks for a person or a body of persons."""
    return _ASKS_WHO.search(question) is not None


@lru_cache(maxsize=256)
def _asks_for_person(question: str) -> bool:
    return _ASKS_FOR_PERSON.search(question) is not None


def _may_be_polar(stated: Statement) -> bool:
    """Check the first word, which costs less than to read the opening."""
    return bool(stated.pieces) and stated.pieces[0] in YES_OR_NO_GOLDS


def _words_beside_figures(stated: Statement) -> tuple[StatedWord, ...]:
    """Return the words that are neither negators nor units: denial and units are compared by their own rules."""
    units = {quantity.unit for quantity in stated.quantities}
    return tuple(word for word in stated.words if word.written not in NEGATORS and word.written not in units)


def _new_quantities(stated: Statement, asked: Statement) -> tuple[Quantity, ...]:
    if not stated.quantities:
        return ()
    asked_figures = {quantity.figure for quantity in asked.quantities}
    return tuple(quantity for quantity in stated.quantities if quantity.figure not in asked_figures)


def _read_gold(gold: str) -> Statement:
    """Read a gold without its remarks in parentheses, if anything else is left."""
    if "(" in gold:
        bare = read(_REMARK.sub(" ", gold[:LONGEST]))
        if bare.words or bare.quantities or bare.runs:
            return bare
    return read(gold)


def _weighted_items(
    words: Sequence[StatedWord], items: Sequence[Statement], question: str
) -> Iterator[tuple[StatedWord, float]]:
    """Yield each word of a list with its weight: the words of an item weigh one together."""
    rest = list(words)
    for item in items:
        own = [word for word in rest if word.form in item.affirmed]
        rest = [word for word in rest if word.form not in item.affirmed]
        weighted = list(_weighted(own, item.text, question, LAST_NAME_WEIGHT_IN_LISTS))
        total = sum(weight for _, weight in weighted)
        for word, weight in weighted:
            yield word, weight / total


def _weighted(
    words: Sequence[StatedWord], gold: str, question: str, last_name_weight: float = LAST_NAME_WEIGHT
) -> Iterator[tuple[StatedWord, float]]:
    """Yield each word with its weight: a general noun tells half as much; of a person's names the last counts most.

    A place and where it lies, "Rock Island, Illinois", are half each.
    """
    weights = [GENERAL_WEIGHT if word.written in GENERAL_NOUNS else 1.0 for word in words]
    place, comma, region = gold.partition(",")
    if comma and "," not in region:
        n_of_place = sum(word.written in place.casefold() for word in words)
        if 0 < n_of_place < len(words):
            of_place = weights[:n_of_place]
            of_region = weights[n_of_place:]
            total_of_place = sum(of_place)
            total_of_region = sum(of_region)
            weights = [FIRST_PLACE_WEIGHT * weight / total_of_place for weight in of_place]
            weights += [weight / total_of_region for weight in of_region]
    elif len(words) > 1 and _asks_for_person(question) and _are_capitalised(words, gold):
        weights[-1] = last_name_weight * sum(weights[:-1])
    yield from zip(words, weights, strict=True)


def _are_capitalised(words: Sequence[StatedWord], text: str) -> bool:
    return all(word.written.capitalize() in text for word in words)


def _is_year(figure: str) -> bool:
    return len(figure) == 4 and figure.isdigit() and figure[0] in "12"


_REMARK = re.compile(r"\([^()]{0,200}\)")
_ASKS_FOR_PERSON = re.compile(r"\b(?:who|whose|whom|wer|wem|wen|qui|quién|quien)\b|누구|누가|谁|誰|だれ", re.IGNORECASE)
_ASKS_WHO = re.compile(
    rf"{_ASKS_FOR_PERSON.pattern}|\b(?:(?:which|what) (?:team|country|company|person|department|party|club|nation)"
    r"|welche[rs]? (?:team|verein|land|firma|abteilung|mannschaft)|quelle? (?:équipe|pays)|qué equipo)\b",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"version|versión|\brelease|firmware|\bv\.? ?[0-9]|python|버전|릴리스|版本|固件|バージョン|ファームウェア",
    re.IGNORECASE,
)
