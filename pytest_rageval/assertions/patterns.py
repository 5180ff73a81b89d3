"""Regular expressions of case files, by an engine whose time grows with the text and the pattern alone.

Python's own engine takes exponential time for some patterns, and cannot be interrupted outside of the main thread.
pydantic's Rust engine never goes back in the text. It knows neither look-around nor backreferences.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from pytest_rageval.errors import OddScoreError
from pytest_rageval.io.messages import shown_value

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LONGEST_PATTERN = 1_000
"""Characters of a pattern."""
LONGEST_SEARCHED = 50_000
"""Characters of a text that are searched."""
MOST_STATES = 1_500
"""Characters of a pattern with its repetitions written out. A search takes at most this times the length of the text:
30 ns each, so two seconds for the worst pattern that is allowed (12.8 s for 4,370 × 100,000)."""


def pattern_problem(pattern: str) -> str | None:
    """Return why a pattern cannot be used, with a remedy; None if it can."""
    if len(pattern) > LONGEST_PATTERN:
        return f"has {len(pattern):,} characters, more than {LONGEST_PATTERN:,}; write several assertions"
    if states(pattern) > MOST_STATES:
        return f"repeats so much that it stands for more than {MOST_STATES:,} characters; use smaller numbers in {{}}"
    from pydantic_core import SchemaError  # here, because few cases have patterns

    try:
        _engine(pattern)
    except SchemaError as error:
        return f"is no regular expression that can be used: {_reason(str(error))}"
    return None


def is_found(pattern: str, text: str) -> bool:
    """Return whether a usable pattern matches anywhere in a text.

    Raise OddScoreError for a text that is too long: what stands in its beginning is no verdict on all of it.
    """
    if len(text) > LONGEST_SEARCHED:
        raise OddScoreError(
            f"assertions: a text of {len(text):,} characters is not searched by a pattern; at most "
            f"{LONGEST_SEARCHED:,} are"
        )
    from pydantic import ValidationError  # here, because few cases have patterns

    try:
        # Lone surrogates cannot be passed to the engine.
        _engine(pattern).validate_python(text.encode("utf-8", "replace").decode())
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=256)
def _engine(pattern: str) -> TypeAdapter[str]:
    from pydantic import Field, TypeAdapter  # here, because few cases have patterns

    return TypeAdapter(Annotated[str, Field(pattern=pattern)])


def _reason(message: str) -> str:
    """Return the last line of the engine's message, with a remedy where it has none of a feature."""
    last_line = message.strip().splitlines()[-1]
    reason = last_line.partition("error: ")[2] or last_line.partition("SchemaError: ")[2] or last_line
    if "look-around" in reason:
        return f"{reason}; write two assertions, one of them with not-regex"
    if "backreferences" in reason:
        return f"{reason}; write the alternatives out"
    if "surrogate" in message:
        return "it holds half of a character (a lone surrogate)"
    return shown_value(reason, 200, is_quoted=False)


_COUNTED = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def states(pattern: str) -> int:
    """Return about how many characters a pattern has when its counted repetitions are written out."""
    groups = [0]
    latest = 0
    is_in_class = False
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        counted = _COUNTED.match(pattern, at) if sign == "{" and not is_in_class else None
        step = 1
        if sign == "\\":
            step = 2
        if counted is not None:
            times = max(int(counted[1][:9]), int((counted[2] or "0")[:9]), 1)
            groups[-1] += latest * (times - 1)
            latest *= times
            step = len(counted[0])
        elif is_in_class:
            is_in_class = sign != "]"
        elif sign == "[":
            is_in_class = True
            latest = 1
            groups[-1] += 1
        elif sign == "(":
            groups.append(0)
        elif sign == ")" and len(groups) > 1:
            latest = groups.pop() + 1
            groups[-1] += latest
        elif sign not in "*+?|":
            latest = 1
            groups[-1] += 1
        at += step
    return sum(groups)
