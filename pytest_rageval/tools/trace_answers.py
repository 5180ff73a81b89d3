"""Traces as answers of cases and as drafts, by the table of names that tracing conventions use.

Sources of the names: OpenTelemetry's semantic conventions for generative AI, OpenInference, Langfuse and OpenLLMetry.
In each list the surer name stands first.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.tools.trace_spans import Span, TracedRequest
from pytest_rageval.words import fold

CASE_ID = ("rageval.case_id", "rageval.case", "case_id", "test_case_id", "metadata.case_id", "metadata.rageval.case_id")
"""Attributes that name the case which a trace belongs to."""
QUESTION = ("rageval.question", "langfuse.trace.input", "input.value", "gen_ai.input.messages", "llm.input_messages",
            "gen_ai.prompt", "traceloop.entity.input", "langfuse.observation.input", "input",
            "gen_ai.retrieval.query.text", "retrieval.query")  # fmt: skip
ANSWER = ("rageval.answer", "langfuse.trace.output", "output.value", "gen_ai.output.messages", "llm.output_messages",
          "gen_ai.completion", "traceloop.entity.output", "langfuse.observation.output", "output")  # fmt: skip
DOCUMENTS = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents")
"""Lists of documents, in JSON or spread over numbered attributes; those of a reranker come first."""
MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name", "model")
KIND = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "type")
RETRIEVAL_KINDS = frozenset({"retriever", "retrieval", "reranker"})
RETRIEVAL_WORD = "retriev"
"""Part of the name of a retrieving span without that kind: `retrieve_documents`, `VectorRetriever`."""
INNER_QUESTION = ("question", "query", "user_query", "user_input", "input", "prompt", "message", "text")
"""Keys of a question in an object: `{"question": "…"}`; the surer ones first."""
INNER_ANSWER = ("answer", "response", "output", "result", "completion", "text", "content")

DOCUMENT_PARTS = {
    "chunk_id": ("id", "chunk_id", "document_id", "doc_id", "_id"),
    "text": ("content", "text", "page_content", "document", "chunk"),
    "rel_path": ("rel_path", "path", "source", "file_path", "file", "url"),
    "heading_path": ("heading_path", "heading", "section", "title"),
}
"""The names of a document's parts, in itself and in its metadata, by key of an answers file."""
DOCUMENT_SCORE = ("score", "relevance_score", "similarity", "_score")

FEEDBACK_NAME = ("feedback", "thumb", "rating", "user", "like", "helpful")
"""Words in the name of a score that a person gave."""
DOWN = frozenset({"down", "thumbs_down", "thumbs-down", "thumbsdown", "negative", "bad", "dislike", "disliked", "no",
                  "false", "incorrect", "unhelpful", "not_helpful", "fail", "👎", "0", "-1"})  # fmt: skip
UP = frozenset({"up", "thumbs_up", "thumbs-up", "thumbsup", "positive", "good", "like", "liked", "yes", "true",
                "correct", "helpful", "pass", "👍", "1"})  # fmt: skip


Feedback = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """One request of a trace.

    questions  what may be the question, the surest first: a prompt may hold more than it
    chunks     records of an answers file; None where no documents are told
    """

    trace_id: str
    case_id: str | None
    questions: tuple[str, ...]
    answer: str | None
    chunks: list[dict[str, Json]] | None
    model: str | None
    latency_ms: float | None
    feedback: Feedback | None

    @property
    def question(self) -> str | None:
        return self.questions[0] if self.questions else None

    def record(self, case_id: str) -> dict[str, Json]:
        """Return the line of an answers file for the case with this id."""
        members: dict[str, Json] = {
            "id": case_id,
            "answer": self.answer,
            "retrieved_chunks": self.chunks,
            "latency": None if self.latency_ms is None else {"total_ms": round(self.latency_ms, 3)},
            "model_name": self.model,
            "meta": {"trace_id": self.trace_id},
        }
        return {name: value for name, value in members.items() if value is not None}


