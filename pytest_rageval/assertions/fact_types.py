"""Assertions about facts of an answer: refusal, language, citations, time and cost."""

from __future__ import annotations

from typing import Any

from pytest_rageval.abstention.languages import KNOWN_LANGUAGES, is_in_language, language_of
from pytest_rageval.assertions.assertion_type import (
    AssertionType,
    Checked,
    CheckedAnswer,
    ThresholdRule,
    ValueRule,
    assertion_type,
)
from pytest_rageval.assertions.values import STRING
from pytest_rageval.io.messages import describe, shown_value
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.model import NotApplicable, Reference
from pytest_rageval.model.assertion import Assertion
from pytest_rageval.text import plain


def _language_problem(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"is {describe(value)}, expected a language such as 'en'"
    if _code(value) in KNOWN_LANGUAGES:
        return None
    known = [*KNOWN_LANGUAGES, *KNOWN_LANGUAGES.values()]
    remedy = did_you_mean(value, known, f"; languages: {', '.join(KNOWN_LANGUAGES)}")
    return f"is {shown_value(value)}, which is no language that can be told{remedy}"


def _code(written: str) -> str:
    """Return the code of a language that is written as `ko`, `ko-KR` or `Korean`."""
    lowered = written.strip().lower()
    for code, name in KNOWN_LANGUAGES.items():
        if name.lower() == lowered:
            return code
    return lowered.replace("_", "-").partition("-")[0]


LANGUAGE = ValueRule(_language_problem, {"type": "string", "enum": [*KNOWN_LANGUAGES, *KNOWN_LANGUAGES.values()]})


@assertion_type(name="is-refusal")
def declined_to_answer(answer: CheckedAnswer, _assertion: Assertion) -> Checked:
    """The system declined to answer, by the same detection as `abstention_accuracy`.

    Not applicable if the wording leaves it open.
    """
    if answer.abstained is None:
        return Checked(None, "the wording leaves open whether the system declined")
    received = "the system declined" if answer.abstained else "the system answered"
    return Checked(answer.abstained, f"{received}: {answer.excerpt}")


@assertion_type(LANGUAGE)
def language(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer is in this language (`en` or `English`), detected from its script and its most common words.

    Not applicable to short or mixed answers, and to related languages such as Danish and Norwegian if the words do
    not decide. Languages in Cyrillic, Arabic and Devanagari script cannot be named.
    """
    found = language_of(answer.text)
    if found is None:
        return Checked(None, "the answer is too short or too mixed to tell its language")
    expected = _code(assertion.value)
    is_expected = is_in_language(answer.text, expected)
    likeliest = KNOWN_LANGUAGES.get(found, found)
    if is_expected is None:
        both = f"{likeliest} or in {KNOWN_LANGUAGES[expected]}"
        return Checked(None, f"the answer may be in {both}: its words leave it open")
    return Checked(is_expected, f"the answer is in {likeliest}")


@assertion_type(STRING, needs_text=False)
def cites(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """A reference of the answer has this path, the end of it, this document id or this chunk id.

    `returns.md > Jeju` also requires the heading. Not applicable if the system reports no references.
    """
    references = answer.answer.references
    if references is None:
        return Checked(None, "the system reports no references")
    is_cited = any(_is_cited(assertion.value, reference) for reference in references)
    named = listed([_name(reference) for reference in references], 5)
    return Checked(is_cited, f"the answer cites {named}" if named else "the answer cites nothing")


def _is_cited(wanted: str, reference: Reference) -> bool:
    path, _, heading = (part.strip() for part in wanted.partition(" > "))
    if wanted in (reference.chunk_id, reference.doc_id):
        return True
    cited = reference.rel_path
    if cited is None:
        return False
    is_path = cited == path or cited.endswith(f"/{path.lstrip('/')}")
    if not heading or not is_path:
        return is_path
    headings = [each.strip(" #") for each in (reference.heading_path or "").split(">")]
    wanted_headings = [each.strip(" #") for each in heading.split(">")]
    return headings[: len(wanted_headings)] == wanted_headings


def _name(reference: Reference) -> str:
    if reference.rel_path is not None and reference.heading_path:
        return shown_value(f"{reference.rel_path} > {reference.heading_path}")
    return shown_value(reference.rel_path or reference.chunk_id or reference.doc_id or "?")


@assertion_type(threshold=ThresholdRule("milliseconds"), needs_text=False)
def latency(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The system answered within `threshold` milliseconds, as `latency_ms` measures it.

    Waits for a slot, a rate limit or a retry do not count. A recorded answer has only the time that its file states.
    """
    milliseconds = answer.latency_ms
    if isinstance(milliseconds, NotApplicable):
        return Checked(None, milliseconds.reason)
    return Checked(milliseconds <= latency.limit(assertion), f"the answer took {milliseconds:,.0f} ms")


@assertion_type(threshold=ThresholdRule("US dollars"), needs_text=False)
def cost(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer cost at most `threshold` dollars, as `cost_usd` measures it: by its usage and the known prices.

    Not applicable if the usage or the price is unknown.
    """
    dollars = answer.cost_usd
    assert dollars is not None
    if isinstance(dollars, NotApplicable):
        return Checked(None, dollars.reason)
    return Checked(dollars <= cost.limit(assertion), f"the answer cost {plain(dollars, 6)} USD")


TYPES: tuple[AssertionType, ...] = (declined_to_answer, language, cites, latency, cost)
