"""The spellings of one place: paths and headings in the forms in which they are compared."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import lru_cache, wraps
from html import unescape
from itertools import islice
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
    # macOS gives names in NFD, and most other tools in NFC: "é" is one character in one and two in the other.
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
"""The rest of a path after the name of its file: a query, a fragment, or lines as in `a.md:12-20`."""
_WEB_PAGES = {"htm", "html"}
_TEXTS = {"md", "markdown", "mdx", "rst", "adoc", "txt"}


@_remembered
def read_path(written: str) -> FilePath:
    """Return a path without what only its spelling adds: scheme, host, encoding, `./`, fragments."""
    decoded = unquote(bounded_place(written).strip(" \t\n\"'`<>"))
    path = unicodedata.normalize("NFC", decoded).replace("\\", "/")
    fragment = path.rpartition("#")[2] if "#" in path else ""
    scheme = _SCHEME.match(path)
    if scheme is not None:
        path = re.split("[?#]", path[scheme.end() :], maxsplit=1)[0]
    path = _AFTER_NAME.sub(r"\1", path)
    is_rooted = scheme is not None or path.startswith(("/", "~/", "../"))
    parts = tuple([part for part in path.split("/") if part not in ("", ".", "..")])
    name = parts[-1] if parts else ""
    stem, suffix = _stem_and_suffix(name)
    if scheme is not None and suffix.lower() in _WEB_PAGES:  # a page that was made of the note
        parts = (*parts[:-1], stem)
        suffix = ""
    return FilePath(parts, is_rooted, stem, suffix, fragment)


def _stem_and_suffix(name: str) -> tuple[str, str]:
    """Split the name of a file; `v1.2` and `.env` have no suffix."""
    stem, _, suffix = name.rpartition(".")
    if stem and _SUFFIX.fullmatch(suffix):
        return stem, suffix
    return name, ""


def path_key(text: str) -> str:
    """Return a part of a path in the form in which it is looked for: NFKC, case folded."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def can_be_same_name(one: FilePath, other: FilePath) -> bool:
    """Return True if two files have the same name, whatever its case, or a suffix is missing or that of a web page."""
    if path_key(one.stem) != path_key(other.stem):
        return False
    suffixes = {one.suffix.lower(), other.suffix.lower()}
    if "" in suffixes or len(suffixes) == 1:
        return True
    return bool(suffixes & _WEB_PAGES) and suffixes <= _WEB_PAGES | _TEXTS


MOST_JOINTS = 100
_JOINT = re.compile(r"[:.]\s*(?=\S)")


def joined_place(written: str, wanted: FilePath) -> tuple[str, str] | None:
    """Split `File: Heading` or `File.Heading` if its left part names the wanted file; None if it does not."""
    written = bounded_place(written)
    joints = list(islice(_JOINT.finditer(written), MOST_JOINTS))
    for joint in reversed(joints):
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
    if rest != shorter.folders and list(map(path_key, rest)) != list(map(path_key, shorter.folders)):
        return None
    has_other_suffix = "" not in (gold.suffix, reported.suffix) and gold.suffix != reported.suffix
    is_respelled = has_other_suffix or gold.stem != reported.stem or rest != shorter.folders
    doubt = SPELLING if is_respelled else None
    # Below several prefixes: `kb/notes/a.md` with the notes in `/srv/kb/notes`.
    if not extra or any(extra == prefix[-len(extra) :] for prefix in prefixes):
        return PathFit(doubt=doubt)
    return PathFit(has_other_folders=True, doubt=doubt if longer.is_rooted else FOLDER)


# ── headings ──────────────────────────────────────────────────────────────────────────────────────────────────


STRONG = re.compile(r"\s*(?:[>＞]+|[\n\t])\s*|\s+(?:›|»|→|⟶|▸|▶|❯|⟩|::|[-=]>)\s+")
WEAK = re.compile(r"(?<!\s)\s+(?:/|\||\\|·|•|-|–|—)\s+")
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
_CLOSING_QUOTES = "\"'“”„«»‘’"
_OPENING_QUOTES = _CLOSING_QUOTES + "‚"
_QUOTES = re.compile(r"[\"“”„]")
_NUMBER = re.compile(r"^\(?\d{1,2}(?:\.\d+)*\)?\s+")


@_remembered
def headings(heading_path: str) -> tuple[str, ...]:
    """Split `# Tips > ## Sorting` into ('Tips', 'Sorting'), without markers, extra white space and empty parts."""
    parts = unicodedata.normalize("NFC", heading_path).split(">")
    return tuple(filter(None, (" ".join(part.lstrip("# \t").split()) for part in parts)))


def heading_text(written: Json) -> Json:
    """Return a list of headings, or a mapping of levels to headings, as one path; anything else unchanged."""
    parts = written
    if isinstance(written, dict) and _named(written) is None:
        parts = [written[level] for level in sorted(written, key=_number_in)]
    if not isinstance(parts, list):
        return _named(written) or written
    names = [_named(part) or part for part in parts if part not in (None, "")]
    if not all(isinstance(name, str) for name in names):
        return written
    # With marks, a heading that holds a separator stays one heading.
    return " > ".join([_marked(name, level) for level, name in enumerate(names, start=1)])


def _marked(name: str, level: int) -> str:
    return name if name.startswith("#") else f"{'#' * level} {name}"