def traced_answer(trace: TracedRequest) -> TracedAnswer:
    """Read the answer of a trace: from the root first, then from those of its children that answer last."""
    root, later = trace.root, [span for span in reversed(trace.spans) if span is not trace.root]
    speakers = [root, *(span for span in later if not _is_retrieval(span))]
    return TracedAnswer(
        trace.trace_id,
        _first_text(trace.spans, CASE_ID),
        tuple(dict.fromkeys(_questions(trace))),
        next(_spoken(speakers, ANSWER, _answer_in), None),
        _documents(trace),
        _first_text([*later, root], MODEL),
        root.latency_ms if root.latency_ms is not None else _latency(trace),
        _feedback(trace),
    )


def _is_retrieval(span: Span) -> bool:
    return any(str(span.attributes.get(name, "")).lower() in RETRIEVAL_KINDS for name in KIND)


def _latency(trace: TracedRequest) -> float | None:
    """Return milliseconds of the root, or from the first start to the last end if the root lacks one of its times."""
    root = trace.root
    start = root.start or min((span.start for span in trace.spans if span.start is not None), default=None)
    end = root.end or max((span.end for span in trace.spans if span.end is not None), default=None)
    return None if start is None or end is None or end < start else (end - start) * 1000


def _first_text(spans: Sequence[Span], aliases: Sequence[str]) -> str | None:
    values = (span.attributes.get(alias) for span in spans for alias in aliases)
    return next((str(value) for value in values if isinstance(value, (str, int)) and str(value).strip()), None)


# ── question and answer ───────────────────────────────────────────────────────────────────────────────────────


def _questions(trace: TracedRequest) -> Iterator[str]:
    """Yield the root's questions; then those of the spans below it, the surest names first."""
    root = trace.root
    yield from _spoken([root], QUESTION, _question_in)
    below = [span for span in trace.spans if span is not root]
    for alias in QUESTION:
        yield from _spoken(below, (alias,), _question_in)


def _spoken(spans: Sequence[Span], aliases: Sequence[str], read: Callable[[Json], str | None]) -> Iterator[str]:
    """Yield the text of each span under each of the names, without blanks."""
    for span in spans:
        for alias in aliases:
            text = read(_value(span, alias))
            if text is not None and text.strip():
                yield text.strip()


def _value(span: Span, alias: str) -> Json:
    """Return the attribute, parsed if it is JSON in a string; join one that is spread over numbered names."""
    value = span.attributes.get(alias)
    if value is None:
        return _numbered(span.attributes, alias) or None
    return _parsed(value)


def _parsed(value: Json) -> Json:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse(value)
        except StrictJsonError:
            return value
    return value


def _numbered(attributes: Mapping[str, Json], alias: str) -> list[dict[str, Json]]:
    """Return `alias.0.document.id`, `alias.0.message.content` … as a list of objects without the middle word."""
    members: dict[int, dict[str, Json]] = {}
    for name, value in attributes.items():
        if spread := _SPREAD.fullmatch(name.removeprefix(f"{alias}.")) if name.startswith(f"{alias}.") else None:
            members.setdefault(int(spread["number"]), {})[spread["name"]] = value
    return [members[number] for number in sorted(members)]


_SPREAD = re.compile(r"(?P<number>\d{1,6})\.(?:document\.|message\.)?(?P<name>.+)")


def _question_in(value: Json) -> str | None:
    """Return the question in a text, in an object with a key for it, or in the last message of a user."""
    return _spoken_text(value, ("user", "human"), INNER_QUESTION, ("messages",))


def _answer_in(value: Json) -> str | None:
    if isinstance(value, dict) and _role(value) and not (value.get("messages") or value.get("choices")):
        return _content(value)
    return _spoken_text(value, ("assistant", "ai"), INNER_ANSWER, ("messages", "choices"))


