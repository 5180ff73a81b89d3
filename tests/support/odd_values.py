"""Odd values that foreign code gives, and a check that a run ends in order whatever it was given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project

CLASSES = '''
import math
import pytest
import sys

class Mute:
    """Raises whenever someone looks at it."""
    def __str__(self): raise RuntimeError("mute")
    __repr__ = __format__ = __str__
    def __eq__(self, other): raise RuntimeError("mute")
    __hash__ = None
    def __bool__(self): raise RuntimeError("mute")

class Unspeakable(Exception):
    """An exception without a message."""
    def __str__(self): raise RuntimeError("mute")
    __repr__ = __str__

class Array:
    """A value as numpy has them: a number in looks alone."""
    def __float__(self): raise TypeError("only length-1 arrays can be converted to Python scalars")
    def __bool__(self): raise ValueError("the truth value of an array is ambiguous")
    def __eq__(self, other): return self

def cyclic():
    ring = {}
    ring["ring"] = [ring]
    return ring

def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value

def raised(error):
    raise error
'''
"""Classes and functions for the conftest.py or module of foreign code."""

VALUES = {
    "nan": "float('nan')",
    "inf": "float('inf')",
    "text": "'high'",
    "nothing": "None",
    "generator": "(number for number in [1])",
    "mute": "Mute()",
    "array": "Array()",
    "huge": "10 ** 400",
    "very huge": "10 ** 6000",
    "bytes": "b'1'",
    "complex": "1j",
    "cyclic": "cyclic()",
    "deep": "deep()",
    "surrogate": "'\\ud800'",
    "object": "object()",
    "type": "int",
}
"""Values that are no score, as Python writes them."""

RAISING = {
    "ValueError": "raised(ValueError('broken on purpose'))",
    "SystemExit": "raised(SystemExit(3))",
    "skip": "pytest.skip('broken on purpose')",
    "xfail": "pytest.xfail('broken on purpose')",
    "GeneratorExit": "raised(GeneratorExit('broken on purpose'))",
    "BaseException": "raised(BaseException('broken on purpose'))",
    "unspeakable": "raised(Unspeakable())",
    "StopIteration": "raised(StopIteration('broken on purpose'))",
    "RecursionError": "raised(RecursionError('broken on purpose'))",
    "MemoryError": "raised(MemoryError('broken on purpose'))",
}
"""Ways not to return, as Python writes them."""


def no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


def assert_ended_in_order(project: Project, result: pytest.RunResult, status: int = 1, said: str = "") -> None:
    """Check that a run wrote all its files and said what was wrong, without a traceback."""
    shown = "\n".join([*result.outlines, *result.errlines])
    for word in ("Traceback (most recent call last)", "INTERNALERROR", "Error in sys.excepthook"):
        assert word not in shown
    assert result.ret == status
    [run] = project.runs
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"), parse_constant=no_constant)
    assert metrics["total_tests"] == sum(metrics["outcomes"].values())
    json.loads((run / "config.json").read_text(encoding="utf-8"), parse_constant=no_constant)
    for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line, parse_constant=no_constant)
    assert (run / "summary.md").stat().st_size > 100
    assert "</html>" in (run / "report.html").read_text(encoding="utf-8")
    assert said in shown


def assert_refused(project: Project, result: pytest.RunResult, *said: str) -> None:
    """Check that a session was refused as wrong usage, in a line that says these words, and began no run."""
    shown = "\n".join([*result.outlines, *result.errlines])
    for word in ("Traceback (most recent call last)", "INTERNALERROR"):
        assert word not in shown
    assert result.ret == 4
    assert not project.runs
    assert [line for line in shown.splitlines() if all(word in line for word in said)]
