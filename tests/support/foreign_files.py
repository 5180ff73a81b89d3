"""Test sets as people bring them, and their cases."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.exchange.formats import ReadOptions, read_other
from pytest_rageval.model import NOWHERE, EvalCase

FOREIGN = Path(__file__).parent.parent / "data/frozen-input/foreign"


def read(path: Path, **options) -> list[EvalCase]:
    records = read_other(path, path.name, options=ReadOptions(**options)).cases
    return [case_from_record(dict(record), NOWHERE)[0] for record in records]


def read_rows(folder: Path, *rows: object, name: str = "rows.json", **options) -> list[EvalCase]:
    path = folder / name
    path.write_text(json.dumps(list(rows)), encoding="utf-8")
    return read(path, **options)