def _spoken_text(value: Json, roles: Sequence[str], keys: Sequence[str], lists: Sequence[str]) -> str | None:
    if isinstance(value, dict):
        value = next((value[key] for key in lists if isinstance(value.get(key), list)), None) or next(
            (text for key in keys if isinstance(text := value.get(key), str)), None
        )
    if isinstance(value, list):
        return next((text for one in reversed(value) if _role(one) in roles and (text := _content(one))), None)
    return value if isinstance(value, str) else None


def _role(message: Json) -> str:
    parts = _unwrapped(message)
    return str(parts.get("role") or parts.get("type") or "").lower()


def _unwrapped(value: Json) -> dict[str, Any]:
    """Return a message or document without its wrapper: `{"message": {…}}`, or names such as `document.id`."""
    if not isinstance(value, dict):
        return {}
    parts = {name.removeprefix("message.").removeprefix("document."): part for name, part in value.items()}
    inner = parts.get("message", parts.get("document"))
    return {**parts, **inner} if isinstance(inner, dict) else parts


def _content(message: Json) -> str | None:
    """Return the text of a message: `content` as text or as parts, or the parts of OpenTelemetry's messages."""
    parts = _unwrapped(message)
    content = parts.get("content", parts.get("parts"))
    if isinstance(content, list):
        texts = [part.get("content", part.get("text")) if isinstance(part, dict) else part for part in content]
        return "\n".join(text for text in texts if isinstance(text, str)) or None
    return content if isinstance(content, str) else None


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────


def _documents(trace: TracedRequest) -> list[dict[str, Json]] | None:
    """Return the documents of the surest name that any span has, each once, in their order; None without any."""
    for alias in DOCUMENTS:
        listed = [value for span in trace.spans if isinstance(value := _value(span, alias), list)]
        if chunks := _chunks(document for value in listed for document in value):
            return chunks
        if listed and not any(listed):
            return []
    for span in trace.spans:
        is_retrieval, outputs = _is_retrieval(span), list(_outputs(span))
        if is_retrieval and outputs and not outputs[0]:
            return []
        if is_retrieval or RETRIEVAL_WORD in span.name.lower():
            for chunks in map(_chunks, outputs):
                if chunks:
                    return chunks
    return None


def _outputs(span: Span) -> Iterator[list[Json]]:
    """Yield the lists of documents that a retriever gave as its output."""
    for alias in ANSWER:
        value = _value(span, alias)
        if isinstance(value, dict):
            value = value.get("documents", value.get("results"))
        if isinstance(value, list):
            yield value


def _chunks(documents: Iterable[Json]) -> list[dict[str, Json]]:
    """Return documents as chunks of an answers file, each once."""
    chunks: dict[Any, dict[str, Json]] = {}
    for chunk in map(_chunk, documents):
        chunks.setdefault((chunk.get("chunk_id"), chunk.get("text")), chunk)
    return [{**chunk, "rank": rank} for rank, chunk in enumerate(filter(None, chunks.values()), start=1)]


def _chunk(written: Json) -> dict[str, Json]:
    """Return a document under the names of an answers file; its metadata may hold path and heading."""
    document = _unwrapped(written) if isinstance(written, dict) else {"text": written}
    metadata = _parsed(document.get("metadata"))
    both = [document, metadata] if isinstance(metadata, dict) else [document]

    def first(aliases: Sequence[str], kinds: type | tuple[type, ...]) -> Any:
        values = (record.get(alias) for record in both for alias in aliases)
        return next((v for v in values if isinstance(v, kinds) and not isinstance(v, bool) and v != ""), None)

    parts = {part: first(aliases, (str, int)) for part, aliases in DOCUMENT_PARTS.items()}
    chunk: dict[str, Json] = {part: str(text) for part, text in parts.items() if text is not None}
    score = first(DOCUMENT_SCORE, (int, float))
    return chunk if score is None else {**chunk, "score_final": float(score)}


# ── feedback ──────────────────────────────────────────────────────────────────────────────────────────────────


