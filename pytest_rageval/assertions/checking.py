"""Whether the assertions of a case hold for an answer, and in words what was received instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_rageval.assertions.assertion_type import CheckedAnswer
from pytest_rageval.assertions.registry import type_of
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model.assertion import Assertion
from pytest_rageval.text import printable

HIDES_TEXT = "the answer repeats a credential, which is masked: nobody can say what does not stand there"
"""Only the masked answer is stored: each later scoring must come to the same verdict."""


class AssertionOutcome(NamedTuple):
    """An assertion and whether it holds; `holds` is None where it is not applicable."""

    assertion: Assertion
    holds: bool | None
    received: str

    @property
    def line(self) -> str:
        """Return `icontains '4 euros': '4 euros' is not in the answer "…"`."""
        return printable(f"{assertion_words(self.assertion)}: {self.received}")


def check_assertions(
    assertions: Sequence[Assertion], answer: CheckedAnswer, *, has_text: bool = True
) -> list[AssertionOutcome]:
    """Return the outcome of each assertion, in order; without a text, those that read one are not applicable."""
    return [_outcome(assertion, answer, has_text=has_text) for assertion in assertions]


def _outcome(assertion: Assertion, answer: CheckedAnswer, *, has_text: bool) -> AssertionOutcome:
    if assertion.is_group:
        return _group_outcome(assertion, check_assertions(assertion.members, answer, has_text=has_text))
    kind = type_of(assertion)
    if kind.needs_text and not has_text:
        return AssertionOutcome(assertion, None, "the record holds no answer")
    if assertion.is_negated and kind.needs_text and answer.answer.repeats_credential:
        return AssertionOutcome(assertion, False, HIDES_TEXT)
    checked = kind.check(answer, assertion)
    holds = checked.holds
    if assertion.is_negated and holds is not None:
        holds = not holds
    return AssertionOutcome(assertion, holds, checked.received)


def _group_outcome(group: Assertion, members: Sequence[AssertionOutcome]) -> AssertionOutcome:
    """Return the outcome of `any` or `all`: not applicable where it depends on a member that is."""
    decides = group.type == "any"  # one member that holds decides any, one that is broken decides all
    deciding = [member for member in members if member.holds is decides]
    unknown = [member for member in members if member.holds is None]
    if deciding:
        return AssertionOutcome(group, decides, _received(deciding if not decides else deciding[:1]))
    if unknown:
        # The reasons alone: they are kept where texts of cases and answers are left out.
        reasons = dict.fromkeys(member.received for member in unknown)
        return AssertionOutcome(group, None, "; ".join(reasons))
    return AssertionOutcome(group, not decides, _received(members))


def _received(members: Iterable[AssertionOutcome]) -> str:
    return "; ".join(member.line for member in members)


def assertion_words(assertion: Assertion) -> str:
    """Return an assertion in a few words: `icontains '4 euros'`, `latency 300`, `any of 2 assertions`."""
    if assertion.is_group:
        return f"{assertion.type} of {len(assertion.members)} assertions"
    words = assertion.type
    if assertion.plain_type in ("is-json", "contains-json") and assertion.value is not None:
        words += " with a schema"
    elif assertion.value is not None:
        words += f" {shown_value(assertion.value)}"
    if assertion.threshold is not None:
        words += f" threshold {assertion.threshold:g}" if assertion.value is not None else f" {assertion.threshold:g}"
    return words
