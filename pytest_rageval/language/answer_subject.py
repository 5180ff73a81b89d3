"""Of whom or what an answer says what is asked: "The treasurer signs; the secretary receives a copy"."""

from __future__ import annotations

import re

from pytest_rageval.language.question_fit import read_part, shared_content
from pytest_rageval.language.statements import read


def are_of_another(names: frozenset[str], answer: str, question: str) -> bool:
    """Check whether an answer gives all names only beside another to whom the question's words belong.

    "Ms Weber chairs the meeting; Mr Klein takes the minutes." Only parts are compared that a semicolon or a word such
    as "while" divides: a name behind a comma is often the answer itself.
    """
    if _CHANGE_OF_SUBJECT.search(answer) is None:
        return False
    is_given = False
    for sentence in _SENTENCE_END.split(answer):
        parts = [read_part(list(read(part).pieces)) for part in _CHANGE_OF_SUBJECT.split(sentence)]
        fits = [shared_content(words, runs, question) for words, _, runs in parts]
        for (words, _, _), fit in zip(parts, fits, strict=True):
            if names.isdisjoint(words):
                continue
            is_given = True
            is_subject = words[0] in names
            if not is_subject or not any(fit < other for other in fits):
                return False
    return is_given


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CHANGE_OF_SUBJECT = re.compile(
    r";|\s(?:while|whereas|während|wohingegen|tandis que|alors que|mientras que)\s"
    r"|,\s(?:with|but|aber|mais|pero)\s"
    r"|(?<=\w)\s(?:and|und|et|y)\s(?=(?:Mr|Ms|Mrs|Dr|Herr|Frau|Mme)\b)",
    re.IGNORECASE,
)
