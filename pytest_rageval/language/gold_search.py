"""Whether a short gold answer stands in an answer of any length.

The share of the gold's content words that the answer has too, with inflections folded. A figure with its unit is one
thing, compared as a quantity: without it the share is 0. Words of the question count only if the gold has no others.
What the answer denies, or offers as one of several alternatives, is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache, partial

from pytest_rageval.language.named_figures import unit_forms
from pytest_rageval.language.polarity_words import CHOICES, GENERAL_NOUNS, NEGATORS, YES_OR_NO_GOLDS
from pytest_rageval.language.quantity_names import SIGNS, UNIT_PHRASES
from pytest_rageval.language.question_fit import FigureFit, are_of_another, compare_figures
from pytest_rageval.language.stated_quantities import Quantity, are_same_number
from pytest_rageval.language.stated_words import StatedWord, are_alike, folded_word
from pytest_rageval.language.statements import (
    LONGEST,
    ROMAN_NUMERALS,
    Statement,
    read,
)
from pytest_rageval.language.words import normalise
from pytest_rageval.language.yes_or_no import says_yes


@dataclass(frozen=True)
class GoldFit:
    """How much of a gold stands in an answer, what is missing, and what the answer says in its place."""

    share: float
    gold: str
    missing: tuple[str, ...] = ()
    instead: str = ""

    @property
    def sentence(self) -> str:
        """Return what is missing, for readers; '' if nothing is."""
        if not self.missing:
            return ""
        verb = "is" if len(self.missing) == 1 else "are"
        words = " and ".join(f"`{word}`" for word in self.missing)
        return f"{words} {verb} not in the answer" + (f"; {self.instead}" if self.instead else "")


def best_fit(answer: str, golds: Sequence[str], question: str = "") -> GoldFit:
    """Return the gold that fits an answer best."""
    best: GoldFit | None = None
    stated = read(answer)
    wanted = [_wanted(gold, question) for gold in golds]
    if not all(one.is_old for one in wanted):
        wanted = [one for one in wanted if not one.is_old]
    for one in wanted:
        fit = _fit(stated, one)
        if best is None or fit.share > best.share:
            best = fit
        if best.share == 1:
            break
    assert best is not None
    return best


def _fit(answer: Statement, wanted: _Wanted) -> GoldFit:
    gold = wanted.gold
    if wanted.answers_yes is not None:
        says = says_yes(answer.text, wanted.question)
        if says is not wanted.answers_yes:
            return GoldFit(0.0, gold, (gold,), f"it says {'yes' if says else 'no'}")
        if not (wanted.words or wanted.quantities or wanted.runs):
            return GoldFit(1.0, gold)
    missing: list[str] = []
    instead = ""
    vague = 0.0
    for quantity in wanted.quantities:
        if quantity.unit == "date" and wanted.has_year and not _names(answer, quantity.figure[:3]):
            vague += 1 / 4
            continue
        why = _why_missing(quantity, answer, wanted)
        if why is not None:
            missing.append(_as_written(quantity, gold))
            instead = instead or why
    if missing:
        return GoldFit(0.0, gold, tuple(dict.fromkeys(missing)), instead)
    if not wanted.has_choice:
        undecided = [word.written for word in wanted.words if word.form in answer.open]
        if undecided:
            return GoldFit(0.0, gold, tuple(undecided), "it is one of several alternatives there")
    # A figure with its unit is two words.
    total = float(sum(2 if quantity.unit not in ("", "date") else 1 for quantity in wanted.quantities))
    shared = total * (1 - vague)
    opposed = False
    for word, weight in wanted.weighted:
        total += weight
        if _is_stated(word, answer, wanted):
            shared += weight
            continue
        missing.append(word.written)
        opposed = opposed or _is_opposed(word, answer)
    for run in wanted.runs:
        weight = max(1.0, len(run.form) / 2)
        total += weight
        part = _share_of_run(run, answer)
        shared += weight * part
        if part < 1:
            missing.append(run.written)
    if not total:
        is_there = bool(gold.strip()) and f" {normalise(gold)} " in f" {normalise(answer.text)} "
        return GoldFit(float(is_there), gold, () if is_there else (gold,))
    if shared and wanted.asks_who and _is_of_another(answer, wanted):
        return GoldFit(0.0, gold, (gold,), "what is asked is said of another there")
    if opposed:
        return GoldFit(0.0, gold, tuple(missing), "it says the opposite")
    if not shared:
        missing = [gold]
    return GoldFit(shared / total, gold, tuple(missing))


# ── what a gold wants ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Wanted:
    """The content of a gold that the question does not have."""

    gold: str
    question: str
    answers_yes: bool | None
    words: tuple[StatedWord, ...]
    quantities: tuple[Quantity, ...]
    runs: tuple[StatedWord, ...]
    weighted: tuple[tuple[StatedWord, float], ...]
    has_choice: bool
    is_asked_negatively: bool
    """Whether the question denies: then an answer may repeat the negation."""
    has_year: bool
    is_old: bool
    """Whether the question has all of it."""

    # Few golds need these, and their patterns try every place of the question.
    @cached_property
    def asks_who(self) -> bool:
        """Check whether the question asks for a person or a body of persons."""
        return _ASKS_WHO.search(self.question) is not None

    @cached_property
    def is_version(self) -> bool:
        """Check whether the figures are versions: then 3.10 is not 3.1."""
        return _VERSION.search(f"{self.question}\n{self.gold}") is not None


@lru_cache(maxsize=4096)
def _wanted(gold: str, question: str) -> _Wanted:
    stated, asked = _read_gold(gold), read(question)
    answers_yes = None
    words, runs = stated.words, stated.runs
    if stated.opening in YES_OR_NO_GOLDS:
        answers_yes = stated.answers_yes
        # What follows is a detail, which an answer may leave out or word otherwise; only its figures must agree.
        words = runs = ()
    words = tuple(word for word in words if word.form not in _NEGATOR_STEMS)
    units = {quantity.unit for quantity in stated.quantities}
    words = tuple(word for word in words if word.written not in units)
    quantities = stated.quantities
    new_words = tuple(word for word in words if word.form not in asked.affirmed)
    asked_figures = {quantity.figure for quantity in asked.quantities}
    new_quantities = tuple(quantity for quantity in quantities if quantity.figure not in asked_figures)
    is_old = bool(words) and not (new_words or quantities or runs or answers_yes is not None)
    is_old = is_old and asked.text.casefold().split().count("or") == 0
    if new_words or new_quantities or answers_yes is not None:
        words, quantities = new_words, new_quantities
    has_choice = any(quantity.is_choice for quantity in quantities) or not CHOICES.isdisjoint(gold.casefold().split())
    has_year = any(_is_year(quantity.figure) for quantity in quantities)
    weighted = tuple(_weighted(words, gold, question))
    return _Wanted(
        gold,
        question,
        answers_yes,
        words,
        quantities,
        runs,
        weighted,
        has_choice,
        is_asked_negatively=asked.is_denying,
        has_year=has_year,
        is_old=is_old,
    )


def _read_gold(gold: str) -> Statement:
    """Read a gold without its remarks in parentheses, if anything else is left."""
    bare = read(_REMARK.sub(" ", gold[:LONGEST]) if "(" in gold else gold)
    return bare if bare.words or bare.quantities or bare.runs else read(gold)


def _weighted(words: Sequence[StatedWord], gold: str, question: str) -> Iterator[tuple[StatedWord, float]]:
    """Yield each word with its weight: a general noun tells half as much; of a person's names the last counts most.

    A place and where it lies, "Rock Island, Illinois", are half each.
    """
    weights = [GENERAL_WEIGHT if word.written in GENERAL_NOUNS else 1.0 for word in words]
    first, comma, second = gold.partition(",")
    if comma and "," not in second:
        before = sum(word.written in first.casefold() for word in words)
        if 0 < before < len(words):
            left, right = sum(weights[:before]), sum(weights[before:])
            weights = [FIRST_PLACE_WEIGHT * weight / left for weight in weights[:before]] + [
                weight / right for weight in weights[before:]
            ]
    elif (
        len(words) > 1
        and all(_is_capitalised(word.written, gold) for word in words)
        and _ASKS_FOR_PERSON.search(question) is not None
    ):
        weights[-1] = LAST_NAME_WEIGHT * sum(weights[:-1])
    yield from zip(words, weights, strict=True)


def _is_capitalised(word: str, text: str) -> bool:
    return word.capitalize() in text


_REMARK = re.compile(r"\([^()]{0,200}\)")
_ASKS_FOR_PERSON = re.compile(r"\b(?:who|whose|whom|wer|wem|wen|qui|quién|quien)\b|누구|누가|谁|誰|だれ", re.IGNORECASE)
_ASKS_WHO = re.compile(
    rf"{_ASKS_FOR_PERSON.pattern}|\b(?:(?:which|what) (?:team|country|company|person|department|party|club|nation)"
    r"|welche[rs]? (?:team|verein|land|firma|abteilung|mannschaft)|quelle? (?:équipe|pays)|qué equipo)\b",
    re.IGNORECASE,
)
_KNOWN_UNITS = frozenset(unit_forms().values()) | frozenset(UNIT_PHRASES.values()) | frozenset(("yuan", "chf"))
_MOST_FIGURES = 8
"""Of a gold whose figures are compared with others of the answer."""
GENERAL_WEIGHT = 0.5
_LONGEST_SHOWN = 40
_SIGNS = tuple(SIGNS)
_WITHIN_FIGURES = tuple("0123456789.,")
# A pattern with the figure in it would be compiled for each figure, which takes milliseconds.
_MORE_OF_A_FIGURE = re.compile(r"[\w.,]*[0-9]")
_UNIT_BEHIND = re.compile(r"(?:[ -]?(?:[一-鿿ぁ-ヿ]{1,3}|[^\W\d_]{1,24}))?")
FIRST_PLACE_WEIGHT = 1.2
LAST_NAME_WEIGHT = 1.1
_NEGATOR_STEMS = frozenset(map(folded_word, NEGATORS))

# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_stated(word: StatedWord, answer: Statement, gold: _Wanted) -> bool:
    there = answer.denied if word.is_denied else answer.affirmed
    if gold.is_asked_negatively:
        there = answer.affirmed | answer.denied
    if word.form in there:
        return True
    if word.written in ROMAN_NUMERALS:
        return any(quantity.figure == ROMAN_NUMERALS[word.written] for quantity in answer.quantities)
    if any(are_alike(word.form, other) for other in there):
        return True
    return not word.is_denied and word.written in answer.joined


def _is_opposed(word: StatedWord, answer: Statement) -> bool:
    """Check whether the answer has the word with the other polarity only."""
    return word.form in (answer.affirmed if word.is_denied else answer.denied)


def _share_of_run(run: StatedWord, answer: Statement) -> float:
    """Return the share of a run's pairs of characters that the answer has; 1 if it quotes the run."""
    texts = [other.form for other in answer.runs if other.is_denied is run.is_denied]
    if any(run.form in text for text in texts):
        return 1.0
    pairs = {run.form[at : at + 2] for at in range(len(run.form) - 1)}
    if not pairs:
        return 0.0
    return sum(any(pair in text for text in texts) for pair in pairs) / len(pairs)


