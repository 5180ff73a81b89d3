"""Golds as other files write them: paths, ids, grades by id, pages, and objects that hold several of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.exchange.retrieval_sets import relevance_parts
from pytest_rageval.cases.refusal_golds import is_blank_gold
from pytest_rageval.model import Json

_PATHS = (
    "rel_path", "path", "source", "file", "file_path", "filepath", "filename", "file_name", "doc_uri", "uri", "url",
    "document", "doc", "document_name", "doc_name", "source_file", "source_document", "name",
)  # fmt: skip
_IDS = ("chunk_id", "id", "doc_id", "document_id", "docid", "_id", "passage_id", "node_id", "uuid", "source_id")
_PAGES = ("page", "pages", "page_number", "page_no", "page_num", "page_label", "seite")
_HEADINGS = ("heading_path", "heading", "section", "section_title", "chapter")
_QUOTES = ("quote", "snippet", "text_snippet", "excerpt", "span", "evidence_text")
_GRADES = (
    "relevance", "grade", "query_relevance_label", "relevance_label", "relevance_score", "expected_score", "rel",
    "gain", "score", "label", "rating",
)  # fmt: skip


def gold_places(value: Json, *, as_ids: bool) -> dict[str, Json] | None:
    """Return gold places, or ids with `as_ids`, of texts and objects, alone or in a list; None if there is none."""
    if is_grades(value):
        return _of_grades(value)
    values = [_flat(each) for each in listed_places(value) if not is_nothing(each)]
    objects = [each for each in values if isinstance(each, dict)]
    if objects and len(objects) == len(values):
        return _of_objects(objects, as_ids=as_ids)
    if as_ids:
        if not values or not all(map(is_id, values)):
            return None
        return {"gold": {"chunk_ids": [str(each) for each in values]}}
    places = list(chain.from_iterable(map(_places, values)))
    return {"gold_supports": places} if places else None


def listed_places(value: Json) -> list[Json]:
    """Return the places or ids of a value: a list as it is, a text divided at semicolons, bars, commas and lines."""
    if not isinstance(value, str):
        return value if isinstance(value, list) else [value]
    parts = [part.strip() for part in re.split(r"[,;|\n；｜]", value) if part.strip()]
    is_divided = all(" " not in part for part in parts) or bool(re.search(r"[\n;；]", value))
    if not is_divided:
        return [value]
    return list(chain.from_iterable(map(_beside_wide_commas, parts)))


_WIDE_COMMA = re.compile(r"[，、،]")
_ENDS_AS_FILE = re.compile(r".{1,300}\.[A-Za-z]\w{0,5}(#.{0,200})?")


def _beside_wide_commas(text: str) -> list[str]:
    """Return the files or ids between commas of other scripts; a name of a file may have such a comma itself."""
    if text.isascii():
        return [text]
    parts = [part.strip() for part in _WIDE_COMMA.split(text) if part.strip()]
    is_list = len(parts) > 1 and all(_ENDS_AS_FILE.fullmatch(part) or looks_like_id(part) for part in parts)
    return parts if is_list else [text]


_ID = re.compile(r"(?=.*\d)[\w:#-]{1,200}|[0-9a-f]{8,200}")


def looks_like_id(value: Json) -> bool:
    """Return True for a number, or a text such as `d1`, `c-17#2` or a hash: no file has such a name."""
    if isinstance(value, str):
        return bool(_ID.fullmatch(value))
    return isinstance(value, int) and not isinstance(value, bool)


_PATH = re.compile(r"[^\s?*|<>]{1,300}\.[A-Za-z]\w{0,5}(#\S{0,200})?")


def looks_like_path(value: Json) -> bool:
    """Return True for a text such as `docs/a.md` or `a.pdf#page=3`."""
    return isinstance(value, str) and bool(_PATH.fullmatch(value))


def is_id(value: Json) -> bool:
    """Return True for what can be an id: a text or a whole number."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


# ── grades ────────────────────────────────────────────────────────────────────────────────────────────────────


def is_grades(value: Json) -> bool:
    """Return True for an object whose values are all numbers, such as grades by id."""
    return isinstance(value, dict) and bool(value) and all(map(_is_grade, value.values()))


def are_grades(value: Json) -> bool:
    """Return True for a list of numbers, such as grades in the order of ids."""
    return isinstance(value, list) and bool(value) and all(map(_is_grade, value))


