"""Which of several figures in an answer the question asks about: "Adults pay 9 euros, children 4".

An answer is cut into parts at the ends of clauses and at "and", "or", "while". A part fits a question by the content
words that it shares with it. A part that only names another subject, "children 4", goes on with what its sentence
began.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pytest_rageval.language.named_figures import unit_forms
from pytest_rageval.language.polarity_words import CHOICES, CONTRASTS, RELATIVE
from pytest_rageval.language.quantity_names import SIGNS
from pytest_rageval.language.stated_quantities import FIGURE, Quantity, kind
from pytest_rageval.language.stated_words import StatedWord, folded_word, has_alike
from pytest_rageval.language.statements import (
    CLAUSE,
    MARKS,
    REMARK,
    SENTENCE,
    read,
    read_clause,
)


@dataclass(frozen=True)
class AnswerPart:
    """A part of a sentence around its figures."""

    before: tuple[str, ...]
    """Content words before the first figure, folded."""
    behind: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    runs: tuple[str, ...]
    sentence: int
    is_remark: bool = False
    """Whether it stands in parentheses: 6 feet (183 cm)."""
    relative: frozenset[str] = frozenset()
    """The words that make its figures a difference or an extra: 4,200 yen more."""

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.before, *self.behind)


class PartFit(NamedTuple):
    """The words of the question that stand in a part."""

    part: AnswerPart
    shared: frozenset[str]
    near: frozenset[str]
    """Those of them that no other part of the sentence can have meant too."""


class FigureFit(NamedTuple):
    """How a figure fits the question beside the other figures of its kind."""

    is_ahead: bool = False
    """Whether its part has all that any other has of the question, and more."""
    better: str = ""
    """Another figure whose part has all that this one's has, and more."""


def compare_figures(wanted: Sequence[Callable[[Quantity], bool]], at: int, answer: str, question: str) -> FigureFit:
    """Compare the place of a gold's figure with those of other figures of its kind.

    Words count as sets: a part that only shares more words, but lacks one, may name the same thing otherwise.

    wanted  a check for each figure of the gold
    at      the place of the compared one among them
    """
    parts = _parts(answer)
    is_compared = wanted[at]
    own: list[int] = []
    kinds: set[str] = set()
    for place, part in enumerate(parts):
        figures = [quantity for quantity in part.quantities if is_compared(quantity)]
        if figures:
            own.append(place)
            kinds.update(map(_kind, figures))
    asked = read(question)
    asked_figures = {quantity.figure for quantity in asked.quantities}
    rivals: list[tuple[int, Quantity]] = []
    for place, part in enumerate(parts):
        if place in own or part.is_remark or not any(_are_comparable(part, parts[one]) for one in own):
            continue
        if not part.relative <= set(asked.pieces):
            continue
        for quantity in part.quantities:
            is_rival = quantity.figure not in asked_figures and _is_of_kind(quantity, kinds)
            if is_rival and not any(is_wanted(quantity) for is_wanted in wanted):
                rivals.append((place, quantity))
    if not rivals:
        return FigureFit()
    # Comparing words with the question's is most of the work, and most answers have no rivals.
    fits = _fits(parts, question)
    words_of_rivals = [fits[place].shared for place, _ in rivals]
    own_fits = [fits[place] for place in own]
    return FigureFit(
        is_ahead=any(_is_ahead(fit, words_of_rivals) for fit in own_fits),
        better=_better(own_fits, [(fits[place], quantity) for place, quantity in rivals], question),
    )


def _better(own: Sequence[PartFit], rivals: Sequence[tuple[PartFit, Quantity]], question: str) -> str:
    """Return the first rival whose part has all that each part of the figure's own has of the question, and more."""
    n_asked = len(_asked_words(question)) + len(_asked_pairs(question))
    for rival, quantity in rivals:
        has_most = len(rival.shared) > n_asked / 2
        if all(fit.shared < rival.shared and (has_most or _are_parallel(fit, rival)) for fit in own):
            return quantity.written
    return ""


def _are_parallel(fit: PartFit, rival: PartFit) -> bool:
    """Check that two parts say the same of different things, or that both have something of the question.

    "Four nights cost 61,000 yen. The inn charges 4,200 yen for parking": that only the second part names the inn of the
    question does not make its figure the asked one.
    """
    if fit.shared:
        return True
    part = fit.part
    other = rival.part
    is_short = _goes_on(part) or _goes_on(other)
    if part.sentence == other.sentence and (is_short or (part.runs and other.runs)):
        return True
    return not set(part.words).isdisjoint(other.words)


def _is_ahead(fit: PartFit, others: Sequence[frozenset[str]]) -> bool:
    """Check that a part has more of the question than each other, and has it near its figure."""
    return all(fit.shared > other and not fit.near <= other for other in others)


