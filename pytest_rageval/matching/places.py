"""Matches between golds and an answer's retrieved chunks and references; retrieval metrics use them.

An anchor matches a chunk of the same path whose heading path starts with the anchor's, heading by heading, and that
quotes one of its snippets; for anchors without such a chunk see `dialects`. An id matches an equal `chunk_id` or
`doc_id`, or a prefix of one if ids are prefixes. Golds missed though a chunk holds their text are noted: perhaps the
place is only spelled otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, NamedTuple

from pytest_rageval.io.suggestions import listed
from pytest_rageval.language.words import fold
from pytest_rageval.matching.dialects import (
    ANY_PLACES,
    NO_LOOSE_MATCHES,
    LooseMatches,
    Passage,
    PlaceRules,
    doubt_flags,
    loose_matches,
)
from pytest_rageval.matching.lost_snippets import lost_snippets
from pytest_rageval.matching.misses import missed_golds
from pytest_rageval.matching.spellings import headings, path_form, snippet_form
from pytest_rageval.model import (
    NOTHING,
    Anchor,
    Answer,
    CaseResult,
    Chunk,
    EvalCase,
    Gold,
    GoldKind,
    Json,
    Judgement,
    Matching,
    Observation,
    Reference,
    Timings,
)

_Form = Callable[[str], str]
GoldBy = Literal["anchors", "ids"]
_NO_TIMINGS = Timings()
MOST_SEARCHES = 500
"""Searches of an answer that are matched: an agent in a loop may report any number."""
MOST_PLACES = 10
"""Number of chunks and references named in a flag."""


def observe(
    case: EvalCase,
    answer: Answer,
    *,
    k: int = 5,
    asked_k: int | None = None,
    judgements: Mapping[str, Judgement] = NOTHING,
    timings: Timings = _NO_TIMINGS,
    trial: int = 0,
    gold_by: GoldBy = "anchors",
    params: Mapping[str, Json] = NOTHING,
    refusals: tuple[str, ...] = (),
    rules: PlaceRules = ANY_PLACES,
) -> Observation:
    """Combine a case and an answer to an observation: chunks in rank order, matched with the gold."""
    if answer.chunks is not None:
        chunks = in_rank_order(answer.chunks)
        # Most answers are in order already, and are not copied.
        if chunks is not answer.chunks:
            answer = replace(answer, chunks=chunks)
    matching = match(case, answer, gold_by, rules)
    return Observation(case, answer, matching, judgements, k, asked_k, timings, trial, params, refusals)


def in_rank_order(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """Sort chunks by `rank` if all have one (equal ranks keep their order), else keep the listed order."""
    ranks = [chunk.rank for chunk in chunks if chunk.rank is not None]
    # Some ranks alone tell no order of all.
    if len(ranks) < len(chunks) or ranks == sorted(ranks):
        return chunks
    return tuple(sorted(chunks, key=lambda chunk: chunk.rank or 0))


def match(case: EvalCase, answer: Answer, gold_by: GoldBy = "anchors", rules: PlaceRules = ANY_PLACES) -> Matching:
    """Match golds with each retrieved chunk and each reference; `hits` are in rank order.

    Golds are never mixed: anchors if the case has any, else ids; `gold_by="ids"` the other way round. If a snippet
    cannot be checked (the text is missing or cut), path and heading decide in the system's favour: a gold counts as
    hit, an irrelevant one as avoided, and `flags` notes it.
    """
    chunks = None if answer.chunks is None else in_rank_order(answer.chunks)
    matching = _match(case.gold, chunks, answer.references, gold_by, rules)
    searches = answer.searches[:MOST_SEARCHES]
    if not searches:
        return matching
    hits = []
    for search in searches:
        retrieved = in_rank_order(search.retrieved_chunks or ())
        hits.append(_match(case.gold, retrieved, None, gold_by, rules).hits)
    return replace(matching, searches=tuple(hits))


def gold_kind(gold: Gold, gold_by: GoldBy = "anchors") -> GoldKind:
    """Return the kind of gold that retrieval is measured against."""
    if relevant_ids(gold) and (gold_by == "ids" or not gold.supports):
        return "ids"
    return "anchors" if gold.supports else "none"


def _match(
    gold: Gold,
    chunks: tuple[Chunk, ...] | None,
    references: tuple[Reference, ...] | None,
    gold_by: GoldBy,
    rules: PlaceRules,
) -> Matching:
    # One kind only: a case with places and ids would count each gold twice.
    golds: _IdGolds | _AnchorGolds = _NO_GOLDS
    kind = gold_kind(gold, gold_by)
    if kind == "ids":
        golds = _IdGolds(relevant_ids(gold), are_prefixes=gold.ids_are_prefixes)
    elif gold.supports and kind == "anchors":
        golds = _AnchorGolds(gold.supports, unsure=True)
    hits = None
    # None, not nothing: a system that reports texts alone cannot be measured by places.
    if chunks is not None and (not golds.count or _names_places(chunks)):
        hits = golds.hits(chunks)
    loose = NO_LOOSE_MATCHES
    if hits and isinstance(golds, _AnchorGolds):
        hits, loose = golds.beyond_exact(chunks or (), hits, rules)
    cited = None
    if references is not None:
        cited = _cited(references, golds, _ReferencedChunks(chunks or (), hits or ()), rules, chunks or ())
    flags = golds.flags()
    irrelevant = None
    if chunks is not None and (gold.irrelevant_supports or gold.irrelevant_ids):
        irrelevant, more_flags = _irrelevant(gold, chunks, rules)
        flags += more_flags
    return Matching(kind, golds.count, hits, irrelevant, cited, flags, loose.matches)


def _names_places(chunks: tuple[Chunk, ...]) -> bool:
    """Return True if any chunk names its place, or if there is none; texts alone cannot be matched to gold."""
    for chunk in chunks:
        if chunk.rel_path is not None or chunk.chunk_id is not None or chunk.doc_id is not None:
            return True
    return not chunks


def relevant_ids(gold: Gold) -> tuple[str, ...]:
    """Return each relevant id once, including those graded above 0."""
    ids = gold.chunk_ids or ()
    if gold.relevance:
        graded = [chunk_id for chunk_id, grade in gold.relevance.items() if grade > 0]
        ids = (*ids, *graded)
    # One that is graded and listed would be two golds, of which one chunk finds both.
    return ids if len(ids) < 2 else tuple(dict.fromkeys(ids))


def _irrelevant(gold: Gold, chunks: tuple[Chunk, ...], rules: PlaceRules) -> tuple[tuple[bool, ...], tuple[str, ...]]:
    """Return whether each chunk is irrelevant, and flags for undecided ones."""
    places = _AnchorGolds(gold.irrelevant_supports or (), unsure=False)
    ids = _IdGolds(gold.irrelevant_ids or (), are_prefixes=gold.ids_are_prefixes)
    by_id = ids.hits(chunks)
    by_place, _ = places.beyond_exact(chunks, places.hits(chunks), rules)
    are_irrelevant = tuple([bool(id_hits or place_hits) for id_hits, place_hits in zip(by_id, by_place, strict=True)])
    return are_irrelevant, places.flags()


# ── golds ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _IdGolds:
    """Golds by id: equal to a passage's `chunk_id` or `doc_id`, or a prefix of one."""

    def __init__(self, ids: Sequence[str], *, are_prefixes: bool) -> None:
        self.count = len(ids)
        self._index: dict[str | None, frozenset[int]] = {}
        for gold, gold_id in enumerate(ids):
            self._index[gold_id] = frozenset((gold,))
        self._prefix_lengths = sorted({len(gold_id) for gold_id in ids}) if are_prefixes else ()

    def hits(self, chunks: tuple[Chunk, ...], /) -> tuple[frozenset[int], ...]:
        if self._prefix_lengths:
            return tuple([self._called(chunk.chunk_id, chunk.doc_id) for chunk in chunks])
        find = self._index.get
        hits = [find(chunk.chunk_id, _NONE) for chunk in chunks]
        for at, chunk in enumerate(chunks):
            if chunk.doc_id is not None:
                hits[at] |= find(chunk.doc_id, _NONE)
        return tuple(hits)

    def hit_by(self, reference: Reference, _at: int, _named: Sequence[Chunk], /) -> frozenset[int]:
        return self._called(reference.chunk_id, reference.doc_id)

    def _called(self, *names: str | None) -> frozenset[int]:
        golds = _NONE
        for name in filter(None, names):
            golds |= self._index.get(name, _NONE)
            for length in self._prefix_lengths:
                # A prefix ends where the id continues with # or -: t01 matches t01#2 and t01-a, not t010.
                if name[length : length + 1] in ("#", "-"):
                    golds |= self._index.get(name[:length], _NONE)
        return golds

    def flags(self) -> tuple[str, ...]:
        return ()


