"""A call of a tool that a case expects of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ArgumentsMatch = Literal["subset", "exact", "ignore"]
ToolsMatch = Literal["any_order", "in_order", "exact"]


@dataclass(frozen=True, slots=True)
class ExpectedTool:
    """One expected call.

    args        a value or a matcher such as `{"icontains": "jeju"}` for each argument, as written
    args_match  `subset`: the call may have more arguments; `exact`: it may not; `ignore`: arguments do not count
    ignore      arguments that are not compared
    optional    the call may be left out
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    args_match: ArgumentsMatch = "subset"
    ignore: tuple[str, ...] = ()
    optional: bool = False
