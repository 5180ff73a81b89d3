"""The message about a missing figure shows the bound that the answer gives it."""

from __future__ import annotations

import pytest

from pytest_rageval.language.gold_search import best_fit


@pytest.mark.parametrize(
    ("answer", "gold", "said"),
    [
        ("Companies with fewer than 20 employees may join.", "20 employees", "it says fewer than 20 employees"),
        ("A card costs at least 30 euros.", "28 euros", "it says at least 30 euros"),
        ("It takes 30 days or more.", "10 days", "it says at least 30 days"),
        ("A card costs 3 euros.", "4 euros", "it says 3 euros"),
    ],
)
def test_a_figure_that_is_a_bound_is_shown_as_one(answer: str, gold: str, said: str):
    assert best_fit(answer, [gold]).sentence == f"`{gold}` is not in the answer; {said}"
