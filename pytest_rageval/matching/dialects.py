"""Places that a system names otherwise than the cases do: the looser steps of matching, after the exact one.

A gold without an exact match is looked for by paths and headings in a normal form, then by its last heading alone, then
by its document alone if the answer reports no heading at all. The first step that succeeds wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from pytest_rageval.matching.notes import Notes, is_of_section, text_below
from pytest_rageval.matching.pages import page_of_gold, page_of_passage
from pytest_rageval.matching.spellings import (
    FOLDER,
    SPELLING,
    STRONG,
    WEAK,
    FilePath,
    HeadingFit,
    bounded_place,
    can_be_same_name,
    heading_fit,
    heading_form,
    headings,
    joined_place,
    path_fit,
    path_key,
    read_headings,
    read_path,
    slug,
)
from pytest_rageval.model import Anchor, Chunk, EvalCase, LooseMatch, MatchKind, Reference

Passage = Chunk | Reference


class FileNames:
    """Paths by the names that their files can have."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._by_stem: dict[str, dict[str, None]] = {}
        for path in paths:
            self._by_stem.setdefault(path_key(read_path(path).stem), {})[path] = None

    def called(self, path: FilePath) -> list[str]:
        """Return the paths whose files can have the name of this one."""
        return [*self._by_stem.get(path_key(path.stem), ())]

    @property
    def ambiguous(self) -> list[str]:
        """Return two paths for each name that stands in several folders or can be spelled otherwise."""
        ambiguous: list[str] = []
        for paths in self._by_stem.values():
            if len(paths) < 2:
                continue
            by_name: dict[str, list[str]] = {}
            for path in sorted(paths):
                by_name.setdefault(path_key(read_path(path).name), []).append(path)
            for namesakes in by_name.values():
                # Two show that a name is ambiguous: more would only make messages longer.
                ambiguous += namesakes[:2]
        return sorted(ambiguous)


_NO_NAMES = FileNames()


class PlaceRules(NamedTuple):
    """How golds and the places of an answer are compared.

    is_strict  accepts no match by the last heading or by the document alone
    prefixes   folders that may stand above the paths of cases or answers
    notes      the notes, if they are known
    golds      the paths of other golds of the run with names that several files have
    """

    is_strict: bool = False
    prefixes: tuple[tuple[str, ...], ...] = ()
    notes: Notes | None = None
    golds: FileNames = _NO_NAMES

    @classmethod
    def of(cls, settings: Mapping[str, Any], notes: Notes | None = None, golds: Iterable[str] = ()) -> PlaceRules:
        """Return the rules of these settings, as a run's config.json stores them."""
        folders = (settings.get("path_prefix"), settings.get("notes"))
        prefixes = tuple(read_path(folder).parts for folder in folders if folder)
        return cls(bool(settings.get("strict_places")), prefixes, notes, FileNames(golds))


ANY_PLACES = PlaceRules()


def namesakes_of(cases: Iterable[EvalCase]) -> list[str]:
    """Return the paths of golds that have the name of another gold's file, such as two of README.md."""
    return FileNames(anchor.rel_path for case in cases for anchor in case.gold.supports or ()).ambiguous


# ── matching ──────────────────────────────────────────────────────────────────────────────────────────────────


class LooseMatches(NamedTuple):
    """Matches that are not exact, and the names of several files that kept others from being made."""

    matches: tuple[LooseMatch, ...] = ()
    ambiguous: tuple[str, ...] = ()


NO_LOOSE_MATCHES = LooseMatches()
_ORDER: tuple[MatchKind, ...] = ("normalised", "last_heading", "document")


class Quotes(Protocol):
    """Checks whether a passage at a 1-based position quotes a gold's snippets; flags what cannot be checked."""

    def __call__(self, gold: int, passage: Passage, at: int, /) -> bool: ...


def loose_matches(
    golds: Sequence[Anchor],
    passages: Sequence[Passage],
    hits: Sequence[frozenset[int]],
    rules: PlaceRules,
    quotes: Quotes,
    chunks: Sequence[Chunk] = (),
) -> LooseMatches:
    """Match the golds without a hit with passages, from the surest step to the least sure.

    hits    the golds that each passage matches exactly
    quotes  checks the snippets of a gold
    chunks  of the same answer, if the passages are references
    """
    matched = frozenset[int]().union(*hits)
    candidates: list[_Candidate] = []
    parted: dict[int, Passage] = {}
    for gold, anchor in enumerate(golds):
        if gold in matched:
            continue
        wanted = read_path(anchor.rel_path)
        for at in _near(path_key(wanted.stem), passages):
            # A passage that matches another heading exactly is not looked at further.
            if any(golds[hit].heading_path for hit in hits[at]):
                continue
            passage = parted.get(at, passages[at])
            path = read_path(passage.rel_path or "")
            if not can_be_same_name(path, wanted):
                if at in parted or _is_known(path, golds, rules):
                    continue
                parts = _parted(passage, anchor, wanted)
                if parts is None:
                    continue
                passage = parts
                parted[at] = passage
                path = read_path(passage.rel_path or "")
            if not _is_elsewhere(anchor, passage, path):
                candidates.append(_Candidate(at, gold, path))
    if not candidates:
        return NO_LOOSE_MATCHES
    if parted:
        passages = [parted.get(at, passage) for at, passage in enumerate(passages)]
    return _Search(golds, passages, rules, quotes, chunks, parted.keys()).matches(candidates)


