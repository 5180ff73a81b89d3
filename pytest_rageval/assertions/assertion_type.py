"""A type of assertions: the function that checks an answer, what its value must be, and its threshold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.model import Answer, Judgement, NotApplicable
from pytest_rageval.model.assertion import Assertion
from pytest_rageval.text import cut

SHOWN = 80
"""Characters of an answer that are quoted as what was received."""


class Checked(NamedTuple):
    """Whether an assertion holds for an answer, without `not-`.

    holds     None where it is not applicable
    received  what was found in the answer, or why the assertion is not applicable, which quotes no text
    """

    holds: bool | None
    received: str


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """All that assertions read of an answer.

    latency_ms  the time of the system's answer, or why it is not known
    cost_usd    what it cost, or why that is not known; None unless an assertion is about it
    abstained   the verdict on whether the system declined; None if undecided
    judgements  by the name that `judged_name` gives to an assertion
    """

    text: str
    answer: Answer
    latency_ms: float | NotApplicable
    cost_usd: float | NotApplicable | None
    abstained: bool | None
    judgements: Mapping[str, Judgement]

    @property
    def excerpt(self) -> str:
        """Return the beginning of the answer in quotes, on one line."""
        line = " ".join(self.text.split())
        return f'"{cut(line, SHOWN)}"' if line else "a blank answer"


Check = Callable[[CheckedAnswer, Assertion], Checked]
ValueProblem = Callable[[Any], "str | None"]
"""Returns what is wrong with a value, as `is 3 (a number), expected a string`; None if nothing is."""


class ValueRule(NamedTuple):
    """What the value of an assertion must be.

    problem      says what is wrong with a value
    schema       its JSON Schema, for editors
    is_optional  the assertion may do without a value
    """

    problem: ValueProblem
    schema: Mapping[str, Any]
    is_optional: bool = False


class ThresholdRule(NamedTuple):
    """The range of a threshold, its meaning, and its default; None if it must be written."""

    about: str
    low: float = 0.0
    high: float = 1e12
    default: float | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class AssertionType:
    """One type, as `icontains`.

    value      None for a type without a value: then the short form holds the threshold
    threshold  None for a type without one
    judged_by  'model' or 'embedding', for types that a judge decides
    needs_text whether it reads the text of the answer
    """

    name: str
    about: str
    check: Check
    value: ValueRule | None = None
    threshold: ThresholdRule | None = None
    judged_by: str | None = None
    needs_text: bool = True

    def limit(self, assertion: Assertion) -> float:
        """Return the assertion's threshold, or the type's default."""
        if assertion.threshold is not None:
            return assertion.threshold
        assert self.threshold is not None
        assert self.threshold.default is not None
        return self.threshold.default


def assertion_type(
    value: ValueRule | None = None,
    threshold: ThresholdRule | None = None,
    *,
    name: str = "",
    judged_by: str | None = None,
    needs_text: bool = True,
) -> Callable[[Check], AssertionType]:
    """Declare a type, as a decorator of its check: the function `is_json` is the type `is-json`."""

    def declare(check: Check) -> AssertionType:
        own_name = name or check.__name__.replace("_", "-")
        # The paragraphs below the first one are edge cases, for the reference page.
        first_paragraph = inspect.cleandoc(check.__doc__ or "").partition("\n\n")[0]
        about = " ".join(first_paragraph.split())
        return AssertionType(own_name, about, check, value, threshold, judged_by, needs_text)

    return declare
