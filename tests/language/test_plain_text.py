"""Texts that look the same on a screen are the same: for answers, key facts and snippets."""

from __future__ import annotations

import time

import pytest

from pytest_rageval.language.plain_text import as_seen
from pytest_rageval.matching.spellings import snippet_form
from pytest_rageval.metrics.answer import equals_any, stated_facts

SAME = [
    ("don't use it", "don’t use it"),
    ('say "yes"', "say “yes”"),
    ("configuration file", "con\u00adfigu\u00adration file"),
    ("zero width", "zero\u200b wi\u200ddth\ufeff"),
    ("left to right", "\u200eleft to\u202c right\u202a"),
    ("the manual", "the [manual](https://example.org/a_(b).html)"),
    ("the manual", "the [manual][ref]"),
    ("the logo", "the ![logo](logo.png \"Our logo\")"),
    ("snake_case name", r"snake\_case name"),
    ("R&D team", "R&amp;D team"),
    ("a < b", "a &lt; b"),
    ("café", "caf&eacute;"),
    ("configuration file", "configu-\n   ration file"),
    ("保修期为两年", "保修期 为 两年"),
    ("東京タワー", "東京 タワー"),
    ("Plan Price", "| Plan | Price |"),
    ("ﬁle oﬃce", "file office"),
]  # fmt: skip
OTHER = [
    ("limit is 10 km", "limit is 100 km"),
    ("may use it", "may not use it"),
    ("서울 시장", "서울 시 장"),
    ("x - 1", "x1"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_texts_that_look_the_same_are_equal(one: str, other: str):
    assert equals_any(other, [one]) == 1
    assert snippet_form(one) == snippet_form(other)
    assert stated_facts(f"so it is: {other}.", [one]) == [True]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_texts_that_look_different_are_not(one: str, other: str):
    assert equals_any(other, [one]) == 0
    assert snippet_form(one) != snippet_form(other)


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "[a](",
        "![",
        " ",
        "|",
        "|-",
        "\\",
        "&",
        "&a",
        "-\n",
        "a-\n ",
        "京 ",
        "\u00ad",
        "[a][",
        "\t|:",
        "(",
        '[a]( "',
    ],
)
def test_a_long_text_of_marks_is_read_in_one_go(piece: str):
    started = time.process_time()
    as_seen(piece * 200_000)
    snippet_form(piece * 50_000)
    assert time.process_time() - started < 20  # quadratic, it would take minutes
