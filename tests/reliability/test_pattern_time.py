"""Every regular expression of the package takes a time that grows with the text's length, whatever is repeated."""

from __future__ import annotations

import ast
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from processes import IS_THOROUGH
from project import Project  # noqa: F401 because it loads all modules of the package
from reliability import Tally

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


def written_patterns(path: Path) -> Iterator[re.Pattern[str]]:
    """Yield the patterns that stand as texts in calls of `re`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        owner, first = node.func.value, node.args[0]
        is_ours = isinstance(owner, ast.Name) and owner.id == "re"
        if is_ours and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield re.compile(first.value)


def all_patterns() -> dict[str, re.Pattern[str]]:
    """The patterns of all modules, by a place where each stands."""
    found: dict[tuple[str, int], tuple[str, re.Pattern[str]]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("pytest_rageval"):
            for attribute, value in vars(module).items():
                for pattern in patterns_in(value):
                    found.setdefault((pattern.pattern, pattern.flags), (f"{name}.{attribute}", pattern))
    for path in Path(pytest_rageval.__path__[0]).rglob("*.py"):
        for pattern in written_patterns(path):
            found.setdefault((pattern.pattern, pattern.flags), (str(path.name), pattern))
    return {f"{place} {number}": pattern for number, (place, pattern) in enumerate(found.values())}


SEARCHING = frozenset(["search", "sub", "subn", "split", "findall", "finditer"])


def searched_names() -> set[str]:
    """The names of patterns that are searched for within a text; others are tried at one place alone."""
    found = set()
    for path in Path(pytest_rageval.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in SEARCHING and isinstance(node.value, ast.Name):
                found.add(node.value.id)
    return found


def seconds(pattern: re.Pattern[str], text: str, *, is_searched: bool) -> float:
    began = time.process_time()
    pattern.match(text)
    pattern.fullmatch(text)
    if is_searched:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began


def pumps_of(pattern: re.Pattern[str]) -> list[str]:
    words = list(dict.fromkeys(WORD.findall(pattern.pattern)))[:6]
    return [*PUMPS, *words, *(f"{word} " for word in words)]


def slow(name: str, pattern: re.Pattern[str], pumps: Iterable[str], *, is_searched: bool) -> Iterator[str]:
    for pump in pumps:
        large = (pump * LARGE)[:LARGE] + "\x00"
        took = seconds(pattern, large, is_searched=is_searched)
        if took < UNNOTICED_S:
            continue
        small = seconds(pattern, (pump * SMALL)[:SMALL] + "\x00", is_searched=is_searched)
        again = seconds(pattern, large, is_searched=is_searched)
        if min(took, again) > max(UNNOTICED_S, MOST_TIMES * small):
            yield f"{name} {pattern.pattern[:80]!r} over {pump!r}: {small:.4f} s, then {took:.3f} s"
            return


BOUNDED = frozenset(
    [
        "_BORDER", "_LAST_WORD", "_MARKS", "_LINK", "_LINK_TO_PAGE", "_TERM", "_NUMBER", "STRONG", "WEAK",
        "_HAN", "_NUMBERED", "_PIECE", "_TOKEN",
    ]
)  # fmt: skip
"""Names of patterns whose texts are bounded before, or that are called by one method alone.

The functions around them are tried in `test_linear_time`.
"""


@pytest.mark.timeout(1800)
@pytest.mark.reliability("bombs", "repeated text in every pattern of the package")
def test_no_pattern_takes_longer_than_in_proportion(tally: Tally):
    patterns = all_patterns()
    assert len(patterns) > 300
    tally.tried(len(patterns))
    searched = searched_names()
    found: list[str] = []
    for number, (name, pattern) in enumerate(patterns.items()):
        pumps = pumps_of(pattern)
        if not IS_THOROUGH:
            pumps = pumps[number % 24 :: 24]
        is_searched = name.split(" ")[0].rpartition(".")[2] in searched
        found += slow(name, pattern, pumps, is_searched=is_searched)
    assert [one for one in found if one.split(" ")[0].rpartition(".")[2] not in BOUNDED] == []