# ── quantities ────────────────────────────────────────────────────────────────────────────────────────────────


def _why_missing(wanted: Quantity, answer: Statement, gold: _Wanted) -> str | None:
    """Return what an answer says instead of a quantity, '' for nothing; None if it says it."""
    instead = ""
    if not wanted.unit and wanted.figure in answer.roman:
        return None
    for quantity in answer.quantities:
        if not _are_equal(wanted, quantity, answer, gold):
            if wanted.unit and quantity.unit == wanted.unit and not quantity.is_denied and wanted.unit != "date":
                instead = instead or f"it says {_as_written(quantity, answer.text)}"
        elif quantity.is_denied is not wanted.is_denied and not gold.is_asked_negatively:
            instead = "it is denied there"
        elif quantity.is_choice and not gold.has_choice and not _compared(wanted, answer, gold).is_ahead:
            instead = "it is one of several alternatives there"
        else:
            better = _compared(wanted, answer, gold).better
            return f"for what is asked it says {better}" if better else None
    return instead


def _is_of_another(answer: Statement, gold: _Wanted) -> bool:
    names = frozenset(word.form for word in gold.words)
    return bool(names) and are_of_another(names, answer.text, gold.question)


def _compared(wanted: Quantity, answer: Statement, gold: _Wanted) -> FigureFit:
    if len(answer.quantities) == 1 or len(gold.quantities) > _MOST_FIGURES:
        return FigureFit()
    checks = [partial(_are_equal, one, answer=answer, gold=gold) for one in gold.quantities]
    return compare_figures(checks, gold.quantities.index(wanted), answer.text, gold.question)


