"""Columns of scores that a tool measured: they are no gold, whatever their names begin with."""

from __future__ import annotations

import re

from pytest_rageval.cases.names import ANSWER, is_whole_name, name_words
from pytest_rageval.model import Json

_METRIC = re.compile(
    r"\b(precision|recall|faithfulness|relevanc[ey]|correctness|similarity|groundedness|accuracy|coverage|f 1|"
    r"bleu|rouge|meteor|chrf|ndcg|dcg|mrr|map|hits?( rate)?|auc|score|scores|metrics?|toxicity|bias|"
    r"hallucinations?|coherence|fluency|helpfulness|harmfulness|maliciousness|conciseness|completeness|adherence|utilization|"
    r"sensitivity|exact match|bert ?score|cosine|distance|confidence|probability)\b"
)
_NUMBER = re.compile(r"\s*[-+]?\d{1,12}([.,]\d{1,25})?(e[-+]?\d{1,3})?\s*", re.IGNORECASE)


def is_metric_name(name: str) -> bool:
    """Return True if a name is that of a metric, such as `context_precision` or `f1`."""
    return len(name) <= 100 and bool(_METRIC.search(name_words(name)))


def holds_scores(name: str, values: list[Json], meaning: str | None) -> bool:
    """Return True for a column of numbers that is named after a metric, or of fractions from 0 to 1.

    A right answer may be a fraction: there only a name with words of its own tells a score.
    """
    if not values or not all(map(_is_number, values)):
        return False
    if is_metric_name(name):
        return True
    may_be_answer = meaning == ANSWER and is_whole_name(name)
    return not may_be_answer and any(map(_is_fraction, values)) and all(map(_is_share, values))


def _is_number(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) < 50 and bool(_NUMBER.fullmatch(value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_fraction(value: Json) -> bool:
    """Return True for a number that is written with a decimal point, also for 1.0."""
    return isinstance(value, float) or (isinstance(value, str) and not value.strip().isdecimal())


def _is_share(value: Json) -> bool:
    return 0 <= float(str(value).replace(",", ".")) <= 1
