"""The answer of a trace: question, answer, documents, model, latency and feedback.

One table holds the names of all tracing conventions, in each row the surer name first. Sources: OpenTelemetry's
semantic conventions for generative AI, OpenInference (as Phoenix exports it), Langfuse and OpenLLMetry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal

from pytest_rageval.cases.drafts import draft_id
from pytest_rageval.make.trace_spans import Span, parsed
from pytest_rageval.make.trace_tools import traced_calls
from pytest_rageval.model import Json

LONGEST_PASSAGE = 2000
"""Characters of a cited passage that a draft keeps."""


CASE_ID = ("rageval.case_id", "rageval.case", "case_id", "test_case_id", "metadata.case_id", "metadata.rageval.case_id")
"""Attributes that name the case which a trace belongs to."""
SESSION = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "sessionId",
    "session_id",
    "traceloop.association.properties.session_id",
)
"""Attributes that name the conversation which a trace belongs to."""
QUESTION = (
    "rageval.question",
    "langfuse.trace.input",
    "input.value",
    "gen_ai.input.messages",
    "llm.input_messages",
    "gen_ai.prompt",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "input",
    "gen_ai.retrieval.query.text",
    "retrieval.query",
)
ANSWER = (
    "rageval.answer",
    "langfuse.trace.output",
    "output.value",
    "gen_ai.output.messages",
    "llm.output_messages",
    "gen_ai.completion",
    "traceloop.entity.output",
    "langfuse.observation.output",
    "output",
)
DOCUMENTS = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents")
"""Lists of documents; those of a reranker come first."""
MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name", "model")
RETRIEVAL_WORD = "retriev"
"""Part of the name of a retrieving span without that kind: `retrieve_documents`, `VectorRetriever`."""
INNER_QUESTION = ("question", "query", "user_query", "user_input", "input", "prompt", "message", "text")
"""Keys of a question in an object: `{"question": "…"}`."""
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
DOWN = frozenset(
    {
        "down",
        "thumbs_down",
        "thumbs-down",
        "thumbsdown",
        "negative",
        "bad",
        "dislike",
        "disliked",
        "no",
        "false",
        "incorrect",
        "unhelpful",
        "not_helpful",
        "fail",
        "👎",
        "0",
        "-1",
    }
)
UP = frozenset(
    {
        "up",
        "thumbs_up",
        "thumbs-up",
        "thumbsup",
        "positive",
        "good",
        "like",
        "liked",
        "yes",
        "true",
        "correct",
        "helpful",
        "pass",
        "👍",
        "1",
    }
)
Feedback = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """One request of a trace.

    questions  what may be the question, the surest first: a prompt may hold more than it
    chunks     records of an answers file; None if the trace reports no documents
    tool_calls calls in the form of the contract; None if the trace has no spans of tools
    session    the conversation that it is a turn of, if the trace names one
    start      when it began, in seconds; None if that is unknown
    """

    trace_id: str
    case_id: str | None
    questions: tuple[str, ...]
    answer: str | None
    chunks: list[dict[str, Json]] | None
    model: str | None
    latency_ms: float | None
    feedback: Feedback | None
    tool_calls: list[Json] | None = None
    session: str | None = None
    start: float | None = None

    def record(self, case_id: str) -> dict[str, Json]:
        """Return the line of an answers file for the case with this id."""
        members: dict[str, Json] = {
            "id": case_id,
            "answer": self.answer,
            "retrieved_chunks": self.chunks,
            "tool_calls": self.tool_calls,
            "latency": None if self.latency_ms is None else {"total_ms": round(self.latency_ms, 3)},
            "model_name": self.model,
            "meta": {"trace_id": self.trace_id},
        }
        return {name: value for name, value in members.items() if value is not None}

    def draft(self, history: Sequence[Mapping[str, Json]] = ()) -> dict[str, Json]:
        """Draft a case of the first question, without gold: a bad answer does not contain the right one.

        `history`: what was said before it in its session.
        """
        question = self.questions[0]
        origin: dict[str, Json] = {"trace_id": self.trace_id, "feedback": self.feedback, "answer": self.answer}
        if self.chunks:
            origin["cited"] = [_cited(chunk) for chunk in self.chunks]
        if self.session is not None:
            origin["session"] = self.session
        draft: dict[str, Json] = {"id": draft_id(question).replace("draft-", "trace-"), "question": question}
        if history:
            # The same words mean something else after another question.
            draft["id"] = draft_id(f"{question} {history}").replace("draft-", "trace-")
            draft["history"] = list(history)
        return {**draft, "tags": ["draft", "from-traces"], "metadata": {"draft": origin}}


def _cited(chunk: Mapping[str, Any]) -> dict[str, Json]:
    """Return a chunk as a draft keeps it."""
    cited: dict[str, Json] = {name: chunk[name] for name in ("chunk_id", "rel_path", "heading_path") if name in chunk}
    if "text" in chunk:
        cited["text"] = chunk["text"][:LONGEST_PASSAGE]
    return cited


def traced_answer(spans: Sequence[Span]) -> TracedAnswer:
    """Read the answer of a trace, its spans in order: from the root first, then from those that answer last."""
    ids = {span.span_id for span in spans}
    root = next((span for span in spans if span.parent_id not in ids), spans[0])
    others = [span for span in spans if span is not root]
    last_first = others[::-1]
    speakers = [root, *(span for span in last_first if not span.is_retrieval)]
    questions = list(_texts([root], QUESTION, _question_in))
    for alias in QUESTION:  # the surest names first, of whatever span
        questions += _texts(others, (alias,), _question_in)
    return TracedAnswer(
        trace_id=root.trace_id,
        case_id=next(_texts(spans, CASE_ID, _name_in), None),
        questions=tuple(dict.fromkeys(questions)),
        answer=next(_texts(speakers, ANSWER, _answer_in), None),
        chunks=_chunks_of(spans),
        model=next(_texts([*last_first, root], MODEL, _name_in), None),
        latency_ms=_latency_ms(root, spans),
        feedback=_feedback(spans),
        tool_calls=traced_calls(spans, _chunks_of),
        session=next(_texts(spans, SESSION, _name_in), None),
        start=_first_start(spans),
    )


def _first_start(spans: Sequence[Span]) -> float | None:
    return min((span.start for span in spans if span.start is not None), default=None)


def _latency_ms(root: Span, spans: Sequence[Span]) -> float | None:
    if root.seconds is not None:
        return root.seconds * 1000
    start = root.start or _first_start(spans)
    end = root.end or max((span.end for span in spans if span.end is not None), default=None)
    if start is None or end is None or end < start:
        return None
    return (end - start) * 1000


def _texts(spans: Iterable[Span], aliases: Sequence[str], text_in: Callable[[Json], str | None]) -> Iterator[str]:
    for span in spans:
        for alias in aliases:
            text = text_in(span.attributes.get(alias)) or ""
            if text.strip():
                yield text.strip()


def _name_in(value: Json) -> str | None:
    return str(value) if isinstance(value, str | int) else None


def _text_in(value: Json, roles: Sequence[str], keys: Sequence[str]) -> str | None:
    """Return a text, the text below one of these keys of an object, or that of the last message of these roles."""
    if isinstance(value, dict):
        value = _text_or_messages(value, roles, keys)
    if isinstance(value, list):
        for message in reversed(value):
            text = _content(message) if _role(message) in roles else None
            if text:
                return text
        return None
    return value if isinstance(value, str) else None


def _text_or_messages(value: dict[str, Any], roles: Sequence[str], keys: Sequence[str]) -> Json:
    """Return the messages of an object, its text if it is a message of these roles, or the text below one of the keys.

    An empty list of messages, or an empty text, does not count.
    """
    lists = (value.get(key) for key in ("messages", "choices"))
    messages = next((listed for listed in lists if isinstance(listed, list)), None)
    if messages:
        return messages
    text = _content(value) if _role(value) in roles else None
    if text:
        return text
    members = (value.get(key) for key in keys)
    return next((member for member in members if isinstance(member, str)), None)


_question_in = partial(_text_in, roles=("user", "human"), keys=INNER_QUESTION)
_answer_in = partial(_text_in, roles=("assistant", "ai"), keys=INNER_ANSWER)


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


def _chunks_of(spans: Sequence[Span]) -> list[dict[str, Json]] | None:
    """Return the documents of the surest list that can be read or is empty, in their order; None without any."""
    for documents in _document_lists(spans):
        chunks = _chunks(documents)
        if chunks or not documents:
            return chunks
    return None


def _document_lists(spans: Sequence[Span]) -> Iterator[list[Json]]:
    """Yield the documents of all spans by the surest names first, then what each retrieving span gave as its output."""
    for alias in DOCUMENTS:
        values = [span.attributes.get(alias) for span in spans]
        lists = [value for value in values if isinstance(value, list)]
        if lists:
            yield list(chain.from_iterable(lists))
    for span in spans:
        if span.is_retrieval or RETRIEVAL_WORD in span.name.lower():
            for alias in ANSWER:
                output = span.attributes.get(alias)
                if isinstance(output, dict):
                    output = output.get("documents", output.get("results"))
                if isinstance(output, list):
                    yield output


def _chunks(documents: Iterable[Json]) -> list[dict[str, Json]]:
    chunks: dict[Any, dict[str, Json]] = {}
    for chunk in map(_chunk, documents):
        chunks.setdefault((chunk.get("chunk_id"), chunk.get("text")), chunk)
    known = [chunk for chunk in chunks.values() if chunk]
    return [{**chunk, "rank": rank} for rank, chunk in enumerate(known, start=1)]


def _chunk(written: Json) -> dict[str, Json]:
    """Return a document under the names of an answers file; its metadata may hold path and heading."""
    document = _unwrapped(written) if isinstance(written, dict) else {"text": written}
    metadata = parsed(document.get("metadata"))
    both = [document, metadata] if isinstance(metadata, dict) else [document]

    def first(aliases: Sequence[str], *kinds: type) -> Any:
        for record in both:
            for alias in aliases:
                value = record.get(alias)
                if isinstance(value, kinds) and not isinstance(value, bool) and value != "":
                    return value
        return None

    chunk: dict[str, Json] = {}
    for part, aliases in DOCUMENT_PARTS.items():
        text = first(aliases, str, int)
        if text is not None:
            chunk[part] = str(text)
    score = first(DOCUMENT_SCORE, int, float)
    if score is not None:
        chunk["score_final"] = float(score)
    return chunk


def _feedback(spans: Sequence[Span]) -> Feedback | None:
    """Return a person's feedback on the answer; down if several disagree, since that is looked for."""
    verdicts: set[Feedback | None] = set()
    for span in spans:
        for name, value in span.feedback:
            if any(word in name.lower() for word in FEEDBACK_NAME):
                verdicts.add(_verdict(value))
    if "down" in verdicts:
        return "down"
    return "up" if "up" in verdicts else None


def _verdict(value: Json) -> Feedback | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "down" if value <= 0 else "up"
    word = str(value).strip().lower()
    if word in DOWN:
        return "down"
    return "up" if word in UP else None
