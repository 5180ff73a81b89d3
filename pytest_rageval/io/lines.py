"""Lines of a text file, read in pieces of bounded size, with every byte that is not UTF-8 accounted for."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_rageval.io.messages import Report

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # a UTF-32 mark begins with one of them, or with a NUL


Line = tuple[int, str, bool]
"""One physical line: its number, its text with the end that it has, and whether it is sound. It is not where its bytes
were not UTF-8 (the text then holds U+FFFD), or where it was too long (the text is then empty); that is reported."""


IsTorn = Callable[[int, bytes], bool]
"""Was a last line without an end, by its number and bytes, cut off while it was written?"""


def read_lines(path: Path, report: Report, max_bytes: int, is_torn: IsTorn | None = None) -> Iterator[Line]:
    """The lines of a UTF-8 file, numbered from 1, a byte order mark removed. Lines end with LF or CRLF, nothing else.

    Never raises for what the file holds; a file that cannot be opened or read is reported as one problem. A last line
    that was torn is left out.
    """
    try:
        if not path.is_file():
            report.add_whole("is not a regular file" if path.exists() else "does not exist")
            return
        with path.open("rb") as file:
            yield from _lines(file, report, max_bytes, is_torn)
    except OSError as error:
        report.add_whole(f"cannot be read: {error.strerror or type(error).__name__}")


def _lines(file: BinaryIO, report: Report, max_bytes: int, is_torn: IsTorn | None) -> Iterator[Line]:
    offset = number = 0
    while raw := file.readline(max_bytes + 2):
        number += 1
        start, offset = offset, offset + len(raw)
        if number == 1:
            if raw.startswith(_WIDE) or b"\0" in raw[:4]:
                report.add_unread(1, 1, f"byte {raw[0]:#04x} at offset 0: UTF-16, UTF-32 or no text; save it as UTF-8")
                return
            raw = raw.removeprefix(codecs.BOM_UTF8)
            start = offset - len(raw)
        if len(raw) > max_bytes and len(raw.rstrip(b"\r\n")) > max_bytes:
            report.add_unread(number, 1, f"the line is longer than {max_bytes:,} bytes; shorten it")
            offset += _skip_rest(file, raw, max_bytes)
            yield number, "", False
            continue
        if is_torn is not None and not raw.endswith(b"\n") and is_torn(number, raw):
            return
        try:
            yield number, raw.decode(), True
        except UnicodeDecodeError as error:
            column = len(raw[: error.start].decode()) + 1
            what = (
                f"byte {raw[error.start]:#04x} at offset {start + error.start:,} is not UTF-8; save the file as UTF-8"
            )
            report.add_unread(number, column, what)
            yield number, raw.decode(errors="replace"), False


def _skip_rest(file: BinaryIO, raw: bytes, step: int) -> int:
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(step)
        skipped += len(raw)
    return skipped
