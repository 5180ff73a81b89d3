"""Filters over the cases of a stored run, and the values that they compare."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.filter_language import (
    CHANGES,
    DECIMALS,
    GROUPS,
    LATENCY,
    UNCHANGED,
    Condition,
    Filter,
    FilterError,
    FilterVocabulary,
    HasFallen,
    HasId,
    HasText,
    IsOneOf,
    read_filter,
)
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import Row, SharedParts, cases_of
from pytest_rageval.text import printable

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}

_WHOLE = (0, 1)


class FilteredCase(NamedTuple):
    """The values of one case that filters read: row, change, layers of its failed gates, texts.

    falls, drop, level  the metrics in which it fell, the largest fall and the mean score, if known
    """

    row: Row
    change: str
    layers: tuple[str, ...]
    text: str
    falls: Collection[str] = ()
    drop: float | None = None
    level: float | None = None

    def values(self, word: str) -> tuple[str, ...]:
        """Return the case's values for a word that is compared as a whole."""
        return tuple(map(printable, self.raw_values(word)))

    def raw_values(self, word: str) -> tuple[str, ...]:
        """Return the same without escaping control characters."""
        match word:
            case "outcome":
                return (self.row.outcome,)
            case "changed":
                return (self.change,)
            case "file":
                return (case_file(self.row.key),)
            case "layer":
                return self.layers
            case "doubt":
                return (self.row.doubt,)
            case "tag":
                return tuple(tags_of(self.row))
            case _:
                return (group_of(self.row, word),)

    def number(self, name: str) -> float | None:
        """Return a score, latency, fall or level, rounded for comparisons."""
        match name:
            case "latency":
                return latency_of(self.row)
            case "drop" if self.drop is not None:
                return rounded(self.drop)
            case "level" if self.level is not None:
                return rounded(self.level)
            case _:
                return rounded(self.row.scores.get(name))


def filtered_keys(run: StoredRun, expression: str, option: str) -> frozenset[str]:
    """Return the keys of a finished run's cases that meet all terms; SettingsError names the `option` and the term."""
    cases = list(_cases(run))
    vocabulary = vocabulary_of(run.run_id, cases, run.finished_metrics.get("comparison") is not None)
    try:
        conditions = read_filter(expression, vocabulary)
        if not conditions:
            raise FilterError("no term, expected some as in outcome:failed or recall_any<1")
    except FilterError as error:
        raise SettingsError(f"{option}: {expression!r}: {error}") from None
    return frozenset(case.row.key for case in cases if all(meets(case, each) for each in conditions))


def vocabulary_of(
    run_id: str,
    cases: Sequence[FilteredCase],
    is_compared: bool,
    numbers: Collection[str] = (LATENCY,),
    fallen: Collection[str] | None = None,
) -> FilterVocabulary:
    """Return the meanings of filter words for these cases."""
    values = {
        word: set(map(printable, {value for case in cases for value in case.raw_values(word)}))
        for word in ("outcome", "changed", *GROUPS, "file", "layer", "doubt")
    }
    metrics = set().union(*(case.row.scores for case in cases))
    return FilterVocabulary(run_id, values, metrics, numbers, fallen, is_compared=is_compared)


def meets(case: FilteredCase, asked: Filter) -> bool:
    """Return True if a case meets a term."""
    return _holds(case, asked.condition) != asked.is_negated


# ── values of a case ──────────────────────────────────────────────────────────────────────────────────────────


def case_id(key: str) -> str:
    """Return the id in a case key."""
    return key.partition("::")[2] or key


def case_file(key: str) -> str:
    """Return the file in a case key; '' if it has none."""
    return key.partition("::")[0] if "::" in key else ""


def group_of(row: Row, group: str) -> str:
    """Return category, difficulty or domain of a case; '' if it has none."""
    return next(iter(row.groups[group]), "")


def tags_of(row: Row) -> list[str]:
    """Return the tags of the case and of its failed gates."""
    return list(dict.fromkeys([*row.groups["tag"], *(tag for _, tag in row.failed)]))


def layers_of(row: Row, layer_of: Mapping[str, str]) -> tuple[str, ...]:
    """Return the layers of the metrics whose gates failed."""
    return tuple(dict.fromkeys(layer_of[name] for name, _ in row.failed if name in layer_of))


def why_text(row: Row) -> str:
    """Return the failed gates or the error; '' if the case passed."""
    if row.outcome == "passed":
        return ""
    kind = f"{row.error_kind}: " if row.error_kind else ""
    return kind + (row.message or row.outcome)


def place_text(record: Mapping[str, Any]) -> str:
    """Return the file and line of a record's case; '' if they are not known."""
    source = record.get("source") or {}
    return f"{source['file']}:{source['line']}" if source.get("file") else ""


def rounded(number: float | None) -> float | None:
    """Round a score, drop or level for comparisons."""
    return None if number is None else round(number, DECIMALS)


def all_rounded(numbers: Iterable[float | None]) -> list[float | None]:
    """Round each number like `rounded`; skip 0 and 1, which most scores are: rounding one takes eight times as long."""
    return [number if number is None or number in _WHOLE else round(number, DECIMALS) for number in numbers]


def latency_of(row: Row) -> int | None:
    """Return the milliseconds until the answer; None if nothing was asked."""
    milliseconds = row.latency.get("total_ms")
    return None if milliseconds is None else round(milliseconds)


def searched_text(texts: Iterable[str | None]) -> str:
    """Return the texts of a case for the search: each on a line, in lower case."""
    return printable("\n".join(" ".join((text or "").split()) for text in texts)).lower()


def decided_changes(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the change of each changed case by key, from the comparison at the end of the run."""
    comparison = metrics.get("comparison") or {}
    changes: dict[str, str] = {}
    for change, name in CHANGES.items():
        for case in comparison.get(name, ()):
            changes.setdefault(case["case_key"] if isinstance(case, Mapping) else case, change)
    changes |= dict.fromkeys(comparison.get("changed_cases", ()), "new")
    return changes


# ── a stored run ──────────────────────────────────────────────────────────────────────────────────────────────


def _cases(run: StoredRun) -> Iterator[FilteredCase]:
    changes = decided_changes(run.finished_metrics)
    layer_of = {name: metric["layer"] for name, metric in run.finished_metrics["metrics"].items()}
    texts: dict[str, tuple[str | None, ...]] = {}
    shared = SharedParts()

    def rows() -> Iterator[Row]:
        for record in run.row_records():
            texts[record["case_key"]] = (record["question"], record["answer"], place_text(record))
            yield Row.of(record, shared)

    for row in cases_of(rows()):
        text = searched_text((case_id(row.key), *texts[row.key], why_text(row)))
        yield FilteredCase(row, changes.get(row.key, UNCHANGED), layers_of(row, layer_of), text)


def _holds(case: FilteredCase, condition: Condition) -> bool:
    match condition:
        case HasText(text):
            return text in case.text
        case HasId(text):
            return text in printable(case_id(case.row.key))
        case IsOneOf(word, values):
            return not values.isdisjoint(case.values(word))
        case HasFallen(metric):
            return metric in case.falls
        case _:
            number = case.number(condition.name)
            return number is not None and COMPARISONS[condition.sign](number, condition.limit)
