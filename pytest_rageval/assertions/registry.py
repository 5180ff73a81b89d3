"""All types of assertions by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_rageval.assertions import fact_types, json_types, judged_types, text_types
from pytest_rageval.assertions.assertion_type import AssertionType
from pytest_rageval.model.assertion import GROUPS, NEGATION, Assertion

TYPES: Mapping[str, AssertionType] = {
    each.name: each for module in (text_types, json_types, fact_types, judged_types) for each in module.TYPES
}
"""Without `not-`, in the order of the documentation."""
WRITTEN = (*TYPES, *(f"{NEGATION}{name}" for name in TYPES))
"""All types as they are written."""
UNSUPPORTED = {
    **dict.fromkeys(
        ("javascript", "python", "ruby", "webhook"),
        "runs code or calls a server of its own, which a case file never does; write a metric in conftest.py",
    ),
    **dict.fromkeys(
        ("factuality", "model-graded-factuality", "answer-correctness", "model-graded-closedqa", "closed-qa"),
        "is not an assertion here; write the right answer as 'reference', or an llm-rubric",
    ),
    **dict.fromkeys(
        ("context-recall", "context-relevance", "context-faithfulness", "answer-relevance"),
        "is a metric here, of all cases: recall_any, faithfulness, relevance",
    ),
    "assert-set": "is written as {'all': […]} or {'any': […]} here",
    "g-eval": "is written as llm-rubric here",
    "classifier": "needs a model of its own; write an llm-rubric",
    "moderation": "needs a service of its own; write an llm-rubric",
}
"""promptfoo's types without a counterpart here, and what to do instead."""


def type_of(assertion: Assertion) -> AssertionType:
    """Return the type of an assertion that is no group."""
    return TYPES[assertion.plain_type]


def single_assertions(assertions: tuple[Assertion, ...]) -> Iterator[Assertion]:
    """Yield the assertions, and in place of groups their members."""
    for assertion in assertions:
        if assertion.type in GROUPS:
            yield from assertion.members
        else:
            yield assertion


def judged_assertions(assertions: tuple[Assertion, ...], judged_by: str) -> list[Assertion]:
    """Return the assertions that this kind of judge decides, equal ones once."""
    wanted: dict[str, Assertion] = {}
    for assertion in single_assertions(assertions):
        if type_of(assertion).judged_by == judged_by:
            wanted.setdefault(judged_types.judged_name(assertion), assertion)
    return list(wanted.values())
