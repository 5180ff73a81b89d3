"""A workbook is bounded before it is unpacked: by bytes, cells, columns and shared strings, in little memory."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import python

from pytest_rageval.cases.exchange.tables import workbook_as_csv
from pytest_rageval.errors import CaseError

pytestmark = pytest.mark.reliability("case files", "bombs in workbooks")

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed (pip install -e '.[dev]')")

SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
NS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
UPLOAD_BYTES = 20_000_000
LONGEST_KB = 400_000
"""Memory of the process that reads a workbook; one that nothing bounds takes ten times as much."""


def a_workbook(path: Path, **members: str | bytes) -> Path:
    """A real workbook with some of its members replaced: `sheet`, `strings`, `styles`."""
    book, file = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["question", "answer"])
    book.active.append(["Why?", "So"])
    book.save(file)
    names = {"sheet": SHEET, "strings": STRINGS, "styles": "xl/styles.xml"}
    replaced = {names[short]: content for short, content in members.items()}
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        kept = {member: old.read(member) for member in old.namelist()}
        for member, content in (kept | replaced).items():
            new.writestr(member, content)
    return path


def a_sheet(rows: str, dimension: str = "A1:B2") -> str:
    return f'{HEAD}<worksheet {NS}><dimension ref="{dimension}"/><sheetData>{rows}</sheetData></worksheet>'


def numbered(count: int, cell: str) -> str:
    return "".join(f'<row r="{row}">{cell.replace("#", str(row))}</row>' for row in range(1, count + 1))


WIDE = numbered(20_000, '<c r="A#"><v>1</v></c>')
BOMBS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "zeros": (lambda: {"strings": b" " * 300_000_000}, "bytes unpacked, expected at most 64,000,000"),
    "styles": (
        lambda: {"styles": b" " * 30_000_000},
        "bytes in 'xl/styles.xml' unpacked, expected at most 8,000,000",
    ),
    "cells": (
        lambda: {"sheet": a_sheet(numbered(1, "<c/>" * 3_000_000))},
        "cells unpacked, expected at most 2,000,000",
    ),
    "cells of another prefix": (
        lambda: {"sheet": a_sheet("<x:c />" * 3_000_000)},
        "cells unpacked, expected at most 2,000,000",
    ),
    "strings": (
        lambda: {"strings": f"{HEAD}<sst {NS}>{'<si/>' * 2_000_000}</sst>"},
        "shared strings unpacked, expected at most 1,000,000",
    ),
    "last column": (
        lambda: {"sheet": a_sheet(numbered(20_000, '<c r="XFD#"><v>1</v></c>'))},
        "16,384 columns unpacked, expected at most 1,000",
    ),
    "no column": (lambda: {"sheet": a_sheet("<row><c t='n' r='ZZZZZZ1'><v>1</v></c></row>")}, "columns unpacked"),
    "rows": (
        lambda: {"sheet": a_sheet('<row r="9000000"><c r="A9000000"><v>1</v></c></row>', "A1:A9000000")},
        "more than 50,000 rows",
    ),
    "filled rows": (lambda: {"sheet": a_sheet(WIDE, "A1:ALL20000")}, "cells unpacked, expected at most 2,000,000"),
    "entities": (
        lambda: {"sheet": f'<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet {NS}/>'},
        "holds a document type",
    ),
    "utf-16": (
        lambda: {"sheet": a_sheet("<c/>" * 9).replace("UTF-8", "UTF-16").encode("utf-16")},
        "is not written in UTF-8",
    ),
}
READ = """
import json, re, sys
from pathlib import Path
from pytest_rageval.cases.exchange.tables import workbook_as_csv
from pytest_rageval.errors import CaseError
try:
    text = workbook_as_csv(Path(sys.argv[1]), "big.xlsx", {most}, 50_000)
except CaseError as error:
    text = str(error)
# Not ru_maxrss, which begins with that of the process that this one was forked from.
status = Path("/proc/self/status").read_text()
print(json.dumps([text[:300], int(re.search(r"VmHWM:\\s+(\\d+)", status)[1])]))
"""


@pytest.mark.child_process
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_little_memory_with_the_limit_that_it_breaks(tmp_path: Path, bomb: str):
    members, said = BOMBS[bomb]
    path = a_workbook(tmp_path / "big.xlsx", **members())
    assert path.stat().st_size < 1_000_000
    text, memory = json.loads(python("-c", READ.format(most=UPLOAD_BYTES), path).stdout)
    assert text.startswith("big.xlsx: ")
    assert said in text
    assert memory < LONGEST_KB


def test_declared_columns_that_hold_nothing_cost_nothing(tmp_path: Path):
    path = a_workbook(tmp_path / "wide.xlsx", sheet=a_sheet(WIDE, "A1:XFD20000"))
    text = workbook_as_csv(path, "wide.xlsx", UPLOAD_BYTES, 50_000)
    assert len(text.splitlines()) == 20_000
    assert len(text) < 100_000


def test_a_size_that_lies_is_found_out(tmp_path: Path):
    path = a_workbook(tmp_path / "lies.xlsx", sheet=a_sheet(WIDE))
    data = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        size = file.getinfo(SHEET).file_size
    path.write_bytes(data.replace(struct.pack("<L", size), struct.pack("<L", 1000)))
    with pytest.raises(CaseError, match=r"lies\.xlsx: no workbook that can be read"):
        workbook_as_csv(path, "lies.xlsx", UPLOAD_BYTES, 50_000)


def test_an_ordinary_workbook_is_read(tmp_path: Path):
    path = a_workbook(tmp_path / "plain.xlsx")
    assert workbook_as_csv(path, "plain.xlsx", UPLOAD_BYTES, 10) == "question,answer\nWhy?,So\n"


@pytest.mark.parametrize("number", ["1E400", "-1E400"])
def test_a_number_that_no_sheet_can_show_is_a_blank_cell_and_costs_no_other(tmp_path: Path, number: str):
    texts = [f'<c r="{at}" t="inlineStr"><is><t>{text}</t></is></c>' for at, text in (("A1", "question"), ("B1", "n"))]
    cells = f'<c r="A2" t="inlineStr"><is><t>Why?</t></is></c><c r="B2"><v>{number}</v></c>'
    rows = f'<row r="1">{"".join(texts)}</row><row r="2">{cells}</row>'
    sheet = f"{HEAD}<worksheet {NS}><sheetData>{rows}</sheetData></worksheet>"
    path = a_workbook(tmp_path / "book.xlsx", sheet=sheet)
    assert workbook_as_csv(path, "book.xlsx", UPLOAD_BYTES, 100) == "question,n\nWhy?,\n"
