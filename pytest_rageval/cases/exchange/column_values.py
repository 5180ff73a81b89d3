"""Columns of a foreign file: their values against their names, and which of several is the best for a field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pytest_rageval.cases.answerability import truth_of
from pytest_rageval.cases.exchange.gold_objects import (
    gold_places,
    is_id,
    listed_places,
    looks_like_id,
    looks_like_path,
    pages_of,
)
from pytest_rageval.cases.exchange.map_hints import member_expression
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.exchange.score_columns import holds_scores
from pytest_rageval.cases.exchange.values import TEXTS_OF_OBJECTS
from pytest_rageval.cases.keys import KEYS
from pytest_rageval.cases.names import (
    ANSWER,
    CONTEXTS,
    FACTS,
    HEADINGS,
    IDS,
    PAGES,
    PLACES,
    QUESTION,
    field_of,
    is_plain_answer,
    is_whole_name,
    name_words,
    says_answer,
)
from pytest_rageval.model import Json

KEPT = ("metadata", "additional_metadata")
"""Objects that go into the metadata as they are."""


def last_name(path: str) -> str:
    """Return the last name of a path; the point of an abbreviation, as in `Nr.`, divides no names."""
    at = path.rfind(".")
    while at > 0:
        beside = path[at - 1] + path[at + 1 : at + 2]
        if len(beside) == 2 and not any(sign.isspace() or sign == "." for sign in beside):
            return path[at + 1 :]
        at = path.rfind(".", 0, at)
    return path


def _steps_of(path: str) -> list[str]:
    """Return the names on the way to a member."""
    name = last_name(path)
    if name == path:
        return [name]
    return [*path.removesuffix(f".{name}").split("."), name]


class Column:
    """The values of one member, by row.

    expression  finds the member in a row
    """

    def __init__(self, path: str, *, is_whole: bool = False) -> None:
        """Begin a column; `is_whole`: the points of the path belong to one name."""
        self.path = path
        self.expression = member_expression([path] if is_whole else _steps_of(path))
        self.name = path if is_whole else last_name(path)
        self.values: dict[int, Json] = {}

    def every(self, is_right: Callable[[Json], bool]) -> bool:
        """Return True if there are values and all of them are right."""
        return bool(self.values) and all(map(is_right, self.values.values()))

    def holds_scores(self, meaning: str | None) -> bool:
        """Return True for scores that a tool measured; `meaning`: the field by the name."""
        return holds_scores(self.name, [*self.values.values()], meaning)

    def parts(self) -> list[Json]:
        """Return all values, the members of lists one by one, without those that say nothing."""
        parts: list[Json] = []
        for value in self.values.values():
            parts += value if isinstance(value, list) else [value]
        return [part for part in parts if not is_nothing(part)]

    def differs_from(self, other: Column) -> bool:
        """Return True if some row has a value in both columns, and not the same one."""
        shared = self.values.keys() & other.values.keys()
        return any(self.values[row] != other.values[row] for row in shared)

    def is_beside(self, other: Column) -> bool:
        """Return True if some row has a value in both columns."""
        return not self.values.keys().isdisjoint(other.values)


_OURS = {
    "question": QUESTION,
    "reference": ANSWER,
    "reference_answer": ANSWER,
    "expected_answers": ANSWER,
    "expected_key_facts": FACTS,
}
"""Our own keys that are read as leniently as other names for the same."""


def meaning_by_name(path: str) -> str | None:
    """Return the field that a name means: by our own name, else by its own."""
    if path in KEYS and path not in ("contexts", "tag", "query") and path not in KEPT:
        return _OURS.get(path, path)
    return ANSWER if path in ("a", "A") else field_of(last_name(path))


def is_weak(path: str) -> bool:
    """Return True if a name means an answer without saying whose."""
    return path == "answer" or (path not in KEYS and is_plain_answer(path))


# ── values against names ──────────────────────────────────────────────────────────────────────────────────────


def proved(column: Column, meaning: str | None) -> str | None:
    """Return the field of a column whose values fit its name, another one that fits them, or None."""
    if column.holds_scores(meaning):
        return None
    if meaning is None:
        return _documents(column)
    prove = _PROVED.get(meaning or "")
    return meaning if prove is None else prove(column, meaning)


def _answer(column: Column, meaning: str | None) -> str | None:
    """Return places, ids or None for what is no answer: documents, numbers in `answer_start`, flags in `expected`."""
    if documents := _documents(column):
        return documents
    if column.every(_is_number) and not is_whole_name(column.name):
        return None
    return None if column.every(_is_written_flag) and not says_answer(column.name) else meaning


def _documents(column: Column) -> str | None:
    """Return ids or places for a column of gold that names documents: in objects, or by their files."""
    if not (is_gold_name(column.path) or may_grade(column.name)):
        return None
    if name_words(column.name) in ("relevant", "gold relevant"):
        return places_or_ids(column, PLACES)
    parts = column.parts()
    if parts and all(isinstance(part, dict) and not _TEXTS & part.keys() for part in parts):
        return PLACES if gold_places(parts, as_ids=False) else None
    has_lists = any(isinstance(value, list) for value in column.values.values())
    return PLACES if has_lists and parts and all(map(looks_like_path, parts)) else None


_TEXTS = frozenset([*TEXTS_OF_OBJECTS, "role"]) - {"document"}


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_written_flag(value: Json) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("true", "false")


def _facts(column: Column, meaning: str | None) -> str | None:
    """Return None for marks and flags: `points: 5`, `contains: true`."""
    return None if column.every(_is_number_or_flag) else meaning


def _is_number_or_flag(value: Json) -> bool:
    return isinstance(value, (int, float)) or truth_of(value) is not None


def _pages(column: Column, meaning: str | None) -> str | None:
    return meaning if column.every(lambda value: pages_of(value) is not None) else None


def places_or_ids(column: Column, meaning: str | None = None) -> str | None:
    """Return ids if every value looks like one, else places; None for counts."""
    if column.every(_is_number) and not is_whole_name(column.name):
        return None
    meaning = meaning or meaning_by_name(column.path)
    if meaning != PLACES:
        return meaning
    parts = _places_in(column)
    if parts and all(map(looks_like_id, parts)):
        return IDS
    return PLACES if _may_be_places(column, parts) else None


def _places_in(column: Column) -> list[Json]:
    places: list[Json] = []
    for value in column.values.values():
        places += listed_places(value)
    return [place for place in places if not is_nothing(place)]


def place_within_metadata(column: Column) -> str | None:
    """Return places or ids for a member of the metadata that names the document of its row, as `source: a.md` does."""
    if meaning_by_name(column.name) not in (PLACES, IDS):
        return None
    parts = _places_in(column)
    if parts and all(map(looks_like_path, parts)):
        return PLACES
    is_of_row = 2 * len({*map(str, parts)}) > len(parts) > 1  # `source: gpt-4` is that of many rows
    return IDS if is_of_row and all(map(looks_like_id, parts)) else None


def _may_be_places(column: Column, parts: Sequence[Json]) -> bool:
    """Return False for the origin of a question, such as `source: human` in every row, and for other longer names."""
    if is_gold_name(column.path) or any(isinstance(part, dict) or looks_like_path(part) for part in parts):
        return True
    different = set(map(str, column.values.values()))
    is_same_everywhere = len(column.values) > 2 and len(different) == 1
    return is_whole_name(column.name) and not is_same_everywhere


def _contexts(column: Column, meaning: str | None) -> str | None:
    """Return ids or places where a column of chunks or evidence only names them."""
    if column.path in KEYS:
        return meaning
    parts = column.parts()
    if parts and all(map(looks_like_path, parts)):
        return PLACES
    return IDS if parts and all(map(_is_chunk_id, parts)) else meaning


_CHUNK_ID = re.compile(r"(?=.*[\d_:#/-])[!-~]{1,200}")


def _is_chunk_id(value: Json) -> bool:
    """Return True for what names a chunk and is no passage: a number, or no words, as in `a.txt:chunk_4`."""
    return bool(_CHUNK_ID.fullmatch(value)) if isinstance(value, str) else is_id(value)


def _ids(column: Column, meaning: str | None) -> str | None:
    """Return places where ids are files, as in `document_id: refunds.md`; None for flags."""
    if column.every(lambda value: isinstance(value, bool)):
        return None
    parts = _places_in(column)
    return PLACES if parts and all(map(looks_like_path, parts)) else meaning


def _case_id(column: Column, meaning: str | None) -> str | None:
    return meaning if not column.values or column.every(is_id) else None


def _headings(column: Column, meaning: str | None) -> str | None:
    """Return places for headings with their files before them, as in `a.md > Intro`."""
    parts = column.parts()
    return PLACES if parts and all(map(_has_path, parts)) else meaning


def _has_path(value: Json) -> bool:
    return isinstance(value, str) and looks_like_path(value.partition(" > ")[0])


def _gold(column: Column, meaning: str | None) -> str | None:
    """Return the right answer for texts under `gold`, which is an object in our own files."""
    return ANSWER if column.every(_is_text_or_texts) else meaning


def _is_text_or_texts(value: Json) -> bool:
    return all(isinstance(each, str) for each in value) if isinstance(value, list) else isinstance(value, str)


_PROVED: Mapping[str, Callable[[Column, str | None], str | None]] = {
    "gold": _gold,
    ANSWER: _answer,
    FACTS: _facts,
    PAGES: _pages,
    HEADINGS: _headings,
    PLACES: places_or_ids,
    CONTEXTS: _contexts,
    IDS: _ids,
    "id": _case_id,
}


def may_grade(name: str) -> bool:
    """Return True if numbers by name under this name are grades of documents, not scores of metrics."""
    words = set(name_words(name).split())
    return bool(words & _GRADING) or field_of(name) in (IDS, PLACES, CONTEXTS)


_GRADING = frozenset(
    [
        "relevance",
        "relevances",
        "relevant",
        "qrel",
        "qrels",
        "grade",
        "grades",
        "graded",
        "judgement",
        "judgements",
        "judgment",
    ]
)


# ── the best of several ───────────────────────────────────────────────────────────────────────────────────────


def doubt(column: Column, meaning: str) -> int:
    """Return how doubtful it is that a column holds a field; the first of equals is taken."""
    words = set(name_words(column.name).split())
    if meaning == QUESTION and column.name.strip().lower() in ("question", "user_input", "query", "questions"):
        return 0
    if meaning == ANSWER and column.path in KEYS:
        return 0
    if meaning in (QUESTION, ANSWER):
        return 1 if is_whole_name(column.name) else 2
    if meaning == IDS:
        return int(not words & {"chunk", "chunks", "passage", "passages"})
    if meaning in (PLACES, CONTEXTS):
        return int(not words & _OF_GOLD)
    return int(not is_whole_name(column.name))


_OF_GOLD = frozenset(
    ["expected", "reference", "gold", "golden", "ground", "truth", "relevant", "correct", "target", "supporting"]
)


def is_gold_name(path: str) -> bool:
    """Return True if a name says that its documents are the right ones, not just some."""
    words = set(name_words(path).split())
    return bool(words & (_OF_GOLD | {"evidence", "citations", "citation"}))