def _names(answer: Statement, part: str) -> bool:
    """Check whether an answer names a month, or a day, at all."""
    return any(quantity.figure.startswith(part) for quantity in answer.quantities)


def _as_written(quantity: Quantity, text: str) -> str:
    """Return a quantity as its text has it, or in its one form where the text words it otherwise."""
    if quantity.unit == "date":
        return text if len(text) <= _LONGEST_SHOWN else quantity.figure
    text = text[:LONGEST]
    start = text.find(quantity.figure)
    while start >= 0:
        end = start + len(quantity.figure)
        if _MORE_OF_A_FIGURE.match(text, end) is None:
            before = text[max(0, start - 2) : start]
            behind = _behind_figure(quantity.unit).match(text, end)
            assert behind is not None  # it may be empty
            if before[-1:] in _SIGNS and before[:-1] not in _WITHIN_FIGURES:
                return text[start - 1 : behind.end()].strip()
            if before[-1:] not in _WITHIN_FIGURES:
                return text[start : behind.end()].strip()
        start = text.find(quantity.figure, start + 1)
    return quantity.written


@lru_cache(maxsize=256)
def _behind_figure(unit: str) -> re.Pattern[str]:
    """Return the pattern of what is shown of the text behind a figure with this unit."""
    if unit[-1:] in _SIGNS:
        return re.compile(rf"(?:\s?{re.escape(unit)}|\s[a-z]{{3,12}}s?)?")
    return _UNIT_BEHIND


