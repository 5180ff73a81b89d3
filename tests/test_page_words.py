"""The documentation avoids words that read hard, says first what a page is for, and keeps pages short."""

from __future__ import annotations

from pathlib import Path

import check_words
import pytest


def found(tmp_path: Path, text: str, name: str = "gates.md") -> list[str]:
    """Return the words that the check names in a page."""
    page = tmp_path / name
    page.write_text(text, encoding="utf-8")
    return [place.words for place in check_words.places(page)]


HEAD = "# Gates\n\nThis page lists gates.\n\n"


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("The reason is said in the log.", "is said"),
        ("Whoever reads it knows more.", "Whoever"),
        ("It is built anew.", "anew"),
        ("Where nothing is found, it fails.", "Where"),
        ("It stands beside the answer.", "stands beside"),
    ],
)
def test_words_that_read_hard_are_named(tmp_path: Path, sentence: str, words: str):
    assert words in found(tmp_path, HEAD + sentence)


def test_code_and_questions_are_left_alone(tmp_path: Path):
    text = "Use `anew` here.\n\n```sh\nrun anew\n```\n\n| Where is it sold? | yes |\n"
    assert found(tmp_path, HEAD + text) == []


def test_a_page_says_first_what_it_is_for(tmp_path: Path):
    assert found(tmp_path, "# Gates\n\nGates are limits.\n") == ["Gates are limits."]
    assert found(tmp_path, "# Gates\n\nAfter this page you can write gates.\n") == []


def test_a_how_to_has_at_most_600_words_and_bars_of_tables_are_no_words(tmp_path: Path):
    head = "# Label\n\nAfter this page you can label.\n\n"
    assert found(tmp_path, head + "| word " * 590, "label.md") == []
    assert found(tmp_path, head + "word. " * 600, "label.md") == ["607 words"]


def test_a_long_sentence_is_listed_and_no_reason_to_fail(tmp_path: Path):
    page = tmp_path / "gates.md"
    page.write_text(HEAD + "word " * 26 + ".", encoding="utf-8")
    assert [place.is_sentence for place in check_words.places(page)] == [True]


@pytest.mark.parametrize("page", check_words.written_pages(), ids=lambda page: page.stem)
def test_the_pages_avoid_such_words(page: Path):
    assert [place for place in check_words.places(page) if not place.is_sentence] == []