class _Place(NamedTuple):
    gold: int
    headings: tuple[str, ...]
    snippets: tuple[str, ...]


class _AnchorGolds:
    """Golds by place. `unsure` is the result if a snippet cannot be checked."""

    def __init__(self, anchors: Sequence[Anchor], *, unsure: bool) -> None:
        self.count = len(anchors)
        self._anchors = anchors
        self._unsure = unsure
        self._doubts: dict[str, dict[str, None]] = {}
        self._by_path: dict[str, list[_Place]] = {}
        for index, anchor in enumerate(anchors):
            snippets = tuple(filter(None, map(fold, anchor.snippets))) if anchor.snippets else ()
            place = _Place(index, headings(anchor.heading_path), snippets)
            self._by_path.setdefault(path_form(anchor.rel_path), []).append(place)

    def hits(self, chunks: tuple[Chunk, ...], /) -> tuple[frozenset[int], ...]:
        hits = [_NONE] * len(chunks)
        for at, chunk in enumerate(chunks):
            path = chunk.rel_path
            if path is not None and (places := self._by_path.get(path_form(path))):
                hits[at] = self._at(places, chunk, at + 1, ())
        return tuple(hits)

    def beyond_exact(
        self,
        passages: Sequence[Passage],
        hits: tuple[frozenset[int], ...],
        rules: PlaceRules,
        chunks: Sequence[Chunk] = (),
    ) -> tuple[tuple[frozenset[int], ...], LooseMatches]:
        """Match the golds without a hit by looser steps; return all hits, and those that are not exact.

        `chunks`: of the same answer, if the passages are references: a system that names headings there names them.
        """
        # Most cases end here: looser steps take many times as long.
        if len(_NONE.union(*hits)) == self.count:
            return hits, NO_LOOSE_MATCHES
        loose = loose_matches(self._anchors, passages, hits, rules, self._quotes_gold, chunks)
        if not self._unsure:
            # In doubt a chunk is not irrelevant: the doubt is decided in the system's favour.
            loose = LooseMatches(tuple(match for match in loose.matches if match.doubt is None))
        if not loose.matches and not loose.ambiguous:
            return hits, loose
        all_hits = list(hits)
        for match in loose.matches:
            all_hits[match.at] |= {match.gold}
        for flag, where in doubt_flags(loose, passages):
            self._doubts.setdefault(flag, {}).update(dict.fromkeys(where))
        return tuple(all_hits), loose

    def _quotes_gold(self, gold: int, passage: Passage, at: int) -> bool:
        # In a further form: a snippet of rendered text was missed in a chunk that quotes it as Markdown.
        snippets = tuple(filter(None, map(snippet_form, self._anchors[gold].snippets)))
        return not snippets or self._quotes(snippets, [passage], at, snippet_form)

    def hit_by(self, reference: Reference, at: int, named: Sequence[Chunk], /) -> frozenset[int]:
        places = None if reference.rel_path is None else self._by_path.get(path_form(reference.rel_path))
        return _NONE if places is None else self._at(places, reference, at, named)

    def _at(self, places: Sequence[_Place], passage: Passage, at: int, named: Sequence[Chunk]) -> frozenset[int]:
        passage_headings = headings(passage.heading_path or "")
        golds = []
        for place in places:
            if passage_headings[: len(place.headings)] != place.headings:
                continue
            if not place.snippets or self._quotes(place.snippets, [passage, *named], at):
                golds.append(place.gold)
        return frozenset(golds)

    def _quotes(self, snippets: tuple[str, ...], passages: Sequence[Passage], at: int, form: _Form = fold) -> bool:
        has_text = False
        for source in passages:
            if source.text is not None:
                has_text = True
                text = form(source.text)
                if any(snippet in text for snippet in snippets):
                    return True
        if not has_text:
            reason = "snippet not looked for, no text was reported"
        elif any(isinstance(source, Chunk) and source.text_truncated for source in passages):
            reason = "snippet not found, but the text was cut"
        else:
            return False
        if not self._unsure:
            reason = f"irrelevant gold: {reason}"
        noun = "chunk" if isinstance(passages[0], Chunk) else "reference"
        self._doubts.setdefault(reason, {})[f"{noun} {at}"] = None
        return self._unsure

    def flags(self) -> tuple[str, ...]:
        return tuple([f"{reason}: {listed(where, MOST_PLACES)}" for reason, where in self._doubts.items()])


