"""The spellings of one place: paths and headings in the forms in which they are compared."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import lru_cache, wraps
from html import unescape
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import unquote

from pytest_rageval.language.plain_text import as_seen, without_cjk_spaces
from pytest_rageval.language.quantities import with_plain_powers
from pytest_rageval.language.words import as_label
from pytest_rageval.model import Json, MatchKind

_Rest = ParamSpec("_Rest")
_Read = TypeVar("_Read")


def _remembered(read: Callable[Concatenate[str, _Rest], _Read]) -> Callable[Concatenate[str, _Rest], _Read]:
    """Cache parsed paths, of which few repeat often; longer texts are no paths and would fill the memory."""
    known = lru_cache(maxsize=16_384)(read)

    @wraps(read)
    def reading(text: str, /, *rest: _Rest.args, **options: _Rest.kwargs) -> _Read:
        return (known if len(text) <= 500 else read)(text, *rest, **options)  # type: ignore[arg-type]  # hashable

    return reading


LONGEST_PLACE = 2_000
"""Characters of a path or of headings that are compared. Their patterns take n² steps: 20,000 spaces took 16 s."""
_BLANKS = re.compile(r"[^\S\n\t]{2,}")
"""Line breaks and tabs separate headings."""


def bounded_place(written: str) -> str:
    """Return a path or headings of a system or a case, short enough for the patterns below."""
    return _BLANKS.sub(" ", written)[:LONGEST_PLACE] if len(written) > 100 else written


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────────


def path_form(path: str) -> str:
    """Normalise a path for comparison: Unicode NFC, `/` between folders."""
    if path.isascii():
        return path.replace("\\", "/") if "\\" in path else path
    return unicodedata.normalize("NFC", path).replace("\\", "/")


class FilePath(NamedTuple):
    """A path as its parts. The folders above a rooted one (absolute, or of a URL) are unknown by nature.

    stem, suffix  of the name; of a web page that a note became, the whole name is the stem
    fragment      of a URL, often the slug of a heading
    """

    parts: tuple[str, ...]
    is_rooted: bool
    stem: str
    suffix: str
    fragment: str

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else ""

    @property
    def folders(self) -> tuple[str, ...]:
        return self.parts[:-1]


_SCHEME = re.compile(r"(?:[A-Za-z][\w+.-]+:)?//[^/]*/?|file:|[A-Za-z]:(?=/)")
_SUFFIX = re.compile(r"[A-Za-z]\w{0,7}")
_AFTER_NAME = re.compile(r"(?<=\.)(\w{1,8})(?:/?[#?]|:(?=\d[\d:-]*$))(.*)", re.DOTALL)
"""What follows the name of a file: a query, a fragment, or lines as in `a.md:12-20`."""
_WEB_PAGES = {"htm", "html"}
_TEXTS = {"md", "markdown", "mdx", "rst", "adoc", "txt"}


@_remembered
def read_path(written: str) -> FilePath:
    """Return a path without what only its spelling adds: scheme, host, encoding, `./`, fragments."""
    path = unicodedata.normalize("NFC", unquote(bounded_place(written).strip(" \t\n\"'`<>"))).replace("\\", "/")
    scheme = _SCHEME.match(path)
    bare = path[scheme.end() :] if scheme else path
    fragment = path.rpartition("#")[2] if "#" in path else ""
    if scheme:
        bare = re.split("[?#]", bare, maxsplit=1)[0]
    bare = _AFTER_NAME.sub(r"\1", bare)
    parts = tuple(part for part in bare.split("/") if part not in ("", ".", ".."))
    stem, dot, suffix = parts[-1].rpartition(".") if parts else ("", "", "")
    if not (stem and _SUFFIX.fullmatch(suffix)):
        stem, suffix = f"{stem}{dot}{suffix}", ""
    if scheme and suffix.lower() in _WEB_PAGES:  # a page that was made of the note
        parts, suffix = (*parts[:-1], stem), ""
    is_rooted = bool(scheme) or bare.startswith(("/", "~/", "../"))
    return FilePath(parts, is_rooted, stem, suffix, fragment)


def path_key(text: str) -> str:
    """Return a part of a path in the form in which it is looked for: NFKC, case folded."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def can_be_same_name(one: FilePath, other: FilePath) -> bool:
    """Return True if two files have the same name, whatever its case, or a suffix is missing or that of a web page."""
    if path_key(one.stem) != path_key(other.stem):
        return False
    suffixes = {one.suffix.lower(), other.suffix.lower()}
    return len(suffixes - {""}) < 2 or (bool(suffixes & _WEB_PAGES) and suffixes <= _WEB_PAGES | _TEXTS)