def _feedback(trace: TracedRequest) -> Feedback | None:
    """Return a person's feedback on the answer; down if several disagree, since that is looked for."""
    verdicts = {
        verdict
        for span in trace.spans
        for name, value in span.feedback
        if any(word in name.lower() for word in FEEDBACK_NAME) and (verdict := _verdict(value)) is not None
    }
    return "down" if "down" in verdicts else "up" if verdicts else None


def _verdict(value: Json) -> Feedback | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "down" if value <= 0 else "up"
    word = str(value).strip().lower()
    return "down" if word in DOWN else "up" if word in UP else None


LONGEST_PASSAGE = 2000
"""Characters of a cited passage that a draft keeps."""


@dataclass(slots=True)
class MatchedTraces:
    """Lines of an answers file, and counts of what matched no case.

    unmatched   traces whose question is that of no case
    unanswered  cases without a trace
    repeated    how many traces were left out for a later one of the same case
    silent      traces without a question, or with neither answer nor documents
    undocumented  how many answers come without documents
    """

    records: list[dict[str, Json]] = field(default_factory=list)
    unmatched: list[TracedAnswer] = field(default_factory=list)
    unanswered: list[EvalCase] = field(default_factory=list)
    repeated: int = 0
    silent: list[TracedAnswer] = field(default_factory=list)
    undocumented: int = 0


def match_traces(traced: Sequence[TracedAnswer], cases: Sequence[EvalCase]) -> MatchedTraces:
    """Match each trace to its case: by the attribute that names it, else by the text of the question.

    Of several traces of a case the last one counts. Cases of several files that ask the same all get the answer.
    """
    matched = MatchedTraces()
    by_name: defaultdict[str, list[EvalCase]] = defaultdict(list)
    by_question: defaultdict[str, list[EvalCase]] = defaultdict(list)
    for case in cases:
        by_name[case.id].append(case)
        by_name[case.key].append(case)
        by_question[fold(case.question)].append(case)
    answers: dict[str, TracedAnswer] = {}
    for entry in traced:
        if entry.answer is None and entry.chunks is None:
            matched.silent.append(entry)
            continue
        fitting = by_name.get(entry.case_id or "") or next(
            (listed for text in entry.questions if (listed := by_question.get(fold(text)))), []
        )
        if not fitting:
            (matched.unmatched if entry.question else matched.silent).append(entry)
        for case in fitting:
            matched.repeated += case.key in answers
            answers[case.key] = entry
    shared = {case.id for listed in by_name.values() if len({case.key for case in listed}) > 1 for case in listed}
    for case in cases:
        if (answer := answers.get(case.key)) is None:
            matched.unanswered.append(case)
        else:
            matched.records.append(answer.record(case.key if case.id in shared else case.id))
            matched.undocumented += answer.chunks is None
    return matched


def drafts_of(traced: Sequence[TracedAnswer], feedback: str) -> list[dict[str, Json]]:
    """Draft a case for each question whose answer got this feedback, with the answer and what it cited.

    Drafts have no gold: a bad answer does not contain the right one. Questions that differ only in case and spaces
    give one draft.
    """
    drafts: dict[str, dict[str, Json]] = {}
    for entry in traced:
        if entry.feedback == feedback and entry.question:
            drafts.setdefault(fold(entry.question), _draft(entry, entry.question))
    return list(drafts.values())


def _draft(entry: TracedAnswer, question: str) -> dict[str, Json]:
    names = ("chunk_id", "rel_path", "heading_path")
    cited = [
        {name: chunk[name] for name in names if name in chunk}
        | ({"text": chunk["text"][:LONGEST_PASSAGE]} if "text" in chunk else {})
        for chunk in entry.chunks or ()
    ]
    told: dict[str, Json] = {"trace_id": entry.trace_id, "feedback": entry.feedback, "answer": entry.answer}
    if cited:
        told["cited"] = cited
    digest = hashlib.sha256(fold(question).encode()).hexdigest()[:12]
    return {
        "id": f"trace-{digest}",
        "question": question,
        "tags": ["draft", "from-traces"],
        "metadata": {"draft": told},
    }
