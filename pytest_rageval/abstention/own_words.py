"""The part of an answer that tells whether it declines: without courtesies, and without what it only quotes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.abstention.courtesies import without_courtesies

QUOTED = "…"
"""Stands for a quotation."""


class OwnWords(NamedTuple):
    """The part of an answer that is its own words, without quotations and courtesies.

    is_announcement  it says only what the system is going to do
    is_offer         it says only that the system would help, as at the beginning of a talk
    """

    text: str
    is_announcement: bool = False
    is_offer: bool = False


@lru_cache(maxsize=64)  # several metrics and the judge ask about the same answer, one after the other
def own_words(answer: str) -> OwnWords:
    """Return what an answer says itself; one that is nothing but a quotation keeps it.

    Who reports a refusal does not refuse:

    >>> own_words('Hello! The firm said: "We cannot comment on that."').text
    'The firm said: …'
    """
    plain = without_courtesies(answer)
    blanked = _QUOTATION.sub(QUOTED, plain.text)
    if not _LETTER.search(blanked):
        blanked = plain.text
    return OwnWords(blanked, plain.is_announcement, plain.is_offer)


_LETTER = re.compile(r"\w")
# Bounded, so that a lone quotation mark costs little.
_QUOTATION = re.compile(
    r'"[^"\n]{3,300}"|“[^”\n]{3,300}”|«[^»\n]{3,300}»|„[^“”\n]{3,300}[“”]|「[^」\n]{3,300}」|『[^』\n]{3,300}』|《[^》\n]{3,300}》'
)
