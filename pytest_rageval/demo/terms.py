"""Terms: those by which the index knows a text, and those of a question that are worth looking up."""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_rageval.words import content_tokens, index_terms

# What a question says about being a question. Notes say these words as well, and then about something else.
_ASKING = re.compile(
    "(?:according|answer|anything|ask|describe|explain|find|give|happens?|kind|know|list|many|me|mention|much|notes?"
    "|please|question|say|something|tell|thing|want|whose)$"
    "|무엇|무슨|뭐|뭘|어떤|어떻|어디|어느|언제|얼마|누가|누구|왜|몇|인가|있나|했나|하나"
)
QUESTION_TERMS = 200
"""After about so many different terms no more are looked at: a question of a megabyte stays cheap."""

_WORD = re.compile(r"[a-z]{4,}")


def text_terms(text: str) -> list[str]:
    """Every term of a passage in order, stemmed as the terms of a question are."""
    return [stem(term) for term in index_terms(text)]


def question_terms(question: str) -> tuple[str, ...]:
    """The first distinct terms of a question that say what it is about; none if it says nothing of that."""
    # content_tokens hands back the stop words of a text that has nothing else; one more word keeps it from that.
    words = content_tokens(f"rageval {question}")[1:]
    terms: dict[str, None] = {}
    for word in words:
        if not _ASKING.match(word):
            terms.update(dict.fromkeys(map(stem, index_terms(word))))
        if len(terms) >= QUESTION_TERMS:
            break
    return tuple(terms)


@lru_cache(maxsize=50_000)
def stem(term: str) -> str:
    """An English word without the endings of plural, past and -ing; other terms as they are.

    Deliberately weaker than Porter's: what is left has four letters at least, so `rate` and `rat` stay apart.
    """
    if not _WORD.fullmatch(term):
        return term
    if term.endswith("ies") and len(term) > 5:
        return term[:-3] + "y"
    if term.endswith("s") and not term.endswith(("ss", "us", "is")):
        term = term[:-1]
    for ending in ("ing", "ed"):
        if term.endswith(ending) and len(term) - len(ending) >= 4:
            term = term.removesuffix(ending)
            if term[-1] == term[-2] and term[-1] not in "lsz":
                term = term[:-1]
            break
    return term[:-1] if term.endswith("e") and len(term) > 4 else term
