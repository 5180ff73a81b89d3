"""The assignment of tool calls to expected ones, beside all assignments that there are, and what fits an argument."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest

from pytest_rageval.assertions.argument_matchers import matches_argument
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.tool_matching import ToolMatches, fits, match_calls
from pytest_rageval.model import Answer, EvalCase, Observation, ToolCall
from pytest_rageval.model.expected_tool import ExpectedTool, ToolsMatch


def an_observation(
    expected: Sequence[ExpectedTool], calls: Sequence[ToolCall], match: ToolsMatch | None = None
) -> Observation:
    case = EvalCase("a", "What?", expected_tools=tuple(expected), tools_match=match)
    return observe(case, Answer("So it is.", tool_calls=tuple(calls)))


def counts_of_all_assignments(obs: Observation, *, in_order: bool) -> Iterator[tuple[int, int]]:
    """Yield how many required and optional calls each assignment matches."""
    expected = obs.case.expected_tools or ()
    calls = obs.answer.tool_calls or ()
    places: list[int | None] = [*range(len(calls)), *([None] * len(expected))]
    for chosen in set(permutations(places, len(expected))):
        pairs = [(tool, place) for tool, place in zip(expected, chosen, strict=True) if place is not None]
        positions = [place for _, place in pairs]
        if in_order and positions != sorted(positions):
            continue
        if all(fits(tool, calls[place]) for tool, place in pairs):
            optional = sum(tool.optional for tool, _ in pairs)
            yield len(pairs) - optional, optional


def counts(matches: ToolMatches) -> tuple[int, int]:
    return matches.made, len(matches.matched) - matches.made


@pytest.mark.parametrize("match", ["any_order", "in_order"])
def test_no_assignment_matches_more(match: ToolsMatch):
    chance = random.Random(7)
    for _ in range(150):
        expected = []
        for _ in range(chance.randint(1, 3)):
            args: dict[str, Any] = chance.choice(
                [{}, {"q": "a"}, {"q": "b"}, {"q": {"any": [{"equals": "a"}, {"equals": "c"}]}}]
            )
            expected.append(ExpectedTool(chance.choice("xy"), args, optional=chance.random() < 0.3))
        calls = [ToolCall(chance.choice("xy"), {"q": chance.choice("abc")}) for _ in range(chance.randint(0, 4))]
        obs = an_observation(expected, calls, match)
        matches = match_calls(obs)
        assert counts(matches) == max(counts_of_all_assignments(obs, in_order=match == "in_order")), obs
        assert len(set(matches.matched.values())) == len(matches.matched)
        assert all(fits(expected[number], calls[place]) for number, place in matches.matched.items())


def test_a_call_that_fits_two_does_not_take_the_place_of_one_that_fits_one():
    both = ToolCall("search", {"q": "jeju"})
    other = ToolCall("search", {"q": "busan"})
    expected = [ExpectedTool("search"), ExpectedTool("search", {"q": "jeju"})]
    assert match_calls(an_observation(expected, [both, other])).f1 == 1.0


@pytest.mark.parametrize(
    ("expected", "calls", "f1"),
    [
        ("", "", 1.0),
        ("", "x", 0.0),
        ("x", "", 0.0),
        ("x?", "", 1.0),
        ("x?", "x", 1.0),
        ("x y?", "x y", 1.0),
        ("x y?", "x z", 2 / 3),
        ("x x", "x", 2 / 3),
        ("x", "x x", 2 / 3),
    ],
)
def test_optional_calls_do_not_count_and_others_do(expected: str, calls: str, f1: float):
    tools = [ExpectedTool(name.rstrip("?"), optional=name.endswith("?")) for name in expected.split()]
    assert match_calls(an_observation(tools, [*map(ToolCall, calls.split())])).f1 == pytest.approx(f1)


ARGS = {"query": {"icontains": "jeju"}, "n": 3}


@pytest.mark.parametrize(
    ("tool", "arguments", "does_fit"),
    [
        (ExpectedTool("s", ARGS), {"query": "To JEJU", "n": 3.0, "page": 2}, True),
        (ExpectedTool("s", ARGS), {"query": "To Jeju", "n": "3"}, False),
        (ExpectedTool("s", ARGS), {"query": "To Jeju"}, False),
        (ExpectedTool("s", ARGS, "exact"), {"query": "jeju", "n": 3, "page": 2}, False),
        (ExpectedTool("s", ARGS, "exact", ("page",)), {"query": "jeju", "n": 3, "page": 2}, True),
        (ExpectedTool("s", ARGS, "subset", ("n",)), {"query": "jeju", "n": 4}, True),
        (ExpectedTool("s", ARGS, "ignore"), {}, True),
        (ExpectedTool("t", ARGS, "ignore"), {}, False),
    ],
)
def test_arguments_fit_as_the_case_says(tool: ExpectedTool, arguments: dict[str, Any], does_fit: bool):
    assert fits(tool, ToolCall("s", arguments)) is does_fit


@pytest.mark.parametrize(
    ("expected", "found", "does_match"),
    [
        (True, 1, False),
        (None, None, True),
        ({"a": [1, {"regex": "^b"}]}, {"a": [1, "bc"]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"language": "en"}, {"language": "en"}, True),
        ({"equals": {"contains": "x"}}, {"contains": "x"}, True),
        ({"type": "not-contains", "value": "x"}, "yz", True),
        ({"levenshtein": "jeju", "threshold": 1}, "jejo", True),
        ({"any": ["a"]}, {"any": ["a"]}, True),
        ({"all": [{"contains": "a"}, {"contains": "b"}]}, ["a", "b"], True),
        ({"contains": "3"}, 1234, True),
        ({"is-json": {"type": "object", "required": ["a"]}}, {"a": 1}, True),
    ],
)
def test_a_value_is_compared_as_json_and_a_matcher_as_text(expected: Any, found: Any, does_match: bool):
    assert matches_argument(expected, found) is does_match