MOST_JOINTS = 100
_JOINT = re.compile(r"[:.]\s*(?=\S)")


def joined_place(written: str, wanted: FilePath) -> tuple[str, str] | None:
    """Split `File: Heading` or `File.Heading` if its left part names the wanted file; None if it does not."""
    written = bounded_place(written)
    for joint in reversed([*_JOINT.finditer(written)][:MOST_JOINTS]):
        path = written[: joint.start()]
        if can_be_same_name(read_path(path), wanted):
            return path, written[joint.end() :]
    return None


class PathFit(NamedTuple):
    """Two paths of one file.

    has_other_folders  one has folders that the other lacks
    doubt              the kind of doubt, if the paths differ in more than what spelling explains
    """

    has_other_folders: bool = False
    doubt: str | None = None


FOLDER, SPELLING = "folder", "spelling"
"""Doubts: other folders above a path; names that differ in case, in the suffix of a web page, or in numbering."""


def path_fit(gold: FilePath, reported: FilePath, prefixes: Collection[tuple[str, ...]]) -> PathFit | None:
    """Return how two paths fit whose names can be the same; None if they name different files."""
    longer, shorter = sorted((gold, reported), key=lambda path: len(path.parts), reverse=True)
    extra = longer.folders[: len(longer.folders) - len(shorter.folders)]
    rest = longer.folders[len(extra) :]
    has_other_suffix = "" not in (gold.suffix, reported.suffix) and gold.suffix != reported.suffix
    doubt = SPELLING if has_other_suffix or gold.stem != reported.stem or rest != shorter.folders else None
    if rest != shorter.folders and [*map(path_key, rest)] != [*map(path_key, shorter.folders)]:
        return None
    # Below several prefixes: `kb/notes/a.md` with the notes in `/srv/kb/notes`.
    if not extra or any(extra == prefix[-len(extra) :] for prefix in prefixes):
        return PathFit(doubt=doubt)
    return PathFit(True, doubt if longer.is_rooted else FOLDER)


# ── headings ──────────────────────────────────────────────────────────────────────────────────────────────────


STRONG = re.compile(r"\s*(?:[>＞]+|[\n\t])\s*|\s+(?:›|»|→|⟶|▸|▶|❯|⟩|::|[-=]>)\s+")
WEAK = re.compile(r"\s+(?:/|\||\\|·|•|-|–|—)\s+")
_TIGHT = re.compile(r"[/|\\›»→]|::")
"""Separators of headings, from sure to unsure."""
_MARKS = re.compile(
    r"^[#\s]+|(?:\s+#+|\s*\{:?\s*[#.][^{}]*\})?[\s¶:：]*$|[*_`]{2,}|(?<!\w)[*_`](?=\w)|(?<=\w)[*_`](?!\w)"
    r"|(?<=\d)[.)](?=\s+[^\s#{¶:：])"
)
"""Marks of headings and of emphasis, attributes as in `{#intro}`, a colon at the end, a point behind a number."""
_TEXT_MARKS = re.compile(r"[*_`~]+|^[ \t]*(?:>|[-+]|\d+[.)])[ \t]+", re.MULTILINE)
"""Marks of emphasis, code, quotations and lists, which a chunk's text or a snippet may lack."""
_HYPHEN_IN_A_WORD = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_DASHES = str.maketrans("‐‑‒–—―−", "-------")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)|</?(?:h[1-6]|a|b|i|em|strong|code|span|p)\b[^<>]*>", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'“”„«»‘’‚]+(.+?)[\"'“”„«»‘’]+")
_QUOTES = re.compile(r"[\"“”„]")
_NUMBER = re.compile(r"\(?\d{1,2}(?:\.\d+)*\)?\s+")