def _are_comparable(part: AnswerPart, other: AnswerPart) -> bool:
    """Check for one sentence, or two short ones: in a long text words of the question stand in every sentence."""
    if part.sentence == other.sentence:
        return True
    is_short = max(len(part.words), len(other.words)) <= _WORDS_OF_A_SHORT_SENTENCE
    return is_short and abs(part.sentence - other.sentence) == 1


def _fits(parts: Sequence[AnswerPart], question: str) -> list[PartFit]:
    fits: list[PartFit] = []
    base: AnswerPart | None = None
    for part in parts:
        if base is None or base.sentence != part.sentence:
            base = part
        words = part.words
        if part is not base and _goes_on(part):
            words = (*words, *_inherited(part, base)[:_MOST_INHERITED])
        # What a sentence begins with may hold for all its figures: "The price is 12 or 24 euros".
        near = part.behind if part is base else part.words
        fits.append(
            PartFit(
                part=part,
                shared=shared_content(words, part.runs, question),
                near=shared_content(near, part.runs, question),
            )
        )
    return fits


def shared_words(text: str, question: str) -> frozenset[str]:
    """Return the content words of a question, and its pairs of characters, that a text has too."""
    words, _, runs = read_part(text.split())
    return shared_content(words, runs, question)


def has_most_of(text: str, question: str) -> bool:
    """Check whether a text has all content words of a question, and half of its pairs of characters."""
    shared = shared_words(text, question)
    pairs = _asked_pairs(question)
    if not shared.issuperset(_asked_words(question)):
        return False
    return 2 * len(shared.intersection(pairs)) >= len(pairs)


@lru_cache(maxsize=256)
def shared_content(words: tuple[str, ...], runs: tuple[str, ...], question: str) -> frozenset[str]:
    """Return what of a question's words and pairs of characters some words and runs have, too."""
    stems = [_stem(word) for word in words]
    shared = {one for one in _asked_words(question) if has_alike(one, stems)}
    shared.update(pair for pair in _asked_pairs(question) if any(pair in run for run in runs))
    return frozenset(shared)


def _stem(form: str) -> str:
    """Return a folded word without the e that "closed" has lost, too."""
    return form[:-1] if len(form) > _SHORTEST_WITH_AN_E and form[-1] == "e" else form


def _goes_on(part: AnswerPart) -> bool:
    """Check whether a part is too short to have a subject and a verb of its own."""
    if not _EVENTS_AND_TIMES.isdisjoint(map(_kind, part.quantities)):
        return len(part.before) <= _WORDS_BEFORE_AN_EVENT
    return len(part.words) <= _WORDS_OF_A_SUBJECT


def _inherited(part: AnswerPart, base: AnswerPart) -> tuple[str, ...]:
    """Return the words of a sentence's beginning without the one in whose place a later part has another.

    That is the subject, "adults pay 9, children 4", and before a year or time the verb: "built in 1901 and rebuilt".
    """
    if part.before and not _EVENTS_AND_TIMES.isdisjoint(map(_kind, part.quantities)):
        return base.before[:-1]
    if part.before:
        return (*base.before[1:], *base.behind)
    if part.behind:
        return (*base.before, *base.behind[:-1]) if base.behind else base.before[1:]
    return base.words


def _is_of_kind(quantity: Quantity, kinds: Collection[str]) -> bool:
    """Check whether a figure has one of the kinds; a bare one may be of any but a year, date or time."""
    own = _kind(quantity)
    if own in kinds:
        return True
    if own in _EVENTS_AND_TIMES or not _EVENTS_AND_TIMES.isdisjoint(kinds):
        return False
    return not own or "" in kinds


def _kind(quantity: Quantity) -> str:
    """Return what a quantity measures; '' for a bare figure."""
    figure = quantity.figure
    if quantity.unit == "date" and not figure[0].isdigit():
        return figure[:3]
    is_like_year = len(figure) == len("2024") and figure.isdigit() and figure[0] in "12"
    if is_like_year and quantity.unit not in _KNOWN_UNITS:
        return "year"
    if ":" in figure:
        return "time"
    return kind(folded_word(quantity.unit))


# ── the parts of an answer ────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=16)
def _parts(answer: str) -> tuple[AnswerPart, ...]:
    """Return the parts that have figures; one without any belongs to the next, or to the last of its sentence."""
    parts: list[AnswerPart] = []
    sentence = 0
    rest: list[str] = []
    is_remark = False
    for piece in _with_ends(read(answer).pieces):
        if piece not in MARKS:
            rest.append(piece)
            continue
        if any(FIGURE.fullmatch(one) for one in rest):
            parts.append(_part(rest, sentence, is_remark=is_remark))
            rest = []
        is_remark = piece == REMARK or (is_remark and piece == CLAUSE)
        if piece == SENTENCE:
            if rest and parts and parts[-1].sentence == sentence:
                parts[-1] = _longer(parts[-1], rest)
            rest = []
            sentence += 1
        if len(parts) == _MOST_PARTS:
            break
    return tuple(parts)


