"""Markdown that shows texts as they are: escaped lines, tables, and long lists whose first few stand unfolded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.text import counted, printable

SHOWN, MOST = 5, 1_000
"""Names of a list that stand unfolded, and that stand in the document at all."""


def escaped(text: object) -> str:
    """Text that Markdown shows as it is, on one line."""
    line = " ".join(printable(str(text)).split())
    line = re.sub(r"([\\`*_{}\[\]<>|#~!&])", r"\\\1", line)
    return _LIST_OR_RULE.sub(r"\g<before>\\\g<mark>", line)


_LIST_OR_RULE = re.compile(r"^(?P<before>\d{0,9})(?P<mark>[-+.)]|=+)(?=\s|$)")
"""What at the beginning of a line would begin a list, or make a heading of the line before."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first column to the left, the others to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def folded(title: str, names: Sequence[str], place: str) -> Iterator[str]:
    """`- title (12): a, b, c`, and where there are more, those in a list that unfolds. `place`: where all of very many
    stand. `title` is Markdown, names are texts."""
    yield f"- {title} ({len(names):,}): {', '.join(map(escaped, names[:SHOWN]))}{', …' * (len(names) > SHOWN)}"
    rest = names[SHOWN:MOST]
    if not rest:
        return
    hidden = len(names) - MOST
    yield ""
    yield f"  <details><summary>{counted(len(rest), 'more', 'more')}</summary>"
    yield ""
    yield from (f"  - {escaped(name)}" for name in rest)
    if hidden > 0:
        yield f"  - {and_more(hidden)}: {escaped(place)}"
    yield ""
    yield "  </details>"
    yield ""