@_remembered
def headings(heading_path: str) -> tuple[str, ...]:
    """Split `# Tips > ## Sorting` into ('Tips', 'Sorting'), without markers, extra white space and empty parts."""
    parts = unicodedata.normalize("NFC", heading_path).split(">")
    return tuple(filter(None, (" ".join(part.lstrip("# \t").split()) for part in parts)))


def heading_text(written: Json) -> Json:
    """Return a list of headings, or a mapping of levels to headings, as one path; anything else unchanged."""
    parts = written
    if isinstance(written, dict) and _named(written) is None:
        parts = [written[level] for level in sorted(written, key=lambda level: int(re.sub(r"\D", "", str(level)) or 0))]
    if not isinstance(parts, list):
        return _named(written) or written
    parts = [_named(part) or part for part in parts if part not in (None, "")]
    names = [part for part in parts if isinstance(part, str)]
    if len(names) < len(parts):
        return written
    # With marks, a heading that holds a separator stays one heading.
    marked = (name if name.startswith("#") else f"{'#' * level} {name}" for level, name in enumerate(names, start=1))
    return " > ".join(marked)


def _named(heading: Json) -> str | None:
    """Return the text of a heading that is an object."""
    texts = (heading.get(name) for name in ("text", "heading", "title", "name")) if isinstance(heading, dict) else ()
    return next((text for text in texts if isinstance(text, str)), None)


class Headings(NamedTuple):
    """A heading path as folded headings, and the pattern that separates them."""

    parts: tuple[str, ...]
    separator: re.Pattern[str] | None


@_remembered
def read_headings(heading_path: str, *, is_whole: bool = False) -> Headings:
    """Read a heading path in the form in which dialects are compared; `is_whole`: weak separators are part of one."""
    heading_path = _plain(bounded_place(heading_path.strip()))
    for separator in (STRONG,) if is_whole else (STRONG, WEAK, _TIGHT):
        written = separator.split(heading_path)
        if len(written) > 1:
            # `# Input / Output` is one heading: a path with marks has one at each heading.
            if separator is not STRONG and written[0].startswith("#") and not all(p.startswith("#") for p in written):
                continue
            parts = tuple(filter(None, map(heading_form, written)))
            return Headings(parts, separator)
    return Headings(tuple(filter(None, (heading_form(heading_path),))), None)


def _plain(heading_path: str) -> str:
    """Return a heading path without HTML and links, and one that a list or an object in JSON or Python's syntax is."""
    if heading_path[:1] in ("[", "{"):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            listed = heading_text(ast.literal_eval(re.sub(r"\bnull\b", "None", heading_path)))
            return listed if isinstance(listed, str) else heading_path
    return unescape(_LINK.sub(r"\1", heading_path))


def heading_form(heading: str) -> str:
    """Return the form in which two headings are compared: without marks, NFKC, case folded, one kind of dash."""
    bare = _MARKS.sub("", bounded_place(heading))
    if quoted := _QUOTED.fullmatch(bare):
        bare = quoted[1]
    return " ".join(as_label(bare.translate(_DASHES)).split())


def snippet_form(text: str) -> str:
    """Return the form in which a snippet is looked for in a text that lacks it as written.

    It has no Markdown marks, nothing that is invisible, one kind of quotes and dashes, and no hyphens within words: a
    hyphen at the end of a line may belong to the word or not.
    """
    bare = with_plain_powers(_TEXT_MARKS.sub("", as_seen(text)))
    form = " ".join(as_label(bare.translate(_DASHES)).split())
    return without_cjk_spaces(_HYPHEN_IN_A_WORD.sub("", form))