class _Candidate(NamedTuple):
    """A passage by its position and a gold by its number, which may name the same place; the passage's path."""

    at: int
    gold: int
    path: FilePath


def _parted(passage: Passage, anchor: Anchor, wanted: FilePath) -> Passage | None:
    """Return a passage whose path holds its heading too with both apart, if the left part is the gold's document."""
    if not anchor.heading_path or passage.heading_path:
        return None
    place = joined_place(passage.rel_path or "", wanted)
    if place is None:
        return None
    rel_path, heading_path = place
    return replace(passage, rel_path=rel_path, heading_path=heading_path)


def _is_known(path: FilePath, golds: Sequence[Anchor], rules: PlaceRules) -> bool:
    """Return True if a whole path, such as `a.b` of `a.b.md`, names a document: then it holds no heading."""
    for whole in (path, path._replace(stem=path.name, suffix="")):
        known = [anchor.rel_path for anchor in golds]
        known += rules.golds.called(whole)
        if rules.notes is not None:
            known += rules.notes.called(whole)
        if any(can_be_same_name(whole, read_path(document)) for document in known):
            return True
    return False


def _is_elsewhere(anchor: Anchor, passage: Passage, path: FilePath) -> bool:
    """Return True if the heading of a passage is another one, whatever the other passages of its answer are."""
    if not (anchor.heading_path and passage.heading_path) or page_of_gold(anchor.heading_path):
        return False
    reported = read_headings(passage.heading_path)
    if reported.separator not in (STRONG, None):
        return False  # whether it separates headings depends on the other passages
    if reported.separator is None and not reported.parts:
        return False
    return heading_fit(anchor.heading_path, reported, path) is None


def _near(stem: str, passages: Sequence[Passage]) -> list[int]:
    """Return the positions of passages that may be of a file; a search in their paths costs a tenth of reading them."""
    near: list[int] = []
    for at, passage in enumerate(passages):
        path = passage.rel_path
        if path is None:
            continue
        # An encoded path, or one not in ASCII, may name the file in another way.
        if stem in path.lower() or "%" in path or not path.isascii():
            near.append(at)
    return near


