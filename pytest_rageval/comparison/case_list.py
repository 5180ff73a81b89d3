"""The cases of a stored run, the worst first: labels and texts from its records, scores as columns, changes, falls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.changes import moved_scores
from pytest_rageval.comparison.severity import Shares, shares_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.matching.dialects import NO_DOUBT, worst_doubt
from pytest_rageval.model import NOTHING
from pytest_rageval.model.case_fields import (
    CATEGORY,
    DESCRIPTIVE_FIELDS,
    DESCRIPTIVE_NAMES,
    UNCATEGORISED,
    descriptions_in,
)
from pytest_rageval.runs.causes import NO_CAUSE
from pytest_rageval.runs.columns import CaseColumns, Column, shared_cases, values_at
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import RESULT, RESULTS, Members
from pytest_rageval.runs.records.record_files import record_paths, row_records, whole_records
from pytest_rageval.runs.row import IS_BAD, Row, SharedParts, cases_of

CHANGES = {"worse": "flipped_to_fail", "fixed": "flipped_to_pass", "unmeasured": "unmeasured", "new": "only_after"}
"""The changes of a case since the baseline, with the lists of metrics.json that name such cases; else `same`."""
UNCHANGED = "same"
FLAKY = "yes"
STEADY = "no"
"""Words of the filter `flaky:`."""
FAILING = IS_BAD | {"error"}
"""Outcomes of cases that failed or ended in an error."""
_RANKS = {"worse": 0, "error": 1, "failed": 2, "unmeasured": 3, "xfailed": 4}
_LISTED = Members(
    "case_key",
    "trial",
    "outcome",
    "reason",
    "question",
    "answer",
    "tags",
    "source",
    "latency",
    "verdict",
    "error",
    where_written=(*DESCRIPTIVE_NAMES, "doubt", "cause"),
)


class ListedCase(NamedTuple):
    """One case of a list, as its record has it; of several trials, the first with an error, else the first.

    descriptions  the texts of its descriptive fields by name; cases with equal ones share a mapping
    tags          of the case and of its failed gates; failed: these gates as metric and tag
    latency       milliseconds until the answer; None if nothing was asked
    doubt         the worst doubt about a match, a word of the filter `doubt:`
    cause         why it fails, a word of the filter `cause:`; `none` if it does not, or the run is an older one
    flaky         `yes` if some of its trials pass and others do not, a word of the filter `flaky:`
    change        a word of the filter `changed:`
    drop, fallen  the largest fall of a score since the other run as a share of its scale, negative; and its metric
    level         mean of the scores as 0 to 1, higher better; None without scores
    """

    key: str
    outcome: str
    descriptions: Mapping[str, str]
    error_kind: str | None = None
    trial: int = 0
    tags: Sequence[str] = ()
    failed: Sequence[tuple[str, str]] = ()
    question: str | None = None
    answer: str | None = None
    place: str = ""
    message: str | None = None
    latency: int | None = None
    doubt: str = NO_DOUBT
    cause: str = NO_CAUSE
    flaky: str = STEADY
    change: str = UNCHANGED
    drop: float = 0.0
    fallen: str | None = None
    level: float | None = None

    @property
    def category(self) -> str:
        return self.descriptions[CATEGORY]

    @property
    def id(self) -> str:
        """Return the id in the case's key."""
        return case_id(self.key)

    @property
    def file(self) -> str:
        """Return the file in the case's key; '' if it has none."""
        return self.key.partition("::")[0] if "::" in self.key else ""

    @property
    def is_failing(self) -> bool:
        return self.outcome in FAILING

    @property
    def why(self) -> str:
        """Return the failed gates or the error; '' if the case passed."""
        if self.outcome == "passed":
            return ""
        message = self.message or self.outcome
        return f"{self.error_kind}: {message}" if self.error_kind else message

    @property
    def rank(self) -> int:
        """Return 0 for a case that newly fails, then errors, failing cases, unmeasured ones, known failures, others."""
        return _rank(self.outcome, self.change)

    @property
    def severity(self) -> tuple[int, float, float, str]:
        """Return the sort key: the rank, then the largest falls and the lowest scores."""
        level = 1.0 if self.level is None else self.level
        return self.rank, self.drop, level, self.key


