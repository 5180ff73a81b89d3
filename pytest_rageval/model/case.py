"""A case, one question and all that is known to be right about it; a request to the system, and its answer.

All values of `model` are frozen, without behaviour beyond what follows from their own fields. `None` means *absent*:
not labelled by the case, or not reported by the system. An empty tuple means *known to be empty*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from pytest_rageval.model.assertion import Assertion
from pytest_rageval.model.expected_tool import ExpectedTool, ToolsMatch

Json = Any
"""Anything that `json` can write, for members of a file or response without a field here."""

PassRule = Literal["mean", "all", "majority", "any"] | float
"""When a case with several trials passes: by the mean of their scores, or if enough pass alone; a number is a share."""

NOTHING: Mapping[str, Any] = {}


class Source(NamedTuple):
    """The place of a case: path relative to the root directory (POSIX separators), 1-based line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE = Source("", 0)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a document that holds the answer, or must not be taken for it; independent of chunking."""

    rel_path: str
    heading_path: str = ""
    snippets: tuple[str, ...] = ()
    date: str | None = None

    def __str__(self) -> str:
        return f"{self.rel_path} > {self.heading_path}" if self.heading_path else self.rel_path


class Edge(NamedTuple):
    """One triple of a knowledge graph."""

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} -{self.predicate}-> {self.object}"

    @classmethod
    def parse(cls, written: Json) -> Edge:
        """Read `s -p-> o`, `s|p|o` or `{subject, predicate, object}`; raise ValueError for anything else."""
        if isinstance(written, Edge):
            return written
        if isinstance(written, Mapping):
            parts: list[Json] = [written.get(name) for name in cls._fields]
        else:
            text = written if isinstance(written, str) else ""
            parts = _arrow_parts(text) or text.split("|")
        if len(parts) != 3 or not all(isinstance(part, str) and part.strip() for part in parts):
            raise ValueError("not an edge: write 's -p-> o', 's|p|o' or {subject, predicate, object}")
        return cls(*(str(part).strip() for part in parts))


_ARROW_HEAD = re.compile(r"->(?=\s)")
_ARROW_TAIL = re.compile(r"(?<=\s)-")


def _arrow_parts(text: str) -> list[Json]:
    """Split `s -p-> o` at its first arrow; empty without one. One pattern for all of it takes n³ steps."""
    for head in _ARROW_HEAD.finditer(text):
        after_last = text.rfind(">", 0, head.start()) + 1
        tail = _ARROW_TAIL.search(text, after_last, head.start())
        if tail is not None and text[tail.end() : head.start()].strip():
            return [text[: tail.start()], text[tail.end() : head.start()], text[head.end() :]]
    return []


@dataclass(frozen=True, slots=True)
class Gold:
    """The labels of one case. Every part is optional: absent parts switch their metrics off.

    `answers`: any of them is right. `support_groups`: indices into `supports`, an OR of ANDs. `chunk_ids` and
    `irrelevant_ids` match by equality, or as prefixes with `ids_are_prefixes`.
    """

    answers: tuple[str, ...] | None = None
    key_facts: tuple[str, ...] | None = None
    supports: tuple[Anchor, ...] | None = None
    support_groups: tuple[tuple[int, ...], ...] | None = None
    irrelevant_supports: tuple[Anchor, ...] | None = None
    chunk_ids: tuple[str, ...] | None = None
    irrelevant_ids: tuple[str, ...] | None = None
    ids_are_prefixes: bool = False
    relevance: Mapping[str, float] | None = None
    concepts: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    kg_entities: tuple[str, ...] | None = None
    kg_edges: tuple[Edge, ...] | None = None
    recency_conflict_rule: Literal["cite_newer", "acknowledge_both", "cite_both"] | None = None

    @property
    def is_empty(self) -> bool:
        """Return True if nothing is labelled."""
        return not any(getattr(self, part) for part in _LABELLED)


_LABELLED = tuple(field.name for field in fields(Gold) if field.name != "ids_are_prefixes")


class Turn(NamedTuple):
    """One earlier turn of the conversation."""

    role: str
    text: str


class EarlierTurn(NamedTuple):
    """What is asked before a turn of a conversation: enough to ask it again, and its reference answer if it has one."""

    question: str
    reference: str | None = None
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    contexts: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class EvalCase:
    """One question and all that is known to be right about it; see the fields of the case files.

    A turn of a conversation is a case with a `turn`, counted from 1, and all that is asked `earlier` in it. Its own
    `history` is what precedes the first turn.
    """

    id: str
    question: str
    answerable: bool = True
    category: str | None = None
    difficulty: str | None = None
    domain: str | None = None
    tags: tuple[str, ...] = ()
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    requires_kg: bool = False
    gold: Gold = Gold()
    history: tuple[Turn, ...] | None = None
    contexts: tuple[str, ...] | None = None
    assertions: tuple[Assertion, ...] = ()
    expected_tools: tuple[ExpectedTool, ...] | None = None
    tools_match: ToolsMatch | None = None
    forbidden_tools: tuple[str, ...] = ()
    max_tool_calls: int | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    pass_rule: PassRule | None = None
    """How its trials decide, where that is not as for the other cases of a run."""
    source: Source = NOWHERE
    rewrite: str | None = None
    """The question as it would stand alone; never sent with the conversation."""
    conversational: bool = False
    """Whether it is small talk, which needs no source: thanks, a greeting."""
    expected_outcome: str | None = None
    conversation: str | None = None
    """The id of its conversation, for a turn."""
    turn: int | None = None
    is_last: bool = False
    """Whether it is the last turn of its conversation."""
    earlier: tuple[EarlierTurn, ...] = ()
    key: str = field(init=False, repr=False, compare=False)
    """`file::id`, which names this case across runs, baselines and merges."""
    hashes: tuple[str, str] | None = field(init=False, repr=False, compare=False)
    """The content and asked hash, once `cases.canonical` has computed them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.source.file}::{self.id}")
        object.__setattr__(self, "hashes", None)

    @property
    def unit(self) -> str:
        """Return the key of what is asked in one place: the whole conversation of a turn, else the case alone."""
        return self.key if self.conversation is None else f"{self.source.file}::{self.conversation}"

    def earlier_case(self, number: int) -> EvalCase:
        """Return an earlier turn, counted from 1, as far as it takes to ask it."""
        before = self.earlier[number - 1]
        case_id = turn_id(self.conversation or "", number)
        return EvalCase(
            id=case_id,
            question=before.question,
            vaults=before.vaults,
            folders=before.folders,
            contexts=before.contexts,
            history=self.history,
            source=self.source,
            conversation=self.conversation,
            turn=number,
            earlier=self.earlier[: number - 1],
        )


