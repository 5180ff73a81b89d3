"""The table of a run's results: its columns, and the cells of some cases, read from their records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_list import CaseList
from pytest_rageval.errors import SettingsError
from pytest_rageval.export.csv_format import as_text
from pytest_rageval.export.export_source import ExportSource, flat, look_through
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.model.case_fields import CATEGORY, PROMINENT_NAMES
from pytest_rageval.runs.ratings import Rating, read_ratings, with_rating
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS
from pytest_rageval.runs.records.record_files import record_at, record_paths
from pytest_rageval.text import cut, printable, score_text

TEXTS = ("question", "answer", "reference")
RATING = ("thumb", "note")
MORE = (*RATING, CATEGORY, "tags", *(name for name in PROMINENT_NAMES if name != CATEGORY), *OPERATION_UNITS)
EXPLANATION = "explanation"
LONGEST = 280
"""Characters of a text in a cell."""
Cell = str | float | bool | int | None


class ShownCell(NamedTuple):
    """A cell of the table: its column, its text, and whether a threshold of its metric failed."""

    column: str
    text: str
    is_failed: bool = False


@dataclass(frozen=True)
class ResultsTable:
    """The results of a run, finished or not."""

    run: StoredRun
    listed: CaseList

    @property
    def metrics(self) -> list[str]:
        """Return the names of the metrics that have a score in any case."""
        return sorted(self.listed.scores)

    @cached_property
    def source(self) -> ExportSource:
        """Return the records, in full if the run keeps observations."""
        has_observations = bool(record_paths(self.run.path, OBSERVATIONS))
        return look_through(self.run, full_text=has_observations)

    @cached_property
    def gated(self) -> list[str]:
        """Return the metrics with a configured threshold, or else all with a gate: those of the most cases first."""
        config = self.run.config
        aggregates = (self.run.metrics or {}).get("metrics", {})
        by_cases = sorted(self.metrics, key=lambda name: -aggregates.get(name, {}).get("n_scored", 0))
        # The settings hold the gates that a person wrote, the configuration of the run all of them.
        for configured in (config.get("settings") or {}, config):
            gates = (configured.get("gates") or {}).get("case") or ()
            gated = {str(gate).split()[0] for gate in gates if str(gate).strip()}
            found = [name for name in by_cases if name in gated or name.partition("@")[0] in gated]
            if found:
                return found
        return []

    @property
    def choices(self) -> list[str]:
        """Return all columns that can be chosen, besides outcome and id."""
        # A run may score operations, too.
        return list(dict.fromkeys([*TEXTS, *self.metrics, EXPLANATION, *MORE]))

    @property
    def usual(self) -> list[str]:
        """Return the columns that are shown unless others are chosen: those of ratings once there are any."""
        ratings = RATING if self.ratings else ()
        return [*TEXTS, *self.gated, EXPLANATION, *ratings]

    @property
    def ratings(self) -> Mapping[str, Rating]:
        """Return the thumbs and notes of the run, as the file has them now; none if it cannot be read."""
        try:
            return read_ratings(self.run.path)
        except SettingsError:
            return {}

    def columns(self, chosen: Sequence[str]) -> list[str]:
        """Return the chosen columns in their usual order, the usual ones if none of them exists."""
        return [name for name in self.choices if name in chosen] or self.usual

    def rows(self, keys: Sequence[str], columns: Sequence[str]) -> dict[str, list[ShownCell]]:
        """Return the cells of some cases, from their records alone, whose places are known."""
        places = self.listed.places
        ratings = self.ratings
        records = {key: with_rating(record_at(places[key]), ratings) for key in keys if key in places}
        return {key: [_shown(record, name) for name in columns] for key, record in records.items()}

    def objects(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Return what the API says of some cases, in their order."""
        found: dict[str, dict[str, Any]] = {}
        for record in self._records({*keys}):
            cells = {name: cell_value(record, name) for name in (*TEXTS, EXPLANATION, *MORE)}
            scores = dict(record["scores"])
            found[record["case_key"]] = {
                "id": record["test_case_id"],
                "outcome": record["outcome"],
                **cells,
                "scores": scores,
            }
        return [found[key] for key in keys if key in found]

    def _records(self, keys: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the record of the first trial of each of these cases."""
        places = {key: place for key, place in self.source.places.items() if key[0] in keys and key[1] == 0}
        yield from replace(self.source, places=places).records()

    def narrowed(self, keys: Collection[str]) -> ExportSource:
        """Return the records of these cases alone, all trials."""
        return replace(self.source, places={key: at for key, at in self.source.places.items() if key[0] in keys})

    def cells(self, keys: Sequence[str], columns: Sequence[str]) -> Iterator[list[Cell]]:
        """Yield the names of the columns, then their uncut values for each of these cases."""
        yield ["id", "outcome", *columns]
        for record in self._records({*keys}):
            values = [cell_value(record, name) for name in columns]
            yield [record["test_case_id"], record["outcome"], *values]


def _shown(record: Mapping[str, Any], column: str) -> ShownCell:
    value = cell_value(record, column)
    is_failed = any(gate["metric"] == column for gate in record["verdict"]["failed_gates"])
    if column in OPERATION_UNITS:
        text = "" if value is None else score_text(float(value), OPERATION_UNITS[column])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = score_text(value)
    else:
        text = cut(str(value or ""), LONGEST)
    return ShownCell(column, text, is_failed)


def cell_value(record: Mapping[str, Any], column: str) -> Cell:
    """Return the value of a column: a text, a score, or None."""
    if column in record["scores"]:
        score: float = record["scores"][column]
        return score
    if column == EXPLANATION:
        return explanation_of(record)
    name = {"reference": "reference_answers"}.get(column, column)
    value: Cell = flat(record).get(name)
    return value


def explanation_of(record: Mapping[str, Any]) -> str:
    """Return why a case failed, and what the judge said of the failed metrics, or of all."""
    failed = {gate["metric"] for gate in record["verdict"]["failed_gates"]}
    judged: dict[str, Any] = dict(record.get("judgements") or {})
    judged |= {name: record[name] for name in ("groundedness", "correctness") if record.get(name)}
    reasons = {name: str(each["reasoning"]) for name, each in judged.items() if each and each.get("reasoning")}
    of_failed = {name: text for name, text in reasons.items() if name in failed}
    parts = [record.get("reason")]
    parts += [f"{name}: {text}" for name, text in (of_failed or reasons).items()]
    return " · ".join(filter(None, parts))


def workbook(rows: Iterable[Sequence[Cell]]) -> bytes:
    """Return the rows as an XLSX file, without texts that a spreadsheet would run as formulas."""
    from openpyxl import Workbook  # here, because only this export needs it

    book = Workbook(write_only=True)
    sheet = book.create_sheet("results")
    for row in rows:
        sheet.append([printable(as_text(cell)) if isinstance(cell, str) else cell for cell in row])
    data = BytesIO()
    book.save(data)
    return data.getvalue()
