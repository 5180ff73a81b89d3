"""Judgements in long form, a row for each query and document, joined to one row a query with its grades."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from pytest_rageval.cases.exchange.case_rows import PlacedRow
from pytest_rageval.cases.exchange.column_values import last_name
from pytest_rageval.cases.exchange.gold_objects import is_id, looks_like_path
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.names import CONTEXTS, IDS, PLACES, QUESTION, field_of, is_case_id, name_words
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import Json
from pytest_rageval.text import counted

_GRADES = frozenset(
    ["relevance", "relevance grade", "relevance label", "relevance score", "relevancy", "rel", "grade", "gain",
     "judgement", "judgment", "qrel", "relevanz", "note relevance", "pertinence", "relevancia", "rilevanza",
     "relevantie", "관련도", "関連度", "相关性", "相關性"]
)  # fmt: skip
"""Names of grades, which are grades also where each query has one document only."""
_MAYBE_GRADES = frozenset(["label", "score", "rating", "judged", "is relevant", "relevant", "bewertung"])
"""Names of grades where the rows of one query differ by them and their documents alone."""
_MOST_GRADE = 10
_IN_WORDS: Mapping[str, int] = {
    "true": 1, "yes": 1, "relevant": 1, "false": 0, "no": 0, "irrelevant": 0, "not relevant": 0, "ja": 1, "nein": 0,
    "non relevant": 0, "partially relevant": 1, "highly relevant": 2, "very relevant": 2, "perfectly relevant": 3,
}  # fmt: skip


def joined_judgements(rows: Sequence[PlacedRow], note: Callable[[str], None]) -> list[PlacedRow]:
    """Return the rows, those of one query as one if they differ only in a document and its grade."""
    first_rows = [row for _, row in rows[:100]]
    names = list(dict.fromkeys(chain.from_iterable(first_rows)))
    columns = _columns(rows, names)
    if columns is None:
        return list(rows)
    question, grade, document, texts = columns
    is_named = name_words(last_name(grade)) in _GRADES
    grades = [_grade_of(row.get(grade)) for _, row in rows]
    if None in grades or not (is_named or all(map(_is_whole, grades))):
        return list(rows)
    ids = [name for name in names if name != document and is_case_id(name) and _is_id_name(name)]
    has_several = len({str(row.get(question)) for _, row in rows}) < len(rows)
    of_rows = _ids_of_judgements(rows, ids, {question, *columns.apart()}) if has_several else []
    key = next((name for name in ids if name not in of_rows), question)
    queries = _by_query(rows, key)
    is_long = len(queries) < len(rows)
    if not is_long and not is_named:
        return list(rows)
    if not all(_agree(group, columns.apart(of_rows)) for group in queries.values()):
        return list(rows)
    if is_long:
        documents = listed([*filter(None, (document, *texts))], 3)
        judged = counted(len(rows), "judgement")
        asked = counted(len(queries), "query", "queries")
        note(f"{judged} of {asked} joined: {documents} with the grades of {grade}")
    return [_joined(group, columns, of_rows) for group in queries.values()]


class _Columns(NamedTuple):
    """The columns of judgements: what is asked, its grade, the document's id or file, and its texts."""

    question: str
    grade: str
    document: str
    texts: tuple[str, ...]

    def apart(self, more: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the columns in which the rows of a query differ, what names the document first."""
        return tuple(filter(None, (self.document, *self.texts, self.grade, *more)))


def _columns(rows: Sequence[PlacedRow], names: Sequence[str]) -> _Columns | None:
    """Return the columns of judgements; None where there is none, or where several could be one of them."""
    question = next((name for name in names if field_of(name) == QUESTION), None)
    grades = [name for name in names if _is_grade_name(name)]
    of_documents = [name for name in names if field_of(name) in (IDS, PLACES, CONTEXTS) and name not in grades]
    named = [name for name in of_documents if all(_is_named(row.get(name)) for _, row in rows)]
    texts = [name for name in of_documents if name not in named]
    is_text = all(isinstance(row.get(name), str) for _, row in rows for name in texts)
    if question is None or len(grades) != 1 or len(named) > 1 or not of_documents or not is_text:
        return None
    return _Columns(question, grades[0], named[0] if named else "", tuple(texts))


def _is_grade_name(name: str) -> bool:
    return name_words(name) in _GRADES | _MAYBE_GRADES


def _is_id_name(name: str) -> bool:
    return field_of(name) == "id"


def _is_named(value: Json) -> bool:
    """Return True for the id or the file of a document, not for its text."""
    if is_nothing(value) or not is_id(value):
        return False
    text = str(value)
    return len(text) <= 300 and len(text.split()) <= 3


def _grade_of(value: Json) -> float | None:
    """Return a grade, also one in words; None for what is none."""
    grade: float | None
    if isinstance(value, str):
        plain = value.strip()
        grade = _IN_WORDS.get(name_words(plain[:_LONGEST_WORDS]))
        if _FIGURE.fullmatch(plain):
            grade = float(plain)
    else:
        grade = float(value) if isinstance(value, (int, float)) else None
    return grade if grade is not None and 0 <= grade <= _MOST_GRADE else None


_FIGURE = re.compile(r"[0-9]{1,2}(\.[0-9]{1,6})?")
_LONGEST_WORDS = 30


def _is_whole(grade: float | None) -> bool:
    return grade is not None and grade.is_integer()


def _ids_of_judgements(rows: Sequence[PlacedRow], ids: Collection[str], but: Collection[str]) -> list[str]:
    """Return the columns that number the rows and not their queries: ids, and whole numbers."""
    numbering = []
    for name in rows[0][1]:
        if name in but:
            continue
        values = [row.get(name) for _, row in rows]
        is_unique = len(set(map(str, values))) == len(rows)
        if is_unique and (name in ids or all(map(_is_whole_number, values))):
            numbering.append(name)
    return numbering


def _is_whole_number(value: Json) -> bool:
    return str(value).isdigit() and not isinstance(value, bool)


def _by_query(rows: Iterable[PlacedRow], key: str) -> dict[str, list[PlacedRow]]:
    queries: dict[str, list[PlacedRow]] = {}
    for place, row in rows:
        queries.setdefault(str(row.get(key)), []).append((place, row))
    return queries


def _agree(group: Sequence[PlacedRow], but: Sequence[str]) -> bool:
    """Return True if the rows of a query differ in these columns only, and judge no document twice."""
    document_column = but[0]
    documents = {str(row.get(document_column)) for _, row in group}
    # A document that is judged twice may have two grades, and nothing says which counts.
    if len(documents) < len(group):
        return False
    first = _others(group[0][1], but)
    return all(_others(row, but) == first for _, row in group)


def _others(row: Mapping[str, Json], but: Sequence[str]) -> dict[str, Json]:
    return {name: value for name, value in row.items() if name not in but and not is_nothing(value)}


def _joined(group: Sequence[PlacedRow], columns: _Columns, of_rows: Sequence[str]) -> PlacedRow:
    """Return the row of a query with its documents and their grades: places of files, else grades by id.

    Of the texts those of relevant documents stay.
    """
    place, first = group[0]
    row = {name: value for name, value in first.items() if name not in columns.apart(of_rows)}
    judgements = [judgement for _, judgement in group]
    grades = [_grade_of(judgement[columns.grade]) or 0 for judgement in judgements]
    relevant = [judgement for judgement, grade in zip(judgements, grades, strict=True) if grade > 0]
    for name in columns.texts:
        row[name] = [judgement[name] for judgement in relevant]
    if columns.document:
        documents = [str(judgement[columns.document]) for judgement in judgements]
        grade_by_document = dict(zip(documents, grades, strict=True))
        if all(map(looks_like_path, documents)):
            row[columns.document] = [{"path": path, "relevance": grade} for path, grade in grade_by_document.items()]
        else:
            row[columns.document] = grade_by_document
    return place, row
