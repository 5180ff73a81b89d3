"""Which tool calls of an answer are the expected ones of its case: an optimal assignment, never a greedy one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_rageval.assertions.argument_matchers import matches_argument
from pytest_rageval.model import Observation, ToolCall
from pytest_rageval.model.expected_tool import ExpectedTool

MOST_COMPARED = 200
"""Calls that are compared with expected ones: an agent in a loop may report any number, and each costs its time."""

Fits = Callable[[ExpectedTool, ToolCall], bool]


@dataclass(frozen=True, slots=True)
class ToolMatches:
    """The expected calls of a case, and the calls of its answer that they are.

    calls     how many calls there are
    matched   the position of the call, by that of the expected one
    """

    expected: tuple[ExpectedTool, ...]
    calls: int
    matched: dict[int, int]

    @property
    def required(self) -> int:
        """Return how many calls must be made."""
        return sum(not tool.optional for tool in self.expected)

    @property
    def made(self) -> int:
        """Return how many of the required calls were made."""
        return sum(not self.expected[number].optional for number in self.matched)

    @property
    def extra(self) -> int:
        """Return how many calls are no expected ones."""
        return self.calls - len(self.matched)

    @property
    def counted(self) -> int:
        """Return how many calls count for precision: all but optional ones."""
        return self.made + self.extra

    @property
    def missing(self) -> list[ExpectedTool]:
        """Return the required calls that were not made."""
        missing = []
        for number, tool in enumerate(self.expected):
            if not tool.optional and number not in self.matched:
                missing.append(tool)
        return missing

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall; 1 if nothing was expected and nothing called."""
        both = self.required + self.counted
        return 2 * self.made / both if both else 1.0


def fits(expected: ExpectedTool, call: ToolCall) -> bool:
    """Check whether a call has the expected name and arguments."""
    if call.name != expected.name:
        return False
    if expected.args_match == "ignore":
        return True
    for name, value in expected.args.items():
        if name in expected.ignore:
            continue
        if name not in call.arguments or not matches_argument(value, call.arguments[name]):
            return False
    if expected.args_match == "exact":
        return call.arguments.keys() <= {*expected.args, *expected.ignore}
    return True


def has_name(expected: ExpectedTool, call: ToolCall) -> bool:
    """Check whether a call has the expected name."""
    return call.name == expected.name


def match_calls(obs: Observation, fit: Fits = fits) -> ToolMatches:
    """Assign the calls of an answer to the expected ones: as many required ones as possible, then optional ones.

    With `tools_match` in_order or exact, only calls in the order of the expected ones are assigned.
    """
    expected = obs.case.expected_tools or ()
    calls = obs.answer.tool_calls or ()
    # The others count as calls that nobody expected.
    compared = calls[:MOST_COMPARED]
    table = [[fit(tool, call) for call in compared] for tool in expected]
    if obs.case.tools_match in ("in_order", "exact"):
        matched = _in_order(expected, table)
    else:
        matched = _in_any_order(expected, table)
    return ToolMatches(expected, len(calls), matched)


def _in_any_order(expected: Sequence[ExpectedTool], table: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return a largest assignment by augmenting paths. A required call that has one never loses it again."""
    of_call: dict[int, int] = {}

    def assign(number: int, tried: set[int]) -> bool:
        for call, is_fit in enumerate(table[number]):
            if not is_fit or call in tried:
                continue
            tried.add(call)
            if call not in of_call or assign(of_call[call], tried):
                of_call[call] = number
                return True
        return False

    # Required ones first (False before True): an optional call must not take the call of one.
    numbers = sorted(range(len(expected)), key=lambda number: expected[number].optional)
    for number in numbers:
        assign(number, set())
    return {number: call for call, number in of_call.items()}


def _in_order(expected: Sequence[ExpectedTool], table: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return a best assignment that keeps the order, as of a longest common subsequence."""
    calls = len(table[0]) if table else 0
    # By rows of expected calls from the last: the best (required, optional) counts from here on.
    best = [[(0, 0)] * (calls + 1) for _ in range(len(expected) + 1)]
    for number in reversed(range(len(expected))):
        required, optional = (0, 1) if expected[number].optional else (1, 0)
        for call in reversed(range(calls)):
            options = [best[number + 1][call], best[number][call + 1]]
            if table[number][call]:
                after = best[number + 1][call + 1]
                options.append((after[0] + required, after[1] + optional))
            best[number][call] = max(options)
    matched: dict[int, int] = {}
    number = call = 0
    while number < len(expected) and call < calls:
        if best[number][call] == best[number + 1][call]:
            number += 1
        elif best[number][call] == best[number][call + 1]:
            call += 1
        else:
            matched[number] = call
            number += 1
            call += 1
    return matched


# ── the matches of one answer ─────────────────────────────────────────────────────────────────────────────────


class _LatestMatches(threading.local):
    """The observation that was matched last on this thread: several metrics ask in succession."""

    matched: tuple[Observation, ToolMatches] | None = None


_latest = _LatestMatches()


def matches_of(obs: Observation) -> ToolMatches:
    """Return the matches of an observation by names and arguments."""
    latest = _latest.matched
    # By identity: to compare two observations takes longer than to match one.
    if latest is None or latest[0] is not obs:
        latest = (obs, match_calls(obs))
        _latest.matched = latest
    return latest[1]
