"""Every regular expression of the package takes a time that grows with the text's length, whatever is repeated."""

from __future__ import annotations

import ast
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from processes import IS_THOROUGH, python
from project import Project  # noqa: F401 because it loads all modules of the package
from reliability import Tally
from test_linear_time import FUNCTIONS  # type: ignore[import-not-found]

import pytest_rageval

SMALL, LARGE = 500, 4_000
MOST_TIMES = 24
"""How much longer the large text may take, which is 8 times as long; n² takes 64 times as long."""
UNNOTICED_S = 0.03
PUMPS = [
    " ", "\n", "\t ", "a", "a ", "A", "aA1", "0", "1,", "1.", "1 ", "#", "# a ", ">", "> ", "-", "- ", "->", "*", "_",
    "`", "~", "[", "](", "<", "<a ", "{", "}", '"', '\\"', "\\", "'", "|", "a: ", ":", "::", "/", "//", "a/", "../",
    "%20",
    "&", "=", "k=", "://a:", "@", "a@", "?", ". ", "! ", ", ", "가", "日", "é", "\u200b", "(", ")", "$", "://",
    "eyJ", "a.", "-a", "a-",
]  # fmt: skip
WORD = re.compile(r"[^\W\d_]{2,}|\d")


def patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of a value, also those within its containers."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict) and depth < 3:
        yield from patterns_of([*value.keys(), *value.values()], depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)) and depth < 3:
        yield from patterns_of(value, depth + 1)


def patterns_of(values: Iterable[object], depth: int) -> Iterator[re.Pattern[str]]:
    for value in values:
        yield from patterns_in(value, depth)


def written_patterns(path: Path) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns that stand as texts in calls of `re`, each with the name of the function called."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        owner, first = node.func.value, node.args[0]
        is_ours = isinstance(owner, ast.Name) and owner.id == "re"
        if is_ours and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield node.func.attr, re.compile(first.value)


class Place(NamedTuple):
    """Where a pattern stands: `matching.spellings._LINK`, or the name of a file if it has none.

    methods  the names of methods that are called on it there; empty if that cannot be seen
    """

    name: str
    methods: frozenset[str] = frozenset()

    @property
    def is_searched(self) -> bool:
        return not self.methods or not self.methods.isdisjoint(SEARCHING)

    @property
    def is_matched_whole(self) -> bool:
        return not self.methods or "fullmatch" in self.methods


LAZY = """
import json, re, sys
from types import SimpleNamespace
from pytest_rageval.language import lazy_patterns

def compiled(pattern, flags=0):
    made = re.compile(pattern, flags)
    print(json.dumps([made.pattern, made.flags]))
    return made

lazy_patterns.re = SimpleNamespace(compile=compiled)
from pytest_rageval.language.gold_search import best_fit
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    best_fit(row["answer"], [row["gold"]], row["question"])
"""


@cache
def lazy_patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns that are compiled at first use: no module holds them, so that they are caught in the act."""
    wordings = Path(__file__).parents[1] / "data" / "wordings" / "gold_in_answer.jsonl"
    compiling = python("-c", LAZY, wordings)
    assert compiling.returncode == 0, compiling.stderr
    return tuple(re.compile(*json.loads(line)) for line in compiling.stdout.splitlines())


SEARCHING = frozenset(["search", "sub", "subn", "split", "findall", "finditer"])


def methods_called(path: Path) -> dict[str, set[str]]:
    """Return the methods that a module calls on each name."""
    called: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called.setdefault(node.value.id, set()).add(node.attr)
    return called


def all_patterns() -> list[tuple[Place, re.Pattern[str]]]:
    """Return the patterns of all modules with the place where each stands first, in the order of names."""
    found: dict[tuple[str, int], tuple[Place, re.Pattern[str]]] = {}
    root = Path(pytest_rageval.__path__[0])
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("pytest_rageval") or module.__file__ is None:
            continue
        called = methods_called(Path(module.__file__))
        for attribute, value in vars(module).items():
            short = f"{name}.{attribute}".removeprefix("pytest_rageval.")
            methods = called.get(attribute, set()) if isinstance(value, re.Pattern) else set()
            for pattern in patterns_in(value):
                key = (pattern.pattern, pattern.flags)
                earlier = found[key][0].methods if key in found else frozenset()
                place = found[key][0].name if key in found else short
                found[key] = (Place(place, earlier | methods), pattern)
    named = {pattern for pattern, _ in found}
    for path in root.rglob("*.py"):
        for method, pattern in written_patterns(path):
            # One that a module keeps under a name is there already, perhaps with flags.
            if pattern.pattern not in named:
                called_so: set[str] = set() if method == "compile" else {method}
                key = (pattern.pattern, pattern.flags)
                earlier = found[key][0].methods if key in found else frozenset()
                found[key] = (Place(path.name, earlier | called_so), pattern)
    for pattern in lazy_patterns():
        found.setdefault((pattern.pattern, pattern.flags), (Place("compiled at first use"), pattern))
    return list(found.values())


def seconds(pattern: re.Pattern[str], text: str, place: Place) -> float:
    began = time.process_time()
    pattern.match(text)
    if place.is_matched_whole:
        pattern.fullmatch(text)
    if place.is_searched:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began


def pumps_of(pattern: re.Pattern[str]) -> list[str]:
    words = list(dict.fromkeys(WORD.findall(pattern.pattern)))[:6]
    return [*PUMPS, *words, *(f"{word} " for word in words)]


def slow(place: Place, pattern: re.Pattern[str], pumps: Iterable[str]) -> Iterator[str]:
    for pump in pumps:
        large = (pump * LARGE)[:LARGE] + "\x00"
        took = seconds(pattern, large, place)
        if took < UNNOTICED_S:
            continue
        small = seconds(pattern, (pump * SMALL)[:SMALL] + "\x00", place)
        again = seconds(pattern, large, place)
        if min(took, again) > max(UNNOTICED_S, MOST_TIMES * small):
            yield f"{place.name} {pattern.pattern[:80]!r} over {pump!r}: {small:.4f} s, then {took:.3f} s"
            return


SHOWN_BY = {
    "abstention.courtesies._BORDER": "without_courtesies",
    "comparison.case_filter._TERM": "filter",
    "matching.dialects.STRONG": "read_headings",
    "matching.spellings._LINK": "read_headings",
    "matching.spellings._MARKS": "heading_form",
}
"""Patterns whose texts are bounded before, and the function of `test_linear_time` that shows it."""


def test_each_exception_is_a_pattern_whose_function_is_tried():
    names = {place.name for place, _ in all_patterns()}
    assert {*SHOWN_BY} <= names
    assert {*SHOWN_BY.values()} <= {*FUNCTIONS}


def test_patterns_compiled_at_first_use_are_among_them():
    assert len(lazy_patterns()) > 100


@pytest.mark.timeout(1800)
@pytest.mark.reliability("bombs", "repeated text in every pattern of the package")
def test_no_pattern_takes_longer_than_in_proportion(tally: Tally):
    patterns = all_patterns()
    assert len(patterns) > 300
    tally.tried(len(patterns))
    found: list[str] = []
    for number, (place, pattern) in enumerate(patterns):
        pumps = pumps_of(pattern)
        if not IS_THOROUGH:
            pumps = pumps[number % 24 :: 24]
        if place.name not in SHOWN_BY:
            found += slow(place, pattern, pumps)
    assert found == []
