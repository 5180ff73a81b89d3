"""The rows of a table that are cases: not the headings of sections within it, nor the totals below it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.names import QUESTION, field_of, name_words
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import Json
from pytest_rageval.text import counted

PlacedRow = tuple[int | str, dict[str, Json]]
"""A row with its line, its number or its path in a document."""
Cells = Mapping[str, Json]
"""The cells of a row that are filled, by column."""
_TOTALS = re.compile(
    r"\W*(grand total|sub ?totals?|totals?|sums?|summe|gesamt(summe|zahl)?|anzahl|count|overall|average|mean|insgesamt|"
    r"somme|totale|totaux|suma|somma|soma|totaal|aantal|합계|총계|총|合計|総計|总计|總計|合计|共计|小计|小計)"
    r"(?=\W|\d|$).{0,80}",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = re.compile(r"[?？؟]\s*\W{0,3}$")
_HEADING = re.compile(r"\s*[^\W_][\w&/'-]{0,30}(\s+[\w&/'-]{1,30}){0,3}\s*:?\s*")
"""A few words without the mark of a sentence."""
_LEAST_COLUMNS = 3
"""Columns of a table in which one filled cell a row is no case: of two columns, either may be blank, and a row is the
heading of a section only if it looks like one among questions with question marks."""


def case_rows(rows: Sequence[PlacedRow], header: Sequence[str], note: Callable[[str], None]) -> list[PlacedRow]:
    """Return the rows without headings of sections and totals, and name those that are left out in a note."""
    named = [name for name in header if field_of(name) == QUESTION]
    if not named:
        return list(rows)
    filled = [_filled(row) for _, row in rows]
    shape = _Shape(named, header, filled)
    end = _end_of_cases(shape, filled)
    cases: list[PlacedRow] = []
    skipped: list[tuple[int | str, str]] = []
    for position, ((place, row), cells) in enumerate(zip(rows, filled, strict=True)):
        if not cells:
            continue  # a spreadsheet writes rows of separators where something stood once
        text = shape.text_of_no_case(cells, is_behind=position >= end)
        if text is None:
            cases.append((place, row))
        else:
            skipped.append((place, text))
    # If nothing is left, the rules do not fit this table: it is read as it stands.
    if not cases:
        return list(rows)
    if skipped:
        what = f"{counted(len(skipped), 'row')} without a question of its own not read, such as a heading or a total"
        rows_there = listed([f"{place} ({shown_value(text, 40)})" for place, text in skipped], 5)
        note(f"{what}: {rows_there}")
    return cases


def _end_of_cases(shape: _Shape, rows: Sequence[Cells]) -> int:
    """Return the number of rows up to the last one with a question and something beside it."""
    end = len(rows)
    while end and not shape.is_full(rows[end - 1]):
        end -= 1
    return end


class _Shape:
    """How the rows of a table are filled where they are cases; its rows are their filled cells."""

    def __init__(self, named: Sequence[str], header: Sequence[str], rows: Sequence[Cells]) -> None:
        self._questions = named
        self._columns = len(header)
        several = [row for row in rows if len(row) > 1]
        ids = [name for name in header if field_of(name) == "id" or name.strip() in ("#", "№")]
        # A column of ids tells headings apart only if every other row has one.
        self._ids = [name for name in ids if several and all(name in row for row in several)]
        cases = [row for row in several if self._total_in(row) is None]
        asked = list(chain.from_iterable(map(self._asked, cases)))
        self._all_ask = bool(asked) and all(map(_ASKS.search, asked))
        self._many_ask = self._all_ask and len(asked) > 1

    def is_full(self, row: Cells) -> bool:
        """Return True for a row with a question and something beside it."""
        return len(row) > 1 and bool(self._asked(row)) and self._total_in(row) is None

    def text_of_no_case(self, row: Cells, *, is_behind: bool) -> str | None:
        """Return the text of a row that is no case, None for a case; `is_behind`: no full row stands below it."""
        texts = [value for value in row.values() if isinstance(value, str)]
        if not texts or len(texts) < len(row):
            return None
        if is_behind and (total := self._total_in(row)) is not None:
            return total
        if len(row) > 1:
            return None
        (text,) = texts
        has_several_columns = self._columns >= _LEAST_COLUMNS
        is_question = bool(self._asked(row))
        if not is_question:
            return text if has_several_columns else None
        if _ASKS.search(text):
            return None
        lacks_id = bool(self._ids) and not self._has_id(row)
        if has_several_columns:
            is_odd = lacks_id or self._all_ask
        else:
            is_odd = lacks_id or (self._many_ask and bool(_HEADING.fullmatch(text)))
        return text if is_odd else None

    def _total_in(self, row: Cells) -> str | None:
        """Return the words of a total: under the id, instead of a question, or as one beside numbers alone."""
        totals = {name: text for name, text in row.items() if isinstance(text, str) and _is_total(text)}
        under_id = next((text for name, text in totals.items() if name in self._ids), None)
        if under_id is not None or self._has_id(row):
            return under_id
        if not any(name in row for name in self._questions):
            return next(iter(totals.values()), None)
        # Its number may stand in any column, also in that of the questions.
        return next((text for name, text in totals.items() if _are_numbers(row, name)), None)

    def _asked(self, row: Cells) -> list[str]:
        texts = map(row.get, self._questions)
        return [text for text in texts if isinstance(text, str)]

    def _has_id(self, row: Cells) -> bool:
        """Return True for a row with an id that is no word for a total."""
        return any(name in row and not _is_total(str(row[name])) for name in self._ids)


def _is_total(text: str) -> bool:
    return len(text) < 200 and bool(_TOTALS.fullmatch(text)) and not _ASKS.search(text)


def _are_numbers(filled: Cells, but: str) -> bool:
    others = [value for name, value in filled.items() if name != but]
    return all(not re.search(r"[^\W\d_]", str(value)) and not _ASKS.search(str(value)) for value in others)


def _filled(row: Mapping[str, Json]) -> Cells:
    return {name: value for name, value in row.items() if not is_nothing(value)}


def is_header(names: Iterable[str]) -> bool:
    """Return True for a row of names of which one means the question, and another one anything.

    The name of the question may have words of its own, as in `Question (customer)`; that of the other may not.
    """
    named = [name.strip() for name in names if name_words(name)]
    known = [name for name in named if field_of(name, is_exact=True) is not None]
    questions = [name for name in named if _names_question(name)]
    return any(other != question for question in questions for other in known)


def _names_question(name: str) -> bool:
    is_sentence = len(name) > _LONGEST_NAME or bool(_ASKS.search(name))
    return field_of(name, is_exact=is_sentence) == QUESTION


_LONGEST_NAME = 40
"""Letters of a name with words of its own; a longer text in a cell is a title or a question."""
