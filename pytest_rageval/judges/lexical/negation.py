"""Does a sentence negate, and which of its words? By the particles of seven languages; no grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_rageval.judges.lexical.wordlist import words


def negates(sentence: str, said: Iterable[str]) -> bool:
    """Is there a negation in the sentence? `said` are its words, folded."""
    return not NEGATIONS.isdisjoint(said) or (not sentence.isascii() and _NEGATED.search(sentence) is not None)


def is_idle(word: str, before: str, after: str) -> bool:
    """Does a negation turn nothing around? "not only", "or not", and the "no" that begins an answer."""
    if word == "not":
        return after in _WEAKENED or before == "or"
    return word == "no" and (after in ("", ",", ";", ":", ".") or after in ("one", "matter", "doubt"))


NEGATIONS = words(
    """
    not no never none neither nor cannot without dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt
    wont wouldnt cant couldnt shouldnt mustnt nobody nothing nowhere nicht kein keine keinen keiner keinem nie
    niemals ohne ne pas aucun aucune jamais sans nunca ningún ninguna ninguno jamás sin 안 못
    """
)
"""Words that negate, folded."""

SOFTENERS = words(
    """
    avoid avoids avoided avoiding prevent prevents prevented lack lacks lacking fail fails failed unable unless
    rather instead except refuse refused refuses hardly rarely seldom barely scarcely prohibited forbidden
    impossible longer unlikely stop stops stopped
    """
)
"""Words that may say the same as a negation: where one is, an outright "not" elsewhere is no contradiction."""

REACH_OF_NOT = 4
"""Words after a negation that it may negate, in the same clause."""

CLAUSE_ENDS = words(
    ", ; : ( ) — – but and or which who that because although while if unless whereas though when whether until wenn si"
)
"""A negation reaches no further."""

SUPPOSING = words("if unless whether until wenn si")
"""Begin a clause in which nothing is stated."""

_WEAKENED = words("only just necessarily merely solely")
"""After "not": what follows is said all the same."""

_NEGATED = re.compile(
    r"지 ?(?:않|못|말)|(?:이|가|수) 없|아니(?:다|며|고|라|었|ㅂ|에|요)|아닙|아닌"
    r"|ません|ない(?:$|[。、でとがのわ])|なかった|ではなく|不[能是会會会在可需要支得]|没有|沒有|[无無][法须須需]|未[曾能经經]"
)
