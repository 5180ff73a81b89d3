"""Which words a sentence holds: figures in one form, negations apart, small words kept, Korean verbs by their noun."""

from __future__ import annotations

import pytest

from pytest_rageval.judges.lexical.statements import MOST_PLACES, read_passage, read_statement, words_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The rig can't run at 1,200 Hz.", ["the", "rig", "can", "not", "run", "at", "1200", "hz"]),
        ("It isn't 3.50 but -2", ["it", "is", "not", "3.5", "but", "-2"]),
        ("They did n't, won’t, cannot", ["they", "did", "not", "will", "not", "can", "not"]),
        ("Dana's 110mW laser", ["dana", "110", "mw", "laser"]),
        ("three cells", ["3", "cells"]),
        ("１２ ｃｍ", ["12", "cm"]),
        ("카메라 세 대를 설치했다.", ["카메라", "3", "대", "설치"]),
        ("세 부담이 3만 원이다.", ["세", "부담", "30000", "원이다"]),
        ("30Hz로 동작하지 않는다", ["30", "hz", "동작", "안"]),
        ("…", []),
    ],
)
def test_words_come_in_order_and_in_one_spelling(text, words):
    assert words_in(text) == words


def test_a_statement_tells_what_it_is_about_from_its_grammar():
    read = read_statement("The rig has never run at 30 Hz.")
    assert read.words == ("rig", "has", "run", "at", "30", "hz")
    assert read.content == {"rig", "run", "30", "hz"}
    assert (read.figures, read.negates) == ({"30"}, True)


def test_a_passage_knows_the_sentences_of_each_word():
    read = read_passage("Ash paints. Bo reads. Ash reads 1.000 lines.")
    assert read.words["ash"] == (0, 2)
    assert read.words["1000"] == read.words["1"] == (2,)


def test_a_word_that_is_everywhere_is_remembered_for_the_first_sentences_only():
    assert len(read_passage("Ash paints. " * 500).words["ash"]) == MOST_PLACES