_NONE: frozenset[int] = frozenset()
_NO_GOLDS = _IdGolds((), are_prefixes=False)


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────


class _ReferencedChunks:
    """Finds the retrieved chunks that a reference names: by its chunk_id, else by its path and heading."""

    def __init__(self, chunks: Sequence[Chunk], hits: Sequence[frozenset[int]]) -> None:
        self._matched = tuple(zip(chunks, hits, strict=False))  # without hits no chunk names its place
        self._by_id: dict[str, list[tuple[Chunk, frozenset[int]]]] = {}
        for matched in self._matched:
            if matched[0].chunk_id is not None:
                self._by_id.setdefault(matched[0].chunk_id, []).append(matched)

    def by(self, reference: Reference) -> Sequence[tuple[Chunk, frozenset[int]]]:
        if reference.chunk_id is not None and reference.chunk_id in self._by_id:
            return self._by_id[reference.chunk_id]
        if reference.rel_path is None:
            return ()
        return self._by_place.get((path_form(reference.rel_path), headings(reference.heading_path or "")), ())

    @cached_property
    def _by_place(self) -> Mapping[tuple[str, tuple[str, ...]], list[tuple[Chunk, frozenset[int]]]]:
        by_place: dict[tuple[str, tuple[str, ...]], list[tuple[Chunk, frozenset[int]]]] = {}
        for chunk, hit in self._matched:
            if chunk.rel_path is not None:
                place = path_form(chunk.rel_path), headings(chunk.heading_path or "")
                by_place.setdefault(place, []).append((chunk, hit))
        return by_place


