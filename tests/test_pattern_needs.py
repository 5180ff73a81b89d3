"""What a text must have that a pattern matches: patterns of courtesies that are not tried cannot match."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rageval.abstention import pattern_needs
from pytest_rageval.abstention.courtesies import patterns_by_kind
from pytest_rageval.abstention.pattern_needs import ANY, READ, PatternNeeds, needs_of


def texts_of(pattern: str) -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(st.just(pattern), st.from_regex(pattern, fullmatch=True))


PATTERNS = [*patterns_by_kind()["courtesy"], *patterns_by_kind()["announcement"]]


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("welcome", PatternNeeds(frozenset({"we"}), is_foreign=False)),
        ("(?:oh,? )?(?:dear|my)", PatternNeeds(frozenset({"oh", "de", "my"}), is_foreign=False)),
        (r"(?!.*\bnot\b)(?:so|as) …", PatternNeeds(frozenset({"so", "as"}), is_foreign=True)),
        (r"\w+ day", PatternNeeds(frozenset({ANY * 2, f"{ANY} "}), is_foreign=False)),
        ("(?:많이 )?감사합니다|thanks", PatternNeeds(frozenset({"많이", "감사", "th"}), is_foreign=False)),
        (
            "[^,]{0,9}(?:谢谢|感谢)",
            PatternNeeds(frozenset({ANY * 2, f"{ANY}谢", f"{ANY}感", "谢谢", "感谢"}), is_foreign=True),
        ),
        (r"\(ok\)", PatternNeeds(frozenset({"(o"}), is_foreign=False)),
        ("a+b", PatternNeeds(frozenset({"aa", "ab"}), is_foreign=False)),
        ("(?:hi)?", PatternNeeds(frozenset({"", "hi"}), is_foreign=False)),
        ("", PatternNeeds(frozenset({""}), is_foreign=False)),
    ],
)
def test_needs_are_read_from_a_pattern(pattern: str, needs: PatternNeeds):
    assert needs_of(pattern) == needs


def test_a_group_that_is_not_read_is_refused():
    with pytest.raises(ValueError, match="at 3 of the pattern"):
        needs_of("oh (dear)")


@settings(max_examples=60)
@given(st.sampled_from(PATTERNS).flatmap(texts_of))
def test_each_text_of_a_courtesy_meets_its_needs(found: tuple[str, str]):
    pattern, text = found
    assert needs_of(pattern).are_met(text[:READ], is_ascii=text.isascii())


def test_the_examples_of_the_module_hold():
    assert doctest.testmod(pattern_needs).failed == 0
