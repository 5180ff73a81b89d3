"""Retrieval of chunks by BM25 of SQLite FTS5, first in the folders that fit the question, else in all."""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from pytest_rageval.demo.chunking import CHUNKER, NoteChunk, TokenBudget
from pytest_rageval.demo.parameters import Ask
from pytest_rageval.language.words import content_tokens, index_terms

# Words that mark a question. In notes they are about something else.
_ASKING = re.compile(
    "(?:according|answer|anything|ask|describe|explain|find|give|happens?|kind|know|list|many|me|mention|much|notes?"
    "|please|question|say|something|tell|thing|want|whose)$"
    "|무엇|무슨|뭐|뭘|어떤|어떻|어디|어느|언제|얼마|누가|누구|왜|몇|인가|있나|했나|하나"
)
QUESTION_TERMS = 200
"""Different terms of a question to use, about: a question of a megabyte stays cheap."""

_WORD = re.compile(r"[a-z]{4,}")


def text_terms(text: str) -> list[str]:
    """Return every term of a passage in order, stemmed like the terms of a question."""
    return [stem(term) for term in index_terms(text)]


def question_terms(question: str) -> tuple[str, ...]:
    """Return the first distinct content terms of a question; none if it has no content."""
    # content_tokens returns the stop words of a text that has nothing else; one more word prevents that.
    words = content_tokens(f"rageval {question}")[1:]
    terms: dict[str, None] = {}
    for word in words:
        if not _ASKING.match(word):
            terms.update(dict.fromkeys(map(stem, index_terms(word))))
        if len(terms) >= QUESTION_TERMS:
            break
    return tuple(terms)


@lru_cache(maxsize=50_000)
def stem(term: str) -> str:
    """Strip the endings of plural, past and -ing from an English word; return other terms unchanged.

    Deliberately weaker than Porter's: what is left has four letters at least, so `rate` and `rat` stay apart.
    """
    if not _WORD.fullmatch(term):
        return term
    if term.endswith("ies") and len(term) > 5:
        return term[:-3] + "y"
    if term.endswith("s") and not term.endswith(("ss", "us", "is")):
        term = term[:-1]
    for ending in ("ing", "ed"):
        if term.endswith(ending) and len(term) - len(ending) >= 4:
            term = term.removesuffix(ending)
            if term[-1] == term[-2] and term[-1] not in "lsz":
                term = term[:-1]
            break
    return term[:-1] if term.endswith("e") and len(term) > 4 else term


HEADING_WEIGHT = 1.5
"""A term in the headings counts this many times as much as one in the text."""

HALF = 10.0
"""The BM25 value that becomes a score of 0.5."""

QUERY_TERMS = 64
"""Terms of a question to look up at most, the rarest ones."""


class Hit(NamedTuple):
    """A retrieved chunk, and its score in [0, 1)."""

    chunk: NoteChunk
    score: float


class Scope(NamedTuple):
    """The vaults and folders to search; empty means everywhere. A folder includes everything below it."""

    vaults: Collection[str] = ()
    folders: Collection[str] = ()

    def admits(self, vault: str, folder: str) -> bool:
        if self.vaults and vault not in self.vaults:
            return False
        return not self.folders or any(is_below(folder, above) for above in self.folders)


def is_below(folder: str, above: str) -> bool:
    """Return True if the folder is the one `above`, or inside it. The root is the empty string."""
    return not above or folder == above or folder.startswith(f"{above}/")


def bm25_score(bm25: float) -> float:
    """Map BM25 (≥ 0, unbounded) to a score in [0, 1): s / (s + 10), rising, and the same for every question.

    A hyperbola rather than 1 - exp(-s / 10), because it keeps strong hits apart: 30 and 60 become 0.75 and 0.86, not
    0.95 and 0.998.
    """
    return bm25 / (bm25 + HALF)


class Index:
    """The chunks of a corpus, searchable from any thread. `budget` is the one that they were cut with."""

    def __init__(self, chunks: Sequence[NoteChunk], budget: TokenBudget) -> None:
        self.chunks = tuple(chunks)
        self.budget = budget
        self._headings = [text_terms(f"{chunk.heading_path} {chunk.folder}") for chunk in self.chunks]
        bodies = [text_terms(chunk.text) for chunk in self.chunks]
        self._frequency: Counter[str] = Counter()
        """The number of chunks that have a term."""
        for heading, body in zip(self._headings, bodies, strict=True):
            self._frequency.update({*heading, *body})
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)
        # Terms hold letters, digits and marks; unicode61 treats the marks of notes and questions alike.
        self._database.execute(
            "CREATE VIRTUAL TABLE chunk USING fts5 (heading, body, tokenize = 'unicode61', detail = full)"
        )
        headings_as_text = map(" ".join, self._headings)
        bodies_as_text = map(" ".join, bodies)
        self._database.executemany(
            "INSERT INTO chunk (rowid, heading, body) VALUES (?, ?, ?)", zip(count(), headings_as_text, bodies_as_text)
        )
        self._database.commit()

    @property
    def version(self) -> str:
        """Return a hash of the chunker, its parameters and every chunk: two builds with one version answer alike."""
        parts = [CHUNKER, *map(str, self.budget), *(chunk.chunk_id for chunk in self.chunks)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def search(self, terms: Iterable[str], scope: Scope, limit: int, min_score: float) -> list[Hit]:
        """Return the best `limit` chunks of the scope with at least `min_score`, best first; ties in corpus order."""
        known = [term for term in terms if term in self._frequency]
        if not known:
            return []
        rarest_first = sorted(known, key=self._frequency.__getitem__)
        # A quoted string is one term (or a phrase) to FTS5 whatever stands in it; terms hold no quotation mark.
        query = " OR ".join(f'"{term}"' for term in rarest_first[:QUERY_TERMS])
        hits: list[Hit] = []
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, -bm25(chunk, ?, 1.0) FROM chunk WHERE chunk MATCH ? ORDER BY 2 DESC, rowid",
                (HEADING_WEIGHT, query),
            )
            for row, bm25 in rows:
                score = round(bm25_score(max(bm25, 0.0)), 6)
                if score < min_score or len(hits) == limit:
                    break
                chunk = self.chunks[row]
                if scope.admits(chunk.vault, chunk.folder):
                    hits.append(Hit(chunk, score))
            rows.close()
        return hits

    def rarity(self, term: str) -> float:
        """Return the inverse document frequency, ≥ 0: it rises, the fewer chunks have a term; highest if none has.

        A pair of syllables that no chunk has counts half: it is more often an ending than a word.
        """
        frequency = self._frequency[term]
        idf = math.log(1 + len(self.chunks) / (frequency + 0.5))
        return idf if frequency or term.isascii() else idf / 2


