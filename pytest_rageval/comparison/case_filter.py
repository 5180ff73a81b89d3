"""The filter language of cases over a stored run, and what it asks of each case."""

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
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "=": operator.eq,
}  # fmt: skip

_WHOLE = (0, 1)


class FilteredCase(NamedTuple):
    """What a filter asks of one case: its row, what became of it, the layers of its failed gates, its texts.

    falls, drop, level  the metrics in which it fell, the largest fall and the mean score, where they are known
    """

    row: Row
    change: str
    layers: tuple[str, ...]
    text: str
    falls: Collection[str] = ()
    drop: float | None = None
    level: float | None = None

    def values(self, word: str) -> tuple[str, ...]:
        """What the case has for one of the words that are compared as a whole."""
        return tuple(map(printable, self.raw_values(word)))

    def raw_values(self, word: str) -> tuple[str, ...]:
        """Return the same with the control characters that they hold."""
        match word:
            case "outcome":
                return (self.row.outcome,)
            case "changed":
                return (self.change,)
            case "file":
                return (case_file(self.row.key),)
            case "layer":
                return self.layers
            case "tag":
                return tuple(tags_of(self.row))
            case _:
                return (group_of(self.row, word),)

    def number(self, name: str) -> float | None:
        """A score, the milliseconds that the answer took, a fall or a level, as a filter compares them."""
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
    """Keys of the cases of a finished run that meet all terms; a SettingsError names the `option` and the term."""
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
    run_id: str, cases: Sequence[FilteredCase], is_compared: bool, numbers: Collection[str] = (LATENCY,),
    fallen: Collection[str] | None = None,
) -> FilterVocabulary:  # fmt: skip
    """What the words of a filter mean in these cases."""
    values = {
        word: set(map(printable, {value for case in cases for value in case.raw_values(word)}))
        for word in ("outcome", "changed", *GROUPS, "file", "layer")
    }
    metrics = set().union(*(case.row.scores for case in cases))
    return FilterVocabulary(run_id, values, metrics, numbers, fallen, is_compared=is_compared)


def meets(case: FilteredCase, asked: Filter) -> bool:
    """Check whether a case meets a term."""
    return _holds(case, asked.condition) != asked.is_negated


# ── what is asked of a case ───────────────────────────────────────────────────────────────────────────────────


def case_id(key: str) -> str:
    """Return the part of a case key by which people know the case."""
    return key.partition("::")[2] or key


def case_file(key: str) -> str:
    """The file that the key of a case names; '' where it names none."""
    return key.partition("::")[0] if "::" in key else ""


def group_of(row: Row, group: str) -> str:
    """Category, difficulty or domain of a case; '' where it has none."""
    return next(iter(row.groups[group]), "")


def tags_of(row: Row) -> list[str]:
    """Tags of the case, and those of its failed gates."""
    return list(dict.fromkeys([*row.groups["tag"], *(tag for _, tag in row.failed)]))


def layers_of(row: Row, layer_of: Mapping[str, str]) -> tuple[str, ...]:
    """Layers of the metrics whose gates failed."""
    return tuple(dict.fromkeys(layer_of[name] for name, _ in row.failed if name in layer_of))


def why_text(row: Row) -> str:
    """Failed gates or the error; '' of a case that passed."""
    if row.outcome == "passed":
        return ""
    kind = f"{row.error_kind}: " if row.error_kind else ""
    return kind + (row.message or row.outcome)


def place_text(record: Mapping[str, Any]) -> str:
    """File and line of the case of a record; '' where it has none."""
    source = record.get("source") or {}
    return f"{source['file']}:{source['line']}" if source.get("file") else ""


def rounded(number: float | None) -> float | None:
    """A score, drop or level as a filter compares it."""
    return None if number is None else round(number, DECIMALS)


def all_rounded(numbers: Iterable[float | None]) -> list[float | None]:
    """Each as `rounded` has it. 0 and 1, as most scores are, stay as they are: rounding one costs eight times that."""
    return [number if number is None or number in _WHOLE else round(number, DECIMALS) for number in numbers]


def latency_of(row: Row) -> int | None:
    """Milliseconds until the answer was there; None where nothing was asked."""
    milliseconds = row.latency.get("total_ms")
    return None if milliseconds is None else round(milliseconds)


def searched_text(texts: Iterable[str | None]) -> str:
    """Texts of a case in the form in which words are looked for: each on a line, in small letters."""
    return printable("\n".join(" ".join((text or "").split()) for text in texts)).lower()


def decided_changes(metrics: Mapping[str, Any]) -> dict[str, str]:
    """What became of each case that changed, by key, as the comparison at the end of the run says."""
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