def _cited(
    references: Sequence[Reference],
    golds: _IdGolds | _AnchorGolds,
    referenced: _ReferencedChunks,
    rules: PlaceRules,
    chunks: Sequence[Chunk],
) -> tuple[frozenset[int], ...]:
    """Return the golds of each reference: those of the chunks that it names; if none, those of its own fields."""
    hits: list[frozenset[int]] = []
    for position, reference in enumerate(references, start=1):
        named = referenced.by(reference)
        matched = _NONE.union(*[hit for _, hit in named])
        hits.append(matched or golds.hit_by(reference, position, [chunk for chunk, _ in named]))
    if isinstance(golds, _AnchorGolds) and not all(map(referenced.by, references)):
        # Only references without a chunk are looked for further: the looser steps have been tried on chunks.
        alone = [Reference() if referenced.by(reference) else reference for reference in references]
        all_hits, _ = golds.beyond_exact(alone, tuple(hits), rules, chunks)
        return all_hits
    return tuple(hits)


def matching_fields(result: CaseResult, rules: PlaceRules) -> dict[str, Json]:
    """Return what a record keeps of a case's matching; misses are looked for only if the case fails."""
    obs = result.observation
    if obs is None:
        return {"flags": []}
    matching = obs.matching
    flags = list(matching.flags)
    elsewhere = ""
    if result.failed_gates and matching.kind == "anchors":
        missed = list(missed_golds(obs, rules))
        flags += [gold.note for gold in missed]
        elsewhere = next((gold.elsewhere for gold in missed if gold.elsewhere), "")
        flags += _lost_snippets(obs, rules)
    fields: dict[str, Json] = {"flags": flags}
    if elsewhere:
        fields["elsewhere"] = elsewhere
    if matching.loose and matching.doubts:
        fields["doubt"] = matching.doubts
    return fields


def _lost_snippets(obs: Observation, rules: PlaceRules) -> Iterator[str]:
    """Yield a note for each gold whose place was retrieved without its snippet."""
    golds = obs.gold.supports or ()
    matched = frozenset[int]().union(*obs.hits)
    missed = [at for at, gold in enumerate(golds) if at not in matched and gold.snippets]
    if not missed:
        return
    chunks = obs.answer.chunks or ()
    bare = _AnchorGolds([replace(gold, snippets=()) for gold in golds], unsure=True)
    places, _ = bare.beyond_exact(chunks, bare.hits(chunks), rules)
    yield from lost_snippets(golds, missed, places, chunks)
