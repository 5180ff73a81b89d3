"""Choose the folders to search: a question is compared with folder names, titles and headings."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_rageval.demo.chunking import NoteChunk
from pytest_rageval.demo.index import Scope, is_below
from pytest_rageval.demo.terms import text_terms

NAME_WEIGHT = 2.0
AT_MOST = 4
SHARE_OF_BEST = 0.4
ENOUGH = 0.5
"""A folder must score this much to be chosen, measured in terms that one folder alone has in its headings."""


class Selection(NamedTuple):
    """The folders to search, best first (none chosen means all), and why."""

    folders: tuple[str, ...]
    reasoning: str


class Folders:
    """What the names, titles and headings of each folder say. `names` and `vaults` are all there are, sorted."""

    def __init__(self, chunks: Sequence[NoteChunk]) -> None:
        self.names = tuple(sorted({chunk.folder for chunk in chunks}))
        self.vaults = tuple(sorted({chunk.vault for chunk in chunks}))
        self._in_name = {name: frozenset(text_terms(name)) for name in self.names}
        self._in_heading: defaultdict[str, set[str]] = defaultdict(set)
        self._vaults_of: defaultdict[str, set[str]] = defaultdict(set)
        for chunk in chunks:
            self._vaults_of[chunk.folder].add(chunk.vault)
            self._in_heading[chunk.folder].update(text_terms(f"{chunk.heading_path} {chunk.meta.get('tags', '')}"))
        self._frequency = Counter(term for name in self.names for term in self._in_name[name] | self._in_heading[name])

    def has(self, name: str) -> bool:
        """True for a folder with chunks in it or below it."""
        return any(is_below(folder, name) for folder in self.names)

    def choose(self, terms: Sequence[str], scope: Scope) -> Selection:
        """The few folders of the scope that share most with the question, weighted by how few folders share it."""
        inside = [name for name in self.names if any(scope.admits(vault, name) for vault in self._vaults_of[name])]
        scored = sorted((-self._score(name, terms), name) for name in inside)[:AT_MOST]
        best = -scored[0][0] if scored else 0.0
        least = max(ENOUGH * math.log(1 + len(self.names)), SHARE_OF_BEST * best)
        chosen = tuple(name for negative, name in scored if -negative >= least)
        if not chosen:
            return Selection((), "no folder name, title or heading shares enough with the question: all are searched")
        shared = [term for term in terms if any(self._weight(name, term) for name in chosen)]
        return Selection(chosen, f"names, titles or headings share: {', '.join(shared)}")

    def _score(self, name: str, terms: Iterable[str]) -> float:
        return math.fsum(
            self._weight(name, term) * math.log(1 + len(self.names) / self._frequency[term])
            for term in terms
            if term in self._frequency
        )

    def _weight(self, name: str, term: str) -> float:
        return NAME_WEIGHT if term in self._in_name[name] else float(term in self._in_heading[name])
