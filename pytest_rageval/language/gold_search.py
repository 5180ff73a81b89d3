"""Whether a short gold answer stands in an answer of any length.

The share of the gold's content words that the answer has too, with inflections folded. A figure with its unit is one
thing, compared as a quantity: without it the share is 0. Words of the question count only if the gold has no others.
What the answer denies, or offers as one of several alternatives, is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, Overflow
from functools import lru_cache, partial

from pytest_rageval.language.answer_subject import are_of_another, is_denied_of
from pytest_rageval.language.directions import says_the_opposite
from pytest_rageval.language.gold_content import GoldContent, gold_content
from pytest_rageval.language.identifiers import as_named, has_acronyms
from pytest_rageval.language.named_figures import unit_forms
from pytest_rageval.language.namesakes import names_a_namesake
from pytest_rageval.language.quantity_names import COMPARISONS_BEFORE, SIGNS, UNIT_PHRASES
from pytest_rageval.language.question_fit import FigureFit, compare_figures
from pytest_rageval.language.stated_quantities import Quantity, are_same_number
from pytest_rageval.language.stated_words import StatedWord, folded_word, has_alike
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
    other_figure: str = ""
    """The first figure of the answer that could stand for a missing one of the gold; '' without one."""

    @property
    def sentence(self) -> str:
        """Return what is missing, for readers; '' if nothing is."""
        if not self.missing:
            return ""
        verb = "is" if len(self.missing) == 1 else "are"
        words = " and ".join(f"`{word}`" for word in self.missing)
        sentence = f"{words} {verb} not in the answer"
        if self.instead:
            sentence += f"; {self.instead}"
        return sentence


def best_fit(answer: str, golds: Sequence[str], question: str = "") -> GoldFit:
    """Return the gold that fits an answer best."""
    best: GoldFit | None = None
    stated = read(answer)
    wanted = [gold_content(gold, question) for gold in golds]
    # A gold that only repeats the question stands in every answer that does.
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


def _fit(answer: Statement, wanted: GoldContent) -> GoldFit:
    gold = wanted.gold
    if wanted.answers_yes is not None:
        says = says_yes(answer.text, wanted.question)
        # "Students get 10 % off" says no yes to "Yes, 10 %", but what follows from it.
        is_implied = says is None and wanted.answers_yes and bool(wanted.quantities)
        if says is not wanted.answers_yes and not is_implied:
            return GoldFit(0.0, gold, (gold,), _POLARITIES[says])
        if not (wanted.words or wanted.quantities or wanted.runs):
            return GoldFit(1.0, gold)
    if wanted.identifiers and not wanted.whole_weight:
        named = as_named(answer.text, wanted.identifiers)
        others = [one.written for one in wanted.identifiers if one.pattern.search(named) is None]
        if others:
            return GoldFit(0.0, gold, tuple(others))
        answer = read(named)
    # A figure counts all or nothing: the words around "24 months" stand in "12 months", too.
    figures = _fit_of_figures(answer, wanted)
    if figures.missing:
        return figures
    # "By card, PayPal or bank transfer" lists what a list has.
    if not wanted.has_choice and not wanted.whole_weight:
        undecided = [word.written for word in wanted.words if word.form in answer.open]
        if undecided:
            return GoldFit(0.0, gold, tuple(undecided), "it is one of several alternatives there")
    missing: list[str] = []
    total = 0.0
    for quantity in wanted.quantities:
        total += 1 if quantity.unit in ("", "date") else 2  # a figure with its unit is two words
    shared = total * figures.share
    is_opposed = False
    for word, weight in wanted.weighted:
        total += weight
        if _is_stated(word, answer, wanted):
            shared += weight
            continue
        missing.append(word.written)
        is_opposed = is_opposed or _is_opposed(word, answer)
    # A run of Han or kana is a phrase: two characters of it weigh as a word does.
    for run in wanted.runs:
        weight = 1.0 if wanted.whole_weight else max(1.0, len(run.form) / 2)
        total += weight
        share = _share_of_run(run, answer)
        if wanted.whole_weight and share < 1 and len(run.form) <= _SHORT_ITEM:
            # Of 韓国語 and 中国語 half of the pairs are the same.
            share = 0.0
        shared += weight * share
        if share < 1:
            missing.append(run.written)
    total += wanted.whole_weight
    if not missing:
        shared += wanted.whole_weight
    if not total:
        return _fit_of_quote(answer, gold)
    if wanted.acronyms and not has_acronyms(answer.text, wanted.acronyms):
        return GoldFit(0.0, gold, (gold,))
    if shared and wanted.asks_who and _is_of_another(answer, wanted):
        return GoldFit(0.0, gold, (gold,), "what is asked is said of another there")
    if shared and _is_denied(answer, wanted):
        return GoldFit(0.0, gold, (gold,), "it is denied there")
    if shared and says_the_opposite(wanted.stated.plain, answer.plain):
        return GoldFit(0.0, gold, (gold,), "it says the opposite")
    if is_opposed:
        return GoldFit(0.0, gold, tuple(missing), "it says the opposite")
    if shared and missing and wanted.asks_for_person and names_a_namesake(answer.text, gold, wanted.question):
        return GoldFit(0.0, gold, tuple(missing), "another first name stands there")
    if not shared:
        missing = [gold]
    return GoldFit(shared / total, gold, tuple(missing))


def _fit_of_figures(answer: Statement, wanted: GoldContent) -> GoldFit:
    """Return the fit of the gold's figures alone; a month or day that the answer leaves out costs a quarter."""
    missing: list[str] = []
    instead = ""
    other_figure = ""
    vague = 0.0
    for quantity in wanted.quantities:
        if quantity.unit == "date" and wanted.has_year and not _names(answer, quantity.figure[:3]):
            vague += 1 / 4
            continue
        why = _why_missing(quantity, answer, wanted)
        if why is not None:
            missing.append(_as_written(quantity, wanted.gold))
            instead = instead or why
            other_figure = other_figure or _other_figure(quantity, answer, wanted)
    if missing:
        return GoldFit(0.0, wanted.gold, tuple(dict.fromkeys(missing)), instead, other_figure)
    return GoldFit(1 - vague, wanted.gold)


