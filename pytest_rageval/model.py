"""The vocabulary: a case is asked, an answer comes, the observation of both is scored, the result is recorded.

Plain frozen values without behaviour beyond what follows from their own fields. `None` means *absent*: not
labelled by the case, or not reported by the system. An empty tuple means *known to be empty*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

Json = Any
"""Anything `json` can write: what a file or a response held where no field of ours has a name for it."""

NOTHING: Mapping[str, Any] = {}


# ── the case ──────────────────────────────────────────────────────────────────────────────────────────────────


class Source(NamedTuple):
    """Where a case was written: path relative to the root directory (POSIX separators), 1-based line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE = Source("", 0)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a document that holds (or must not be taken for) the answer; survives re-chunking."""

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
        """Read `s -p-> o`, `s|p|o` or `{subject, predicate, object}`; anything else is a ValueError."""
        if isinstance(written, Edge):
            return written
        if isinstance(written, Mapping):
            parts: list[Json] = [written.get(name) for name in cls._fields]
        else:
            text = written if isinstance(written, str) else ""
            arrow = _ARROW.fullmatch(text)
            parts = list(arrow.groups()) if arrow else text.split("|")
        if len(parts) != 3 or not all(isinstance(part, str) and part.strip() for part in parts):
            raise ValueError("not an edge: write 's -p-> o', 's|p|o' or {subject, predicate, object}")
        return cls(*(str(part).strip() for part in parts))


_ARROW = re.compile(r"(.+?)\s+-\s*(\S[^>]*?)\s*->\s+(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Gold:
    """What is known to be right about one case. Every part is optional: absent parts switch their metrics off.

    `answers`: any of them is right. `support_groups`: indices into `supports`, an OR of ANDs. `chunk_ids` and
    `irrelevant_ids` match by equality, or as prefixes where `ids_are_prefixes` (the ids spelling).
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


class Turn(NamedTuple):
    """One earlier turn of the conversation."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class EvalCase:
    """One question and all that is known to be right about it; see the fields of the case files."""

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
    metadata: Mapping[str, Json] = field(default_factory=dict)
    source: Source = NOWHERE

    @property
    def key(self) -> str:
        """`file::id`: names this case across runs, baselines and merges."""
        return f"{self.source.file}::{self.id}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One asking of one case. `test` is the node id of a user-written test that evaluates it, None for its own item."""

    case: EvalCase
    number: int = 0
    test: str | None = None

    @property
    def key(self) -> str:
        return self.case.key if self.test is None else f"{self.case.key}::{self.test}"


# ── the answer ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What goes out to the system under test: only what the case or the user set."""

    question: str
    k: int
    history: tuple[Turn, ...] | None = None
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    contexts: tuple[str, ...] | None = None
    params: Mapping[str, Json] = field(default_factory=dict)
    case_key: str = ""
    """For targets that look answers up instead of asking; never sent over the wire."""
    trial: int = 0
    """The same."""


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
    """What the system says it understood (L1), found in its graph (L3) and inferred (L4)."""

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
    """Which folders the system searched."""

    folders: tuple[str, ...] = ()
    reasoning: str | None = None
    fallback: bool | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the system gave back. What it did not report is None, never invented.

    `text` is None where the record holds retrieved chunks only; a blank string is an answer that is blank.
    `latency` holds the phases the system reports, in milliseconds.
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


# ── the judgement ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rubric:
    """One kind of question to a judge.

    version         written by the author, raised when the meaning changes
    prompt_version  version and the first 12 hex digits of the file's SHA-256: no edit escapes caches and comparisons
    scale           lowest and highest value of every score
    scores          metric name → the field of the reply that holds it
    prompt          text with placeholders `{question}` …; any other brace stands for itself
    schema          JSON Schema of the reply
    """

    name: str
    version: str
    prompt_version: str
    scale: tuple[float, float]
    scores: Mapping[str, str]
    prompt: str
    schema: Mapping[str, Json]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the prompt reads: only these are sent, hashed and stored."""
        return _variables(self.prompt)


VARIABLES = frozenset(
    ("question", "answer", "contexts", "citations", "references", "reference", "key_facts", "answerable", "history",
     "claim")
)  # fmt: skip
"""What a rubric's prompt may ask for; `JudgeRequest.variables` holds those that it does."""

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@lru_cache(maxsize=64)
def _variables(prompt: str) -> frozenset[str]:
    # Asked for once a request: the prompts are few, and thousands of characters long.
    return frozenset(PLACEHOLDER.findall(prompt)) & VARIABLES


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One question to a judge: which rubric, in which version, over which variables.

    `wording` is the rubric itself, with its prompt, scale and reply schema; None stands for the shipped one.
    """

    rubric: str
    prompt_version: str
    variables: Mapping[str, Json]
    trial: int = 0
    wording: Rubric | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said. `scores` by metric name, each on its own `scale`."""

    rubric: str
    scores: Mapping[str, float]
    scale: tuple[float, float] = (0.0, 1.0)
    reasoning: str = ""
    supported_claims: tuple[str, ...] = ()
    unsupported_claims: tuple[str, ...] = ()
    model: str = ""
    prompt_version: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    cached: bool = False
    heuristic: bool = False
    """True where no model judged: shown as such, and no default gate rests on it."""
    flags: tuple[str, ...] = ()
    """What makes this judgement doubtful, e.g. a reply that quotes the marker of its request."""
    extra: Mapping[str, Json] = field(default_factory=dict)