class _Search:
    """The search of one answer's passages for the golds without an exact match."""

    def __init__(
        self,
        golds: Sequence[Anchor],
        passages: Sequence[Passage],
        rules: PlaceRules,
        quotes: Quotes,
        chunks: Sequence[Chunk],
        parted: Collection[int] = (),
    ) -> None:
        self._golds = golds
        self._passages = passages
        self._rules = rules
        self._quotes = quotes
        self._parted = parted  # positions of passages whose path held the heading too
        written = [passage.heading_path for passage in (*passages, *chunks) if passage.heading_path]
        self._has_headings = any(not heading.isspace() for heading in written)
        # A system separates headings in one way: if it writes `A > B`, `C / D` is one heading.
        self._is_whole = any(read_headings(heading).separator is STRONG for heading in written)
        self._ambiguous: dict[str, None] = {}

    def matches(self, candidates: Sequence[_Candidate]) -> LooseMatches:
        """Return the matches of the surest kind for each gold."""
        by_gold: dict[int, list[LooseMatch]] = {}
        for candidate in candidates:
            match = self._match(*candidate)
            if match is not None:
                by_gold.setdefault(match.gold, []).append(match)
        surest: list[LooseMatch] = []
        for matches in by_gold.values():
            # A gold that a sure step found needs no guess beside it.
            kind = min((match.kind for match in matches), key=_ORDER.index)
            surest += [match for match in matches if match.kind == kind]
        return LooseMatches(tuple(sorted(surest)), tuple(self._ambiguous))

    def _match(self, at: int, gold: int, path: FilePath) -> LooseMatch | None:
        anchor = self._golds[gold]
        passage = self._passages[at]
        wanted = read_path(anchor.rel_path)
        place = path_fit(wanted, path, self._rules.prefixes)
        if place is None:
            return None
        fit = self._fit(anchor, passage, path)
        if fit is None:
            return None
        is_respelled = fit.is_respelled or at in self._parted
        doubt = place.doubt or (SPELLING if is_respelled else None)
        if self._rules.is_strict and (fit.kind != "normalised" or is_respelled or doubt == SPELLING):
            return None
        is_guessed = place.has_other_folders or place.doubt is not None or path.name != wanted.name
        if is_guessed and self._is_ambiguous(path):
            return None
        # Last, since it searches texts, and notes a doubt that only a match may have.
        if not self._quotes(gold, passage, at + 1):
            return None
        is_decided = fit.kind == "normalised" or (fit.kind == "document" and self._is_decided(anchor, passage))
        return LooseMatch(at, gold, fit.kind, doubt if is_decided else fit.kind)

    def _fit(self, anchor: Anchor, passage: Passage, path: FilePath) -> HeadingFit | None:
        wanted = headings(anchor.heading_path)
        if not wanted:
            return HeadingFit("normalised")
        page = page_of_gold(anchor.heading_path)
        if page:
            return self._fit_of_page(page, anchor, passage, path)
        written = passage.heading_path or ""
        if not written and path.fragment and slug(path.fragment) == slug(wanted[-1]):
            return HeadingFit("last_heading")
        if not self._has_headings:
            return HeadingFit("document") if self._lies_in(anchor, passage) else None
        reported = read_headings(written, is_whole=self._is_whole)
        if not reported.parts:
            return None
        if reported.separator not in (None, STRONG) and self._is_one_heading(written, anchor):
            reported = read_headings(written, is_whole=True)
        return heading_fit(anchor.heading_path, reported, path)

    def _fit_of_page(self, page: str, anchor: Anchor, passage: Passage, path: FilePath) -> HeadingFit | None:
        """Return the fit of a gold that names a page: by the reported page; by the document where none is reported."""
        reported = page_of_passage(passage, path.fragment)
        if reported is not None and reported.page == page:
            return HeadingFit("normalised")
        # A number that counts from 0 is one less than the page: no other number leaves a doubt.
        if reported is not None and not (reported.may_count_from_0 and int(reported.page or 0) + 1 == int(page)):
            return None
        return HeadingFit("document") if self._lies_in(anchor, passage) else None

    def _is_one_heading(self, reported: str, wanted: Anchor) -> bool:
        """Return True if a gold or the notes know the reported text as one heading."""
        reported = bounded_place(reported)
        known = [anchor.heading_path for anchor in self._golds]
        notes = self._rules.notes
        if notes is not None and WEAK.search(reported):
            for note in notes.meant(wanted.rel_path):
                known += [section.heading_path for section in notes.sections(note) or ()]
        whole = heading_form(reported)
        return any(whole in read_headings(path, is_whole=True).parts for path in known if path)

    def _section(self, anchor: Anchor) -> str | None:
        return None if self._rules.notes is None else text_below(self._rules.notes, anchor)

    def _lies_in(self, anchor: Anchor, passage: Passage) -> bool:
        """Return False if the text of a passage is not of the gold's section, as far as both are known."""
        if passage.text is None or anchor.snippets:
            return True
        section = self._section(anchor)
        return section is None or is_of_section(passage.text, section)

    def _is_decided(self, anchor: Anchor, passage: Passage) -> bool:
        """Return True if the text decided about a match by document."""
        is_cut = isinstance(passage, Chunk) and passage.text_truncated
        if passage.text is None or is_cut:
            return False
        return bool(anchor.snippets) or self._section(anchor) is not None

    def _is_ambiguous(self, path: FilePath) -> bool:
        """Return True if several files can have the name, among the notes, the golds or the passages."""
        notes = self._rules.notes
        of_notes = notes.called(path) if notes is not None else ()
        of_golds = self._rules.golds.called(path) or [anchor.rel_path for anchor in self._golds]
        of_passages = [passage.rel_path for passage in self._passages if passage.rel_path is not None]
        for written in (of_notes, of_golds, of_passages):
            namesakes = {"/".join(other.parts) for other in map(read_path, written) if can_be_same_name(other, path)}
            if len(namesakes) > 1:
                self._ambiguous[f"{path.name} ({' and '.join(sorted(namesakes)[:2])})"] = None
                return True
        return False


DOUBTS: Mapping[str, str] = {
    "document": "matched by document",
    "last_heading": "matched by the last heading only",
    FOLDER: "matched although folders differ",
    SPELLING: "matched although names are spelled otherwise",
}
"""The kinds of doubt of a match, from the weakest, in words."""
NO_DOUBT = "none"


def worst_doubt(golds: Mapping[str, int]) -> str:
    """Return the weakest kind among a case's matches in doubt, counted by kind."""
    for doubt in DOUBTS:
        if doubt in golds:
            return doubt
    return NO_DOUBT


def doubt_flags(loose: LooseMatches, passages: Sequence[Passage]) -> Iterator[tuple[str, list[str]]]:
    """Yield a note for each kind of doubt, with the positions of its passages, and for each ambiguous name."""
    nouns = ["chunk" if isinstance(passage, Chunk) else "reference" for passage in passages]
    for doubt, words in DOUBTS.items():
        positions = sorted({match.at for match in loose.matches if match.doubt == doubt})
        if positions:
            yield words, [f"{nouns[at]} {at + 1}" for at in positions]
    if loose.ambiguous:
        yield AMBIGUOUS, list(loose.ambiguous)


MISSED = "missed, though a chunk holds its text"
AMBIGUOUS = "matched exactly or not at all, since several files have the name"


def is_missed_flag(flag: str) -> bool:
    """Return True if a recorded flag is of a gold that was missed: records hold flags as sentences alone."""
    return MISSED in flag


def is_ambiguous_flag(flag: str) -> bool:
    """Return True if a recorded flag is of a name that several files have."""
    return AMBIGUOUS in flag
