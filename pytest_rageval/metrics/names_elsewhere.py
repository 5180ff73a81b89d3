"""Names that other tools have for metrics."""

from __future__ import annotations

NAMES_HERE = {
    "answer_correctness": "'correctness'",
    "answer_relevance": "'relevance'",
    "answer_relevancy": "'relevance'",
    "answer_similarity": "an assertion `similar`",
    "bleu": "'token_f1'",
    "context_precision": "'map@k' or 'precision@k'",
    "contextual_precision": "'map@k' or 'precision@k'",
    "contextual_recall": "'context_recall@k'",
    "factual_correctness": "'correctness'",
    "factuality": "'correctness'",
    "hallucination": "'hallucinated' or 'faithfulness'",
    "hit_rate": "'recall_any@k'",
    "response_relevancy": "'relevance'",
    "rouge": "'token_recall'",
    "semantic_similarity": "an assertion `similar`",
    "similarity": "an assertion `similar`",
    "tool_call_accuracy": "'tools_as_expected'",
    "tool_correctness": "'tools_as_expected'",
}


def name_here(name: str) -> str | None:
    """Return the metric or assertion that corresponds to a metric of another tool; None for an unknown name."""
    return NAMES_HERE.get(name.casefold().replace("-", "_").replace(" ", "_"))
