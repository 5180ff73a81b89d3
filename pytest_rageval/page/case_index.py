"""The columns of a page's case list: what its rows show and its filter asks, small enough to read at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from pytest_rageval.compare.case_filter import all_rounded, case_file, group_of, latency_of, layers_of, tags_of
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.page.data_blocks import TEXTS, DataBlocks, level_of
from pytest_rageval.page.page_run import PageRun
from pytest_rageval.page.run_cases import ListedCase
from pytest_rageval.runs.row import Row
from pytest_rageval.text import printable


def case_columns(page: PageRun) -> dict[str, Any]:
    """The index block: a list of values by column, names by number where they repeat."""
    cases = page.cases
    tags = _Tags()
    layers = list(LAYERS)
    layer_of = {name: metric["layer"] for name, metric in page.metrics["metrics"].items()}
    return {
        "run": page.run_id,
        "compared": page.compared is not None,
        "both": page.has_both_sides,
        "id": [printable(case.id) for case in cases],
        **_coded("file", [case_file(case.key) for case in cases]),
        **_coded("outcome", [case.row.outcome for case in cases]),
        **_coded("change", [case.change for case in cases]),
        **_group("category", cases),
        **_group("difficulty", cases),
        **_group("domain", cases),
        "tag": [tags.codes_of(case.row) for case in cases],
        "tags": tags.names,
        "layer": [sum(1 << layers.index(layer) for layer in layers_of(case.row, layer_of)) if case.row.failed else 0
                  for case in cases],
        "layers": layers,
        **_coded("fallen", [case.fallen or "" for case in cases]),
        "drop": all_rounded(case.drop for case in cases),
        "widths": page.widths,
        "level": all_rounded(case.level for case in cases),
        "latency": [latency_of(case.row) for case in cases],
    }  # fmt: skip


class _Tags:
    """Tags by number, in the order in which they were first met."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}
        self._sets: dict[Hashable, list[int]] = {}

    def codes_of(self, row: Row) -> list[int]:
        """The numbers of a case's tags; worked out once for all cases with the same."""
        source = row.groups["tag"], row.failed
        codes = self._sets.get(source)
        if codes is None:
            codes = self._sets[source] = [self._code(tag) for tag in tags_of(row)]
        return codes

    def _code(self, tag: str) -> int:
        if tag not in self._codes:
            self._codes[tag] = len(self.names)
            self.names.append(printable(tag))
        return self._codes[tag]


def _coded(column: str, values: Iterable[str]) -> dict[str, Any]:
    """A column of numbers, and under its plural the names that they stand for."""
    codes: dict[str, int] = {}
    column_values = [codes.setdefault(value, len(codes)) for value in values]
    return {column: column_values, f"{column}s": [printable(name) for name in codes]}


def _group(group: str, cases: Sequence[ListedCase]) -> Mapping[str, Any]:
    return _coded(group, [group_of(case.row, group) for case in cases])


def add_texts(blocks: DataBlocks, cases: Sequence[ListedCase]) -> list[int]:
    """Questions, answers, reasons and places in blocks of their own: only rows in sight and words to find need them."""
    rows = [
        [printable(text) for text in (case.texts.question, case.texts.answer, case.why, case.texts.place)]
        for case in cases
    ]
    return blocks.add_parts(rows, TEXTS, level_of(len(cases)))


def add_scores(blocks: DataBlocks, page: PageRun) -> dict[str, int]:
    """A block a metric with the score of each case, null where it has none."""
    level = level_of(len(page.cases))
    return {name: blocks.add(all_rounded(scores), level) for name, scores in page.score_columns.items()}


def add_falls(blocks: DataBlocks, page: PageRun) -> dict[str, int]:
    """A block a metric that fell in some case: the numbers of these cases, the largest fall first."""
    return {name: blocks.add([fall.number for fall in falls]) for name, falls in page.falls.items()}
