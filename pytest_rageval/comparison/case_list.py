"""The cases of a stored run, the worst first: labels and texts from its records, scores as columns, changes, falls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_changes import UNCHANGED, answer_changes
from pytest_rageval.comparison.case_diff import trial_rank
from pytest_rageval.comparison.changes import moved_scores
from pytest_rageval.comparison.listed_case import FLAKY, ListedCase, record_fields
from pytest_rageval.comparison.severity import levels_of, shares_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.model import NOTHING
from pytest_rageval.model.case_fields import (
    CATEGORY,
    DESCRIPTIVE_NAMES,
    UNCATEGORISED,
)
from pytest_rageval.runs.columns import CaseColumns, Column, shared_cases, values_at
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import RESULT, RESULTS, Members
from pytest_rageval.runs.records.record_files import record_paths, row_records, whole_records
from pytest_rageval.runs.row import Row, SharedParts, cases_of

_LISTED = Members(
    "case_key",
    "trial",
    "outcome",
    "reason",
    "question",
    "answer",
    "tags",
    "source",
    "verdict",
    "error",
    "abstention",
    where_written=(
        *DESCRIPTIVE_NAMES,
        "doubt",
        "cause",
        "operations",
        "attempts",
        "confirms",
        "conversation",
        "turn",
        "conversational",
    ),
)


_OF_RECORD = ListedCase._fields.index("answer_change")
_FLAKY = ListedCase._fields.index("flaky")
"""How many fields a record fills, and which of them tells of trials that differ."""
_NO_FALL: tuple[float, str | None] = (0.0, None)


class Fall(NamedTuple):
    """One case in one metric: its fall as a share of the scale, negative; its number in the list; its scores."""

    share: float
    number: int
    before: float
    after: float


@dataclass(frozen=True)
class CaseList:
    """The cases of a run.

    scores       a column a metric, in the order of the cases
    falls        the cases that fell in each metric, the largest fall first; None if the other run was not read
    layer_of     the layer of each metric
    is_compared  whether changes are known
    has_answers_before  whether the answers were compared with those of the other run
    places       where the record of each case is, of several trials the shown one; empty if no records are kept, or
                 the places were not asked for
    """

    run_id: str
    cases: Sequence[ListedCase]
    scores: Mapping[str, Column] = field(default_factory=dict)
    falls: Mapping[str, Sequence[Fall]] | None = None
    layer_of: Mapping[str, str] = field(default_factory=dict)
    is_compared: bool = False
    places: Mapping[str, Place] = field(default_factory=dict)
    has_answers_before: bool = False

    def layers(self, case: ListedCase) -> tuple[str, ...]:
        """Return the layers of the metrics whose gates failed."""
        layers = dict.fromkeys(self.layer_of[name] for name, _ in case.failed if name in self.layer_of)
        return tuple(layers)


def list_cases(
    side: Side,
    changes: Mapping[str, str] = NOTHING,
    before: CaseColumns | None = None,
    names: Mapping[str, str] = NOTHING,
    *,
    is_compared: bool = False,
    new_causes: Mapping[str, str] = NOTHING,
    keys: Set[str] | None = None,
    with_places: bool = False,
) -> CaseList:
    """Return the cases of a side: those with a record, or without records those of its table of scores.

    before      the scores of the other run; None if it is not read
    names       the other run's metrics → their names in this one
    new_causes  the causes that only the comparison shows, by case
    keys        the cases to list; None for all: 1,000 cases take 1.5 MB
    with_places  whether the places of records are kept: those of 1,000 cases take 0.3 MB
    """
    metrics = side.metrics["metrics"]
    now = side.cases
    if keys is not None:
        now = now.without([key for key in now.case_keys if key not in keys])
    recorded: dict[str, Sequence[Any]] = {}
    places: Mapping[str, Place] = {}
    if side.run is not None:
        recorded, places = _recorded(side.run, keys, with_places=with_places)
    if recorded:
        # A damaged run may have lost records; nothing could be shown of these cases.
        now = now.without([key for key in now.case_keys if key not in recorded])
    else:
        recorded = _fields_of_table(now)
    falls = _falls((before or CaseColumns()).renamed(names), now, metrics)
    largest = _largest_falls(falls)
    levels = levels_of(now, shares_of(metrics))
    cases: list[ListedCase] = []
    for place, (key, level) in enumerate(zip(now.case_keys, levels, strict=True)):
        drop, fallen = largest.get(place, _NO_FALL)
        change = changes.get(key, UNCHANGED)
        # Taken out, with the key of the columns: neither the fields nor the keys of all cases are held twice.
        _, *fields = recorded.pop(key)
        case = ListedCase._make((key, *fields, "unknown", change, drop, fallen, level))
        if key in new_causes:
            case = case._replace(cause=new_causes[key])
        cases.append(case)
    listed = CaseList(
        run_id=side.run_id,
        cases=cases,
        scores=now.scores,
        falls=falls if before is not None else None,
        layer_of={name: metric["layer"] for name, metric in metrics.items()},
        is_compared=is_compared,
        places=places,
    )
    return worst_cases_first(listed)


def with_answer_changes(listed: CaseList, side: Side, before: Side, unlike: Collection[str]) -> CaseList:
    """Return the list with which answers differ from those of the other run.

    unlike  the cases that ask something else there
    """
    if not (side.has_records and before.has_records):
        return listed
    # A case that ended in an error has no answer, which is not another one: 12 errors read as 12 changed answers.
    answered = [case for case in listed.cases if case.outcome != "error"]
    answers = {case.key: case.answer for case in answered if case.key not in unlike}
    changes = answer_changes(answers, side, before)
    cases = []
    for case in listed.cases:
        if case.key in changes:
            case = case._replace(answer_change=changes[case.key])
        cases.append(case)
    return replace(listed, cases=cases, has_answers_before=True)


def _fields_of_table(cases: CaseColumns) -> dict[str, Sequence[Any]]:
    """Return the fields that a record would fill, of each case of a table of scores."""
    fields: dict[str, Sequence[Any]] = {}
    for key, outcome, error in zip(cases.case_keys, cases.outcomes, cases.error_kinds, strict=True):
        descriptions = {CATEGORY: cases.categories.get(key, UNCATEGORISED)}
        case = ListedCase(key, outcome, descriptions, error)
        fields[key] = case[:_OF_RECORD]
    return fields


def _largest_falls(falls: Mapping[str, Sequence[Fall]]) -> dict[int, tuple[float, str | None]]:
    """Return the largest fall of each case that fell, with its metric, by the case's place in the columns."""
    largest: dict[int, tuple[float, str | None]] = {}
    for name, fallen in falls.items():
        for fall in fallen:
            share_so_far, _ = largest.get(fall.number, _NO_FALL)
            if fall.share < share_so_far:
                largest[fall.number] = fall.share, name
    return largest


