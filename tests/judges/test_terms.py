"""Terms of a text: one spelling for numbers, Korean by its nouns, small words kept, claims told from the rest."""

from __future__ import annotations

import pytest

from pytest_rageval.judges.lexical_judge import claims_in, terms_in


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The rig can't run at 1,200 Hz.", {"the", "rig", "can", "not", "run", "at", "1200", "hz"}),
        ("Dana's 110mW laser", {"dana", "110", "mw", "laser"}),
        ("three cells", {"3", "cells"}),
        ("１２ ｃｍ", {"12", "cm"}),
        ("카메라를 설치했다.", {"카메라", "설치"}),
        ("30Hz로 동작하지", {"30", "hz", "동작"}),
        ("北京大学", {"北京", "京大", "大学"}),
    ],
)
def test_terms_have_one_spelling(text, terms):
    assert terms_in(text) == terms


def test_citation_marks_and_numbers_of_a_list_are_no_claims():
    claims = claims_in("1\nAsh paints [1][2, 3].\n2\nBo reads 【4†notes.md】.")
    assert [claim.terms for claim in claims] == [{"ash", "paints"}, {"bo", "reads"}]


def test_a_number_alone_is_a_claim_where_there_is_no_other():
    (claim,) = claims_in("1,200 [1]")
    assert claim.figures == claim.content == {"1200"}


def test_small_words_are_the_content_of_a_claim_only_where_there_are_no_others():
    yes, painted = claims_in("Yes, it is. Ash is painting.")
    assert (yes.is_small, painted.is_small) == (True, False)
    assert (yes.content, painted.content) == ({"yes", "it", "is"}, {"ash", "painting"})
