"""The first case of a file that was just read, in one line that shows what its columns were taken for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import EvalCase, Gold

LONGEST = 60
"""Characters of each text."""


def spot_check(cases: Sequence[EvalCase]) -> str:
    """Return the first case in a line, and the first one without an answer; empty without cases.

    As in: first case: question 'When?', gold 'At six.', answerable yes; first without an answer: 'Who?'
    """
    if not cases:
        return ""
    first = cases[0]
    gold = "; ".join(_gold(first.gold)) or "none"
    line = f"first case: question {shown_value(first.question, LONGEST)}, gold {gold}, answerable {_yes(first)}"
    unanswerable = next((case for case in cases[1:] if not case.answerable), None)
    if first.answerable and unanswerable is not None:
        line += f"; first without an answer: {shown_value(unanswerable.question, LONGEST)}"
    return line


def _yes(case: EvalCase) -> str:
    return "yes" if case.answerable else "no"


def _gold(gold: Gold) -> Iterator[str]:
    """Yield each kind of gold with its first values."""
    kinds = {
        "": gold.answers,
        "key facts ": gold.key_facts,
        "places ": [str(place) for place in gold.supports or ()],
        "ids ": gold.chunk_ids or [*(gold.relevance or ())],
    }
    for kind, values in kinds.items():
        if values:
            shown = [shown_value(value, LONGEST) for value in values]
            yield kind + listed(shown, 2)