def _fit_of_quote(answer: Statement, gold: str) -> GoldFit:
    """Return the fit of a gold without content, such as a mark: 1 if the answer quotes it."""
    is_quoted = bool(gold.strip()) and f" {normalise(gold)} " in f" {normalise(answer.text)} "
    if is_quoted:
        return GoldFit(1.0, gold)
    return GoldFit(0.0, gold, (gold,))


_KNOWN_UNITS = frozenset(unit_forms().values()) | frozenset(UNIT_PHRASES.values()) | frozenset(("yuan", "chf"))
_POLARITIES = {True: "it says yes", False: "it says no", None: "it says neither yes nor no"}
_SHORT_ITEM = 4
_MOST_FIGURES = 8
"""Of a gold whose figures are compared with others of the answer."""
_LONGEST_SHOWN = 40
_SIGNS = tuple(SIGNS)
_WITHIN_FIGURES = tuple("0123456789.,")
# A pattern with the figure in it would be compiled for each figure, which takes milliseconds.
_MORE_OF_A_FIGURE = re.compile(r"[\w.,]*[0-9]")
_UNIT_BEHIND = re.compile(r"(?:[ -]?(?:[一-鿿ぁ-ヿ]{1,3}|[^\W\d_]{1,24}))?")

# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_stated(word: StatedWord, answer: Statement, gold: GoldContent) -> bool:
    there = answer.denied if word.is_denied else answer.affirmed
    if gold.is_asked_negatively:
        there = answer.affirmed | answer.denied
    if word.form in there:
        return True
    if word.written in ROMAN_NUMERALS:
        return any(quantity.figure == ROMAN_NUMERALS[word.written] for quantity in answer.quantities)
    if has_alike(word.form, there):
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
    # Without spaces there are no words to count: pairs of characters are what retrieval uses for these scripts.
    pairs = {run.form[at : at + 2] for at in range(len(run.form) - 1)}
    if not pairs:
        return 0.0
    return sum(any(pair in text for text in texts) for pair in pairs) / len(pairs)


# ── quantities ────────────────────────────────────────────────────────────────────────────────────────────────


def _why_missing(wanted: Quantity, answer: Statement, gold: GoldContent) -> str | None:
    """Return what an answer says instead of a quantity, '' for nothing; None if it says it."""
    instead = ""
    if not wanted.unit and wanted.figure in answer.roman:
        return None
    for quantity in answer.quantities:
        if not _are_equal(wanted, quantity, answer, gold):
            if wanted.unit and quantity.unit == wanted.unit and not quantity.is_denied and wanted.unit != "date":
                instead = instead or f"it says {_with_bound(quantity, answer.text)}"
        elif quantity.is_denied is not wanted.is_denied and not gold.is_asked_negatively:
            instead = "it is denied there"
        elif quantity.is_choice and not gold.has_choice and not _compared(wanted, answer, gold).is_ahead:
            instead = "it is one of several alternatives there"
        else:
            better = _compared(wanted, answer, gold).better
            return f"for what is asked it says {better}" if better else None
    return instead