def graded_ids(ids: Sequence[str], grades: Sequence[float]) -> dict[str, Json] | None:
    """Return ids with the grades that stand in the same order; None if there are not as many."""
    if len(ids) != len(grades):
        return None
    return _of_grades(dict(zip(ids, grades, strict=True)))


def _is_grade(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e6


def _of_grades(grades: Mapping[str, Any]) -> dict[str, Json]:
    """Return ids with their grades; only ids if all grades are 1."""
    return relevance_parts({name: float(grade) for name, grade in grades.items()})


def joined_gold(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Json]:
    """Return both objects of gold; ids that are graded, too, need not be listed."""
    joined = {**first, **second}
    if listed := [*first.get("chunk_ids", ()), *second.get("chunk_ids", ())]:
        joined["chunk_ids"] = list(dict.fromkeys(listed))
    graded = joined.get("relevance")
    if isinstance(graded, dict) and graded.keys() >= {*joined.get("chunk_ids", ())}:
        joined.pop("chunk_ids", None)
    return joined


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────


def _of_objects(objects: Sequence[Mapping[str, Json]], *, as_ids: bool) -> dict[str, Json] | None:
    """Return the golds of objects: by path if each has one, else by id, with grades if each has one.

    An object with a title and a grade, as TruLens writes them, has its title for an id.
    """
    grades = [next(_members(each, _GRADES, _is_grade), None) for each in objects]
    is_graded = None not in grades
    ids = [next(_members(each, _IDS, is_id), None) for each in objects]
    if is_graded and None in ids:
        titles = [next(_members(each, ("title",), _is_text), None) for each in objects]
        has_paths = any(next(_members(each, _PATHS, _is_text), None) for each in objects)
        ids = ids if has_paths else titles
    places = list(chain.from_iterable(map(_places_of_object, objects, grades)))
    keys: dict[str, Json] = {}
    if places and not (as_ids and None not in ids):
        keys["gold_supports"] = places
    elif ids and None not in ids:
        written = [str(each) for each in ids]
        if is_graded:
            keys |= _of_grades(dict(zip(written, grades, strict=True)))
        else:
            keys["gold"] = {"chunk_ids": written}
    return keys or None


def unread_titles(values: Sequence[Json]) -> list[Json]:
    """Return the titles of gold objects if these are neither graded nor of files: no place, and no id."""
    titles: list[Json] = []
    for each in values:
        if isinstance(each, dict) and not gold_places([each], as_ids=False):
            titles += _members(each, ("title",), _is_text)
    return titles


def place_of_chunk(written: Mapping[str, Json]) -> dict[str, Json]:
    """Return the path, the heading and the id of a chunk as far as it has them, under the names of our contract."""
    value: Any = _flat(dict(written))
    found = {
        "chunk_id": next(_members(value, _IDS, is_id), None),
        "rel_path": next(_members(value, _PATHS, _is_text), None),
        "heading_path": next(_members(value, _HEADINGS, _is_text), None),
    }
    if found["chunk_id"] is not None:
        found["chunk_id"] = str(found["chunk_id"])
    return {name: part for name, part in found.items() if part is not None}


def have_places(values: Sequence[Json]) -> bool:
    """Return True for objects that each name a file or an id, as chunks do with their `source`."""
    return bool(values) and all(isinstance(each, dict) and _has_place(each) for each in values)


def _flat(value: Json) -> Json:
    """Return an object with the members of its metadata, in which LangChain's documents name their source."""
    if not isinstance(value, dict):
        return value
    within = [inner for name in ("metadata", "meta") if isinstance(inner := value.get(name), dict)]
    return {**within[0], **value} if within else value


def _has_place(written: Mapping[str, Json]) -> bool:
    value: Any = _flat(dict(written))
    path = next(_members(value, _PATHS, _is_text), None)
    return looks_like_path(path) or (path is None and any(_members(value, _IDS, looks_like_id)))


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and not is_nothing(value)


def _members(value: Mapping[str, Json], names: Iterable[str], is_right: Any) -> Iterator[Json]:
    """Yield the members with one of these names that have the right type, in the order of the names."""
    yield from (value[name] for name in names if name in value and is_right(value[name]))


def _places_of_object(value: Mapping[str, Json], grade: Json) -> list[dict[str, Json]]:
    """Return the place of an object, one a page; none if it is graded 0."""
    path: Any = next(_members(value, _PATHS, _is_text), None)
    if path is None and grade is None:
        path = next(_members(value, ("title",), looks_like_path), None)
    if path is None or (grade is not None and grade <= 0):
        return []
    places = _places(path)
    heading = next(_members(value, _HEADINGS, _is_text), None)
    pages = pages_of(next(_members(value, _PAGES, lambda page: pages_of(page) is not None), None))
    if heading is not None:
        places = [{**place, "heading_path": heading} for place in places]
    elif pages:
        places = with_pages(places, [pages])
    if quotes := list(_members(value, _QUOTES, _is_text)):
        places = [{**place, "snippets": quotes[:1]} for place in places]
    return places


def _places(value: Json) -> list[dict[str, Json]]:
    """Return the gold place of a text: `docs/a.md#Intro`, `a.md > A > B`, `a.pdf, p. 3`; none for what is no text."""
    if isinstance(value, dict):
        return _places_of_object(value, None)
    if not isinstance(value, str) or not value.strip() or is_blank_gold(value):
        return []
    path, separator, below = value.strip().partition(" > ")
    if not separator:
        path, _, below = path.partition("#")
        below = "" if "://" in path else below
    if not path.strip():  # no file before the mark: a name such as `#14`
        path = value.strip()
        below = ""
    below = below.strip()
    pages: list[int] | None = None
    if page := _PAGE_FRAGMENT.fullmatch(below):
        pages = pages_of(page[1])
    elif not below and (page := _PAGE_BEHIND.fullmatch(path) or _PAGE_OF_PAGED.fullmatch(path)):
        pages = pages_of(page[2])
        path = page[1] if pages else path
    if pages:
        return with_pages([{"rel_path": path.strip()}], [pages])
    place: dict[str, Json] = {"rel_path": path.strip()}
    if below:
        place["heading_path"] = below
    return [place]


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────

_SOME_PAGES = r"(\d{1,5}(?: ?[-–,&] ?\d{1,5}){0,20})"
_PAGE_FRAGMENT = re.compile(rf"page={_SOME_PAGES}")
_PAGE_BEHIND = re.compile(
    rf"(.{{1,500}}?\.\w{{1,5}})(?: ?[,:;] ?| ?\(| )(?:pp?|pg|pages?|S|Seiten?)\.? ?{_SOME_PAGES}\)?", re.IGNORECASE
)
_PAGE_OF_PAGED = re.compile(
    rf"(.{{1,500}}?\.(?:pdf|docx?|pptx?|odt|odp|epub|djvu)):{_SOME_PAGES}", re.IGNORECASE | re.DOTALL
)
"""A number behind a colon: a page in a document of pages; in a text, as in `a.md:12`, a line."""
_PAGE = re.compile(
    r"(?:pages?|pp?\.?|pg\.?|seiten?|s\.|paginas?|pag\.?|bladzijde|第|페이지|쪽)?\s*(\d{1,5})\s*"
    r"(?:(?:-|–|to|bis)\s*(\d{1,5}))?\s*(?:頁|页|ページ|쪽|페이지)?",
    re.IGNORECASE,
)
MOST_PAGES = 50
"""Pages of one range."""


def pages_of(value: Json) -> list[int] | None:
    """Return page numbers: of a number, a text such as `p. 4`, `12-14` or `3, 5`, or a list; None if it is no page."""
    if isinstance(value, list):
        parts = [pages_of(each) for each in value]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        return list(chain.from_iterable(known))
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a spreadsheet's or pandas' column with gaps
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] if 0 <= value < 100_000 else None
    if not isinstance(value, str) or len(value) > 200:
        return None
    pages: list[int] = []
    for part in re.split(r"[,;|&]", value):
        page = _PAGE.fullmatch(part.strip())
        if page is None:
            return None
        first = int(page[1])
        last = int(page[2] or page[1])
        if not first <= last < first + MOST_PAGES:
            return None
        pages += range(first, last + 1)
    return pages


def page_heading(page: int) -> str:
    """Return how a page stands in a gold place: a PDF has pages where a note has headings."""
    return f"page {page}"


def with_pages(places: Any, pages: Sequence[Sequence[int]]) -> list[dict[str, Json]]:
    """Return gold places with their pages, one place a page; empty if the pages fit no places.

    One document has all pages; of several, each has those at its position.
    """
    if not places or any("heading_path" in place for place in places):
        return []
    if len(places) == 1:
        pages = [list(chain.from_iterable(pages))]
    elif len(pages) != len(places):
        return []
    with_headings = []
    for place, listed in zip(places, pages, strict=True):
        with_headings += [{**place, "heading_path": page_heading(page)} for page in dict.fromkeys(listed)]
    return with_headings