def _are_equal(wanted: Quantity, other: Quantity, answer: Statement, gold: _Wanted) -> bool:
    if wanted.comparison and wanted.comparison != other.comparison:
        return False
    if not wanted.comparison and other.comparison in ("<", ">", "≠"):
        return False
    if wanted.figure != other.figure and gold.is_version and _is_decimal(wanted.figure) and _is_decimal(other.figure):
        return False
    if are_same_number(wanted, other):
        return True
    if wanted.unit == "hour" and other.figure == f"{wanted.figure}:00":
        return True
    if not _is_same_figure(wanted.figure, other.figure):
        return False
    if wanted.unit == other.unit or not wanted.unit or not other.unit:
        return True
    if _is_known(wanted.unit) and _is_known(other.unit):
        return False
    # "10 wins" is not in "3 wins and 10 losses": the answer has another figure of it.
    return folded_word(wanted.unit) not in {folded_word(one.unit) for one in answer.quantities}


def _is_same_figure(figure: str, other: str) -> bool:
    try:
        return figure == other or Decimal(figure) == Decimal(other)
    except InvalidOperation:
        return False


def _is_decimal(figure: str) -> bool:
    """Check for a point within, and no zero alone behind it: "3.0" is often written "3"."""
    return "." in figure and not figure.endswith(".0")


_VERSION = re.compile(
    r"version|versión|\brelease|firmware|\bv\.? ?[0-9]|python|버전|릴리스|版本|固件|バージョン|ファームウェア",
    re.IGNORECASE,
)


def _is_known(unit: str) -> bool:
    return unit in _KNOWN_UNITS or unit[-1] in SIGNS


def _is_year(figure: str) -> bool:
    return len(figure) == 4 and figure.isdigit() and figure[0] in "12"
