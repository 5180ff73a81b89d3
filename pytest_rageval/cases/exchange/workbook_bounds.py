"""Bounds of a workbook, checked while it is unpacked and before anything of it is read.

A workbook of 400 kB can unpack to gigabytes: by zeros, by millions of cells or shared strings, by a single cell in the
last column, up to which a reader fills every row.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_rageval.errors import CaseError

Cell = TypeVar("Cell")

LARGEST_RATIO = 20
"""How much larger than its upload limit the content of a workbook may be: it is compressed."""
MOST_UNPACKED = 64_000_000
"""Bytes of all members together, unpacked; reading them takes about five times as much memory."""
MOST_OF_A_PART = 8_000_000
"""Bytes of a member that is read as a whole, such as the styles: neither a sheet nor the shared strings."""
MOST_MEMBERS = 1_000
MOST_CELLS = 2_000_000
MOST_STRINGS = 1_000_000
MOST_COLUMNS = 1_000

_BLOCK = 1 << 20
_OVERLAP = 300
_ELEMENT = re.compile(
    rb"<(?:\w{1,40}:)?(?P<kind>c|si|!DOCTYPE|!ENTITY)(?=[\s/>])"
    rb"(?:[^<>]{0,200}?\br=[\"'](?P<column>[A-Z]{1,9}))?"
)
"""A cell with its column, a shared string, or a document type, which no workbook needs."""
_XML = re.compile(r"\.(xml|rels)$", re.IGNORECASE)
_STREAMED = re.compile(r"sharedstrings|worksheets/", re.IGNORECASE)


def check_workbook(path: Path, name: str, most_bytes: int) -> None:
    """Raise CaseError if a workbook would unpack to more than the limits; BadZipFile if it is none."""
    most = min(LARGEST_RATIO * most_bytes, MOST_UNPACKED)
    with zipfile.ZipFile(path) as file:
        members = file.infolist()
        _check(name, "files", len(members), MOST_MEMBERS)
        # The declared sizes first: an honest large workbook is refused before it is unpacked.
        _check(name, "bytes", sum(member.file_size for member in members), most)
        unpacked = 0
        for member in members:
            size = _checked_size(file, member, name, most - unpacked)
            unpacked += size
            _check(name, "bytes", unpacked, most)


def _checked_size(file: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, most: int) -> int:
    """Unpack a member block by block, and return its real size, which may differ from the declared one."""
    is_streamed = _STREAMED.search(member.filename) is not None
    size = 0
    cells = 0
    strings = 0
    end = b""
    with file.open(member) as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            _check(name, "bytes", size, most)
            if not is_streamed:
                _check(name, f"bytes in {member.filename[:100]!r}", size, MOST_OF_A_PART)
            # In UTF-16 the pattern of elements finds none, and so no limit would hold.
            if b"\0" in block and _XML.search(member.filename):
                raise CaseError(f"{name}: is not written in UTF-8; save the sheet as CSV")
            text = end + block
            # An element on the border of two blocks is counted twice; a limit is no exact count.
            for found in _ELEMENT.finditer(text):
                kind = found["kind"]
                if kind.startswith(b"!"):
                    raise CaseError(f"{name}: holds a document type, which no workbook needs; save the sheet as CSV")
                if kind == b"si":
                    strings += 1
                elif kind == b"c":
                    cells += 1
                _check(name, "columns", _number_of(found["column"] or b""), MOST_COLUMNS)
            _check(name, "cells", cells, MOST_CELLS)
            _check(name, "shared strings", strings, MOST_STRINGS)
            end = text[-_OVERLAP:]
    return size


def _number_of(column: bytes) -> int:
    """Return the number of a column by its letters: 1 for A, 27 for AA; 0 without letters."""
    number = 0
    for letter in column:
        number = 26 * number + letter - 64
    return number


def _check(name: str, what: str, number: int, most: int) -> None:
    if number > most:
        raise CaseError(f"{name}: holds {number:,} {what} unpacked, expected at most {most:,}; save the sheet as CSV")


def is_wide(columns: int | None) -> bool:
    """Return True if a sheet declares more columns than are taken: a reader would fill each row up to them."""
    return columns is not None and columns > MOST_COLUMNS


def bounded_rows(rows: Iterable[Sequence[Cell]], name: str, most_rows: int) -> Iterator[Sequence[Cell]]:
    """Yield rows up to a number, and up to a number of cells: a reader fills rows with empty ones."""
    cells = 0
    for number, row in enumerate(rows):
        if number > most_rows:
            raise CaseError(f"{name}: more than {most_rows:,} rows; split it")
        cells += len(row)
        _check(name, "cells", cells, MOST_CELLS)
        yield row
