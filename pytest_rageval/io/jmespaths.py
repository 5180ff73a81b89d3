"""JMESPath expressions that people write: compiled, or refused with what is wrong with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any

import jmespath
from jmespath.exceptions import IncompleteExpressionError, JMESPathError
from jmespath.functions import Functions

from pytest_rageval.io.suggestions import did_you_mean

MOST_LEVELS = 150
"""Levels of an expression: the library searches them by recursion, three frames a level."""


def compiled(written: str) -> Any:
    """Return a compiled expression; raise ValueError with what is wrong, unknown functions included.

    The library reports a function that does not exist, or takes other arguments, only at the first search.
    """
    try:
        # The library warns of unquoted literals, which it reads well; a project may turn warnings into errors.
        with warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning):
            expression = jmespath.compile(written)
    except IncompleteExpressionError:
        raise ValueError("it is incomplete") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except JMESPathError as error:
        reason = getattr(error, "message", None) or getattr(error, "msg", None)
        at = f" at column {getattr(error, 'lex_position', 0) + 1}"
        raise ValueError("it is empty" if reason is None else f"{reason}{at}") from None
    # Now, at the settings: the search of the first case would end in a RecursionError.
    if _depth(expression.parsed) > MOST_LEVELS:
        raise ValueError("it is nested too deep")
    if problems := list(function_problems(expression.parsed)):
        raise ValueError("; ".join(problems))
    return expression


def _depth(parsed: Any) -> int:
    """Return the levels of a parsed expression; a chain such as `a || b || c` has a level a link."""
    level = [parsed]
    depth = 0
    while level and depth <= MOST_LEVELS:
        depth += 1
        nodes = [part for part in level if isinstance(part, dict)]
        level = list(chain.from_iterable(node.get("children", ()) for node in nodes))
    return depth


def function_problems(part: Any) -> Iterator[str]:
    """Yield what is wrong with the calls of functions in a parsed expression."""
    if not isinstance(part, dict):
        return
    if part["type"] == "function_expression":
        functions = Functions.FUNCTION_TABLE
        name = part["value"]
        arguments = len(part["children"])
        if name not in functions:
            yield f"there is no function {name}(){did_you_mean(name, functions, _KNOWN)}"
        else:
            signature = functions[name]["signature"]
            is_open = bool(signature and signature[-1].get("variadic"))
            if arguments < len(signature) or (arguments > len(signature) and not is_open):
                yield f"{name}() takes {len(signature)}{' or more' if is_open else ''} arguments, not {arguments}"
    for child in part.get("children", ()):
        yield from function_problems(child)


_KNOWN = f"; functions are {', '.join(sorted(Functions.FUNCTION_TABLE))}"
