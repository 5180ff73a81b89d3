"""The assertions of a case as checks of promptfoo, as far as it has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_rageval.assertions.reading import written_assertion
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.model.assertion import Assertion

OURS_ALONE = frozenset({"language", "cites"})
"""Types of assertions that promptfoo does not have."""
SERVICES = frozenset(
    (
        "answer-correctness",
        "answer-relevance",
        "closed-qa",
        "context-faithfulness",
        "context-recall",
        "context-relevance",
        "g-eval",
        "model-graded-closedqa",
        "model-graded-factuality",
        "moderation",
    )
)
"""Types of kept checks that go back to promptfoo as they came: they ask a model."""
_MARKS_OF_CODE = ("file://", "{{", "{%", "{#")
"""What promptfoo does not take for text: files, which may be code that it runs, and templates."""


class PromptfooChecks(NamedTuple):
    """The checks of a case, and what was left out of them."""

    checks: list[dict[str, Json]]
    left_out: list[str]


def checks_of_assertions(case: EvalCase, one_is_enough: float) -> PromptfooChecks:
    """Return the assertions of a case as checks, and the kept ones that ask a model.

    A check of a file or with a template is left out: promptfoo would run what a case file says.

    one_is_enough  the threshold of a set of checks of which one must pass
    """
    made = PromptfooChecks([], [])
    for assertion in case.assertions:
        if assertion.is_group:
            _add_set(made, assertion, one_is_enough)
        elif why := _why_not(assertion):
            made.left_out.append(why)
        else:
            made.checks.append(written_assertion(assertion))
    for kept in _kept_checks(case):
        kind = str(kept.get("type"))
        if kind in SERVICES and kept.keys() <= {"type", "value", "threshold", "metric", "weight"}:
            # promptfoo would run it: what a case file says must not become code on another machine.
            if _holds_code(kept):
                made.left_out.append(f"{kind} with a file or a template")
            else:
                made.checks.append(dict(kept))
        elif kind != "factuality":
            made.left_out.append(f"the kept check {kind}")
    return made


def _add_set(made: PromptfooChecks, group: Assertion, one_is_enough: float) -> None:
    """Add a group as a set; one of which any is enough would be stricter without a member, and is left out whole."""
    members = []
    missing = []
    for member in group.members:
        why = _why_not(member)
        if why:
            missing.append(why)
        else:
            members.append(written_assertion(member))
    # Without one of its members an `any` would fail answers that it should pass.
    if missing and (group.type == "any" or not members):
        made.left_out.append(f"{group.type} with {missing[0]}")
        return
    made.left_out.extend(missing)
    written: dict[str, Json] = {"type": "assert-set", "assert": members}
    if group.type == "any":
        written["threshold"] = one_is_enough
    if group.metric is not None:
        written["metric"] = group.metric
    made.checks.append(written)


def _why_not(assertion: Assertion) -> str:
    """Return the name of an assertion that cannot be a check of promptfoo; blank if it can."""
    if assertion.plain_type in OURS_ALONE:
        return assertion.type
    return f"{assertion.type} with a file or a template" if _holds_code(assertion.value) else ""


def _holds_code(value: Json) -> bool:
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS_OF_CODE)
    if isinstance(value, Mapping):
        return any(_holds_code(each) for each in (*value, *value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_code, value))


def _kept_checks(case: EvalCase) -> Sequence[Mapping[str, Json]]:
    """Return the checks that a conversion from promptfoo kept in the metadata."""
    kept = case.metadata.get("assert")
    return [check for check in kept if isinstance(check, Mapping)] if isinstance(kept, list | tuple) else ()


def without_doubles(facts: Iterable[dict[str, Json]], asserted: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Return the checks of key facts that no assertion says as well: converted cases have both."""
    said: set[str] = set()
    for check in asserted:
        values = check.get("value")
        if check["type"] in ("contains", "icontains", "contains-all", "icontains-all"):
            said.update(map(str, values if isinstance(values, list | tuple) else [values]))
    return [fact for fact in facts if fact["value"] not in said]
