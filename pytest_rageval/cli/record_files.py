"""Files of records that verbs write: JSON lines, in one step, and never over a file that nobody gave up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.model import Json


def check_can_be_written(path: Path, *, force: bool) -> None:
    """Raise SettingsError if the name is not one of JSON lines, or if the file exists and `force` is not given."""
    if path.suffix != ".jsonl":
        raise SettingsError(f"{path}: what is written is JSON lines; choose a name that ends with .jsonl")
    if path.exists() and not force:
        raise SettingsError(f"{path}: there already; choose another name, or replace it with --force")


def write_records(file: Path, records: Iterable[Mapping[str, Json]]) -> None:
    write_lines(file, map(record_line, records))


def record_line(record: Mapping[str, Json]) -> str:
    return json.dumps(record, ensure_ascii=False)
