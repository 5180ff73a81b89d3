"""The one table of names: what tracing conventions call question, answer, documents, model and feedback.

Sources: OpenTelemetry's semantic conventions for generative AI, OpenInference, Langfuse and OpenLLMetry. In each list
the surer name stands first.
"""

from __future__ import annotations

CASE_ID = ("rageval.case_id", "rageval.case", "case_id", "test_case_id", "metadata.case_id", "metadata.rageval.case_id")
"""Attributes that name the case which a trace belongs to."""
QUESTION = ("rageval.question", "langfuse.trace.input", "input.value", "gen_ai.input.messages", "llm.input_messages",
            "gen_ai.prompt", "traceloop.entity.input", "langfuse.observation.input", "input",
            "gen_ai.retrieval.query.text", "retrieval.query")  # fmt: skip
ANSWER = ("rageval.answer", "langfuse.trace.output", "output.value", "gen_ai.output.messages", "llm.output_messages",
          "gen_ai.completion", "traceloop.entity.output", "langfuse.observation.output", "output")  # fmt: skip
DOCUMENTS = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents")
"""A list of documents, in JSON or spread over attributes with a number; what a reranker left comes before the rest."""
MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name", "model")
KIND = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "type")
RETRIEVAL_KINDS = frozenset({"retriever", "retrieval", "reranker"})
RETRIEVAL_WORD = "retriev"
"""In the name of a span that retrieves, where its kind does not say so: `retrieve_documents`, `VectorRetriever`."""
INNER_QUESTION = ("question", "query", "user_query", "user_input", "input", "prompt", "message", "text")
"""Keys of an object that stands for a question: `{"question": "…"}`; the surer ones first."""
INNER_ANSWER = ("answer", "response", "output", "result", "completion", "text", "content")

DOCUMENT_ID = ("id", "chunk_id", "document_id", "doc_id", "_id")
DOCUMENT_TEXT = ("content", "text", "page_content", "document", "chunk")
DOCUMENT_SCORE = ("score", "relevance_score", "similarity", "_score")
DOCUMENT_PATH = ("rel_path", "path", "source", "file_path", "file", "url")
DOCUMENT_HEADING = ("heading_path", "heading", "section", "title")
"""Names of a document's parts, in itself and in its metadata."""

FEEDBACK_NAME = ("feedback", "thumb", "rating", "user", "like", "helpful")
"""Words in the name of a score that say that a person gave it."""
FEEDBACK_KEYS = ("user.feedback", "user_feedback", "feedback", "feedback.score", "feedback.value", "feedback.label")
"""Attributes that hold what a person said of an answer."""
DOWN = frozenset({"down", "thumbs_down", "thumbs-down", "thumbsdown", "negative", "bad", "dislike", "disliked", "no",
                  "false", "incorrect", "unhelpful", "not_helpful", "fail", "👎", "0", "-1"})  # fmt: skip
UP = frozenset({"up", "thumbs_up", "thumbs-up", "thumbsup", "positive", "good", "like", "liked", "yes", "true",
                "correct", "helpful", "pass", "👍", "1"})  # fmt: skip
