"""`@pytest.mark.rageval("cases.jsonl", select=…)`: which cases a test of the user's own runs over."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_rageval.cases import CaseFile
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.items import keywords


def marked_cases(metafunc: pytest.Metafunc, load: Callable[[Path], CaseFile]) -> list[EvalCase]:
    """The selected cases of the file that the test's mark names; what is wrong is a collection error of that test."""
    mark = metafunc.definition.get_closest_marker("rageval")
    assert mark is not None
    if len(mark.args) != 1 or not isinstance(mark.args[0], str) or set(mark.kwargs) - {"select"}:
        pytest.fail('rageval mark: write @pytest.mark.rageval("cases.jsonl", select="multi_hop")', pytrace=False)
    path = (metafunc.definition.path.parent / mark.args[0]).resolve()
    if not path.is_file():
        pytest.fail(f"rageval mark: {mark.args[0]}: there is no such file beside the test", pytrace=False)
    file = load(path)
    if file.problems:
        pytest.fail("\n".join(file.problems), pytrace=False)
    select = mark.kwargs.get("select")
    if select is None:
        return list(file.cases)
    problem = None
    try:
        chosen = selector(select)
    except ValueError as error:
        problem = str(error)
    if problem:
        pytest.fail(f"rageval mark: select={select!r}: {problem}", pytrace=False)
    cases = [case for case in file.cases if chosen(_words(case))]
    if not cases:
        pytest.fail(f"rageval mark: select={select!r} leaves no case of {mark.args[0]}", pytrace=False)
    return cases


def _words(case: EvalCase) -> list[str]:
    return [word.lower() for word in keywords(case)]


_TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+)")
Test = Callable[[list[str]], bool]


def selector(expression: str) -> Test:
    """A `-k` expression (words, and, or, not, parentheses) as a test of a case's keywords; ValueError if it is none."""
    tokens = _TOKEN.findall(expression)
    test, rest = _either(tokens)
    if rest:
        raise ValueError(f"unexpected {rest[0]!r}")
    return test


def _either(tokens: list[str]) -> tuple[Test, list[str]]:
    left, rest = _both(tokens)
    if rest[:1] != ["or"]:
        return left, rest
    right, rest = _either(rest[1:])
    return (lambda words: left(words) or right(words)), rest


def _both(tokens: list[str]) -> tuple[Test, list[str]]:
    left, rest = _single(tokens)
    if rest[:1] != ["and"]:
        return left, rest
    right, rest = _both(rest[1:])
    return (lambda words: left(words) and right(words)), rest


def _single(tokens: list[str]) -> tuple[Test, list[str]]:
    if not tokens or tokens[0] in (")", "and", "or"):
        raise ValueError(f"expected a word, got {tokens[0]!r}" if tokens else "it ends too early")
    if tokens[0] == "not":
        inner, rest = _single(tokens[1:])
        return (lambda words: not inner(words)), rest
    if tokens[0] == "(":
        inner, rest = _either(tokens[1:])
        if rest[:1] != [")"]:
            raise ValueError("a parenthesis is not closed")
        return inner, rest[1:]
    word = tokens[0].lower()
    return (lambda words: any(word in name for name in words)), tokens[1:]
