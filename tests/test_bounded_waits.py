"""Nothing in the tests waits without an end: a wait for a process or a thread has a limit of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STARTS = ("run", "check_output", "check_call", "call")
"""Functions of subprocess that wait for what they start."""
ARGUMENTS_BEFORE_LIMIT = {"communicate": 1, "wait": 0, "join": 0}
"""Methods of processes and threads that wait for ever where no limit is given."""
LIMITED_ELSEWHERE = ("everybody", "meeting")
"""An event of a loop whose run has a limit, and a barrier that was made with one."""


def unbounded(tree: ast.Module) -> Iterator[int]:
    """Lines of calls that may wait for ever."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        if {keyword.arg for keyword in node.keywords} & {"timeout", None}:
            continue
        if owner == "subprocess":
            is_unbounded = name in STARTS
        else:
            limit_at = ARGUMENTS_BEFORE_LIMIT.get(name)
            is_unbounded = limit_at is not None and len(node.args) <= limit_at and owner not in LIMITED_ELSEWHERE
        if is_unbounded:
            yield node.lineno


def test_nothing_waits_without_an_end():
    places = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in unbounded(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert places == []


@pytest.mark.parametrize(
    "call",
    ["subprocess.run(['x'])", "process.wait()", "a.process.communicate()", "p.communicate('input')", "thread.join()"],
)
def test_a_wait_without_an_end_is_seen(call: str):
    assert [*unbounded(ast.parse(call))] == [1]


@pytest.mark.parametrize(
    "call", ["subprocess.run(['x'], timeout=9)", "process.wait(9)", "p.communicate(timeout=9)", "' '.join(words)"]
)
def test_a_wait_with_an_end_is_none(call: str):
    assert [*unbounded(ast.parse(call))] == []
