"""The default answer gate on wordings in seven languages, by the kind of what a verdict turns on."""

from __future__ import annotations

import pytest
from observations import lines

from pytest_rageval.language.gold_search import best_fit

WORDINGS = list(lines("wordings/gold_in_answer.jsonl"))


@pytest.mark.parametrize("row", WORDINGS, ids=lambda row: f"{row['kind']}: {row['gold']}: {row['answer']}")
def test_an_answer_passes_if_it_says_the_gold_in_its_own_words(row):
    fit = best_fit(row["answer"], [row["gold"]], row["question"])
    assert (fit.share >= 0.5) is row["correct"], fit


def test_an_answer_of_neither_polarity_says_so():
    fit = best_fit("Please hold the line.", ["No"], "Can I cancel online?")
    assert fit.sentence == "`No` is not in the answer; it says neither yes nor no"