def worst_cases_first(listed: CaseList) -> CaseList:
    """Return the list in the order of severity."""
    severities = [case.severity for case in listed.cases]
    order = sorted(range(len(severities)), key=severities.__getitem__)
    scores = {name: values_at(column, order) for name, column in listed.scores.items()}
    falls = listed.falls
    if falls is not None:
        number_of = {earlier_number: number for number, earlier_number in enumerate(order)}
        falls = {name: _renumbered(fallen, number_of) for name, fallen in falls.items()}
    return replace(listed, cases=values_at(listed.cases, order), scores=scores, falls=falls)


def _renumbered(falls: Sequence[Fall], number_of: Mapping[int, int]) -> list[Fall]:
    """Return falls with the new numbers of their cases, the largest first."""
    return sorted(Fall(share, number_of[number], before, after) for share, number, before, after in falls)


def _falls(before: CaseColumns, now: CaseColumns, metrics: Mapping[str, Any]) -> dict[str, list[Fall]]:
    """Return the falls of each metric by the cases' places in the columns."""
    shared = shared_cases(before, now)
    falls: dict[str, list[Fall]] = {}
    for name, moved in moved_scores(before, now, shared, metrics):
        fallen = [Fall(share, shared.after[at], old, new) for at, old, new, share in moved if share < 0]
        if fallen:
            falls[name] = fallen
    return falls


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def recorded_side(run: StoredRun, metrics: Mapping[str, Any]) -> Side:
    """Return a run without aggregates as a side; `metrics` describes its metrics."""
    shared = SharedParts()
    records = chain.from_iterable(map(row_records, record_paths(run.path, RESULTS)))
    rows = (Row.of(record, shared) for record in records)
    scores = CaseColumns.of_rows(cases_of(rows))
    return Side(run.run_id, {"metrics": metrics, "volatile": {}}, scores, run.config, run)


class _Trial(NamedTuple):
    """A recorded trial of a case: its place among the trials, the fields of its record, and where that is or None."""

    order: tuple[int, int]
    fields: Sequence[Any]
    place: Place | None


def _recorded(
    run: StoredRun, keys: Set[str] | None, *, with_places: bool
) -> tuple[dict[str, Sequence[Any]], dict[str, Place]]:
    """Return the fields that its record fills of each of these cases, by key, and the places of the records if asked.

    `keys` None: of all recorded cases. Of several trials, that is shown which stands for the case; none that confirms a
    new failure.
    """
    # Nearly all runs have one trial a case: a key of case and trial for each, and a set of verdicts, took 0.5 kB.
    shown: dict[str, _Trial] = {}
    further: dict[tuple[str, int], _Trial] = {}
    passed: dict[str, bool] = {}
    flaky: set[str] = set()
    for place, record in whole_records(record_paths(run.path, RESULTS), RESULT, members=_LISTED):
        key = record["case_key"]
        if keys is not None and key not in keys:
            continue
        try:
            if not record.get("confirms"):
                number = record["trial"]
                trial = _Trial((trial_rank(record), number), record_fields(record), place if with_places else None)
                # Of a trial that was recorded twice, the last record counts.
                if number:
                    further[key, number] = trial
                else:
                    shown[key] = trial
            has_passed = bool(record["verdict"].get("trial_passed"))
        except (KeyError, TypeError, AttributeError) as error:
            case = f"{run.path / RESULTS}: case {key!r}"
            reason = f"{type(error).__name__}: {error}"
            raise SettingsError(f"{case}: not a record: {reason}; was the file changed?") from None
        if passed.setdefault(key, has_passed) != has_passed:
            flaky.add(key)
    for (key, _), trial in further.items():
        if key not in shown or trial.order < shown[key].order:
            shown[key] = trial
    fields_of = {key: trial.fields for key, trial in shown.items()}
    place_of = {key: trial.place for key, trial in shown.items() if trial.place is not None}
    for key in flaky & fields_of.keys():
        fields_of[key] = (*fields_of[key][:_FLAKY], FLAKY, *fields_of[key][_FLAKY + 1 :])
    return fields_of, place_of