def is_under_heading(section: str, gold: str) -> bool:
    """Return True if the heading path of a note's section is that of a gold, or goes on below it."""
    wanted = read_headings(gold, is_whole=True).parts
    return read_headings(section, is_whole=True).parts[: len(wanted)] == wanted


class HeadingFit(NamedTuple):
    """How reported headings match those of a gold, and whether they are spelled otherwise: numbers, slugs, commas."""

    kind: MatchKind
    is_respelled: bool = False


def heading_fit(gold: str, reported: Headings, path: FilePath) -> HeadingFit | None:
    """Return how the headings reported for a path match those of a gold, if at all."""
    wanted = read_headings(gold, is_whole=True).parts
    parts, separator = reported
    if separator is not None and separator is not STRONG:
        # A heading that holds the separator itself: both are compared in pieces.
        pieces = [piece for heading in wanted for piece in separator.split(heading)]
        wanted = tuple(filter(None, map(heading_form, pieces)))
    if (kind := _kind(wanted, parts, path)) is not None:
        return HeadingFit(kind)
    for bare_wanted, bare_parts in _respelled(wanted, parts, path):
        if (kind := _kind(bare_wanted, bare_parts, path)) is not None:
            return HeadingFit(kind, is_respelled=True)
    return None


def _respelled(
    wanted: tuple[str, ...], parts: tuple[str, ...], path: FilePath
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield headings of a gold and reported ones in the forms that only a guess makes equal."""
    for name in (path.name.casefold(), path.stem.casefold()) if parts else ():
        named = re.match(rf"{re.escape(name)}(?::|\.(?!\s))\s*(?=\S)", parts[0]) if name else None
        if named is not None:  # `File: Heading` or `File.Heading`
            yield wanted, (parts[0][named.end() :], *parts[1:])
    bare_wanted, bare_parts = _unnumbered(wanted), _unnumbered(parts)
    if (bare_wanted == wanted) is not (bare_parts == parts):  # of two numbers, each names another heading
        yield bare_wanted, bare_parts
    written = "/".join(parts)
    if ("-" in written or "_" in written) and not re.search(r"\s", written):
        slugs = tuple(filter(None, map(_slug_key, re.split("[/#]", written))))
        yield tuple(map(_slug_key, wanted)), slugs
    for separator in (", ", "; ") if len(parts) == 1 and len(wanted) > 1 else ():
        joined, written = separator.join(wanted), _QUOTES.sub("", parts[0])
        if (written + separator).startswith(joined + separator):
            yield (joined,), (joined,)


def _kind(wanted: tuple[str, ...], parts: tuple[str, ...], path: FilePath) -> MatchKind | None:
    if parts[: len(wanted)] == wanted:
        return "normalised"
    if len(parts) > len(wanted):
        has_file = parts[0] in (path.name.casefold(), path.stem.casefold())
        return "normalised" if has_file and parts[1 : len(wanted) + 1] == wanted else None
    is_below = parts and wanted[len(wanted) - len(parts) :] == parts
    return "last_heading" if is_below else None


def _unnumbered(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([_NUMBER.sub("", part, count=1) if part[:1].isdigit() or part[:1] == "(" else part for part in parts])


def _slug_key(heading: str) -> str:
    """Return a slug for comparison; a word keeps its signs, since the slugs of `C++` and `C#` are one."""
    is_word = not re.search(r"[\s_-]", heading)
    return heading if is_word else slug(heading)


def slug(heading: str) -> str:
    """Return the fragment by which pages name a heading: `Data set (v2)` is `data-set-v2`."""
    return re.sub(r"[-_\s]+", "-", re.sub(r"[^\w\s-]", "", heading_form(heading))).strip("-")
