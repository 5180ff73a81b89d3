"""Which words of a clause a negation denies: before or behind it, depending on the language."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_rageval.language.polarity_words import (
    CHINESE_CONTRASTS,
    CHINESE_NEGATIONS,
    INSTEAD,
    JAPANESE_CONTRASTS,
    KOREAN_CONNECTIVES,
    KOREAN_NEGATIONS,
    NEGATORS,
    NOT_DENYING_BEFORE,
    OFFERS,
)
from pytest_rageval.language.stated_words import KANA, UNSPACED_RUN, is_korean, parts_of_run, read_piece


def denied_places(clause: Sequence[str]) -> list[bool]:
    """Return for each word of a clause whether it is denied."""
    denied = [False] * len(clause)
    if not any(read_piece(piece).may_deny for piece in clause):
        return denied
    last_denied = _NOWHERE  # by the negation before
    for at, piece in enumerate(clause):
        if _is_negator(clause, at):
            last_denied = _last_denied(clause, at)
            if last_denied != _NOWHERE and any(word.startswith(OFFERS) for word in clause[at + 1 : at + 4]):
                # "Breakfast is not included": what is refused stands before the negator.
                _deny(denied, 0, at)
        elif is_korean(piece) and any(negation in piece for negation in KOREAN_NEGATIONS):
            _deny(denied, _begin_of_korean_clause(clause, at), at + 1)
        elif piece.startswith(JAPANESE_CONTRASTS):
            _deny(denied, at - _REACH_OF_A_JAPANESE_CONTRAST, at)
        elif UNSPACED_RUN.match(piece) and not KANA.search(piece):
            # A run that affirms ends what an earlier negation denies.
            last_denied = _NOWHERE
            is_contrast = any(contrast in piece for contrast in CHINESE_CONTRASTS)
            if not is_contrast and any(negation in piece for negation in CHINESE_NEGATIONS):
                last_denied = at + _REACH_OF_A_NEGATOR
        elif at <= last_denied:
            denied[at] = True
    return denied


def has_negation(clause: Sequence[str]) -> bool:
    """Check whether any word of a clause denies."""
    for piece in clause:
        if not read_piece(piece).may_deny:
            continue
        if piece in NEGATORS:
            return True
        if is_korean(piece) and any(negation in piece for negation in KOREAN_NEGATIONS):
            return True
        if UNSPACED_RUN.match(piece) and any(word.is_denied for word in parts_of_run(piece)):
            return True
    return False


def _deny(denied: list[bool], begin: int, end: int) -> None:
    for at in range(max(0, begin), end):
        denied[at] = True


def _begin_of_korean_clause(clause: Sequence[str], at: int) -> int:
    """Return the place from which a negation denies: near it, and behind a word that joins two clauses."""
    begin = max(0, at - _REACH_OF_A_KOREAN_NEGATION)
    for place in range(at - 1, begin - 1, -1):
        if clause[place].endswith(KOREAN_CONNECTIVES):
            return place + 1
    return begin


def _is_negator(clause: Sequence[str], at: int) -> bool:
    """Check for a word that denies what follows; "non" only where it is no prefix, as in "non-partisan"."""
    piece = clause[at]
    if piece in NEGATORS:
        return True
    if piece != "non":
        return False
    if at == 0:
        return _following(clause, at) in _FRENCH
    return clause[at - 1] in _ANDS


def _last_denied(clause: Sequence[str], at: int) -> int:
    """Return the last place that a negator reaches, in its clause or beyond; `_NOWHERE` if it denies nothing here."""
    piece = clause[at]
    following = _following(clause, at)
    if following in NOT_DENYING_BEFORE:
        return _NOWHERE
    if piece in _ONLY_BEFORE and following != _ONLY_BEFORE[piece]:
        return _NOWHERE
    if at == 0 and piece in INSTEAD:
        return _REACH_OF_A_FIRST_INSTEAD
    return at + _REACH_OF_A_NEGATOR


def _following(clause: Sequence[str], at: int) -> str:
    return clause[at + 1] if at + 1 < len(clause) else ""


_NOWHERE = -1
"""Before the first place of a clause."""
_REACH_OF_A_NEGATOR = 6
_REACH_OF_A_FIRST_INSTEAD = 2
"""No comma need end it: Statt der Direktorin unterschreibt der Leiter."""
_REACH_OF_A_KOREAN_NEGATION = 4
"""It stands behind what it denies."""
_REACH_OF_A_JAPANESE_CONTRAST = 2
"""It stands behind what it denies, a figure and its unit: 3 kgではなく5 kg."""
_ONLY_BEFORE = {"rather": "than", "instead": "of"}
_ANDS = frozenset(("and", "et", "mais", "e", "y"))
_FRENCH = frozenset(
    ("par", "le", "la", "les", "pas", "de", "du", "des", "à", "au", "pour", "avec", "dans", "un", "une")
)
"""Behind "non" at the beginning of a clause: "non par le maire"."""
