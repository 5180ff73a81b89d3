"""What does a file of uploaded answers hold? CSV or JSONL, `id` and an answer record a line.

All that is wrong with a file is said together, each problem with `file:line`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_rageval.errors import CaseError, TargetError
from pytest_rageval.model import Answer, Json
from pytest_rageval.targets.answer_lines import MAX_LINE_BYTES, read_json_lines, strict_json
from pytest_rageval.targets.native_contract import RECORD_FIELDS, answer_from_record
from pytest_rageval.targets.values import Reader, Wrong, free, object_of, plain_json, shown_value, text

_ABOUT: dict[str, Reader[Any]] = {
    "model_name": text,
    "timestamp": lambda value, _: plain_json(value),
    "meta": object_of(free),
}
_TEXT_CELLS = {"id", "answer", "abstain_reason", "system", "model_name", "timestamp"}
_CLAIMS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One line: `id` as written, a case's id or its full key."""

    id: str
    line: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class AnswersFile:
    """The answers of one system, by id as written."""

    shown: str
    system: str | None
    records: Mapping[str, AnswerRecord] = field(default_factory=dict)


def load_answers(path: Path, system: str | None = None, *, shown_as: str | None = None) -> AnswersFile:
    """Read the answers of one system; a file with several needs `system`.

    Raises CaseError with every problem of the file. `shown_as` is how messages name it.
    """
    name = shown_as or path.name
    if path.suffix not in (".csv", ".jsonl"):
        raise CaseError(f"{name}: an answers file is .jsonl or .csv")
    reading = _Reading(name)
    try:
        for line, data, problem in _jsonl_rows(path) if path.suffix == ".jsonl" else _csv_rows(path):
            reading.take(line, data, problem)
    except OSError as error:
        raise CaseError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from None
    return reading.finished(system)


class _Reading:
    """One pass over a file: records by system and id, and everything that is wrong."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._systems: dict[str | None, dict[str, AnswerRecord]] = {}
        self._problems: list[str] = []

    def take(self, line: int, data: dict[str, Json] | None, problem: str) -> None:
        """Add one row, or its problem."""
        where = f"{self._name}:{line}"
        if data is None:
            self._problems.append(f"{where}: {problem}")
            return
        try:
            system, record = _record(data, line, where)
        except Wrong as wrong:
            self._problems.append(f"{where}: {wrong}")
        except TargetError as error:
            self._problems.append(str(error))
        else:
            known = self._systems.setdefault(system, {})
            if record.id in known:
                first = known[record.id].line
                self._problems.append(f"{where}: id {shown_value(record.id)} already has an answer at line {first}")
            else:
                known[record.id] = record

    def finished(self, system: str | None) -> AnswersFile:
        """The answers of the system that is meant; CaseError if there are problems, or no such system."""
        named = sorted(name for name in self._systems if name is not None)
        if named and None in self._systems:
            first = min(record.line for record in self._systems[None].values())
            self._problems.append(f"{self._name}:{first}: has no system, though other lines do; give it one")
        if not self._systems and not self._problems:
            self._problems.append(f"{self._name}: holds no answers")
        listed = ", ".join(named)
        if system is not None and system not in named and self._systems:
            there = f"it has {listed}" if named else "its lines have no field 'system'"
            self._problems.append(f"{self._name}: no system {shown_value(system)}; {there}")
        if system is None and len(named) > 1:
            one = f"answers:{self._name}#{named[0]}"
            self._problems.append(f"{self._name}: holds several systems ({listed}); choose one, as in {one}")
        if self._problems:
            raise CaseError(*self._problems)
        chosen = system if system is not None else next(iter(self._systems))
        return AnswersFile(self._name, chosen, self._systems[chosen])


def _record(data: dict[str, Json], line: int, where: str) -> tuple[str | None, AnswerRecord]:
    """The system and the record of one line; what the fields of a record do not cover goes to `meta`."""
    given = {name: value for name, value in data.items() if value is not None}
    case_id = text(given.pop("id", None), "id")
    if not case_id.strip():
        raise Wrong("id", case_id, "the id of a case")
    system = text(given.pop("system"), "system") if "system" in given else None
    about: dict[str, Any] = {name: read(given.pop(name), name) for name, read in _ABOUT.items() if name in given}
    if not {"answer", "retrieved_chunks"} & data.keys() and "retrieved_chunks" not in (data.get("debug") or {}):
        raise Wrong("answer", None, "'answer' or 'retrieved_chunks'")
    unknown = free({name: given.pop(name) for name in list(given) if name not in RECORD_FIELDS})
    if unknown:
        about["meta"] = {**about.get("meta", {}), **unknown}
    answer = answer_from_record({**about, **given}, where)
    return system, AnswerRecord(case_id, line, answer)


def _jsonl_rows(path: Path) -> Iterator[tuple[int, dict[str, Json] | None, str]]:
    for line in read_json_lines(path):
        yield line.number, line.data, line.problem


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Json] | None, str]]:
    """Rows by the names of the header, empty cells left out; structured cells hold JSON."""
    raw = path.read_bytes()
    try:
        content = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield line, None, f"byte {raw[error.start]:#04x} at offset {error.start:,} is not UTF-8; save it as UTF-8"
        return
    # The limit is global to the csv module; its default of 128 kB is less than the chunks of one answer may take.
    before = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        rows = csv.reader(io.StringIO(content, newline=""), strict=True)
        yield from _cells(rows)
    finally:
        csv.field_size_limit(before)


def _cells(rows: Any) -> Iterator[tuple[int, dict[str, Json] | None, str]]:
    header: list[str] | None = None
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield start, None, f"not valid CSV: {error}"
            return
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = [name.strip() for name in row]
            if problem := _header_problem(header):
                yield start, None, problem
                return
        elif len(row) != len(header):
            yield start, None, f"has {len(row)} cells, the header has {len(header)}"
        else:
            yield start, *_row(dict(zip(header, row, strict=True)))


def _header_problem(header: list[str]) -> str:
    if "id" not in header or not {"answer", "retrieved_chunks"} & set(header):
        return f"the header is {shown_value(','.join(header))}, expected at least id and answer (or retrieved_chunks)"
    twice = {name for name in header if header.count(name) > 1}
    return f"the header names {shown_value(min(twice))} twice" if twice else ""


def _row(cells: dict[str, str]) -> tuple[dict[str, Json] | None, str]:
    data: dict[str, Json] = {}
    for name, cell in cells.items():
        if name == "answer" or not cell.strip():
            continue
        if name == "abstained":
            if cell.strip().lower() not in _CLAIMS:
                return None, f"abstained is {shown_value(cell)}, expected true or false"
            data[name] = _CLAIMS[cell.strip().lower()]
        elif name in _TEXT_CELLS or name not in RECORD_FIELDS | {"meta"}:
            data[name] = cell
        else:
            try:
                data[name] = strict_json(cell.strip())
            except ValueError as error:
                return None, f"{name}: {error}"
    if "answer" in cells:
        if not cells["answer"].strip() and not data.get("abstained"):
            return None, "answer is empty; where the system declined, say so with abstained = true"
        data["answer"] = cells["answer"]
    return data, ""
