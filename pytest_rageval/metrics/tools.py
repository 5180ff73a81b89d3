"""Tools: did an agent call what the case expects, and nothing that it forbids?

Off by default: each is on, and gated, in runs whose cases have the field that it reads, so that other runs stay the
same to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial

from pytest_rageval.io.messages import shown_value
from pytest_rageval.metrics.calls import SCALE
from pytest_rageval.metrics.registry import metric
from pytest_rageval.metrics.tool_matching import ToolMatches, has_name, match_calls, matches_of
from pytest_rageval.model import Json, NotApplicable, Observation, Score
from pytest_rageval.model.expected_tool import ExpectedTool
from pytest_rageval.text import counted, cut, printable

NO_CALLS = NotApplicable("the system reports no tool calls", is_unobserved=True)
NOTHING_EXPECTED = NotApplicable("the case has no expected_tools")
NOTHING_FORBIDDEN = NotApplicable("the case has no forbidden_tools")
NO_LIMIT = NotApplicable("the case has no max_tool_calls")
NO_TOOL = NotApplicable("the system called no tool")
MOST_LISTED = 20
"""Calls that a detail lists."""
LONGEST_CALL = 200
"""Characters of a call that a detail shows."""


def _unreported(obs: Observation) -> NotApplicable | None:
    return NO_CALLS if obs.answer.tool_calls is None else None


def _unexpected(obs: Observation) -> NotApplicable | None:
    return NOTHING_EXPECTED if obs.case.expected_tools is None else _unreported(obs)


def _unforbidden(obs: Observation) -> NotApplicable | None:
    return _unreported(obs) if obs.case.forbidden_tools else NOTHING_FORBIDDEN


def _unlimited(obs: Observation) -> NotApplicable | None:
    return NO_LIMIT if obs.case.max_tool_calls is None else _unreported(obs)


tool_metric = partial(metric, layer="tools", on_by_default=False, needs=("gold.tools",))


def _f1_terms(matches: ToolMatches) -> str:
    """Return `2 × 1 matched / (2 expected + 3 calls)`, with the number of optional calls that do not count."""
    text = f"2 × {matches.made} matched / ({matches.required} expected + {counted(matches.counted, 'call')})"
    optional = matches.calls - matches.counted
    return f"{text}, {counted(optional, 'optional call')} not counted" if optional else text


@tool_metric(better="higher", missing=_unexpected, terms=lambda obs, _: _f1_terms(matches_of(obs)))
def tool_call_f1(obs: Observation) -> float | NotApplicable:
    """2 × matched calls / (expected calls + calls made), of calls with their arguments.

    In [0, 1], higher is better. Each call is assigned to one expected call at most, so that as many as possible are
    matched; with `tools_match` in_order or exact, only in the order of `expected_tools`. Calls that nobody expected
    count among those made; optional ones do not count, made or left out. 1 where no call is expected and none made. Not
    applicable to cases without `expected_tools`, and where the system reports no tool calls. Source: F1 of multisets.

    Both expected calls are made, and one more: 2 × 2 / (2 + 3).

    >>> score("tool_call_f1", called_tools("search pay search", expected="search pay"))
    0.8
    """
    return matches_of(obs).f1


@tool_metric(better="higher", missing=_unexpected, terms=lambda obs, _: _f1_terms(match_calls(obs, has_name)))
def tool_name_f1(obs: Observation) -> float | NotApplicable:
    """2 × matched calls / (expected calls + calls made), of calls by their names alone.

    In [0, 1], higher is better. As `tool_call_f1`, but arguments are not compared. Not applicable to cases without
    `expected_tools`, and where the system reports no tool calls. Source: F1 over a multiset.

    >>> score("tool_name_f1", called_tools("search search", expected="search pay"))
    0.5
    """
    return match_calls(obs, has_name).f1


def _expected_terms(obs: Observation, _: int) -> str:
    matches = matches_of(obs)
    return f"{matches.made} of {counted(matches.required, 'expected call')} made, {matches.extra} not expected"


@tool_metric(better="higher", binary=True, missing=_unexpected, terms=_expected_terms)
def tools_as_expected(obs: Observation) -> Score | NotApplicable:
    """1 if every expected call was made as `tools_match` says, else 0.

    Higher is better. `any_order`: each expected call that is not optional is made, and others may be. `in_order`: in
    the order of `expected_tools` too. `exact`: and no other call. With an empty list of `expected_tools`, no call may
    be made. The detail `missing` lists the expected calls that were not made. In runs whose cases have
    `expected_tools` it is on, and its default gate is 1. Not applicable to cases without `expected_tools`, and where
    the system reports no tool calls. Source: the rules of this project's case format.

    >>> score("tools_as_expected", called_tools("search pay", expected="pay search"))
    1.0
    >>> score("tools_as_expected", called_tools("search pay", expected="pay search", match="in_order"))
    0.0
    """
    matches = matches_of(obs)
    detail: dict[str, Json] = {}
    if matches.missing:
        detail["missing"] = [expected_words(tool) for tool in matches.missing[:MOST_LISTED]]
    # An empty list says that no tool may be called.
    allows_no_other = obs.case.tools_match == "exact" or not matches.expected
    if allows_no_other and matches.extra:
        detail["not_expected"] = counted(matches.extra, "call")
    return Score(float(not detail), detail)


def expected_words(tool: ExpectedTool) -> str:
    """Return an expected call in one line, as `search(query={'icontains': 'jeju'})`."""
    arguments = []
    if tool.args_match != "ignore":
        compared = tool.args.keys() - {*tool.ignore}
        arguments = [f"{name}={_value_words(value)}" for name, value in tool.args.items() if name in compared]
    if tool.args_match != "exact":
        arguments.append("…")
    return cut(printable(f"{tool.name}({', '.join(arguments)})"), LONGEST_CALL)


def _value_words(value: Json) -> str:
    is_nested = isinstance(value, Mapping | list | tuple)
    return json.dumps(value, ensure_ascii=False) if is_nested else shown_value(value)


def _forbidden_calls(obs: Observation) -> Iterator[str]:
    """Yield the name of each forbidden call with the pattern that it matches."""
    patterns = [(pattern, pattern.casefold()) for pattern in obs.case.forbidden_tools]
    for call in obs.answer.tool_calls or ():
        for pattern, folded in patterns:
            # Not `fnmatch`, whose rules are those of the operating system's file names.
            if fnmatchcase(call.name.casefold(), folded):
                yield cut(printable(f"{call.name} is forbidden by {pattern!r}"), LONGEST_CALL)
                break


def broken_tool_rules(details: Mapping[str, Mapping[str, Json]]) -> Iterator[str]:
    """Yield each expected call that was not made, and each forbidden one that was, from the details of scores."""
    expected = details.get(tools_as_expected.name) or {}
    for line in expected.get("missing") or ():
        yield f"expected call not made: {line}"
    if expected.get("not_expected"):
        yield f"{expected['not_expected']} not expected"
    yield from map(str, (details.get(forbidden_tool_called.name) or {}).get("forbidden") or ())


def _forbidden_terms(obs: Observation, _: int) -> str:
    forbidden = sum(1 for _ in _forbidden_calls(obs))
    return f"{forbidden} of {counted(len(obs.answer.tool_calls or ()), 'call')} forbidden"


@tool_metric(better="lower", binary=True, missing=_unforbidden, terms=_forbidden_terms)
def forbidden_tool_called(obs: Observation) -> Score | NotApplicable:
    """1 if any call is one of `forbidden_tools`, else 0.

    Lower is better. A pattern is compared with the whole name, whatever the case of its letters; `*` stands for any
    characters, `?` for one. In runs whose cases have `forbidden_tools` it is on, and its default gate is 0. Not
    applicable to cases without `forbidden_tools`, and where the system reports no tool calls. Source: the rules of this
    project's case format.

    >>> score("forbidden_tool_called", called_tools("search delete_order", forbidden="delete_*"))
    1.0
    """
    forbidden = list(_forbidden_calls(obs))
    return Score(1.0, {"forbidden": forbidden[:MOST_LISTED]}) if forbidden else Score(0.0)


@tool_metric(
    better="lower",
    scale=SCALE,
    unit="calls",
    missing=_unlimited,
    terms=lambda obs, _: f"{counted(len(obs.answer.tool_calls or ()), 'call')}, at most {obs.case.max_tool_calls}",
)
def tool_calls_over_limit(obs: Observation) -> float | NotApplicable:
    """Tool calls beyond `max_tool_calls` of the case.

    Lower is better. In runs whose cases have `max_tool_calls` it is on, and its default gate is 0. Not applicable to
    cases without `max_tool_calls`, and where the system reports no tool calls. Source: the rules of this project's case
    format.

    >>> score("tool_calls_over_limit", called_tools("search search pay", most=2))
    1.0
    """
    made = len(obs.answer.tool_calls or ())
    limit = obs.case.max_tool_calls or 0
    return float(max(0, made - limit))


def _failed_terms(obs: Observation, _: int) -> str:
    calls = obs.answer.tool_calls or ()
    failed = sum(call.error is not None for call in calls)
    return f"{failed} failed of {counted(len(calls), 'call')}"


@metric(layer="tools", better="lower", on_by_default=False, missing=_unreported, terms=_failed_terms)
def tool_error_rate(obs: Observation) -> float | NotApplicable:
    """Tool calls that ended in an error / tool calls.

    In [0, 1], lower is better. Not applicable where the system reports no tool calls, or called no tool. Source: the
    rules of this project.

    >>> score("tool_error_rate", called_tools("search pay!"))
    0.5
    """
    calls = obs.answer.tool_calls
    if not calls:
        return NO_TOOL
    return sum(call.error is not None for call in calls) / len(calls)


@metric(layer="tools", better="lower", scale=SCALE, unit="calls", on_by_default=False, missing=_unreported)
def tool_calls(obs: Observation) -> float | NotApplicable:
    """Tool calls that the system made for the answer.

    Lower is better. Not applicable where the system reports no tool calls; 0 where it reports that it made none.
    Source: the rules of this project.

    >>> score("tool_calls", called_tools("search search pay"))
    3.0
    """
    return float(len(obs.answer.tool_calls or ()))
