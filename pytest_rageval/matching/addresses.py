"""Differences of two addresses with one path: their hosts, their queries, the routes and sections behind `#`."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from pytest_rageval.matching.pages import ReportedPage, page_of_passage
from pytest_rageval.matching.spellings import bounded_place, read_headings, slug
from pytest_rageval.model import Anchor, Chunk, Reference

_HOST = re.compile(r"[A-Za-z][\w+.-]+://(?:[^/?#@]*@)?([^/?#]*)|//([^/?#]+)")
_USUAL_PORT = re.compile(r":(80|443)?$")
_TRACKING = re.compile(
    r"utm_.*|mtm_.*|pk_.*|hsa_.*|_hs.*|mc_[ce]id|[a-z]*clid|gclsrc|msclkid|igshid|_ga|_gl|trk|ref|ref_src|referrer|"
    r"source|share|spm|plain|raw|dl|download|print|x-amz-.*|x-goog-.*|x-oss-.*|awsaccesskeyid|googleaccessid|"
    r"signature|expires|key-pair-id|policy|sig|se|sp|sv|sr|st|spr|skoid|sktid|skt|ske|sks|skv|token|access_token",
    re.IGNORECASE,
)
"""Parameters of a query that name no page: where a visitor came from, how a page is shown, who may see it."""
_PLAIN_FILES = re.compile(
    r".*\.(md|markdown|mdx|rst|adoc|txt|pdf|docx?|pptx?|xlsx?|csv|json)/?", re.IGNORECASE | re.DOTALL
)
"""Files that are one document, whatever query stands behind one of two addresses."""
_SCRIPTS = re.compile(
    r".*\.(action|php\d?|phtml|aspx?|ashx|jspx?|jsf|do|cgi|f?pl|cfm|dll|exe)/?|([\w+.-]+:)?//[^/]*/?|.*/index(\.\w+)?",
    re.IGNORECASE | re.DOTALL,
)
"""Paths of many pages, told apart by the query alone."""
_SHOWN = re.compile(
    r"lang|language|locale|hl|lc|country|region|theme|mode|style|skin|view|tab|sort|order|sort_?by|format|output|device|"
    r"mobile|amp|highlight|back|return|return_?url|from|via|session|sid|cache|nocache|ts|_|embed|inline|version",
    re.IGNORECASE,
)
"""Parameters that show a page in another way: an address without them names the page, too."""
_WORDS_OF_PAGES = (
    "id ids uid uuid guid no nr num number key page pages pg p v q t w n s c f article articles doc docs document node "
    "topic post thread item entry slug name title path file filename url uri question query search term keyword cat "
    "category section chapter product sku kb issue ticket action module route what"
)
_OF_PAGES = frozenset(_WORDS_OF_PAGES.split())
"""Words in the names of parameters that name a page: `pageId`, `article`."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NO_SECTION = re.compile(
    r"top|content|main|L\d{1,7}.*|:~:.*|\d{1,7}|(chunk|part|c|p|lines?|row)?[-_ :=]?\d{1,7}([-–]\d{1,7})?",
    re.IGNORECASE | re.DOTALL,
)
"""Fragments that name no heading: the top of a page, lines, a text to be marked, the number of a chunk."""
_PAGE = re.compile(r"page=(\d{1,6})\b.*", re.DOTALL)


class Address(NamedTuple):
    """The parts of an address besides its path; an absent part is empty.

    query      the parameters that may name the page, in any order
    is_script  only the query tells the pages of this path apart
    route      the path behind `#/`, within an application that is one page
    section    the heading's slug behind `#`
    page       the number behind `#page=`
    """

    host: str = ""
    is_plain_file: bool = False
    query: tuple[tuple[str, str], ...] = ()
    route: str = ""
    section: str = ""
    page: str = ""
    is_script: bool = False


@lru_cache(maxsize=16_384)
def _read(written: str) -> Address:
    text = unicodedata.normalize("NFC", bounded_place(written).strip(" \t\n\"'`<>"))
    before, _, fragment = text.partition("#")
    path, _, query = before.partition("?")
    address = Address(
        host=_host_of(text),
        is_plain_file=_PLAIN_FILES.fullmatch(path) is not None,
        query=_identifying(query),
        is_script=_SCRIPTS.fullmatch(path) is not None,
    )
    fragment = unquote(fragment)
    if fragment.startswith(("/", "!")):
        return address._replace(route=fragment.strip("!/"))
    page = _PAGE.fullmatch(fragment)
    if page is not None:
        return address._replace(page=page[1].lstrip("0"))
    if _NO_SECTION.fullmatch(fragment):
        return address
    return address._replace(section=slug(fragment))


def _host_of(text: str) -> str:
    """Return the host of a URL without `www.` and a usual port; '' for a path."""
    host = _HOST.match(text)
    if host is None:
        return ""
    name = host[1] or host[2] or ""
    return _USUAL_PORT.sub("", name.lower().removeprefix("www."))


def _identifying(query: str) -> tuple[tuple[str, str], ...]:
    if not query:
        return ()
    pairs = parse_qsl(query.replace(";", "&"), keep_blank_values=True, max_num_fields=None)
    return tuple(sorted([pair for pair in pairs if not _TRACKING.fullmatch(pair[0])]))


def can_be_same_page(one: str, other: str) -> bool:
    """Return False for two addresses with different hosts, queries or routes; a bare path may be of any host."""
    if "?" not in one + other and "#" not in one + other and not ("//" in one and "//" in other):
        return True
    first = _read(one)
    second = _read(other)
    is_same_query = _is_same_query(first, second)
    is_one_without_query = not (first.query and second.query)
    if not (first.host and second.host):
        return (is_same_query or is_one_without_query) and _are_equal_or_missing(first.route, second.route)
    if first.host != second.host or first.route != second.route:
        return False
    return is_same_query or (is_one_without_query and first.is_plain_file)


def _is_same_query(first: Address, second: Address) -> bool:
    """Return True if parameters of both are equal, and those that only one has name no page."""
    if first.query == second.query:
        return True
    shared = {name for name, _ in first.query} & {name for name, _ in second.query}
    differing = set(first.query) ^ set(second.query)
    return not any(name in shared or _names_page(name, first) for name, _ in differing)


def _names_page(parameter: str, address: Address) -> bool:
    """Return True if an address without this parameter is that of another page."""
    if _SHOWN.fullmatch(parameter):
        return False
    words = map(str.lower, _WORDS.findall(parameter))
    return address.is_script or not _OF_PAGES.isdisjoint(words)


def _are_equal_or_missing(first: object, second: object) -> bool:
    """Return True if a part of two addresses is the same, or one address lacks it."""
    return first == second or not (first and second)


def names_other_section(gold: Anchor, passage: Chunk | Reference) -> bool:
    """Return True if the path of a gold ends in a section or a page, and a passage is of another one."""
    if "#" not in gold.rel_path:
        return False
    wanted = _read(gold.rel_path)
    reported = _read(passage.rel_path or "")
    if wanted.page:
        page = page_of_passage(passage, f"page={reported.page}" if reported.page else "")
        return page is not None and not _is_page(page, wanted.page)
    if not wanted.section:
        return False
    if reported.section:
        return reported.section != wanted.section
    headings = read_headings(passage.heading_path or "").parts
    return bool(headings) and wanted.section not in map(slug, headings)


def _is_page(reported: ReportedPage, wanted: str) -> bool:
    counted_from_0 = reported.may_count_from_0 and int(reported.page or 0) + 1 == int(wanted or 0)
    return reported.page == wanted or counted_from_0
