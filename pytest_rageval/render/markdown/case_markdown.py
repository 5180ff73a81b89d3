"""A case as Markdown, for an issue or a coding agent: the parts of its page that "copy as Markdown" takes, as it does.

Both take the parts from the same rendered page; each stands as a fenced text, so that nothing in it is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

from pytest_rageval.render.html.environment import rendered

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905 reads better
_SPACE = re.compile("[\\s\ufeff]+")
_TICKS = re.compile("`+")


def case_markdown(view: Mapping[str, Any]) -> str:
    """The Markdown of a case, of the content of its page."""
    page = _Parts()
    page.feed(rendered("case.html", c=view))
    return "\n\n".join(f"**{part.name}**\n\n{_fenced(part.text)}" for part in page.parts) + "\n"


def _fenced(text: str) -> str:
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}text\n{text}\n{fence}"


class _Part:
    """One part: its name, and its text, of a table its rows with the cells between bars."""

    def __init__(self, name: str, tag: str) -> None:
        self.name, self.is_table = name, tag == "table"
        self.depth = 1
        self._texts: list[str] = []
        self._rows: list[list[list[str]]] = []

    def begin(self, tag: str) -> None:
        self.depth += tag not in VOID
        if tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append([])

    def add(self, text: str) -> None:
        self._texts.append(text)
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(text)

    @property
    def text(self) -> str:
        if not self.is_table:
            return "".join(self._texts).strip(" \t\n\r\ufeff\u00a0")
        return "\n".join(" | ".join(map(_on_one_line, row)) for row in self._rows)


def _on_one_line(texts: list[str]) -> str:
    return _SPACE.sub(" ", "".join(texts)).strip()


class _Parts(HTMLParser):
    """The elements of a page that are named as parts (`data-md`), in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[_Part] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for part in self._open():
            part.begin(tag)
        if name := dict(attrs).get("data-md"):
            self.parts.append(_Part(name, tag))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass  # closes itself, and holds no text

    def handle_endtag(self, tag: str) -> None:
        for part in self._open() if tag not in VOID else ():
            part.depth -= 1

    def handle_data(self, data: str) -> None:
        for part in self._open():
            part.add(data)

    def _open(self) -> Iterator[_Part]:
        return (part for part in self.parts if part.depth > 0)
