"""The spellings of one place: paths and headings in the forms in which they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from pytest_rageval.model import Json, MatchKind

# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────────


def path_form(path: str) -> str:
    """Normalise a path for comparison: Unicode NFC, `/` between folders."""
    if path.isascii():
        return path.replace("\\", "/") if "\\" in path else path
    return unicodedata.normalize("NFC", path).replace("\\", "/")


class FilePath(NamedTuple):
    """A path as its parts. The folders above a rooted one (absolute, or of a URL) are unknown by nature."""

    parts: tuple[str, ...]
    is_rooted: bool
    name: str
    stem: str

    @property
    def folders(self) -> tuple[str, ...]:
        return self.parts[:-1]


_SCHEME = re.compile(r"(?:[A-Za-z][\w+.-]+:)?//[^/]*/?|file:|[A-Za-z]:(?=/)")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,7}$")
_FRAGMENT = re.compile(r"(\.\w{1,8})/?[#?].*", re.DOTALL)


def _read_path(written: str) -> FilePath:
    path = unicodedata.normalize("NFC", unquote(written.strip())).replace("\\", "/")
    scheme = _SCHEME.match(path)
    bare = path[scheme.end() :] if scheme else path
    if scheme:
        bare = re.split("[?#]", bare, maxsplit=1)[0]
    bare = _FRAGMENT.sub(r"\1", bare)
    parts = tuple(part for part in bare.split("/") if part not in ("", ".", ".."))
    name = parts[-1] if parts else ""
    stem, _, suffix = name.rpartition(".")
    if scheme and (not stem or suffix.lower() in ("htm", "html")):  # a page that was made of the note
        name = stem = stem or name
    is_rooted = bool(scheme) or bare.startswith(("/", "~/", "../"))
    return FilePath(parts, is_rooted, name, stem or name)


_WORTH_KEEPING = 500
"""Longest cached path: few repeat often; longer texts are no paths and would fill the memory."""
_known_path = lru_cache(maxsize=16_384)(_read_path)


def read_path(written: str) -> FilePath:
    """Return a path without what only its spelling adds: scheme, host, encoding, `./`, fragments."""
    return (_known_path if len(written) <= _WORTH_KEEPING else _read_path)(written)


def is_same_name(one: FilePath, other: FilePath) -> bool:
    """Return True if two files have the same name, or one lacks the extension."""
    if one.name == other.name:
        return True
    shorter, longer = sorted((one, other), key=lambda path: len(path.name))
    return shorter.name == longer.stem and not _EXTENSION.search(shorter.name)


class PathFit(NamedTuple):
    """Two paths of one file: whether they differ in folders above it, and whether nothing explains that."""

    has_other_folders: bool = False
    is_doubtful: bool = False


def path_fit(gold: FilePath, reported: FilePath, prefixes: Collection[tuple[str, ...]]) -> PathFit | None:
    """Return how two paths with the same file name fit; None if they name different files."""
    longer, shorter = sorted((gold, reported), key=lambda path: len(path.parts), reverse=True)
    extra = longer.folders[: len(longer.folders) - len(shorter.folders)]
    if longer.folders[len(extra) :] != shorter.folders:
        return None
    if not extra:
        return PathFit()
    # Below several prefixes: `kb/notes/a.md` with the notes in `/srv/kb/notes`.
    if any(extra == prefix[-len(extra) :] for prefix in prefixes):
        return PathFit()
    return PathFit(has_other_folders=True, is_doubtful=not longer.is_rooted)


# ── headings ──────────────────────────────────────────────────────────────────────────────────────────────────


STRONG = re.compile(r"\s*(?:>+|[\n\t])\s*|\s+(?:›|»|→|⟶|▸|▶|❯|⟩|::|[-=]>)\s+")
WEAK = re.compile(r"\s+(?:/|\||\\|·|•|–|—)\s+")
_TIGHT = re.compile(r"[/|›»→]|::")
"""Separators of headings, from sure to unsure."""
_MARKS = re.compile(r"^[#\s]+|(?:\s+#+)?[\s¶]*$|[*_`]{2,}|(?<!\w)[*_`](?=\w)|(?<=\w)[*_`](?!\w)")


def headings(heading_path: str) -> tuple[str, ...]:
    """Split `# Tips > ## Sorting` into ('Tips', 'Sorting'), without markers, extra white space and empty parts."""
    return (_known_headings if len(heading_path) <= _WORTH_KEEPING else _exact_headings)(heading_path)


def _exact_headings(heading_path: str) -> tuple[str, ...]:
    parts = unicodedata.normalize("NFC", heading_path).split(">")
    return tuple(filter(None, (" ".join(part.lstrip("# \t").split()) for part in parts)))


_known_headings = lru_cache(maxsize=16_384)(_exact_headings)


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


def _split(heading_path: str, *, is_whole: bool) -> Headings:
    """Split a heading path; `is_whole`: weak separators are a part of headings."""
    for separator in (STRONG,) if is_whole else (STRONG, WEAK, _TIGHT):
        written = separator.split(heading_path.strip())
        if len(written) > 1:
            # `# Input / Output` is one heading: a path with marks has one at each heading.
            if separator is not STRONG and written[0].startswith("#") and not all(p.startswith("#") for p in written):
                continue
            parts = tuple(filter(None, map(heading_form, written)))
            return Headings(parts, separator)
    return Headings(tuple(filter(None, (heading_form(heading_path),))), None)


_known_split = lru_cache(maxsize=16_384)(_split)


def read_headings(heading_path: str, *, is_whole: bool = False) -> Headings:
    """Read a heading path in the form in which dialects are compared; `is_whole` as for `_split`."""
    read = _known_split if len(heading_path) <= _WORTH_KEEPING else _split
    return read(heading_path, is_whole=is_whole)


def heading_form(heading: str) -> str:
    """Return the form in which two headings are compared: without marks, NFKC, case folded."""
    bare = _MARKS.sub("", heading)
    return " ".join(unicodedata.normalize("NFKC", bare).casefold().split())


def heading_kind(gold: str, reported: Headings, path: FilePath) -> MatchKind | None:
    """Return how the headings reported for a path match those of a gold, if at all."""
    wanted = read_headings(gold, is_whole=True).parts
    parts, separator = reported
    if separator is not None and separator is not STRONG:
        # A heading that holds the separator itself: both are compared in pieces.
        pieces = [piece for heading in wanted for piece in separator.split(heading)]
        wanted = tuple(filter(None, map(heading_form, pieces)))
    if parts[: len(wanted)] == wanted:
        return "normalised"
    if len(parts) > len(wanted):
        has_file = parts[0] in (path.name.casefold(), path.stem.casefold())
        return "normalised" if has_file and parts[1 : len(wanted) + 1] == wanted else None
    is_below = parts and wanted[len(wanted) - len(parts) :] == parts
    return "last_heading" if is_below else None
