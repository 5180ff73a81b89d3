"""The dialect of an uploaded CSV file: its encoding and its separator, guessed or chosen.

Spreadsheets follow the locale: semicolons where the comma is the decimal mark, and the system's code page instead of
UTF-8.
"""

from __future__ import annotations

import codecs
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.loading import MAX_LINE_BYTES
from pytest_rageval.errors import CaseError

ENCODINGS = (
    ("utf-8", "UTF-8"), ("cp1252", "Western European (Windows-1252)"), ("cp1250", "Central European (Windows-1250)"),
    ("cp932", "Japanese (Shift-JIS)"), ("cp949", "Korean (CP949)"), ("gb18030", "Chinese (GB 18030)"),
    ("utf-16", "UTF-16, “Unicode text”"),
)  # fmt: skip
SEPARATORS = ((",", "commas"), (";", "semicolons"), ("\t", "tabs"))
_BLOCK = 1 << 20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class TableDialect(NamedTuple):
    """The format of a CSV file: `encoding` is one of ENCODINGS, `separator` one of SEPARATORS."""

    encoding: str = "utf-8"
    separator: str = ","

    @property
    def is_usual(self) -> bool:
        """Return True for UTF-8 with commas, which every program reads."""
        return self == TableDialect()

    @property
    def words(self) -> str:
        return f"{dict(ENCODINGS)[self.encoding]}, cells separated by {dict(SEPARATORS)[self.separator]}"


def chosen_dialect(encoding: str, separator: str) -> TableDialect | None:
    """Return the dialect that a form names, or None if it names none."""
    if encoding not in dict(ENCODINGS) or separator not in dict(SEPARATORS):
        return None
    return TableDialect(encoding, separator)


def guess_dialect(path: Path) -> TableDialect:
    """Return the most likely dialect: by byte order mark, else UTF-8 if the whole file is valid, else by its bytes."""
    encoding = _encoding(path)
    with path.open("rb") as file:
        beginning = codecs.getincrementaldecoder(encoding)("replace").decode(file.read(_BLOCK))
    return TableDialect(encoding, _separator(beginning))


def write_as_utf8(source: Path, target: Path, dialect: TableDialect, name: str) -> None:
    """Rewrite a file as UTF-8 with commas, line for line, or raise CaseError if its encoding is another."""
    part = target.with_suffix(".part")
    try:
        if dialect.is_usual:
            shutil.copyfile(source, part)
        else:
            with (
                source.open(encoding=dialect.encoding, newline="\n") as lines,  # as the reader splits lines
                part.open("w", encoding="utf-8", newline="") as written,
            ):
                written.writelines(_with_commas(lines, dialect.separator))
        part.replace(target)
    except UnicodeError:
        words = f"is not {dict(ENCODINGS)[dialect.encoding]}, at least not all of it"
        raise CaseError(f"{name}: {words}; choose another encoding, or save it as UTF-8") from None
    finally:
        part.unlink(missing_ok=True)


def _with_commas(lines: Iterable[str], separator: str) -> Iterator[str]:
    if separator == ",":
        yield from lines
        return
    is_open = False  # a quoted cell may span lines
    for line in lines:
        if len(line) > MAX_LINE_BYTES:  # the reader refuses it; splitting 60 MB takes half a minute
            yield line
            continue
        if not is_open and '"' not in line:
            bare = line.rstrip("\r\n")
            yield ",".join(_safe(cell) for cell in bare.split(separator)) + line[len(bare) :]
            continue
        parts = line.split('"')
        for number, part in enumerate(parts):
            if not is_open:
                end = len(part.rstrip("\r\n")) if number == len(parts) - 1 else len(part)
                cells = part[:end].split(separator)
                # The first and the last cell touch a quote and may continue there.
                inner = [_safe(cell) if 0 < at < len(cells) - 1 else cell for at, cell in enumerate(cells)]
                inner[0] = _safe(inner[0]) if number == 0 and len(cells) > 1 else inner[0]
                inner[-1] = _safe(inner[-1]) if number == len(parts) - 1 and len(cells) > 1 else inner[-1]
                parts[number] = ",".join(inner) + part[end:]
            is_open = not is_open if number < len(parts) - 1 else is_open
        yield '"'.join(parts)


def _safe(cell: str) -> str:
    return f'"{cell}"' if "," in cell else cell


def _encoding(path: Path) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        block = beginning = file.read(_BLOCK)
        if block.startswith(_UTF_16):
            return "utf-16"
        try:
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            return _code_page(beginning if len(beginning) < _BLOCK else (block or beginning), error)
    return "utf-8"


def _code_page(sample: bytes, error: UnicodeDecodeError) -> str:
    """Return the code page of bytes that are not UTF-8.

    In Japanese text of Shift-JIS most characters are kana, which begin with the bytes 82 and 83; Western texts hardly
    have them. Others cannot be told from Windows-1252 by their bytes: the person sees the letters and chooses.
    """
    high = [byte for byte in sample if byte >= 0x80] or list(error.object[error.start : error.end])
    kana = sum(byte in (0x82, 0x83) for byte in high)
    return "cp932" if kana * 8 >= len(high) else "cp1252"


def _separator(text: str) -> str:
    """Return the most frequent separator outside the quotes of the header."""
    header = next((line for line in text.removeprefix("\ufeff").splitlines() if line.strip()), "")
    bare = "".join(header.split('"')[::2])
    return max((mark for mark, _ in SEPARATORS), key=bare.count)