_OF_RECORD = ListedCase._fields.index("change")
_FLAKY = ListedCase._fields.index("flaky")
_ERROR = ListedCase._fields.index("error_kind")
"""How many fields a record fills, and which of them tells of an error."""
_NO_FALL: tuple[float, str | None] = (0.0, None)


@cache
def _rank(outcome: str, change: str) -> int:
    state = outcome if outcome in FAILING and change != "worse" else change
    return _RANKS.get(state, len(_RANKS))


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
    places       where the record of each case is, of several trials the shown one; empty if no records are kept
    """

    run_id: str
    cases: Sequence[ListedCase]
    scores: Mapping[str, Column] = field(default_factory=dict)
    falls: Mapping[str, Sequence[Fall]] | None = None
    layer_of: Mapping[str, str] = field(default_factory=dict)
    is_compared: bool = False
    places: Mapping[str, Place] = field(default_factory=dict)

    def layers(self, case: ListedCase) -> tuple[str, ...]:
        """Return the layers of the metrics whose gates failed."""
        layers = dict.fromkeys(self.layer_of[name] for name, _ in case.failed if name in self.layer_of)
        return tuple(layers)


class CaseChanges(NamedTuple):
    """What a comparison says of single cases.

    words   the change of each changed case by key, a word of the filter `changed:`
    causes  the cause of each known failure that fails a new gate, in place of the one in its record
    """

    words: Mapping[str, str] = NOTHING
    causes: Mapping[str, str] = NOTHING


NO_CHANGES = CaseChanges()


def changes_of(comparison: Mapping[str, Any] | None) -> CaseChanges:
    """Return the changes of cases from a comparison; of several changes of a case, the first."""
    if comparison is None or not comparison.get("compared", True):
        return NO_CHANGES
    words: dict[str, str] = {}
    for change, name in (*CHANGES.items(), ("worse", "fails_new_gate"), ("new", "changed_cases")):
        for case in comparison.get(name, ()):
            key = case["case_key"] if isinstance(case, Mapping) else case
            words.setdefault(key, change)
    causes = {key: cause["kind"] for key, cause in comparison.get("new_causes", NOTHING).items()}
    return CaseChanges(words, causes)


def list_cases(
    side: Side,
    changes: CaseChanges = NO_CHANGES,
    before: CaseColumns | None = None,
    names: Mapping[str, str] = NOTHING,
    *,
    is_compared: bool = False,
) -> CaseList:
    """Return the cases of a side: those with a record, or without records those of its table of scores.

    before  the scores of the other run; None if it is not read
    names   the other run's metrics → their names in this one
    """
    metrics = side.metrics["metrics"]
    now = side.cases
    recorded: Mapping[str, Sequence[Any]] = {}
    places: Mapping[str, Place] = {}
    if side.run is not None:
        recorded, places = _recorded(side.run)
    if recorded:
        # A damaged run may have lost records; nothing could be shown of these cases.
        now = now.without(now.places.keys() - recorded.keys())
    else:
        recorded = _fields_of_table(side)
    falls = _falls((before or CaseColumns()).renamed(names), now, metrics)
    largest = _largest_falls(falls)
    levels = _levels(now, shares_of(metrics))
    cases: list[ListedCase] = []
    for place, (key, level) in enumerate(zip(now.case_keys, levels, strict=True)):
        drop, fallen = largest.get(place, _NO_FALL)
        change = changes.words.get(key, UNCHANGED)
        case = ListedCase._make((*recorded[key], change, drop, fallen, level))
        if key in changes.causes:
            case = case._replace(cause=changes.causes[key])
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


def _fields_of_table(side: Side) -> dict[str, Sequence[Any]]:
    """Return the fields that a record would fill, of each case of the table of scores."""
    cases = side.cases
    fields: dict[str, Sequence[Any]] = {}
    for key, outcome, error in zip(cases.case_keys, cases.outcomes, cases.error_kinds, strict=True):
        descriptions = {CATEGORY: side.categories.get(key, UNCATEGORISED)}
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


def _levels(columns: CaseColumns, shares: Shares) -> Iterator[float | None]:
    """Yield the mean of each case's scores as 0 to 1; None without scores."""
    turned: list[Column] = []
    for name, column in columns.scores.items():
        if name in shares:
            share = shares[name]
            is_share = share is float  # most metrics are: their columns need no copy
            turned.append(column if is_share else [None if score is None else share(score) for score in column])
    if not turned:
        yield from [None] * len(columns)
        return
    for scores in zip(*turned, strict=True):
        present = [score for score in scores if score is not None] if None in scores else scores
        yield math.fsum(present) / len(present) if present else None


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def recorded_side(run: StoredRun, metrics: Mapping[str, Any]) -> Side:
    """Return a run without aggregates as a side; `metrics` describes its metrics."""
    shared = SharedParts()
    records = chain.from_iterable(map(row_records, record_paths(run.path, RESULTS)))
    rows = (Row.of(record, shared) for record in records)
    scores = CaseColumns.of_rows(cases_of(rows))
    return Side(run.run_id, {"metrics": metrics, "volatile": {}}, scores, run.config, run)


