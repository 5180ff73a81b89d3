"""Retrieve chunks for a question: folders are chosen first; where they give too little, all are searched."""

from __future__ import annotations

import time
from typing import NamedTuple

from pytest_rageval.demo.folders import Folders, Selection
from pytest_rageval.demo.index import Hit, Index, Scope
from pytest_rageval.demo.parameters import Ask
from pytest_rageval.demo.terms import question_terms

FEW_HITS = 3
"""The chosen folders gave too little if fewer chunks than this came from them ..."""

FAINT_SCORE = 0.5
"""... or if the best of them scores less than this."""


class Retrieved(NamedTuple):
    """What a search found and where it looked, and how long either took. `selection` is None in the mode `off`."""

    terms: tuple[str, ...]
    hits: list[Hit]
    selection: Selection | None
    fallback: bool
    folder_selection_ms: float
    retrieval_ms: float


def retrieve(ask: Ask, index: Index, folders: Folders) -> Retrieved:
    """The chunks for a question, best first, of the scope and the folders that its mode allows."""
    began = time.perf_counter()
    terms = _terms(ask)
    scope = Scope(ask.vaults, ask.folders)
    selection = None if ask.folder_mode == "off" else folders.choose(terms, scope)
    folder_selection_ms = milliseconds_since(began)

    began = time.perf_counter()
    chosen = selection.folders if selection is not None else ()
    hits = index.search(terms, Scope(ask.vaults, chosen) if chosen else scope, ask.k, ask.min_score)
    gave_little = len(hits) < min(FEW_HITS, ask.k) or hits[0].score < FAINT_SCORE
    fallback = bool(chosen) and gave_little and ask.folder_mode == "on_with_fallback"
    if fallback:
        hits = index.search(terms, scope, ask.k, ask.min_score)
    return Retrieved(terms, hits, selection, fallback, folder_selection_ms, milliseconds_since(began))


def _terms(ask: Ask) -> tuple[str, ...]:
    """The terms of the question; of one with fewer than two, those of the user's turn before it as well."""
    terms = question_terms(ask.question)
    before = [text for role, text in ask.history if role == "user"]
    if len(terms) < 2 and before:
        terms = tuple(dict.fromkeys([*terms, *question_terms(before[-1])]))
    return terms


def milliseconds_since(began: float) -> float:
    """Milliseconds from a reading of `time.perf_counter` until now, to the microsecond."""
    return round((time.perf_counter() - began) * 1000, 3)