def _number_in(level: Json) -> int:
    """Return the number of a level such as `h2` or `Header 2`; 0 without one."""
    digits = re.sub(r"\D", "", str(level))
    return int(digits) if digits else 0


def _named(heading: Json) -> str | None:
    """Return the text of a heading that is an object."""
    if not isinstance(heading, dict):
        return None
    for name in ("text", "heading", "title", "name"):
        if isinstance(heading.get(name), str):
            return str(heading[name])
    return None


class Headings(NamedTuple):
    """A heading path as folded headings, and the pattern that separates them."""

    parts: tuple[str, ...]
    separator: re.Pattern[str] | None


@_remembered
def read_headings(heading_path: str, *, is_whole: bool = False) -> Headings:
    """Read a heading path in the form in which dialects are compared; `is_whole`: weak separators are part of one."""
    heading_path = _plain(bounded_place(heading_path.strip()))
    for separator in (STRONG,) if is_whole else (STRONG, WEAK, _TIGHT):
        parts = separator.split(heading_path)
        if len(parts) < 2:
            continue
        if separator is not STRONG and parts[0].startswith("#") and not all(part.startswith("#") for part in parts):
            continue  # `# Input / Output` is one heading: a path with marks has one at each heading
        return Headings(tuple(filter(None, map(heading_form, parts))), separator)
    form = heading_form(heading_path)
    return Headings((form,) if form else (), None)


def _plain(heading_path: str) -> str:
    """Return a heading path without HTML and links; read a list or an object, in JSON or Python's syntax, as one."""
    if heading_path[:1] in ("[", "{"):
        # Whatever a system writes there: what is no literal stays a heading.
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            read = heading_text(ast.literal_eval(re.sub(r"\bnull\b", "None", heading_path)))
            return read if isinstance(read, str) else heading_path
    return unescape(_LINK.sub(r"\1", heading_path))


def heading_form(heading: str) -> str:
    """Return the form in which two headings are compared: without marks, NFKC, case folded, one kind of dash."""
    bare = _MARKS.sub("", bounded_place(heading))
    # No pattern: `["']+(.+?)["']+` takes cubic time over a row of quotes.
    if bare.startswith(tuple(_OPENING_QUOTES)) and bare.endswith(tuple(_CLOSING_QUOTES)):
        bare = bare.lstrip(_OPENING_QUOTES).rstrip(_CLOSING_QUOTES) or bare
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
    kind = _kind(wanted, parts, path)
    if kind is not None:
        return HeadingFit(kind)
    for bare_wanted, bare_parts in _respelled(wanted, parts, path):
        kind = _kind(bare_wanted, bare_parts, path)
        if kind is not None:
            return HeadingFit(kind, is_respelled=True)
    return None


def _respelled(
    wanted: tuple[str, ...], parts: tuple[str, ...], path: FilePath
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield headings of a gold and reported ones in the forms that only a guess makes equal."""
    for name in (path.name.casefold(), path.stem.casefold()):
        if name and parts:
            file_name = re.match(rf"{re.escape(name)}(?::|\.(?!\s))\s*(?=\S)", parts[0])
            if file_name is not None:  # `File: Heading` or `File.Heading`
                yield wanted, (parts[0][file_name.end() :], *parts[1:])
    bare_wanted = _unnumbered(wanted)
    bare_parts = _unnumbered(parts)
    if (bare_wanted == wanted) is not (bare_parts == parts):  # of two numbers, each names another heading
        yield bare_wanted, bare_parts
    joined_parts = "/".join(parts)
    if ("-" in joined_parts or "_" in joined_parts) and not re.search(r"\s", joined_parts):
        slugs = tuple(filter(None, map(_slug_key, re.split("[/#]", joined_parts))))
        yield tuple(map(_slug_key, wanted)), slugs
    if len(parts) == 1 and len(wanted) > 1:
        written = _QUOTES.sub("", parts[0])
        for separator in (", ", "; "):
            listed = separator.join(wanted)
            if (written + separator).startswith(listed + separator):
                yield (listed,), (listed,)


def _kind(wanted: tuple[str, ...], parts: tuple[str, ...], path: FilePath) -> MatchKind | None:
    if parts[: len(wanted)] == wanted:
        return "normalised"
    if len(parts) > len(wanted):
        begins_with_file = parts[0] in (path.name.casefold(), path.stem.casefold())
        return "normalised" if begins_with_file and parts[1 : len(wanted) + 1] == wanted else None
    is_end = bool(parts) and wanted[len(wanted) - len(parts) :] == parts
    return "last_heading" if is_end else None


def _unnumbered(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts without a number at their beginning."""
    bare = []
    for part in parts:
        # Most have none, and a look at the first character is cheaper than the pattern.
        may_be_numbered = part[:1].isdigit() or part[:1] == "("
        bare.append(_NUMBER.sub("", part) if may_be_numbered else part)
    return tuple(bare)


def _slug_key(heading: str) -> str:
    """Return a slug for comparison; a word keeps its signs, since the slugs of `C++` and `C#` are one."""
    has_several_words = re.search(r"[\s_-]", heading) is not None
    return slug(heading) if has_several_words else heading


def slug(heading: str) -> str:
    """Return the fragment by which pages name a heading: `Data set (v2)` is `data-set-v2`."""
    words = re.sub(r"[^\w\s-]", "", heading_form(heading))
    return re.sub(r"[-_\s]+", "-", words).strip("-")