def _with_ends(pieces: Sequence[str]) -> Iterator[str]:
    """Yield the pieces with a mark instead of each word that joins, and one at the end."""
    for piece in pieces:
        if piece in _SPLITTERS:
            yield CLAUSE
            continue
        yield piece
        if piece.endswith(_KOREAN_CONNECTIVES):
            yield CLAUSE
    yield SENTENCE


def _part(pieces: list[str], sentence: int, *, is_remark: bool) -> AnswerPart:
    first = next(at for at, piece in enumerate(pieces) if FIGURE.fullmatch(piece))
    before, quantities_before, runs_before = read_part(pieces[:first])
    behind, quantities_behind, runs_behind = read_part(pieces[first:])
    return AnswerPart(
        before=before,
        behind=behind,
        quantities=(*quantities_before, *quantities_behind),
        runs=(*runs_before, *runs_behind),
        sentence=sentence,
        is_remark=is_remark,
        relative=RELATIVE.intersection(pieces),
    )


def _longer(part: AnswerPart, pieces: list[str]) -> AnswerPart:
    words, _, runs = read_part(pieces)
    relative = part.relative.union(RELATIVE.intersection(pieces))
    return replace(part, behind=(*part.behind, *words), runs=(*part.runs, *runs), relative=relative)


def read_part(pieces: list[str]) -> tuple[tuple[str, ...], tuple[Quantity, ...], tuple[str, ...]]:
    """Return the words of a part, its quantities and its runs."""
    words: list[StatedWord] = []
    quantities: list[Quantity] = []
    runs: list[StatedWord] = []
    if pieces:
        read_clause(pieces, words, quantities, runs)
    forms = [word.form for word in words]
    forms.extend(_phrasal_verbs(pieces))
    return tuple(forms), tuple(quantities), tuple(run.form for run in runs)


# ── the question ──────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=256)
def _asked_words(question: str) -> tuple[str, ...]:
    asked = read(question)
    words = [_stem(word.form) for word in asked.words]
    words.extend(_phrasal_verbs(asked.pieces))
    return tuple(dict.fromkeys(words))[:_MOST_ASKED]


def _phrasal_verbs(pieces: Sequence[str]) -> Iterator[str]:
    """Yield verbs that are told apart by a word of grammar: check in and check out."""
    for verb, particle in pairwise(pieces):
        if verb in _PHRASAL and particle in _PARTICLES:
            yield verb + particle


@lru_cache(maxsize=256)
def _asked_pairs(question: str) -> tuple[str, ...]:
    """Return each two neighbouring characters of the question's runs that are not of grammar."""
    pairs: list[str] = []
    for run in read(question).runs:
        pairs.extend(left + right for left, right in pairwise(run.form))
    # Hiragana is the script of grammar.
    pairs_of_content = [pair for pair in pairs if _HIRAGANA.search(pair) is None]
    return tuple(dict.fromkeys(pairs_of_content))[:_MOST_ASKED]


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


_ANDS = frozenset(("and", "und", "et", "y"))
_SPLITTERS = (
    _ANDS
    | CHOICES
    | CONTRASTS
    | _words(
        """
        e while whereas während wohingegen tandis alors mientras sowie plus then dann puis luego
        그리고 반면 하지만 또는
        """
    )
)
_KOREAN_CONNECTIVES = ("이고", "하고", "고", "며", "지만", "는데", "인데")
_PHRASAL = frozenset(("check", "log", "sign", "pick", "drop", "move", "turn", "switch", "opt"))
_PARTICLES = frozenset(("in", "out", "up", "down", "on", "off"))
_EVENTS = frozenset(("year", "mon", "day"))
_EVENTS_AND_TIMES = _EVENTS | {"time"}
_KNOWN_UNITS = frozenset(unit_forms().values()) | frozenset(SIGNS)
_HIRAGANA = re.compile("[ぁ-ゟ]")
# Bounds for texts made to be slow.
_MOST_ASKED = 60
_MOST_INHERITED = 20
_MOST_PARTS = 100
# Shorter words keep their e: "date" must not become "dat".
_SHORTEST_WITH_AN_E = 4
_WORDS_OF_A_SUBJECT = 2
_WORDS_BEFORE_AN_EVENT = 3
_WORDS_OF_A_SHORT_SENTENCE = 6
