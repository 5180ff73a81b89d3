"""A view as a comment on a pull request: short tables first, each case folded away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.markdown.markdown_text import (
    MARKS,
    NAME,
    TEXT,
    TO_THE_LEFT,
    as_code,
    as_html,
    as_name,
    table,
    without_gaps,
)
from pytest_rageval.views.parts import (
    Block,
    FigureTable,
    Fold,
    FoldList,
    LabelledText,
    Line,
    NameList,
    TableRow,
    Tone,
    sections_of,
)

LONGEST = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""
SHOWN_FOLDS = (20, 10, 5, 2, 0)
"""Cases of each kind in full: as many as keep the comment short enough."""
SHOWN_NAMES = 10
SHOWN_ROWS = 30


def view_markdown(view: Any) -> str:
    """Return the whole comment, never longer than `LONGEST`. Texts of cases and systems are cut and shown as code."""
    text = ""
    for most in SHOWN_FOLDS:
        text = _whole(view, most)
        if len(text) <= LONGEST:
            return text
    # Cut between lines, so that no tag or escape is cut in two.
    whole_lines, _, _ = text[: LONGEST - 2].rpartition("\n")
    return f"{whole_lines}\n…\n"


def _whole(view: Any, most: int) -> str:
    lines: list[str] = []
    for block in chain.from_iterable(sections_of(view)):
        lines += block_lines(block, most)
    return without_gaps("\n".join(lines)).rstrip() + "\n"


def block_lines(block: Block, most: int = SHOWN_FOLDS[0]) -> Iterator[str]:
    """Yield a block of a view. `most`: cases that are shown in full."""
    match block:
        case Line():
            yield from _line(block)
        case FigureTable():
            yield from _table(block)
        case LabelledText():
            yield f"- {_fact(block, 400)}"
        case NameList(title, names):
            yield f"- {title} ({len(names)}): {as_name(listed(names, SHOWN_NAMES), 2000)}"
        case FoldList():
            yield from _folds(block, most)


def _line(line: Line) -> Iterator[str]:
    text = as_name(line.text, 1000)
    if line.form == "title":
        yield f"## {MARKS[line.tone]} {text}"
        yield ""
    elif line.form == "remark":
        yield ""
        yield f"> ⚠️ **{text}**" if line.tone == "worse" else f"> {text}"
    elif line.form == "point":
        yield f"- {MARKS[line.tone]} {text}"
    else:
        yield ""
        yield _paragraph(text, line.tone)
        yield ""


def _paragraph(text: str, tone: Tone) -> str:
    if tone == "strong":
        return f"**{text}**"
    if tone == "doubtful":
        return f"⚠️ {text}"
    return text


def _table(shown: FigureTable) -> Iterator[str]:
    rows = [_cells(row, shown) for row in shown.rows[:SHOWN_ROWS]]
    yield ""
    if shown.title:
        yield f"### {shown.title}"
        yield ""
    if rows:
        yield from table(shown.heads, rows, figures=TO_THE_LEFT)
    if len(shown.rows) > len(rows):
        yield and_more(len(shown.rows) - len(rows), shown.what)
        yield ""


def _cells(row: TableRow, shown: FigureTable) -> list[str]:
    if shown.has_texts:
        return [as_code(cell, NAME) if cell else "" for cell in row.cells]
    name, *figures, last = row.cells
    if shown.has_verdicts:
        last = f"{MARKS[row.tone]} {last}"
    return [as_name(name), *figures, last]


def _folds(block: FoldList, most: int) -> Iterator[str]:
    yield ""
    yield f"### {block.title} ({len(block.folds)})"
    yield ""
    for fold in block.folds[:most]:
        yield from _fold(fold)
    rest = [fold.title for fold in block.folds[most:]]
    if rest:
        names = as_name(listed(rest, SHOWN_NAMES), 2000)
        yield f"and {names}" if most else names
        yield ""


def _fold(fold: Fold) -> Iterator[str]:
    reasons = f" – {as_html('; '.join(fold.reasons), TEXT)}" if fold.reasons else ""
    yield f"<details><summary>{as_html(fold.title)}{reasons}</summary>"
    yield ""
    for fact in fold.facts:
        if fact.words not in fold.reasons:
            yield f"- {_fact(fact)}"
    if fold.table:
        yield from _table(fold.table)
    yield ""
    yield "</details>"
    yield ""


def _fact(fact: LabelledText, most: int = TEXT) -> str:
    parts = []
    words = as_name(fact.words, most)
    if words:
        parts.append(words)
    if fact.quoted:
        parts.append(as_code(fact.quoted, NAME if fact.words else TEXT))
    return f"{fact.label}: {', '.join(parts)}"
