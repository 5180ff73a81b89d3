"""Pages of documents that have no headings: a gold's page, and the page that a passage reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.model import Chunk, Json, Reference

_GOLD = re.compile(r"page (\d{1,6})")
"""How a gold place names a page, as in `manual.pdf > page 12`."""
_HEADING = re.compile(
    r"(?:page|pg?\.?|seite|s\.|pagina|página)\s*(\d{1,6})|(\d{1,6})\s*(?:페이지|쪽|ページ|頁|页)", re.IGNORECASE
)
_FRAGMENT = re.compile(r"page=(\d{1,6})")
NAMES = ("page_label", "page_number", "page", "page_no")
"""What systems call the page of a passage; a label is what is printed on it, a bare number may count from 0."""


def page_of_gold(heading_path: str) -> str | None:
    """Return the page that a gold's heading path names instead of a heading."""
    named = _GOLD.fullmatch(heading_path)
    return named[1].lstrip("0") if named else None


class ReportedPage(NamedTuple):
    """The page that a passage reports; a bare number may count from 0, as PyPDF's does."""

    page: str
    may_count_from_0: bool = False


def page_of_passage(passage: Chunk | Reference, fragment: str) -> ReportedPage | None:
    """Return the page that a passage reports: beside its text, in the fragment of its path, or as its heading."""
    written = _member(passage.extra)
    if written is None and isinstance(metadata := passage.extra.get("metadata"), Mapping):
        written = _member(metadata)
    if written is not None:
        return written
    if named := _FRAGMENT.fullmatch(fragment):
        return ReportedPage(named[1].lstrip("0"))
    if named := _HEADING.fullmatch((passage.heading_path or "").strip("# ")[:20]):
        return ReportedPage((named[1] or named[2]).lstrip("0"))
    return None


def _member(members: Mapping[str, Json]) -> ReportedPage | None:
    for name in NAMES:
        value = members.get(name)
        if isinstance(value, (int, str)) and not isinstance(value, bool) and str(value).strip().isdecimal():
            page = str(value).strip()[:7].lstrip("0")
            return ReportedPage(page, may_count_from_0=name == "page" and isinstance(value, int))
    return None
