"""Outcomes and scores of a run's cases as columns: a million cases are a few lists, not a million objects."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.sealed_lines import DamagedLineError, lines_of, sealed_line, unsealed
from pytest_rageval.runs.records.record_files import row_records
from pytest_rageval.runs.row import CaseScores, Row, SharedParts, cases_of, in_order
from pytest_rageval.stats.clusters import Clusters

Column = Sequence[float | None]
"""The scores of one metric in the order of the cases; None where a case has none."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CaseColumns(Mapping[str, CaseScores]):
    """Cases by key, in key order, stored as columns; a case object is built on access."""

    case_keys: Sequence[str] = ()
    content_hashes: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    error_kinds: Sequence[str | None] = ()
    decision_hashes: Sequence[str | None] = ()
    scores: Mapping[str, Column] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    """By case key; empty if they are not known."""
    conversations: Sequence[str | None] = ()
    """The conversation of each turn, None for a single case; empty if no case is a turn."""

    @classmethod
    def of(cls, cases: Mapping[str, CaseScores] | Mapping[str, Row]) -> CaseColumns:
        """Return the columns of the cases; columns are returned unchanged."""
        if isinstance(cases, cls):
            return cases
        keys = sorted(cases)
        in_order = [cases[key] for key in keys]
        names = sorted(set().union(*(case.scores for case in in_order)))
        scores = {name: [case.scores.get(name) for case in in_order] for name in names}
        conversations = [case.conversation for case in in_order]
        return cls(
            case_keys=keys,
            content_hashes=[case.content_hash for case in in_order],
            outcomes=[case.outcome for case in in_order],
            error_kinds=[case.error_kind for case in in_order],
            decision_hashes=[case.decision_hash for case in in_order],
            scores=scores,
            conversations=conversations if any(conversations) else (),
        )

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> CaseColumns:
        """Return the columns of rows, one row per case, with their categories."""
        by_key = {row.key: row for row in in_order(rows)}
        categories = {key: row.groups["category"][0] for key, row in by_key.items()}
        return replace(cls.of(by_key), categories=categories)

    def __len__(self) -> int:
        return len(self.case_keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self.case_keys)

    def __contains__(self, key: object) -> bool:
        return key in self.places

    def __getitem__(self, key: str) -> CaseScores:
        return self._at(self.places[key])

    def in_turn(self) -> Iterator[CaseScores]:
        """Iterate over the cases in key order, without look-ups."""
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> CaseScores:
        scores = {}
        for name, column in self.scores.items():
            score = column[place]
            if score is not None:
                scores[name] = score
        return CaseScores(
            content_hash=self.content_hashes[place],
            outcome=self.outcomes[place],
            scores=scores,
            error_kind=self.error_kinds[place],
            decision_hash=self.decision_hashes[place],
            conversation=self.conversations[place] if self.conversations else None,
        )

    def clusters(self, places: Sequence[int]) -> Clusters | None:
        """Return the conversation of each of these cases, a single case being its own; None if no case is a turn."""
        if not self.conversations:
            return None
        named: list[Hashable] = []
        for place in places:
            conversation = self.conversations[place]
            named.append(place if conversation is None else conversation)
        return named

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the index of each case in the columns."""
        return dict(zip(self.case_keys, range(len(self.case_keys)), strict=True))

    def renamed(self, names: Mapping[str, str]) -> CaseColumns:
        """Return the columns with metrics renamed; `names` maps present names to new ones."""
        if not names:
            return self
        return replace(self, scores={names.get(name, name): column for name, column in self.scores.items()})

    def without(self, keys: Collection[str]) -> CaseColumns:
        """Return the columns without the cases of these keys; their categories stay."""
        if not keys:
            return self
        left_out = {*keys}
        places = [place for place, key in enumerate(self.case_keys) if key not in left_out]
        return CaseColumns(
            case_keys=values_at(self.case_keys, places),
            content_hashes=values_at(self.content_hashes, places),
            outcomes=values_at(self.outcomes, places),
            error_kinds=values_at(self.error_kinds, places),
            decision_hashes=values_at(self.decision_hashes, places),
            scores={name: values_at(column, places) for name, column in self.scores.items()},
            categories=self.categories,
            conversations=values_at(self.conversations, places) if self.conversations else (),
        )

    def unscored(self, keys: Collection[str], names: Collection[str]) -> CaseColumns:
        """Return the columns without the scores of these metrics for the cases of these keys."""
        places = {self.places[key] for key in keys}
        scores = dict(self.scores)
        for name in scores.keys() & {*names}:
            column = scores[name]
            scores[name] = [None if place in places else score for place, score in enumerate(column)]
        return replace(self, scores=scores)

    def places_without_score(self) -> Sequence[int]:
        """Return the indices of the cases without any score."""
        places: Sequence[int] = range(len(self))
        for column in self.scores.values():
            if None not in column:
                return []
            places = [place for place in places if column[place] is None]
        return places


class SharedCases(NamedTuple):
    """The cases of two runs, in key order, with their indices in the columns of each."""

    keys: Sequence[str]
    before: Sequence[int]
    after: Sequence[int]


def shared_cases(before: CaseColumns, after: CaseColumns) -> SharedCases:
    """Return the cases that both runs have."""
    if len(before) == len(after) and all(map(eq, before.case_keys, after.case_keys)):  # the usual case, fast
        every = range(len(before))
        return SharedCases(before.case_keys, every, every)
    keys = [key for key in before.case_keys if key in after.places]
    return SharedCases(
        keys,
        before=[before.places[key] for key in keys],
        after=[after.places[key] for key in keys],
    )


def values_at(column: Sequence[T], places: Sequence[int]) -> Sequence[T]:
    """Return the values of a column at these indices; the column itself if they are all."""
    if places == range(len(column)):
        return column
    return [column[place] for place in places]


# ── as a file ───────────────────────────────────────────────────────────────────────────────────────────────────


SCORES = "scores.jsonl"
SCHEMA = 2
COLUMNS = ("case_key", "content_hash", "outcome", "category", "error", "decision_hash")
"""The columns before the metrics; `error` is the kind of error, or null."""
CONVERSATION = "conversation"
"""One more column, of a run with conversations."""
REMEDY = "remove it, and results.jsonl is read instead"
_OUTCOMES = frozenset({"passed", "failed", "error", "skipped", "xfailed"})
_NUMBERS = frozenset({int, float, type(None)})
_TYPES: Mapping[str, frozenset[type]] = {
    "case_key": frozenset({str}),
    "content_hash": frozenset({str}),
    "category": frozenset({str}),
    "error": frozenset({str, type(None)}),
    "decision_hash": frozenset({str, type(None)}),
}
_OPTIONAL_TEXT = frozenset({str, type(None)})


def write_scores(folder: Path, cases: CaseColumns) -> None:
    """Write the score table of a run, with the categories of its cases; equal cases give equal bytes."""
    categories = [cases.categories[key] for key in cases.case_keys]
    # In the order of COLUMNS.
    columns = (
        cases.case_keys,
        cases.content_hashes,
        cases.outcomes,
        categories,
        cases.error_kinds,
        cases.decision_hashes,
    )
    named = (*zip(COLUMNS, columns, strict=True), *sorted(cases.scores.items()))
    lines: list[dict[str, Any]] = [{"cases": len(cases)}]
    if cases.conversations:
        lines.append({"column": CONVERSATION, "values": cases.conversations})
    lines += [{"column": name, "values": values} for name, values in named]
    write_lines(folder / SCORES, (sealed_line({"schema": SCHEMA, **line}).decode() for line in lines))


def read_scores(folder: Path) -> CaseColumns | None:
    """Return the score table of a run; None without a file, SettingsError if it is not a score table."""
    path = folder / SCORES
    place: object = path
    columns: dict[str, list[Any]] = {}
    count = 0
    try:
        for place, line in lines_of(path):
            part = unsealed(line)
            if part["schema"] != SCHEMA:
                raise ValueError("another schema")
            if place.number == 1:
                count = part["cases"]
            else:
                columns[part["column"]] = part["values"]
        if not columns and not path.exists():
            return None
        return _cases(columns, count)
    except DamagedLineError as damage:
        raise SettingsError(f"{place}: {damage}; was it changed? {REMEDY}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SettingsError(f"{path}: not a table of scores; was it changed? {REMEDY}") from None


def _cases(columns: dict[str, list[Any]], cases: int) -> CaseColumns:
    """Return the columns of a score table; raise ValueError if they are not those of so many cases in order."""
    scores = {name: column for name, column in columns.items() if name not in (*COLUMNS, CONVERSATION)}
    conversations = columns.get(CONVERSATION, ())
    keys = columns["case_key"]
    categories = columns["category"]
    if (
        # By types and sets, in C: a run may have a million values.
        any(len(column) != cases for column in columns.values())
        or not all({*map(type, columns[name])} <= kinds for name, kinds in _TYPES.items())
        or not _OPTIONAL_TEXT.issuperset(map(type, conversations))
        or not {*columns["outcome"]} <= _OUTCOMES
        or not all(_NUMBERS.issuperset(map(type, column)) for column in scores.values())
        or any(key >= following for key, following in pairwise(keys))
    ):
        raise ValueError("not columns of cases in order")
    return CaseColumns(
        case_keys=keys,
        content_hashes=columns["content_hash"],
        outcomes=columns["outcome"],
        error_kinds=columns["error"],
        decision_hashes=columns["decision_hash"],
        scores=scores,
        categories=dict(zip(keys, categories, strict=True)),
        conversations=conversations,
    )


def scores_of_records(path: Path) -> CaseColumns:
    """Return the score table from results.jsonl, for a run without one; leave out a last line that was cut off."""
    shared = SharedParts()
    rows = (Row.of(record, shared) for record in row_records(path))
    return CaseColumns.of_rows(cases_of(rows))