# ── the observation ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Matching:
    """Which gold each retrieved chunk and each reference matches; see `matching.match`.

    kind       'anchors', 'ids' or 'none': what was used as gold
    golds      how many golds there are
    hits       by rank (0-based position): the set of gold indices that chunk matches
    irrelevant by rank: does the chunk match a gold that must not come?
    cited      by reference: the set of gold indices it matches; None where the system reports no references
    flags      what a reader should know, e.g. a snippet that may lie beyond a cut
    fresh      follows from hits: for each 1-based rank that brings a gold which no earlier rank brought, that rank
               and how many golds were found by then
    """

    kind: Literal["anchors", "ids", "none"] = "none"
    golds: int = 0
    hits: tuple[frozenset[int], ...] | None = None
    irrelevant: tuple[bool, ...] | None = None
    cited: tuple[frozenset[int], ...] | None = None
    flags: tuple[str, ...] = ()
    fresh: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Half of the retrieval metrics start from these ranks; found once, they cost a microsecond, not six.
        fresh: list[tuple[int, int]] = []
        seen: frozenset[int] = frozenset()
        for rank, golds in enumerate(self.hits or (), start=1):
            if golds and not golds <= seen:
                seen |= golds
                fresh.append((rank, len(seen)))
        object.__setattr__(self, "fresh", tuple(fresh))


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock milliseconds measured by us around the calls; None where nothing was called."""

    queue_ms: float | None = None
    ask_ms: float | None = None
    judge_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything slow or random about one case, done. All metrics are pure functions of this value.

    `k` is the configured cut-off for metrics named without one; `asked_k` how many chunks the system was asked
    for (None: it was not asked, the list is what it is); `params` the parameters that were sent with the question.
    """

    case: EvalCase
    answer: Answer
    matching: Matching = Matching()
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    k: int = 5
    asked_k: int | None = None
    timings: Timings = Timings()
    trial: int = 0
    params: Mapping[str, Json] = field(default_factory=dict)

    @property
    def gold(self) -> Gold:
        return self.case.gold

    @property
    def hits(self) -> tuple[frozenset[int], ...]:
        """By rank, the golds that the chunk there matches; empty where nothing was retrieved or reported."""
        return self.matching.hits or ()

    @property
    def golds(self) -> int:
        """How many golds retrieval is measured against."""
        return self.matching.golds

    def judged(self, metric: str) -> Judgement | None:
        """The judgement that scored this metric, if one did."""
        return next((j for j in self.judgements.values() if metric in j.scores), None)


# ── the score and the result ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value for one observation, with what a reader may want to know of how it came about."""

    value: float
    detail: Mapping[str, Json] = field(default_factory=dict)


class NotApplicable(NamedTuple):
    """A metric has no value here, and why. Never averaged, never shown as a number."""

    reason: str


Outcome = Literal["passed", "failed", "error", "skipped", "xfailed"]


@dataclass(frozen=True, slots=True)
class GateFailed:
    """One gate that does not hold for one case."""

    metric: str
    value: float
    threshold: str
    tag: str | None = None

    def __str__(self) -> str:
        return f"{self.metric} is {self.value:.4g}, gate {self.threshold}" + (f" ({self.tag})" if self.tag else "")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why asking, judging or scoring failed: a kind that programs can count and a message that people can read.

    `raw` is the reply that could not be read, cut at a few thousand characters; None where none came.
    """

    kind: str
    message: str
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case, evaluated: what results.jsonl holds a line of.

    `observation` is None where asking or judging failed (then `error` says why, and there are no scores); `answer`
    is what came before judging failed.
    """

    case: EvalCase
    outcome: Outcome
    observation: Observation | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    skipped_metrics: Mapping[str, str] = field(default_factory=dict)
    passed_gates: int = 0
    failed_gates: tuple[GateFailed, ...] = ()
    error: Problem | None = None
    reason: str | None = None
    timings: Timings = Timings()
    trial: int = 0
    attempts: int = 1
    answer: Answer | None = None
    test: str | None = None
    """Node id of a user-written test that evaluated the case; None for the case's own item."""

    @property
    def key(self) -> str:
        return self.case.key if self.test is None else f"{self.case.key}::{self.test}"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What metrics of a whole run are computed from: counts of cases, and what the system says of its index."""

    asked: int
    failed: int
    timed_out: int
    blank: int
    coverage: Mapping[str, Json] | None = None
    overall: float | None = None
