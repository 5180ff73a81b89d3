"""The difference of two texts by words, in scripts with and without spaces."""

from __future__ import annotations

import itertools

import pytest

from pytest_rageval.views.text_diff import MOST_WORDS, word_diff, word_set


def marked(before: str, after: str) -> str:
    marks = {"same": "{}", "gone": "[-{}-]", "new": "[+{}+]"}
    return "".join(marks[piece.kind].format(piece.text) for piece in word_diff(before, after))


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("It is kept here.", "It is kept here.", "It is kept here."),
        ("kept in Japan", "kept in Korea", "kept in [-Japan-][+Korea+]"),
        ("제주 크림은 32,000원", "제주 크림은 28,000원", "제주 크림은 [-32-][+28+],000원"),
        ("카메라는 두 대", "카메라는 세 대", "카메라는 [-두 -][+세 +]대"),
        ("在北京市", "在上海市", "在[-北京-][+上海+]市"),
        ("東京です", "京都です", "[-東-]京[+都+]です"),
        ("one two", "one\ntwo", "one\ntwo"),
        ("", "new", "[+new+]"),
        ("gone", "", "[-gone-]"),
    ],
)
def test_words_that_differ_are_marked(before: str, after: str, shown: str):
    assert marked(before, after) == shown


def test_the_end_of_a_very_long_text_is_compared_as_one():
    before = "word " * (MOST_WORDS + 50)
    assert [piece.kind for piece in word_diff(before, before)] == ["same"]
    assert marked(before, before + "more").endswith("[+" + "word " * 50 + "more+]")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b c", "a x c"),
        ("a b", "a b b"),
        ("b a", "b b a"),
        ("a a", "a"),
        ("", "a"),
        ("a", ""),
        ("a b c", "a b c"),
        ("x y", "p q"),
    ],
)
def test_both_texts_can_be_read_off_the_difference_whatever_they_share_at_their_ends(before: str, after: str):
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == after
    words = " ".join(piece.text.strip() for piece in pieces if piece.kind != "new")
    assert words.split() == before.split()
    kinds = [piece.kind for piece in pieces]
    assert all(kind != following for kind, following in itertools.pairwise(kinds))


def test_words_of_plain_text_are_those_that_the_same_text_has_beside_other_letters():
    text = "Kept in A_b, (12.5) at\x1f\tnight: don't; x-Y\n" + "".join(map(chr, range(128)))
    assert word_set(text) == word_set(f"{text} é") - {"é"}
