"""The findings of an audit, and those that the case files show by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.notes.gold_places import ALL_NEEDED
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted
from pytest_rageval.tools.question_likeness import near_duplicates
from pytest_rageval.words import normalise

SHORTEST_ANSWER = 4
"""Characters of an answer that a question may give away; `yes` and `12` stand in many by chance."""
CHOICES = (" or ", " oder ", " ou ", " o ", " 또는 ", " 아니면 ")
"""Words of a question that names its answers because it asks for one of them."""


class AuditFinding(NamedTuple):
    """One thing about one case: its kind, what is wrong with which value, and what to do."""

    kind: str
    case: EvalCase
    message: str
    remedy: str
    is_unwinnable: bool = False

    def __str__(self) -> str:
        return f"{self.case.source}: case {shown_value(self.case.id)}: {self.message}; {self.remedy}"

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": self.kind, "case": self.case.key, "file": self.case.source.file, "line": self.case.source.line,
            "message": self.message, "remedy": self.remedy, "unwinnable": self.is_unwinnable,
        }  # fmt: skip


def findings_in_files(cases: Sequence[EvalCase]) -> Iterator[AuditFinding]:
    """Near-duplicate questions, categories that need more golds than there are, questions that hold their answer."""
    yield from _duplicates(cases)
    for case in cases:
        yield from _arity(case)
        yield from _given_away(case)


def _duplicates(cases: Sequence[EvalCase]) -> Iterator[AuditFinding]:
    """Questions in the same scope, after the same turns, that are nearly the same."""
    by_scope: dict[Any, list[EvalCase]] = {}
    for case in cases:
        by_scope.setdefault((case.vaults, case.folders, case.history), []).append(case)
    for group in by_scope.values():
        for later, earlier in near_duplicates([case.question for case in group]):
            other = group[earlier]
            message = f"question {shown_value(group[later].question)} is nearly that of {other.key} ({other.source})"
            yield AuditFinding("near_duplicate", group[later], message, "drop one, or make them differ")


def _arity(case: EvalCase) -> Iterator[AuditFinding]:
    """A case of several golds by its category, for which one is enough."""
    if case.category not in ALL_NEEDED or not case.answerable:
        return
    golds, groups = len(case.gold.supports or case.gold.chunk_ids or ()), case.gold.support_groups or ()
    if golds == 1:
        message = f"category {case.category!r} with one gold"
    elif groups and min(map(len, groups)) == 1:
        message = f"category {case.category!r}, but a group of one gold is enough"
    else:
        return
    yield AuditFinding("arity", case, message, "label all that is needed, or choose another category")


def _given_away(case: EvalCase) -> Iterator[AuditFinding]:
    question = f" {normalise(case.question)} "
    if not case.answerable or any(word in f" {case.question.lower()} " for word in CHOICES):
        return
    for answer in case.gold.answers or ():
        text = normalise(answer)
        if len(text) >= SHORTEST_ANSWER and f" {text} " in question:
            message = f"the question holds its answer {shown_value(answer)}"
            yield AuditFinding("given_away", case, message, "ask without it")
            return


def audit_in_words(findings: Sequence[AuditFinding], cases: int) -> str:
    """`5 of 135 cases cannot be won, 12 findings`."""
    unwinnable = len({finding.case.key for finding in findings if finding.is_unwinnable})
    return f"{unwinnable} of {counted(cases, 'case')} cannot be won, {counted(len(findings), 'finding')}"
