"""Requests to the system under test, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_rageval.model.case import Edge, Json, Turn


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A request to the system under test, with only what the case or the user set."""

    question: str
    k: int
    history: tuple[Turn, ...] | None = None
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    contexts: tuple[str, ...] | None = None
    params: Mapping[str, Json] = field(default_factory=dict)
    case_key: str = ""
    """For targets that look up recorded answers; never sent to the system."""
    trial: int = 0
    """The number of the trial, for such targets too; never sent to the system."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved passage, in the order of retrieval."""

    chunk_id: str | None = None
    doc_id: str | None = None
    rel_path: str | None = None
    heading_path: str | None = None
    text: str | None = None
    text_truncated: bool = False
    rank: int | None = None
    score_vector: float | None = None
    score_lexical: float | None = None
    score_final: float | None = None
    start_line: int | None = None
    end_line: int | None = None
    token_count: int | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reference:
    """One citation of an answer."""

    chunk_id: str | None = None
    rel_path: str | None = None
    heading_path: str | None = None
    doc_id: str | None = None
    text: str | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity that the system linked in the question."""

    id: str
    type: str | None = None
    text: str | None = None
    extra: Mapping[str, Json] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Trace:
    """What the system understood (L1), retrieved from its graph (L3) and inferred (L4), as it reports."""

    entities: tuple[Entity, ...] | None = None
    concepts: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    kg_entities: tuple[str, ...] | None = None
    kg_edges: tuple[Edge, ...] | None = None
    inferences: tuple[Mapping[str, Json], ...] | None = None
    entity_types: Mapping[str, Json] | None = None
    violations: tuple[Json, ...] | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FolderSelection:
    """The folders that the system searched."""

    folders: tuple[str, ...] = ()
    reasoning: str | None = None
    fallback: bool | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the system. What it did not report is None.

    `text` is None if the record holds retrieved chunks only; a blank string is a blank answer. `latency` holds the
    phases that the system reports, in milliseconds.
    """

    text: str | None = None
    references: tuple[Reference, ...] | None = None
    abstained: bool | None = None
    abstain_reason: str | None = None
    chunks: tuple[Chunk, ...] | None = None
    folder_selection: FolderSelection | None = None
    trace: Trace | None = None
    latency: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, Json] = field(default_factory=dict)
    versions: Mapping[str, Json] = field(default_factory=dict)
    indexing_coverage: Mapping[str, Json] | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)
