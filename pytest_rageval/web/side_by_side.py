"""The answers of two runs side by side: which cases got better or worse, what each side answered, what moved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from pytest_rageval.comparison.case_changes import AnswerChange, answer_changes
from pytest_rageval.comparison.changes import moved_scores
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.columns import CaseColumns, shared_cases
from pytest_rageval.web.run_cases import ROWS, RunCases

Direction = Literal["better", "worse", "different"]
DIRECTIONS: Mapping[Direction, str] = {
    "better": "passes only in B; or passes in both or in neither, and its metrics only rose",
    "worse": "passes only in A; or passes in both or in neither, and its metrics only fell",
    "different": "the two answers are not the same text",
}
TEXTS = ("question", "reference", "answer")
MOST_MOVED = 6
"""Moved metrics of a case on the page, the largest moves first."""
VISIBLE = 0.005
"""Smaller moves, as shares of a scale, vanish in the two decimals of the page."""


class PairedScore(NamedTuple):
    """The score of a case in one metric on both sides; `gain` is a share of the scale, positive if B is better."""

    metric: str
    a: float
    b: float
    gain: float


class PairedCase(NamedTuple):
    """A case that both runs have.

    is_other_question  the two questions differ, so that nothing is compared
    is_different       the two answers differ
    """

    a: ListedCase
    b: ListedCase
    moved: Sequence[PairedScore]
    is_other_question: bool
    is_different: bool

    @property
    def is_better(self) -> bool:
        return self._went(1)

    @property
    def is_worse(self) -> bool:
        return self._went(-1)

    def _went(self, sign: int) -> bool:
        """Return True if the case went up (1) or down (-1): by its outcome, else by metrics that agree."""
        if self.is_other_question:
            return False
        passes = int(self.b.outcome == "passed") - int(self.a.outcome == "passed")
        if passes:
            return passes == sign
        return bool(self.moved) and all(score.gain * sign > 0 for score in self.moved)


class PairedTexts(NamedTuple):
    """The texts of a case, cut for a cell of a table."""

    question: str
    reference: str
    answer_a: str
    answer_b: str


class PairedPage(NamedTuple):
    """One page of cases; `left` of them meet the filter."""

    rows: Sequence[PairedCase]
    left: int
    number: int
    pages: int

    @property
    def first(self) -> int:
        return (self.number - 1) * ROWS + 1


@dataclass(frozen=True)
class SideBySide:
    """Run A and run B, case by case. They need not be comparable: nothing here is a verdict."""

    a: RunCases
    b: RunCases

    @cached_property
    def cases(self) -> Sequence[PairedCase]:
        """Return the cases of both runs, in the order of run B: the worst first."""
        of_a = {case.key: case for case in self.a.listed.cases}
        moved = self._moved()
        changes = self._answer_changes()
        paired = []
        for b in self.b.listed.cases:
            a = of_a.get(b.key)
            if a is not None:
                # The same key with another question is another case: its answers say nothing about the systems.
                is_other = a.question != b.question
                scores = sorted(moved.get(b.key, ()), key=lambda score: -abs(score.gain))
                if is_other:
                    paired.append(PairedCase(a, b, (), is_other, is_different=False))
                    continue
                is_error = "error" in (a.outcome, b.outcome)  # no answer is not another answer
                change = changes.get(b.key, "same" if is_error or a.answer == b.answer else "different")
                paired.append(PairedCase(a, b, scores, is_other, is_different=change == "different"))
        return paired

    def _answer_changes(self) -> Mapping[str, AnswerChange]:
        """Return whether the answers differ, also behind the beginnings that records keep."""
        if self.a.report is None or self.b.report is None:
            return {}
        answers = {case.key: case.answer for case in self.b.listed.cases if case.outcome != "error"}
        return answer_changes(answers, self.b.report.side, self.a.report.side)

    def _moved(self) -> dict[str, list[PairedScore]]:
        """Return the visible moves of each case, in the metrics that both runs have."""
        before = _columns(self.a)
        after = _columns(self.b)
        shared = shared_cases(before, after)
        described = self.b.report.metrics["metrics"] if self.b.report else {}
        moved: dict[str, list[PairedScore]] = {}
        for name, moves in moved_scores(before, after, shared, described):
            for place, old, new, gain in moves:
                if abs(gain) >= VISIBLE:
                    moved.setdefault(shared.keys[place], []).append(PairedScore(name, old, new, gain))
        return moved

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Return how many cases meet each filter."""
        return {name: len(self.matching(name)) for name in DIRECTIONS}

    def matching(self, direction: Direction | None) -> Sequence[PairedCase]:
        if direction is None:
            return self.cases
        return [case for case in self.cases if getattr(case, f"is_{direction}")]

    def page(self, direction: Direction | None, number: int) -> PairedPage:
        """Return a page of the cases that meet a filter, or the last page if the number is beyond it."""
        found = self.matching(direction)
        pages = max(1, math.ceil(len(found) / ROWS))
        # A filter may leave fewer pages than the address asks for.
        number = min(number, pages)
        return PairedPage(found[ROWS * (number - 1) : ROWS * number], len(found), number, pages)

    def texts(self, rows: Sequence[PairedCase]) -> dict[str, PairedTexts]:
        """Return the texts of some cases from their records, else from the lists."""
        keys = [row.b.key for row in rows]
        cells_a = _cells(self.a, keys)
        cells_b = _cells(self.b, keys)
        texts = {}
        for row in rows:
            key = row.b.key
            question, reference, answer_b = cells_b.get(key) or (row.b.question or "", "", row.b.answer or "")
            _, _, answer_a = cells_a.get(key) or ("", "", row.a.answer or "")
            texts[key] = PairedTexts(question, reference, answer_a, answer_b)
        return texts

    @property
    def passing(self) -> tuple[int, int]:
        """Return how many of the shared cases pass in A and in B."""
        of_a = sum(case.a.outcome == "passed" for case in self.cases)
        of_b = sum(case.b.outcome == "passed" for case in self.cases)
        return of_a, of_b

    @property
    def on_one_side(self) -> tuple[int, int]:
        """Return how many cases only A has, and only B."""
        shared = len(self.cases)
        return len(self.a.listed.cases) - shared, len(self.b.listed.cases) - shared


def _columns(opened: RunCases) -> CaseColumns:
    """Return the scores of a finished run; none of an unfinished one, whose scales are not described."""
    return opened.report.side.cases if opened.report else CaseColumns()


def _cells(opened: RunCases, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the texts of each case; none if its records were edited, or only its scores are kept."""
    try:
        rows = opened.table.rows(keys, TEXTS)
    except (SettingsError, LookupError, TypeError, AttributeError):
        return {}
    return {key: tuple(cell.text for cell in cells) for key, cells in rows.items()}
