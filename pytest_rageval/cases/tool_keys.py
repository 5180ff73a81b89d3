"""The keys of a case about tool calls: which are expected, in what order, which are forbidden, and how many may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from pytest_rageval.assertions.argument_matchers import check_arguments
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.messages import Findings, shown_value
from pytest_rageval.io.records import Name
from pytest_rageval.io.strict_json import limits_broken
from pytest_rageval.model import Json
from pytest_rageval.model.expected_tool import ArgumentsMatch, ExpectedTool, ToolsMatch

MOST_EXPECTED = 100
"""Expected calls of a case: each is compared with each call of an answer."""
LONGEST_PATTERN = 200


def _checked_depth(args: dict[str, Json]) -> dict[str, Json]:
    if problem := limits_broken(args):
        raise ValueError(problem)
    return args


@dataclass(frozen=True, slots=True)
class ExpectedToolShape:
    """A call of a tool that the system should make."""

    name: Annotated[Name, Field(description="The tool, as the system names it.")]
    args: (
        Annotated[
            dict[str, Any],
            AfterValidator(_checked_depth),
            Expects("an object of values or matchers by argument, such as {'query': {'icontains': 'jeju'}}"),
            Field(description="A value, or a matcher such as {'icontains': 'jeju'}, by argument."),
        ]
        | None
    ) = None
    args_match: Annotated[
        ArgumentsMatch,
        Field(description="subset: there may be more arguments; exact: there may not; ignore: they do not count."),
    ] = "subset"
    ignore: Annotated[tuple[Name, ...], Field(description="Arguments that are not compared.")] = ()
    optional: Annotated[bool, Field(description="The call may be left out.")] = False


def _tools(shapes: tuple[ExpectedToolShape, ...]) -> tuple[ExpectedTool, ...]:
    if len(shapes) > MOST_EXPECTED:
        raise ValueError(f"has {len(shapes)} calls, more than {MOST_EXPECTED}; split the case")
    return tuple(map(_tool, shapes))


def _tool(shape: ExpectedToolShape) -> ExpectedTool:
    return ExpectedTool(shape.name, shape.args or {}, shape.args_match, shape.ignore, shape.optional)


ExpectedTools = Annotated[
    tuple[ExpectedToolShape, ...],
    AfterValidator(_tools),
    Expects("a list of calls such as [{'name': 'search', 'args': {'query': {'icontains': 'jeju'}}}]"),
]

_PATTERN = re.compile(r"[^\s\[\]{}()^$|+\\]+")
"""`*` and `?` stand for characters; what only regular expressions or shells have is refused."""


def _tool_pattern(pattern: str) -> str:
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"has {len(pattern):,} characters, more than {LONGEST_PATTERN}; shorten it")
    if _PATTERN.fullmatch(pattern) is None:
        written = shown_value(pattern)
        raise ValueError(f"is {written}, no pattern of tools: write a name, with * for any characters: 'delete_*'")
    return pattern


ToolPattern = Annotated[Name, AfterValidator(_tool_pattern)]
ToolPatterns = Annotated[
    tuple[ToolPattern, ...],
    Expects("a list of names and patterns such as ['delete_*']"),
]
CallLimit = Annotated[int, Field(ge=0), Expects("a whole number of 0 or more")]


class ToolField(NamedTuple):
    """The type of a key, its meaning, and the type of its CSV cell."""

    of: Any
    about: str
    cell: Literal["text", "json"] = "json"


TOOL_FIELDS: Mapping[str, ToolField] = {
    "expected_tools": ToolField(ExpectedTools, "The tool calls that the system should make; []: none."),
    "tools_match": ToolField(
        ToolsMatch,
        "any_order: others may be made too (default); in_order: as listed; exact: as listed, and no other call.",
        "text",
    ),
    "forbidden_tools": ToolField(ToolPatterns, "Tools that must not be called: names, or 'delete_*'."),
    "max_tool_calls": ToolField(CallLimit, "The most tool calls that the system may make."),
}
"""By key; each fills the field of EvalCase of that name."""


def check_expected_tools(tools: tuple[ExpectedTool, ...], findings: Findings) -> None:
    """Add what is wrong with the arguments of expected calls."""
    for number, tool in enumerate(tools):
        check_arguments(tool.args, findings, ("expected_tools", number, "args"))
