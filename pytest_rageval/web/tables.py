"""Files as they are uploaded: tables in any encoding and with any separator, workbooks, YAML within bounds."""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.exchange.tables import workbook_as_csv
from pytest_rageval.cases.loading import MAX_LINE_BYTES
from pytest_rageval.errors import CaseError
from pytest_rageval.io.encodings import ENCODINGS, SAMPLE, decoded
from pytest_rageval.io.lines import FileLine, read_lines
from pytest_rageval.io.messages import Report

SEPARATORS = ((",", "commas"), (";", "semicolons"), ("\t", "tabs"))
TABLES = (".csv", ".tsv", ".xlsx")
YAML = (".yaml", ".yml")
SUFFIXES = (*TABLES, ".jsonl", ".json", *YAML)
MOST_YAML, MOST_NESTED = 2_000_000, 30
"""Bytes and levels of a YAML document."""


class TableFormat(NamedTuple):
    """How a CSV file is written: `encoding` is one of ENCODINGS, `separator` one of SEPARATORS."""

    encoding: str = "utf-8"
    separator: str = ","

    @property
    def is_usual(self) -> bool:
        """Return True for UTF-8 with commas, which every program reads."""
        return self == TableFormat()

    @property
    def words(self) -> str:
        return f"{dict(ENCODINGS)[self.encoding]}, cells separated by {dict(SEPARATORS)[self.separator]}"


def chosen_table(encoding: str, separator: str) -> TableFormat | None:
    """Return what a form names, or None if it names no known format."""
    if encoding not in dict(ENCODINGS) or separator not in dict(SEPARATORS):
        return None
    return TableFormat(encoding, separator)


def guess_table(content: bytes) -> TableFormat:
    """Return the most likely format: the encoding of the content, and the separator that its header has most of."""
    encoding, text = decoded(content)
    beginning = content[:SAMPLE].decode("utf-8", "replace") if text is None else text[:SAMPLE]
    header = next((line for line in beginning.splitlines() if line.strip()), "")
    # Separators inside of quoted names separate nothing.
    unquoted = "".join(header.split('"')[::2])
    separator = max(dict(SEPARATORS), key=unquoted.count)
    return TableFormat(encoding, separator)


class Part(NamedTuple):
    """A file of an upload: where it lies, its own name, its suffix, and how it is written if it is CSV."""

    path: Path
    name: str
    suffix: str
    table: TableFormat | None = None
    most_bytes: int = 0
    most_rows: int = 0

    @property
    def is_table(self) -> bool:
        return self.suffix in TABLES

    @property
    def has_lines(self) -> bool:
        """Return True if each row is one line, or begins on a line of its own."""
        return self.is_table or self.suffix == ".jsonl"

    def lines(self, report: Report) -> Iterator[FileLine]:
        """Return the lines of a file, of a workbook as CSV; report bytes of another encoding."""
        if self.suffix != ".xlsx" and (self.table is None or self.table.encoding == "utf-8"):
            return read_lines(self.path, report, MAX_LINE_BYTES)
        written = io.StringIO(self.text(), newline="\n")
        return (FileLine(number, line, True, 0) for number, line in enumerate(written, start=1))

    def text(self) -> str:
        """Return the text of a table, or raise CaseError if it is written otherwise."""
        if self.table is None:
            return workbook_as_csv(self.path, self.name, self.most_bytes, self.most_rows)
        try:
            return self.path.read_bytes().decode(self.table.encoding).removeprefix("\ufeff")
        except UnicodeError:
            words = f"is not {dict(ENCODINGS)[self.table.encoding]}, at least not all of it"
            raise CaseError(f"{self.name}: {words}; choose another encoding, or save it as UTF-8") from None


def check_yaml(part: Part, report: Report) -> None:
    """Report YAML that is slow to read or grows while it is read: large, deep, or with aliases."""
    if part.suffix not in YAML:
        return
    size = part.path.stat().st_size
    if size > MOST_YAML:
        report.add_whole(f"has {size:,} bytes, expected at most {MOST_YAML:,} of YAML; save it as JSON")
        return
    try:
        yaml = import_module("yaml")
    except ImportError:
        return  # the reader names what to install
    depth = 0
    try:
        for event in yaml.parse(part.path.read_text("utf-8", "replace"), Loader=yaml.SafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if isinstance(event, yaml.AliasEvent) or depth > MOST_NESTED:
                report.add(event.start_mark.line + 1, 1, "has an alias or too deep a nesting; save it as JSON")
                return
    except yaml.YAMLError:
        return  # the reader reports it with its line
