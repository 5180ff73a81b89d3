"""Lines of a text file, read in pieces of bounded size; bytes that are not UTF-8 are reported."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pytest_rageval.io.messages import MOST_OF_A_RECORD, Report, describe
from pytest_rageval.io.strict_json import Positions, StrictJsonError, parse
from pytest_rageval.model import Json

BUFFER = 1 << 20
"""Bytes read at a time: with the usual 8 kB reading takes half as long again."""
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # a UTF-32 mark begins with one of them, or with a NUL


class FileLine(NamedTuple):
    """One physical line: its text with its line end, whether it is UTF-8 within the size limit, and its first byte."""

    number: int
    text: str
    is_sound: bool
    start: int


def read_lines(path: Path, report: Report, max_bytes: int) -> Iterator[FileLine]:
    """Yield the lines of a UTF-8 file from number 1, without byte order mark. Lines end with LF or CRLF only.

    Problems, including a file that cannot be opened or read, are reported and never raised.
    """
    try:
        if not path.is_file():
            report.add_whole("is not a regular file" if path.exists() else "does not exist")
            return
        with path.open("rb", buffering=BUFFER) as file:
            yield from lines_of_stream(file, report, max_bytes)
    except OSError as error:
        report.add_whole(f"cannot be read: {error.strerror or type(error).__name__}")


def lines_of_stream(file: BinaryIO, report: Report, max_bytes: int) -> Iterator[FileLine]:
    """Yield the lines of an open file or of bytes in memory; see `read_lines`."""
    offset = number = 0
    # Two more: the line end is not counted.
    while raw := file.readline(max_bytes + 2):
        number += 1
        start = offset
        offset = offset + len(raw)
        if number == 1:
            if raw.startswith(_WIDE) or b"\0" in raw[:4]:
                report.add_unread(1, 1, f"byte {raw[0]:#04x} at offset 0: UTF-16, UTF-32 or no text; save it as UTF-8")
                return
            raw = raw.removeprefix(codecs.BOM_UTF8)
            start = offset - len(raw)
        if raw[:1] in _STRANGE and (strange := _strangeness(raw, number)):
            report.add_unread(number, 1, strange)
            # What follows a conflict or a pointer is no record.
            if not raw.startswith(codecs.BOM_UTF8):
                return
            yield FileLine(number, "", False, start)
            continue
        if len(raw) > max_bytes and len(raw.rstrip(b"\r\n")) > max_bytes:
            report.add_unread(number, 1, f"the line is longer than {max_bytes:,} bytes; shorten it")
            offset += skip_rest(file, raw, max_bytes)
            yield FileLine(number, "", False, start)
            continue
        try:
            yield FileLine(number, raw.decode(), True, start)
        except UnicodeDecodeError as error:
            # In characters, as editors count; up to the bad byte it is UTF-8.
            column = len(raw[: error.start].decode()) + 1
            what = (
                f"byte {raw[error.start]:#04x} at offset {start + error.start:,} is not UTF-8; save the file as UTF-8"
            )
            report.add_unread(number, column, what)
            yield FileLine(number, raw.decode(errors="replace"), False, start)


_STRANGE = frozenset([b"v", b"<", b"\xef"])
"""First bytes of lines that get a closer look."""


def _strangeness(raw: bytes, number: int) -> str:
    """Return what a line shows the file to be instead of what it should be; empty for a usual line."""
    if number == 1 and raw.startswith(b"version https://git-lfs.github.com/spec/"):
        return "is a Git LFS pointer in place of the file; fetch the file with `git lfs pull`"
    if raw.startswith(b"<<<<<<< "):
        remedy = "resolve it, and remove the marks <<<<<<<, ======= and >>>>>>>"
        return f"begins a merge conflict; {remedy}; the rest of the file was not read"
    if raw.startswith(codecs.BOM_UTF8):
        return "begins with a byte order mark inside of the file, as two joined files have it; remove the mark"
    return ""


def skip_rest(file: BinaryIO, raw: bytes, step: int) -> int:
    """Read to the end of a line that begins with this; return the number of bytes read."""
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(step)
        skipped += len(raw)
    return skipped


class JsonRow(NamedTuple):
    """One record and its text on a line; in place of the record the value that its text was read as at once."""

    line: int
    record: dict[str, Json]
    text: str
    value: Any = None
    start: int = 0

    def column_finder(self) -> Positions:
        """Return the object that finds columns of keys and values; slow."""
        return Positions(self.text)


def json_rows(
    lines: Iterator[FileLine], report: Report, read: Callable[[str, int], Any] = lambda _, _number: None
) -> Iterator[JsonRow]:
    """Yield the objects of a JSONL file; report and skip other lines.

    `read` may read the text of a usual line at once; it returns None for all that needs a closer look.
    """
    is_first = True
    for number, line, is_sound, start in lines:
        text = line.rstrip()  # a column past the end of the line would be counted on the next one
        if not text or not is_sound:
            continue
        # One clear message, in place of one for each line of a pretty-printed file.
        if is_first and text.lstrip() in ("{", "["):
            report.add_unread(number, 1, "is JSON over several lines; write one object a line (JSONL)")
            return
        is_first = False
        if (value := read(text, number)) is not None:
            yield JsonRow(number, {}, text, value, start)
            continue
        record = parse_line(number, text, report)
        if isinstance(record, dict):
            yield JsonRow(number, record, text, None, start)


def parse_line(number: int, text: str, report: Report) -> dict[str, Json] | None:
    """Parse a line into an object; return None and report the problem if it is not one."""
    try:
        record = parse(text)
    except StrictJsonError as error:
        _report_oddities(number, error, report)
        return None
    if isinstance(record, dict):
        return record
    remedy = "; write one object a line (JSONL)" if isinstance(record, list) else ""
    report.add_unread(number, 1, f"is {describe(record)}, expected an object{remedy}")
    return None


def _report_oddities(number: int, error: StrictJsonError, report: Report) -> None:
    report.unread += 1
    prefix = "not valid JSON: " if error.kind == "syntax" else ""
    named = error.positions.case_id if error.kind == "strictness" else None
    for offset, message in error.oddities[:MOST_OF_A_RECORD]:
        report.add(number, offset + 1, f"{prefix}{message}", named)
    if (more := len(error.oddities) - MOST_OF_A_RECORD) > 0:
        report.add(number, 1, f"{more:,} more problems of this kind in this line")
