"""Golden files in the forms that RAG projects keep them: each is read with all that it says, or a question is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cli.cases import cases as cases_command
from pytest_rageval.model import NOWHERE, EvalCase, Json

pytestmark = pytest.mark.reliability("case files", "golden files of other projects")
FILES = Path(__file__).parent.parent / "data/golden_files"
RIGHT: dict[str, Any] = json.loads((FILES / "right.json").read_text("utf-8"))
_HASH = re.compile(r"[0-9a-f]{12}")


@pytest.mark.parametrize("name", RIGHT)
def test_a_golden_file_is_read_as_its_project_means_it(name: str, tmp_path: Path):
    right = RIGHT[name]
    output = tmp_path / "cases.jsonl"
    ended = CliRunner().invoke(cases_command, ["convert", str(_file(name, tmp_path)), "-o", str(output)])
    said = ended.output + str(ended.exception or "")
    for words in right.get("says", ()):
        assert words in said
    for words in right.get("hides", ()):
        assert words not in said
    if "cases" not in right:
        assert not output.exists(), said
        return
    assert output.exists(), said
    read = [case_from_record(json.loads(line), NOWHERE)[0] for line in output.read_text("utf-8").splitlines()]
    ignored = right.get("ignore", ())
    content = [{name: part for name, part in _content(case).items() if name not in ignored} for case in read]
    assert content == right["cases"]


def _content(case: EvalCase) -> dict[str, Json]:
    """Return what a case says: the id unless it is a hash, and each part of the gold that it has."""
    gold = case.gold
    supports = gold.supports or ()
    parts: dict[str, Json] = {
        "id": "" if _HASH.fullmatch(case.id) else case.id,
        "answers": list(gold.answers or ()),
        "facts": list(gold.key_facts or ()),
        "places": [str(place) for place in supports],
        "snippets": [snippet for place in supports for snippet in place.snippets],
        "chunk_ids": [] if gold.relevance else list(gold.chunk_ids or ()),
        "relevance": dict(gold.relevance or {}),
        "contexts": list(case.contexts or ()),
    }
    content = {name: value for name, value in parts.items() if value}
    if not case.answerable:
        content["answerable"] = False
    return content


def _file(name: str, folder: Path) -> Path:
    """Return the file; one of a binary format is written from its rows, which stand in the data as JSON."""
    if name.endswith(".yaml"):
        pytest.importorskip("yaml")
    if name.endswith(".xlsx"):
        return _workbook(_rows(name), folder / name)
    if name.endswith(".parquet"):
        return _parquet(_rows(name), folder / name)
    return FILES / name


def _rows(name: str) -> Any:
    return json.loads((FILES / f"{name}.json").read_text("utf-8"))


def _workbook(sheets: Any, path: Path) -> Path:
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for title, rows in (sheets if isinstance(sheets, dict) else {"Sheet1": sheets}).items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def _parquet(rows: list[dict[str, Json]], path: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    return path
