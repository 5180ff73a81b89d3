"""A view as a comment on a pull request: short tables first, each case folded away."""

from __future__ import annotations

from collections.abc import Iterator
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
    sections_of,
)

LONGEST = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""
SHOWN_FOLDS = (20, 10, 5, 2, 0)
"""Cases of each kind in full: as many as keep the comment short enough."""
SHOWN_NAMES, SHOWN_ROWS = 10, 30


def view_markdown(view: Any) -> str:
    """Return the whole comment, never longer than `LONGEST`. Texts of cases and systems are cut and shown as code."""
    for most in SHOWN_FOLDS:
        lines = (line for section in sections_of(view) for block in section for line in block_lines(block, most))
        text = without_gaps("\n".join(lines)).rstrip() + "\n"
        if len(text) <= LONGEST:
            break
    return text if len(text) <= LONGEST else text[: LONGEST - 2].rpartition("\n")[0] + "\n…\n"


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
        yield from [f"## {MARKS[line.tone]} {text}", ""]
    elif line.form == "remark":
        yield from ["", f"> ⚠️ **{text}**" if line.tone == "worse" else f"> {text}"]
    elif line.form == "point":
        yield f"- {MARKS[line.tone]} {text}"
    else:
        yield from ["", f"**{text}**" if line.tone == "strong" else f"{'⚠️ ' * (line.tone == 'doubtful')}{text}", ""]


def _table(shown: FigureTable) -> Iterator[str]:
    rows = [_cells(row, shown) for row in shown.rows[:SHOWN_ROWS]]
    yield ""
    yield from [f"### {shown.title}", ""] * bool(shown.title)
    yield from table(shown.heads, rows, figures=TO_THE_LEFT) if rows else ()
    if len(shown.rows) > len(rows):
        yield from [and_more(len(shown.rows) - len(rows), shown.what), ""]


def _cells(row: TableRow, shown: FigureTable) -> list[str]:
    if shown.has_texts:
        return [as_code(cell, NAME) if cell else "" for cell in row.cells]
    name, *figures = row.cells
    return [as_name(name), *figures[:-1], f"{MARKS[row.tone]} " * shown.has_verdicts + figures[-1]]


def _folds(block: FoldList, most: int) -> Iterator[str]:
    yield from ["", f"### {block.title} ({len(block.folds)})", ""]
    for fold in block.folds[:most]:
        yield from _fold(fold)
    if rest := [fold.title for fold in block.folds[most:]]:
        yield from [("and " if most else "") + as_name(listed(rest, SHOWN_NAMES), 2000), ""]


def _fold(fold: Fold) -> Iterator[str]:
    reasons = f" – {as_html('; '.join(fold.reasons), TEXT)}" if fold.reasons else ""
    yield from [f"<details><summary>{as_html(fold.title)}{reasons}</summary>", ""]
    yield from (f"- {_fact(fact)}" for fact in fold.facts if fact.words not in fold.reasons)
    yield from _table(fold.table) if fold.table else ()
    yield from ["", "</details>", ""]


def _fact(fact: LabelledText, most: int = TEXT) -> str:
    quoted = as_code(fact.quoted, NAME if fact.words else TEXT) if fact.quoted else ""
    return f"{fact.label}: {', '.join(filter(None, (as_name(fact.words, most), quoted)))}"
