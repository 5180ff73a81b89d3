"""What the import of the room costs: every command that scores pays for it."""

from __future__ import annotations

from processes import python

COUNT = """
import re
compile_pattern = re.compile
names = []
def counted(pattern, flags=0):
    names.append(pattern)
    return compile_pattern(pattern, flags)
re.compile = counted
import pytest_rageval.language.gold_search
print(len(names))
"""
MOST = 120
"""104 as measured, and 282 before those that few texts need were compiled at first use."""


def test_patterns_that_few_texts_need_are_not_compiled_at_import():
    counting = python("-c", COUNT)
    assert 0 < int(counting.stdout) <= MOST
