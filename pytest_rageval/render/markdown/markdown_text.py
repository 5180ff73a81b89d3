"""Markdown that shows texts literally: escaped lines, names and code, and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from pytest_rageval.render.text.columns import shortened
from pytest_rageval.text import printable
from pytest_rageval.views.parts import Tone

MARKS: Mapping[Tone, str] = {"better": "✅", "worse": "❌", "doubtful": "⚠️", "plain": "➖", "strong": ""}
NAME = 120
"""Characters of a name that are shown."""
TEXT = 300
"""Characters of a text that are shown."""
TO_THE_LEFT = " --- "
"""The alignment of a column of words."""


def escaped(text: object) -> str:
    """Return text that Markdown shows unchanged, on one line."""
    # On one line, since a line end would close a table's row.
    line = " ".join(printable(str(text)).split())
    line = re.sub(r"([\\`*_{}\[\]<>|#~!&])", r"\\\1", line)
    return _LIST_OR_RULE.sub(r"\g<before>\\\g<mark>", line)


def as_name(text: str, most: int = NAME) -> str:
    """Return a name, or a sentence with names, that Markdown shows without mentions, references and links."""
    return _REFERENCE.sub(r"<code>\1</code>", _unlinked(escaped(shortened(text, most))))


def as_code(text: str, most: int = TEXT) -> str:
    """Return a text of a case or a system as code, in which nothing is linked."""
    return f"<code>{_unlinked(escaped(shortened(text, most)))}</code>"


def as_html(text: str, most: int = NAME) -> str:
    """Return a name for a block of HTML, where nothing is Markdown and no backslash escapes anything."""
    # A name with @ would notify a person, and one with # would be noted at an issue.
    shown = _REFERENCE.sub(r"<code>\1</code>", escape(printable(shortened(text, most)), quote=False))
    return shown.replace("://", "&#58;//").replace("www.", "www&#46;")


def bounded(text: str, most: int, shown: Callable[[str, int], str] = as_name) -> str:
    """Return the text as `shown` escapes it, in at most `most` characters: escapes can make it many times longer."""
    width = most
    while True:
        result = shown(text, width)
        if len(result) <= most or width <= 1:
            return result
        # How long escapes make a text is known only once it is escaped.
        width = width * 3 // 4


def _unlinked(text: str) -> str:
    """Return the text without characters that would become a link."""
    return text.replace("://", "\\://").replace("www.", "www\\.")


_LIST_OR_RULE = re.compile(r"^(?P<before>\d{0,9})(?P<mark>[-+.)]|=+)(?=\s|$)")
"""Beginnings of a line that start a list, or turn the line before into a heading."""
_REFERENCE = re.compile(r"(?<!\w)\\?([@#])(?=\w)")
"""Signs that GitHub links to a person or an issue even if escaped, except in code."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, figures: str = " ---: ") -> Iterator[str]:
    """Yield a table of Markdown cells; `figures`: the alignment of all columns but the first, which is to the left."""
    alignments = [figures] * (len(head) - 1)
    yield f"| {' | '.join(head)} |"
    yield "|".join(["", " --- ", *alignments, ""])
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def without_gaps(text: str) -> str:
    """Return a document with single empty lines only."""
    return re.sub("\n{3,}", "\n\n", text)
