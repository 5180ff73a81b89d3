"""The rows of a run by column: what aggregation needs of a million records in a few hundred bytes each."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from typing import Any

from pytest_rageval.io.compact.columns import CodedColumn, HashColumn, NumberColumn
from pytest_rageval.io.compact.texts import TextColumn, TextIndex
from pytest_rageval.runs.case_columns import CaseColumns
from pytest_rageval.runs.row import Row, cases_of

_TRIAL_PASSED, _BLANK, _UNGATED_GOLD = 1, 2, 4


class RowColumns(Iterable[Row]):
    """Rows in the order of their coming; of one that came twice (a retried case) the last counts.

    A row is put together when it is asked for: what looks at all of them reads columns.
    """

    def __init__(self) -> None:
        self._replaced: set[int] = set()
        """Where rows stand that came again."""
        self._is_ascending = True
        self._cases: RowColumns | None = None
        """What `cases` has put together, until another row comes."""
        self.keys = TextColumn()
        self._places = TextIndex(self.keys)
        self.trials = array("I")
        self.outcomes: CodedColumn[str] = CodedColumn()
        self.content_hashes = HashColumn(64)
        self.decision_hashes = HashColumn(40, 16)
        self.groups: CodedColumn[Mapping[str, tuple[str, ...]]] = CodedColumn(lambda groups: tuple(groups.items()))
        self.scores: dict[str, NumberColumn] = {}
        self.not_applicable: CodedColumn[frozenset[str]] = CodedColumn()
        self.metric_errors: CodedColumn[frozenset[str]] = CodedColumn()
        self.failed: CodedColumn[tuple[tuple[str, str], ...]] = CodedColumn()
        self.gates_examined = array("I")
        self._flags = array("B")
        self.error_kinds: CodedColumn[str | None] = CodedColumn()
        self.messages: CodedColumn[str | None] = CodedColumn()
        self.latency: dict[str, NumberColumn] = {}
        self.costs: CodedColumn[Mapping[str, Any]] = CodedColumn(_digest)
        self.judges: CodedColumn[Mapping[str, Any] | None] = CodedColumn(_digest)

    @classmethod
    def of(cls, rows: Iterable[Row]) -> RowColumns:
        """The columns of some rows; those of columns are they themselves."""
        if isinstance(rows, cls):
            return rows
        columns = cls()
        for row in rows:
            columns.add(row)
        return columns

    def add(self, row: Row) -> None:
        """Take a row; one of the same key and trial counts no more."""
        place = len(self.keys)
        self._cases = None
        if place and (self.keys[-1], self.trials[-1]) >= (row.key, row.trial):
            self._is_ascending = False
        if not self._is_ascending:
            self._replaced.update(self._places_of(row.key, row.trial))
        self.keys.append(row.key)
        self._places.note_last(row.key)
        self.trials.append(row.trial)
        self.outcomes.append(row.outcome)
        self.content_hashes.append(row.content_hash)
        self.decision_hashes.append(row.decision_hash)
        self.groups.append(row.groups)
        _add(self.scores, row.scores, place)
        self.not_applicable.append(row.not_applicable)
        self.metric_errors.append(row.metric_errors)
        self.failed.append(row.failed)
        self.gates_examined.append(row.gates_examined)
        flags = (row.trial_passed and _TRIAL_PASSED, row.is_blank and _BLANK, row.has_ungated_gold and _UNGATED_GOLD)
        self._flags.append(sum(flags))
        self.error_kinds.append(row.error_kind)
        self.messages.append(row.message)
        _add(self.latency, row.latency, place)
        self.costs.append(row.cost)
        self.judges.append(row.judge)

    def __len__(self) -> int:
        return len(self.keys) - len(self._replaced)

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, self._current)

    def has(self, key: str, trial: int) -> bool:
        """Is there a row of this trial?"""
        return next(self._places_of(key, trial), None) is not None

    def has_case(self, key: str) -> bool:
        """Is there a row of any trial?"""
        return self._places.first(key) is not None

    def _places_of(self, key: str, trial: int) -> Iterator[int]:
        return (place for place in self._places.places(key) if self.trials[place] == trial)

    @property
    def has_replaced(self) -> bool:
        """Did any row come again?"""
        return bool(self._replaced)

    @property
    def _current(self) -> Iterable[int]:
        """Where the rows stand that count."""
        every = range(len(self.keys))
        return [place for place in every if place not in self._replaced] if self._replaced else every

    def _row(self, place: int) -> Row:
        flags = self._flags[place]
        return Row(
            key=self.keys[place],
            trial=self.trials[place],
            outcome=self.outcomes[place],
            content_hash=self.content_hashes[place] or "",
            groups=self.groups[place],
            scores=_mapping(self.scores, place),
            not_applicable=self.not_applicable[place],
            metric_errors=self.metric_errors[place],
            failed=self.failed[place],
            gates_examined=self.gates_examined[place],
            trial_passed=bool(flags & _TRIAL_PASSED),
            error_kind=self.error_kinds[place],
            message=self.messages[place],
            is_blank=bool(flags & _BLANK),
            latency=_mapping(self.latency, place),
            cost=self.costs[place],
            judge=self.judges[place],
            decision_hash=self.decision_hashes[place],
            has_ungated_gold=bool(flags & _UNGATED_GOLD),
        )

    # ── in order ──────────────────────────────────────────────────────────────────────────────────────────────

    def in_order(self) -> RowColumns:
        """The rows by case key and trial, each once; they themselves where they came so."""
        if self._is_ascending:
            return self
        places = sorted(self._current, key=lambda place: (self.keys[place], self.trials[place]))
        return RowColumns.of(map(self._row, places))

    def cases(self) -> RowColumns:
        """A row a case, in order: that of its only trial, or one with the mean of each score over its trials."""
        if self._cases is None:
            rows = self.in_order()
            if not any(rows.trials):
                return rows
            by_case = groupby(rows, attrgetter("key"))
            self._cases = RowColumns.of(row for _, trials in by_case for row in cases_of(trials))
        return self._cases

    # ── what is asked of rows in order, a row a case ──────────────────────────────────────────────────────────

    def by_key(self) -> CaseColumns:
        """Outcomes and scores by case key."""
        content_hashes: Sequence[str] = self.content_hashes  # type: ignore[assignment] # because every row has one
        scores = dict(sorted(self.scores.items()))
        return CaseColumns(self.keys, content_hashes, self.outcomes, self.error_kinds, self.decision_hashes, scores)

    def scored(self, name: str, places: Sequence[int] | None = None) -> Sequence[float]:
        """The scores of a metric, of all rows or of those at some places."""
        return self.scores[name].present(places) if name in self.scores else ()

    def has_score(self, name: str, place: int) -> bool:
        """Is this row scored by the metric?"""
        return name in self.scores and self.scores[name][place] is not None

    def places_by(self, group: str) -> dict[str, array[int]]:
        """Where the rows of each value of a breakdown stand, by value."""
        places: dict[str, array[int]] = {}
        of_codes = [[places.setdefault(value, array("I")) for value in groups[group]] for groups in self.groups.values]
        for place, code in enumerate(self.groups.codes):
            for of_value in of_codes[code]:
                of_value.append(place)
        return dict(sorted(places.items()))

    def case_keys(self) -> CaseKeysOfRows:
        """The keys of the cases."""
        return CaseKeysOfRows(self)

    def flagged(self, why: str = "flags") -> list[str]:
        """Keys of the cases with judgements that are doubtful, or `failed`."""
        return sorted({self.keys[place] for place in self.judges.where(lambda judge: judge and judge.get(why))})

    @property
    def is_blank(self) -> Iterator[bool]:
        return (flags & _BLANK > 0 for flags in self._flags)

    @property
    def has_ungated_gold(self) -> Iterator[bool]:
        return (flags & _UNGATED_GOLD > 0 for flags in self._flags)


class CaseKeysOfRows(Collection[str]):
    """The keys of rows in order, a row a case."""

    def __init__(self, rows: RowColumns) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.keys)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._rows.has_case(key)


def _add(columns: dict[str, NumberColumn], values: Mapping[str, float], place: int) -> None:
    """Take the numbers of a row; None stands where a row has none."""
    for name, value in values.items():
        column = columns.get(name)
        if column is None:
            column = columns[name] = NumberColumn()
            column.fill(place)
        column.append(value)
    if len(values) < len(columns):
        for column in columns.values():
            column.fill(place + 1)


def _mapping(columns: Mapping[str, NumberColumn], place: int) -> dict[str, float]:
    return {name: value for name, column in columns.items() if (value := column[place]) is not None}


def _digest(mapping: Mapping[str, Any] | None) -> bytes:
    """What tells two mappings apart, however large they are."""
    return blake2b(json.dumps(mapping, sort_keys=True, default=str).encode(), digest_size=16).digest()
