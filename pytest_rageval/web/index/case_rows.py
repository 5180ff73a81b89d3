"""Cases as rows of the index: what lists show and filters ask, control characters as they are shown."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from pytest_rageval.comparison.case_filter import (
    all_rounded,
    case_file,
    group_of,
    latency_of,
    layers_of,
    searched_text,
    tags_of,
    why_text,
)
from pytest_rageval.comparison.filter_language import DECIMALS, WORDS
from pytest_rageval.render.html.run_cases import ListedCase
from pytest_rageval.runs.row import Row
from pytest_rageval.text import printable
from pytest_rageval.web.index.case_listing import CaseListing

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