def _other_figure(wanted: Quantity, answer: Statement, gold: GoldContent) -> str:
    """Return the first figure of the answer in the unit of a missing one, as written; '' without one.

    An answer that has the figure too, denied or as an alternative, has no other one in its place.
    """
    other = ""
    for quantity in answer.quantities:
        if _are_equal(wanted, quantity, answer, gold):
            return ""
        if quantity.unit == wanted.unit and not quantity.is_denied:
            other = other or _as_written(quantity, answer.text)
    return other


def _is_of_another(answer: Statement, gold: GoldContent) -> bool:
    names = frozenset(word.form for word in gold.words)
    return bool(names) and are_of_another(names, answer.text, gold.question)


def _is_denied(answer: Statement, gold: GoldContent) -> bool:
    """Check whether an answer denies of the gold what is asked, where the gold denies nothing itself."""
    if any(word.is_denied for word in (*gold.words, *gold.runs)):
        return False
    names = [word.written for word in (*gold.words, *gold.runs)]
    names.extend(quantity.figure for quantity in gold.quantities)
    return bool(names) and is_denied_of(names, answer.text, gold.question)


def _compared(wanted: Quantity, answer: Statement, gold: GoldContent) -> FigureFit:
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


def _with_bound(quantity: Quantity, text: str) -> str:
    """Return a quantity as its text has it, with the words of a bound: `fewer than 20 employees`."""
    shown = _as_written(quantity, text)
    words = _BOUNDS.get(quantity.comparison)
    if words is None:
        return shown
    ahead = text.partition(shown)[0].rstrip().lower()
    for phrases in COMPARISONS_BEFORE.values():
        for phrase, sign in phrases.items():
            if sign == quantity.comparison and ahead.endswith(f" {phrase}"):
                return f"{phrase} {shown}"
    return f"{words} {shown}"


_THIRDS = frozenset(("33%", "33.3%", "33.33%"))
"""A third is read as 33 %; a gold may round it otherwise."""
_BOUNDS = {"<": "less than", ">": "more than", "≤": "at most", "≥": "at least", "≈": "about"}


@lru_cache(maxsize=256)
def _behind_figure(unit: str) -> re.Pattern[str]:
    """Return the pattern of what is shown of the text behind a figure with this unit."""
    if unit[-1:] in _SIGNS:
        return re.compile(rf"(?:\s?{re.escape(unit)}|\s[a-z]{{3,12}}s?)?")
    return _UNIT_BEHIND


def _are_equal(wanted: Quantity, other: Quantity, answer: Statement, gold: GoldContent) -> bool:
    if wanted.comparison and wanted.comparison != other.comparison:
        return False
    if not wanted.comparison and other.comparison in ("<", ">", "≠"):
        return False
    # Python 3.1 is not Python 3.10, though the numbers are equal.
    if wanted.figure != other.figure and gold.is_version and _is_decimal(wanted.figure) and _is_decimal(other.figure):
        return False
    if are_same_number(wanted, other):
        return True
    if wanted.figure in _THIRDS and other.figure in _THIRDS:
        return True
    if _is_share_of_one(wanted, other) or _is_share_of_one(other, wanted):
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


def _is_share_of_one(percentage: Quantity, share: Quantity) -> bool:
    """Check whether a bare figure below one is a percentage: 0.45 are 45 %."""
    is_share = not _is_known(share.unit) if share.unit else True
    if not (is_share and percentage.figure.endswith("%") and share.figure.startswith("0.")):
        return False
    try:
        return Decimal(percentage.figure[:-1]) == 100 * Decimal(share.figure)
    except (InvalidOperation, Overflow):
        return False


def _is_same_figure(figure: str, other: str) -> bool:
    # Not as floats: two long figures that differ in their last digit would be equal.
    try:
        return figure == other or Decimal(figure) == Decimal(other)
    except InvalidOperation:
        return False


def _is_decimal(figure: str) -> bool:
    """Check for a point within, and no zero alone behind it: "3.0" is often written "3"."""
    return "." in figure and not figure.endswith(".0")


def _is_known(unit: str) -> bool:
    return unit in _KNOWN_UNITS or unit[-1] in SIGNS
