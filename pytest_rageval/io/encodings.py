"""The encoding of a table that a spreadsheet wrote: by its mark, as UTF-8, or as charset-normalizer takes it."""

from __future__ import annotations

import codecs

ENCODINGS = (
    ("utf-8", "UTF-8"),
    ("cp1252", "Western European (Windows-1252)"),
    ("cp1250", "Central European (Windows-1250)"),
    ("cp932", "Japanese (Shift-JIS)"),
    ("cp949", "Korean (CP949)"),
    ("gb18030", "Chinese (GB 18030)"),
    ("utf-16", "UTF-16, “Unicode text”"),
)
SAMPLE = 1 << 18
"""Bytes from which an encoding is guessed."""


def decoded(content: bytes) -> tuple[str, str | None]:
    """Return the most likely encoding of a text, and the text without its mark; None if it is not quite UTF-8 either.

    UTF-16 is known by its mark, UTF-8 if it is valid; of the other ENCODINGS the most likely is taken. What fits none
    counts as UTF-8, of which a reader reports each wrong byte by its line.
    """
    encoding = _encoding(content)
    try:
        return encoding, content.decode(encoding).removeprefix("\ufeff")
    except UnicodeError:
        return "utf-8", None


def _encoding(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        from charset_normalizer import from_bytes  # here, because most files are UTF-8

        # Around the first byte that is not ASCII: what comes before tells nothing.
        start = max(0, error.start - SAMPLE // 2)
        # Without UTF-8, which failed, and UTF-16, which has its mark.
        names = [name for name, _ in ENCODINGS[1:-1]]
        sample = content[start : start + SAMPLE]
        best = from_bytes(sample, cp_isolation=names).best()
        if best is None or best.encoding not in names or str(best) == sample.decode("cp1252", "replace"):
            return "cp1252"  # also where both read the same, as in most texts of Western Europe
        return best.encoding
    return "utf-8"
