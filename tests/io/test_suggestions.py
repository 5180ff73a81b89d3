"""Suggestions for mistyped names, and lists that are cut."""

from __future__ import annotations

import pytest

from pytest_rageval.io.suggestions import KEY_CUTOFF, listed, suggestion


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mmr", "mrr"),
        ("MRR", "mrr"),
        ("ｍｒｒ", "mrr"),
        ("rel_path", "gold.rel_path"),
        ("Rel_Pth", "gold.rel_path"),
        ("zzz", None),
        ("m" * 81, None),
        ("mr" + "r" * 78, None),
    ],
)
def test_the_known_name_that_was_probably_meant(name: str, meant: str | None):
    assert suggestion(name, ["mrr", "gold.rel_path"]) == meant


@pytest.mark.parametrize(
    ("key", "meant"), [("qestion", "question"), ("context", "contexts"), ("session", None), ("notes", None)]
)
def test_a_key_of_another_meaning_is_no_mistyped_one(key: str, meant: str | None):
    assert suggestion(key, ["question", "contexts"], cutoff=KEY_CUTOFF) == meant


def test_of_names_that_differ_in_case_the_one_written_more_alike_is_meant():
    assert suggestion("Brnd", ["brand", "Brand"]) == "Brand"
    assert suggestion("brnd", ["brand", "Brand"]) == "brand"


def test_among_very_many_names_only_the_same_one_is_found():
    known = [f"case-{number}" for number in range(3000)]
    assert suggestion("CASE-17", known) == "case-17"
    assert suggestion("cas-17", known) is None


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 2, ""),
        (["a", "b"], 2, "a, b"),
        (["a", "b", "c"], 2, "a, b and 1 more"),
        (["a", "b", "c"], 0, "and 3 more"),
        ([str(number) for number in range(2001)], 1, "0 and 2,000 more"),
    ],
)
def test_a_list_is_cut_and_says_so(names: list[str], most: int, text: str):
    assert listed(names, most) == text