def turn_id(conversation: str, number: int) -> str:
    """Return the id of a turn: `returns[2]`."""
    return f"{conversation}[{number}]"


@dataclass(frozen=True, slots=True)
class Trial:
    """One query of a case. `test` is the node id of a user-written test that evaluates it, None for its own item."""

    case: EvalCase
    number: int = 0
    test: str | None = None

    @property
    def key(self) -> str:
        return self.case.key if self.test is None else f"{self.case.key}::{self.test}"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What was said before a turn when it was asked, with the passages retrieved for it: `(chunk id, text)`."""

    conversation_id: str
    history: tuple[Turn, ...] = ()
    passages: tuple[tuple[str | None, str], ...] = ()
    is_gold: bool = False
    """Whether its replies are references, and not what the system said."""


# ── asking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    conversation_id: str | None = None
    """Names the conversation of a turn to the system; a new one for each trial."""
    is_rewrite: bool = False
    """Whether a follow-up is asked again as its rewrite; for targets that look up answers, never sent to the system."""


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
class ToolCall:
    """One call of a tool by the system, in the order of the calls.

    error             why the call failed; None if it did not
    server            the server of the tool, for example of the Model Context Protocol
    retrieved_chunks  what a search returned, in its order; None for a call that is no search
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    result: Json = None
    error: str | None = None
    server: str | None = None
    retrieved_chunks: tuple[Chunk, ...] | None = None
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
    tool_calls: tuple[ToolCall, ...] | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)
    repeats_credential: bool = False
    """Whether a known credential stood in it, which is masked."""

    @property
    def searches(self) -> tuple[ToolCall, ...]:
        """Return the tool calls that retrieved chunks, in their order."""
        if not self.tool_calls:
            return ()
        return tuple(call for call in self.tool_calls if call.retrieved_chunks is not None)