NAME_WEIGHT = 2.0
AT_MOST = 4
SHARE_OF_BEST = 0.4
ENOUGH = 0.5
"""The least score of a chosen folder, in terms that only one folder has in its headings."""


class Selection(NamedTuple):
    """The folders to search, best first (none chosen means all), and why."""

    folders: tuple[str, ...]
    reasoning: str


class Folders:
    """The words in names, titles and headings of each folder. `names` and `vaults` list all, sorted."""

    def __init__(self, chunks: Sequence[NoteChunk]) -> None:
        self.names = tuple(sorted({chunk.folder for chunk in chunks}))
        self.vaults = tuple(sorted({chunk.vault for chunk in chunks}))
        self._in_name = {name: frozenset(text_terms(name)) for name in self.names}
        self._in_heading: defaultdict[str, set[str]] = defaultdict(set)
        self._vaults_of: defaultdict[str, set[str]] = defaultdict(set)
        for chunk in chunks:
            self._vaults_of[chunk.folder].add(chunk.vault)
            self._in_heading[chunk.folder].update(text_terms(f"{chunk.heading_path} {chunk.meta.get('tags', '')}"))
        self._frequency: Counter[str] = Counter()
        """The number of folders that have a term."""
        for name in self.names:
            self._frequency.update(self._in_name[name] | self._in_heading[name])

    def has(self, name: str) -> bool:
        """Return True for a folder with chunks in it or below it."""
        return any(is_below(folder, name) for folder in self.names)

    def choose(self, terms: Sequence[str], scope: Scope) -> Selection:
        """Choose the few folders of the scope that share most with the question, weighted by rarity."""
        score_of: dict[str, float] = {}
        for name in self.names:
            if any(scope.admits(vault, name) for vault in self._vaults_of[name]):
                score_of[name] = self._score(name, terms)
        best_first = sorted(score_of, key=lambda name: (-score_of[name], name))[:AT_MOST]
        best = score_of[best_first[0]] if best_first else 0.0
        least = max(ENOUGH * math.log(1 + len(self.names)), SHARE_OF_BEST * best)
        chosen = tuple(name for name in best_first if score_of[name] >= least)
        if not chosen:
            return Selection((), "no folder name, title or heading shares enough with the question: all are searched")
        words: set[str] = set()
        for name in chosen:
            words.update(self._in_name[name], self._in_heading[name])
        shared = [term for term in terms if term in words]
        return Selection(chosen, f"names, titles or headings share: {', '.join(shared)}")

    def _score(self, name: str, terms: Iterable[str]) -> float:
        known = [term for term in terms if term in self._frequency]
        return math.fsum(self._weight(name, term) * self._rarity(term) for term in known)

    def _rarity(self, term: str) -> float:
        return math.log(1 + len(self.names) / self._frequency[term])

    def _weight(self, name: str, term: str) -> float:
        if term in self._in_name[name]:
            return NAME_WEIGHT
        return 1.0 if term in self._in_heading[name] else 0.0


FEW_HITS = 3
"""The chosen folders gave too little if they gave fewer chunks than this ..."""

FAINT_SCORE = 0.5
"""... or if the best of them scores less than this."""


class RetrievedChunks(NamedTuple):
    """The result of a search, the folders searched, and the time of both. `selection` is None in the mode `off`."""

    terms: tuple[str, ...]
    hits: list[Hit]
    selection: Selection | None
    fallback: bool
    folder_selection_ms: float
    retrieval_ms: float


def retrieve(question: str, ask: Ask, index: Index, folders: Folders) -> RetrievedChunks:
    """Retrieve the chunks for a question that stands alone, best first, as the request says: scope, mode, number."""
    began = time.perf_counter()
    terms = question_terms(question)
    scope = Scope(ask.vaults, ask.folders)
    selection = None if ask.folder_mode == "off" else folders.choose(terms, scope)
    folder_selection_ms = milliseconds_since(began)

    began = time.perf_counter()
    chosen = selection.folders if selection is not None else ()
    searched = Scope(ask.vaults, chosen) if chosen else scope
    hits = index.search(terms, searched, ask.k, ask.min_score)
    gave_little = len(hits) < min(FEW_HITS, ask.k) or hits[0].score < FAINT_SCORE
    fallback = bool(chosen) and gave_little and ask.folder_mode == "on_with_fallback"
    if fallback:
        hits = index.search(terms, scope, ask.k, ask.min_score)
    return RetrievedChunks(terms, hits, selection, fallback, folder_selection_ms, milliseconds_since(began))


def milliseconds_since(began: float) -> float:
    """Return the milliseconds since a reading of `time.perf_counter`, to the microsecond."""
    return round((time.perf_counter() - began) * 1000, 3)
