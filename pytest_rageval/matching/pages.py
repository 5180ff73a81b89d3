"""Pages of documents that have no headings: a gold's page, and the page that a passage reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.model import Chunk, Json, Reference

_GOLD = re.compile(r"page (\d{1,6})")
"""A page in a gold place, as in `manual.pdf > page 12`."""
_HEADING = re.compile(
    r"(?:page|pg?\.?|seite|s\.|pagina|página)\s*(\d{1,6})|(\d{1,6})\s*(?:페이지|쪽|ページ|頁|页)", re.IGNORECASE
)
_FRAGMENT = re.compile(r"page=(\d{1,6})")
NAMES = ("page_label", "page_number", "page", "page_no")
"""Fields of a passage that hold its page; a label is printed on the page, a bare number may count from 0."""


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
    reported = _member(passage.extra)
    metadata = passage.extra.get("metadata")
    if reported is None and isinstance(metadata, Mapping):
        reported = _member(metadata)
    if reported is not None:
        return reported
    if in_fragment := _FRAGMENT.fullmatch(fragment):
        return ReportedPage(in_fragment[1].lstrip("0"))
    if in_heading := _HEADING.fullmatch((passage.heading_path or "").strip("# ")[:20]):
        number = in_heading[1] or in_heading[2]
        return ReportedPage(number.lstrip("0"))
    return None


def _member(members: Mapping[str, Json]) -> ReportedPage | None:
    for name in NAMES:
        value = members.get(name)
        # True is an int to Python, and no page.
        if isinstance(value, bool) or not isinstance(value, int | str):
            continue
        written = str(value).strip()
        if written.isdecimal():
            # PyPDF's loaders give `page` as a number from 0 and `page_label` as it is printed.
            may_count_from_0 = name == "page" and isinstance(value, int)
            return ReportedPage(written[:7].lstrip("0"), may_count_from_0)
    return None
