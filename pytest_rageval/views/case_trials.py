"""The answers of a case's trials, and how the case differs from that of the other run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_diff import AlignedChunk, aligned_chunks
from pytest_rageval.gates.pass_rule import mean_words
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.runs.flaky_cases import confirmation_words
from pytest_rageval.runs.records.attempt_fields import confirmation_in
from pytest_rageval.text import NO_VALUE, change, score_text, short
from pytest_rageval.views.case_parts import error_line, limited
from pytest_rageval.views.text_diff import DiffPiece, marked_diff


class TrialAnswer(NamedTuple):
    """The answer of one trial."""

    name: str
    """`trial 2`, or `confirmation 1` for one of an attempt that confirms a new failure."""
    has_passed: bool
    answer: str | None
    scores: list[tuple[str, str]]
    """The scores of the metrics whose gates fail."""
    error: str | None
    """The error that the trial ended in; None if it did not."""
    is_shown: bool
    """It is the trial that the view of the case shows."""


class TrialsView(NamedTuple):
    """The trials of a case, with those of the attempts that confirm a new failure."""

    title: str
    words: str
    """How many pass, and how they decided about the case."""
    each: Sequence[TrialAnswer]


def trials_view(
    records: Mapping[int, Mapping[str, Any]], lines: Mapping[int, Mapping[str, Any]], shown: Mapping[str, Any]
) -> TrialsView | None:
    """Return the trials of a case; None for a single one that was not to be confirmed.

    shown  the trial of the view
    """
    confirmation = confirmation_in(shown["verdict"])
    if len(records) < 2 and confirmation is None:
        return None
    first = [record for record in records.values() if not record.get("confirms")]
    # An attempt whose rule was decided early has fewer trials than the others.
    sizes = Counter(record.get("confirms", 0) for record in records.values())
    has_repeats = max(sizes.values()) > 1
    each = []
    numbers: Counter[int] = Counter()
    for number, record in sorted(records.items()):
        attempt = record.get("confirms", 0)
        numbers[attempt] += 1
        if has_repeats or confirmation is None:
            name = _trial_name(attempt, numbers[attempt])
        else:
            name = f"confirmation {attempt}" if attempt else "first attempt"
        each.append(_trial_answer(name, record, lines.get(number), is_shown=record is shown))
    words = []
    if has_repeats:
        passed = sum(bool(record["verdict"].get("trial_passed")) for record in first)
        words.append(shown["verdict"].get("by_rule") or mean_words(passed, len(first)))
    if confirmation is not None:
        are_alike = len(set(sizes.values())) == 1
        words.append(confirmation_words(confirmation, len(first) if are_alike else None))
    title = "Trials" if has_repeats or confirmation is None else "Attempts"
    return TrialsView(title, "; ".join(words), each)


def _trial_name(attempt: int, number: int) -> str:
    """Return the name of a trial by its number in its attempt."""
    return f"confirmation {attempt}, trial {number}" if attempt else f"trial {number}"


def _trial_answer(
    name: str, record: Mapping[str, Any], line: Mapping[str, Any] | None, *, is_shown: bool
) -> TrialAnswer:
    full_answer = ((line or {}).get("answer") or {}).get("answer")
    scores = record.get("scores", {})
    failed_metrics = [gate["metric"] for gate in record["verdict"]["failed_gates"]]
    return TrialAnswer(
        name=name,
        has_passed=bool(record["verdict"].get("trial_passed")),
        answer=limited(full_answer if full_answer is not None else record["answer"]),
        scores=[(name, short(scores[name])) for name in failed_metrics if name in scores],
        error=error_line(record["error"]) if record["error"] else None,
        is_shown=is_shown,
    )


class MovedScore(NamedTuple):
    """A score on both sides."""

    metric: str
    before: str
    after: str
    delta: str


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """A case before and after."""

    is_known: bool
    """The other run keeps a record of the case; if not, all else is empty."""
    is_same_answer: bool = False
    """Both runs have the same answer, or none."""
    answer_before: str | None = None
    """The answer of the other run, cut to the length that is shown; None without one."""
    pieces: Sequence[DiffPiece] = ()
    """Both answers as one text with words that are gone and new; () unless at least half of the words are shared."""
    moved: Sequence[MovedScore] = ()
    """The scores that differ, the furthest first."""
    equal: int = 0
    """The number of scores that do not differ."""
    chunks: Sequence[tuple[str, ...]] = ()
    """Kind, ranks, golds, place and state of each chunk of either side."""
    equal_chunks: int = 0
    """The number of chunks with the same rank on both sides."""

    @property
    def is_equal(self) -> bool:
        """Return True if answer, scores and chunks are the same."""
        return self.is_same_answer and not self.moved and self.equal_chunks == len(self.chunks)


def case_comparison(
    record: Mapping[str, Any],
    earlier: Mapping[str, Any] | None,
    answer: str | None,
    answer_before: str | None,
    names: Mapping[str, str],
) -> CaseComparison:
    """Return the case before and after; `earlier` is None if the other run keeps no record of it."""
    if earlier is None:
        return CaseComparison(is_known=False)
    scores = record.get("scores", {})
    moved = _moved(scores, earlier.get("scores", {}), names)
    chunks = aligned_chunks(earlier["retrieved_chunks"], record["retrieved_chunks"])
    # Nothing is marked in an answer that only one side has: all of it would be.
    pieces: Sequence[DiffPiece] = ()
    if answer and answer_before and answer != answer_before:
        pieces = marked_diff(answer_before, answer)
    return CaseComparison(
        is_known=True,
        is_same_answer=answer == answer_before,
        answer_before=answer_before,
        pieces=pieces,
        moved=moved,
        equal=len(scores) - len(moved),
        chunks=[_aligned_cells(chunk) for chunk in chunks],
        equal_chunks=sum(chunk.state == "equal" for chunk in chunks),
    )


def _aligned_cells(chunk: AlignedChunk) -> tuple[str, ...]:
    """Return kind, ranks, golds, place and state of a chunk on both sides."""
    kind = "same" if chunk.state == "equal" else chunk.state
    rank_before = str(chunk.rank_before or NO_VALUE)
    rank_after = str(chunk.rank_after or NO_VALUE)
    golds = f"✔ gold {', '.join(map(str, chunk.golds))}" if chunk.golds else "·"
    return kind, rank_before, rank_after, golds, chunk.place, chunk.state


def _moved(now: Mapping[str, float], before: Mapping[str, float], names: Mapping[str, str]) -> list[MovedScore]:
    """Return the scores of both sides that differ, the furthest first."""
    earlier = {names.get(name, name): value for name, value in before.items()}
    differences: dict[str, float] = {}
    for name, value in now.items():
        if name in earlier and earlier[name] != value:
            differences[name] = value - earlier[name]
    # Amounts stand last: they are no shares of a scale.
    furthest_first = sorted(differences, key=lambda name: (name in OPERATION_UNITS, -abs(differences[name]), name))
    moved = []
    for name in furthest_first:
        # The cut-off of a renamed metric differs between the runs.
        shown_name = name.partition("@")[0] if name in names.values() else name
        unit = OPERATION_UNITS.get(name)
        scores = (score_text(earlier[name], unit), score_text(now[name], unit))
        moved.append(MovedScore(shown_name, *scores, change(differences[name], unit)))
    return moved
