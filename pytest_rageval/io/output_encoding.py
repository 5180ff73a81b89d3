"""Output in any encoding: what a stream cannot encode is written as an ASCII sign, or escaped as in JSON.

One mechanism at the border: streams are told once how to write such characters, and whatever prints stays as it is.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable

SIGNS = {
    "✘": "x", "✗": "x", "✓": "+", "✔": "+", "▲": "^", "▼": "v", "▽": "v", "◐": "o", "◌": "o", "⊘": "o", "○": "o",
    "●": "*", "≠": "!=", "≈": "~", "×": "x", "·": "-", "•": "*", "–": "-", "—": "-", "−": "-", "…": "...", "→": "->",
    "←": "<-", "↑": "^", "↓": "v", "≥": ">=", "≤": "<=", "“": "'", "”": "'", "„": "'", "‘": "'", "’": "'", "±": "+-",
    "─": "-", "━": "-", "│": "|", "┃": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┼": "+",
    "█": "#", "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#", "\xa0": " ", "\u202f": " ",
}  # fmt: skip
"""What stands for the signs of our own output."""
HANDLER = "rageval"
"""The name of the error handler."""
PLAIN_ASCII = "rageval_ascii"
"""ASCII by a name of its own: click writes UTF-8 to a stream whose encoding is called ASCII."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_sign, error.object[error.start : error.end])), error.end


def _sign(character: str) -> str:
    """Return the ASCII for a character."""
    return SIGNS.get(character) or _escaped(character)


def _escaped(character: str) -> str:
    """Return the escape of a character in JSON, so that JSON stays JSON."""
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _find(name: str) -> codecs.CodecInfo | None:
    if name != PLAIN_ASCII:
        return None
    ascii_codec = codecs.lookup("ascii")
    # The same codec under another name: what it does not encode goes to our handler.
    return codecs.CodecInfo(
        ascii_codec.encode,
        ascii_codec.decode,
        incrementalencoder=ascii_codec.incrementalencoder,
        incrementaldecoder=ascii_codec.incrementaldecoder,
        name=PLAIN_ASCII,
    )


codecs.register_error(HANDLER, _replaced)
codecs.register(_find)


def json_for(stream: object, text: str) -> str:
    """Return JSON text with all escaped that a stream cannot encode: signs may stand in for words, not for data."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return "".join(character if character.isascii() else _escaped(character) for character in text)
    return text


def take_any_text(stream: object, *, is_for_click: bool = False) -> Callable[[], None]:
    """Let a stream write any text; return what undoes it. Streams that are no files of the process stay as they are."""
    # pytest and IDEs put objects of their own in its place.
    if not isinstance(stream, io.TextIOWrapper):
        return _nothing
    encoding = stream.encoding
    errors = stream.errors
    try:
        if is_for_click and codecs.lookup(encoding).name == "ascii":
            stream.reconfigure(encoding=PLAIN_ASCII, errors=HANDLER)
        else:
            stream.reconfigure(errors=HANDLER)
    except OSError:  # opened on a file whose number is a pipe's now: Python asks for its position
        return _nothing

    def undo() -> None:
        if not stream.closed:
            stream.reconfigure(encoding=encoding, errors=errors)

    return undo


def _nothing() -> None:
    """Leave a stream as it is."""