def _recorded(run: StoredRun) -> tuple[dict[str, Sequence[Any]], dict[str, Place]]:
    """Return the fields that its record fills of each recorded case, by key, and the place of the record.

    Of several trials, the first with an error is shown, else the first.
    """
    trials: dict[tuple[str, int], tuple[Sequence[Any], Place]] = {}
    passed_trials: dict[str, set[bool]] = {}
    for place, record in whole_records(record_paths(run.path, RESULTS), RESULT, members=_LISTED):
        try:
            trials[record["case_key"], record["trial"]] = _fields(record), place
            passed_trials.setdefault(record["case_key"], set()).add(bool(record["verdict"].get("trial_passed")))
        except (KeyError, TypeError, AttributeError) as error:
            case = f"{run.path / RESULTS}: case {record['case_key']!r}"
            reason = f"{type(error).__name__}: {error}"
            raise SettingsError(f"{case}: not a record: {reason}; was the file changed?") from None

    def order(item: tuple[tuple[str, int], tuple[Sequence[Any], Place]]) -> tuple[bool, int]:
        (_, trial), (fields, _) = item
        return fields[_ERROR] is None, trial

    in_order: Iterable[tuple[tuple[str, int], tuple[Sequence[Any], Place]]] = trials.items()
    if any(trial for _, trial in trials):  # nearly all runs have one trial a case, and nothing to sort
        in_order = sorted(in_order, key=order, reverse=True)
    fields_of: dict[str, Sequence[Any]] = {}
    place_of: dict[str, Place] = {}
    for (key, _), (fields, place) in in_order:  # the last one of a case counts
        fields_of[key] = fields
        place_of[key] = place
    for key, passed in passed_trials.items():
        if len(passed) > 1:
            fields_of[key] = (*fields_of[key][:_FLAKY], FLAKY)
    return fields_of, place_of


def listed_case(record: Mapping[str, Any]) -> ListedCase:
    """Return the case of a record, without a comparison."""
    return ListedCase(*_fields(record))


def _fields(record: Mapping[str, Any]) -> Sequence[Any]:
    """Return the first fields of a `ListedCase`, as far as a record fills them."""
    error = record["error"] or NOTHING
    milliseconds = record["latency"].get("total_ms")
    failed = [(gate["metric"], gate["tag"] or gate["metric"]) for gate in record["verdict"]["failed_gates"]]
    tags = [*record["tags"], *(tag for _, tag in failed)]
    doubt = record.get("doubt")
    cause = record.get("cause")
    return (
        record["case_key"],
        record["outcome"],
        _shared_descriptions(descriptions_in(record)),
        error.get("kind"),
        record["trial"],
        tuple(dict.fromkeys(tags)) if tags else (),
        failed,
        record["question"],
        record["answer"],
        place_text(record),
        error.get("message") or record["reason"],
        None if milliseconds is None else round(milliseconds),
        worst_doubt(doubt) if doubt else NO_DOUBT,
        cause["kind"] if cause else NO_CAUSE,
        STEADY,
    )


@lru_cache(maxsize=4096)
def _shared_descriptions(texts: tuple[str | None, ...]) -> Mapping[str, str]:
    """Return the texts of descriptive fields by name: most cases have those of many others."""
    return {field.name: text or field.absent for field, text in zip(DESCRIPTIVE_FIELDS, texts, strict=True)}


def case_id(key: str) -> str:
    """Return the id in a case key."""
    return key.partition("::")[2] or key


def place_text(record: Mapping[str, Any]) -> str:
    """Return the file and line of a record's case; '' if they are not known."""
    source = record.get("source") or {}
    return f"{source['file']}:{source['line']}" if source.get("file") else ""
