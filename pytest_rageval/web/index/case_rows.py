"""Cases as rows of the index: what lists show and filters ask, control characters as they are shown."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_filter import (
    all_rounded,
    case_file,
    decided_changes,
    group_of,
    latency_of,
    layers_of,
    searched_text,
    tags_of,
    why_text,
)
from pytest_rageval.comparison.filter_language import DECIMALS, WORDS
from pytest_rageval.comparison.verdicts import renamed_metrics
from pytest_rageval.render.html.page_run import PageRun, compared_side
from pytest_rageval.render.html.run_cases import Flips, FullTexts, ListedCase, falls_by_metric, listed_cases
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import Row
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable


@dataclass(frozen=True)
class CaseListing:
    """The cases of a run, the worst first.

    falls          by a case's number in the list the metrics in which it fell
    layer_of       by metric
    is_compared    changes and falls are known
    compared_with  the run that they are against, or would be; None without one
    """

    cases: Sequence[ListedCase]
    full_texts: FullTexts
    falls: Mapping[int, Sequence[str]]
    layer_of: Mapping[str, str]
    is_compared: bool
    compared_with: str | None


def read_listing(run: StoredRun, baseline: Path) -> CaseListing:
    """Read the cases of a run; SettingsError where a file of it is damaged."""
    return _of_unfinished(run) if run.metrics is None else _of_finished(run, baseline)


def listing_of(page: PageRun, full_texts: FullTexts | None = None) -> CaseListing:
    """The cases of a page that was read already; without `full_texts` words are looked for in what rows show."""
    layer_of = {name: metric["layer"] for name, metric in page.metrics["metrics"].items()}
    compared_with = page.before.run_id if page.before else None
    falls, is_compared = _falls(page.falls), page.compared is not None
    return CaseListing(page.cases, full_texts or {}, falls, layer_of, is_compared, compared_with)


def _of_finished(run: StoredRun, baseline: Path) -> CaseListing:
    metrics = run.finished_metrics
    comparison = metrics.get("comparison")
    is_compared = bool(comparison and comparison["compared"])
    side = Side(run.run_id, metrics, None if run.has_records else run.scores, run.config, run)
    other = compared_side(run, run.path.parent.parent, baseline) if is_compared else None
    before = other.scores.without(metrics["comparison"].get("changed_cases", ())) if other and other.scores else None
    names = renamed_metrics(other, side) if other else {}
    changes = decided_changes(metrics) if is_compared else {}
    full_texts: FullTexts = {}
    cases = listed_cases(side, _flips(changes), before, names, full_texts)
    return CaseListing(
        cases,
        full_texts,
        _falls(falls_by_metric(cases, before.cases, metrics["metrics"], names)) if before else {},
        {name: metric["layer"] for name, metric in metrics["metrics"].items()},
        is_compared,
        comparison.get("baseline_run_id") if comparison else None,
    )


def _of_unfinished(run: StoredRun) -> CaseListing:
    """Cases of a run without aggregates, as far as they are recorded: compared with none."""
    registry = registry_of(run)
    names = [name for name in run.config.get("metrics", ()) if str(name).partition("@")[0] in registry]
    metrics = {name: registry[name.partition("@")[0]] for name in names}
    scales = {name: {"scale": metric.scale, "better": metric.better} for name, metric in metrics.items()}
    side = Side(run.run_id, {"metrics": scales, "volatile": {}}, None, run.config, run)
    full_texts: FullTexts = {}
    cases = listed_cases(side, Flips(), None, {}, full_texts)
    layers = {name: metric.layer for name, metric in metrics.items()}
    return CaseListing(cases, full_texts, {}, layers, is_compared=False, compared_with=None)


def _flips(changes: Mapping[str, str]) -> Flips:
    return Flips(*(frozenset(key for key, change in changes.items() if change == name) for name in Flips._fields))


def _falls(falls: Mapping[str, Iterable[Any]]) -> dict[int, list[str]]:
    """The metrics in which a case fell, by its number in the list."""
    by_case: dict[int, list[str]] = {}
    for metric, fallen in falls.items():
        for fall in fallen:
            by_case.setdefault(fall.number, []).append(metric)
    return by_case


SEPARATOR = "\x1f"
"""Stands between, before and behind the tags of a case; `printable` leaves none in a text."""
CASE_COLUMNS = ("number", "key", "id", "file", "outcome", "change", "category", "difficulty", "domain", "tags",
                "layers", "falls", "latency", "fall", "level", "fallen", "question", "answer", "why", "place",
                "trials")  # fmt: skip
"""Before those of the scores, s0, s1, …, one a metric."""


class RowMaker:
    """The rows of a table from the cases of a listing; what repeats is made once, which halves the time.

    `values` holds afterwards, by word of the filter language, what the cases have.
    """

    def __init__(self, listing: CaseListing, metrics: Sequence[str]) -> None:
        self._listing, self._metrics = listing, metrics
        self.values: dict[str, set[str]] = {name: set() for name in WORDS if name != "id"}
        self._words: dict[str, dict[str, str]] = {name: {} for name in WORDS}
        self._tags: dict[Hashable, str] = {}
        self._layers: dict[Hashable, str] = {}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        for number, case in enumerate(self._listing.cases):
            yield self._row(number, case)

    def texts(self) -> Iterator[str]:
        """What words are looked for in, a text a case."""
        full_texts = self._listing.full_texts
        for case in self._listing.cases:
            question, answer = full_texts.get(case.key) or (case.texts.question, case.texts.answer)
            yield searched_text((case.id, question, answer, why_text(case.row), case.texts.place))

    def _row(self, number: int, case: ListedCase) -> tuple[Any, ...]:
        row, texts = case.row, case.texts
        groups = [self._word(group, group_of(row, group)) for group in ("category", "difficulty", "domain")]
        return (
            number, case.key, printable(case.id), self._word("file", case_file(case.key)),
            self._word("outcome", row.outcome), self._word("changed", case.change), *groups,
            self._tags_of(row), self._layers_of(row), _joined(self._listing.falls.get(number, ())),
            latency_of(row), round(case.drop, DECIMALS), round(case.level, DECIMALS), case.fallen,
            *map(printable, (texts.question, texts.answer, case.why, texts.place)), texts.trials,
            *all_rounded(map(row.scores.get, self._metrics)),
        )  # fmt: skip

    def _word(self, name: str, word: str) -> str:
        shown = self._words[name].get(word)
        if shown is None:
            shown = self._words[name][word] = printable(word)
            self.values[name].add(shown)
        return shown

    def _tags_of(self, row: Row) -> str:
        source = row.groups["tag"], row.failed
        joined = self._tags.get(source)
        if joined is None:
            tags = list(map(printable, tags_of(row)))
            joined = self._tags[source] = _joined(tags)
            self.values["tag"].update(tags)
        return joined

    def _layers_of(self, row: Row) -> str:
        joined = self._layers.get(row.failed)
        if joined is None:
            layers = layers_of(row, self._listing.layer_of)
            joined = self._layers[row.failed] = _joined(layers)
            self.values["layer"].update(layers)
        return joined


def _joined(words: Iterable[str]) -> str:
    joined = SEPARATOR.join(words)
    return f"{SEPARATOR}{joined}{SEPARATOR}" if joined else ""
