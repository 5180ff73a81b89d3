"""Another person of the same last name: Jane Smith for John Smith."""

from __future__ import annotations

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.words import STOP_WORDS


def names_a_namesake(answer: str, gold: str, question: str) -> bool:
    """Check whether an answer gives the last name of a person behind other first names only.

    A last name alone, or behind a title or a word of the question ("Director Lopez"), is no other person.
    """
    names = gold.split()
    if len(names) != len(("first", "last")) or not all(name.isalpha() and name.istitle() for name in names):
        return False
    first, last = names
    if _may_be_title(first, question):
        return False
    pairs = compiled_pattern(_TWO_CAPITALISED).findall(answer)
    before = [one for one, other in pairs if other == last]
    if not before or first in before or len(before) < answer.count(last):
        return False
    # One name is often spelled in two ways: Katherine and Kathryn.
    if any(word[:2] == first[:2] for word in before):
        return False
    return not any(_may_be_title(word, question) for word in before)


def _may_be_title(word: str, question: str) -> bool:
    word = word.lower()
    return word in _TITLES or word in STOP_WORDS or word in question.lower()


_TWO_CAPITALISED = r"\b([A-ZÀ-Þ][a-zß-ÿ]+) (?=([A-ZÀ-Þ][a-zß-ÿ]+))"
_TITLES = frozenset(
    (
        *("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "doctor", "sir"),
        *("lord", "lady", "president", "king", "queen", "prince", "princess", "captain", "general"),
        *("colonel", "major", "sergeant", "officer", "inspector", "coach", "judge", "justice", "senator"),
        *("governor", "mayor", "saint", "pope", "minister", "secretary", "director", "chancellor", "chairman"),
        *("chairwoman", "manager", "author", "actor", "actress", "singer", "physicist", "chief", "brother"),
        *("sister", "father", "mother", "uncle", "aunt", "herr", "frau", "madame", "monsieur"),
        *("mme", "don", "doña", "señor", "señora"),
    )
)
