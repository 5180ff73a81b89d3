"""The view of a follow-up asked once more as its rewrite: question, answer, places, and its part of each gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.case_diff import place_of
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.metrics.rewrites import rewrite_gap
from pytest_rageval.text import counted, score_text
from pytest_rageval.views.case_parts import error_line, limited
from pytest_rageval.views.parts import Line

Record = Mapping[str, Any]
MOST_PLACES = 5


@dataclass(frozen=True, slots=True)
class RewriteView:
    """A follow-up asked as its rewrite, as every face shows it."""

    question: str | None
    """The rewrite; None if the run keeps no texts."""
    answer: str | None
    error: str
    """Why there is nothing to compare; '' if there is."""
    places: Sequence[tuple[str, str]]
    """The first retrieved chunks: the golds that each matches, '' if none, and its place."""
    gaps: Sequence[tuple[str, str]]
    """By metric, the arithmetic of this follow-up."""


def rewrite_view(record: Record, line: Record | None, metrics: Mapping[str, Any]) -> RewriteView | None:
    """Return the rewrite with its answer, places and gaps; None for a case that was not asked as one.

    line     the observation, with the full answer; None if the run keeps none
    metrics  the metrics of metrics.json
    """
    written: Record | None = record.get("rewrite")
    if written is None:
        return None
    kept: Record = (line or {}).get("rewrite") or {}
    question = kept.get("question") or written["question"]
    answer = (kept.get("answer") or {}).get("answer")
    if answer is None:
        answer = written["answer"]
    first_chunks = written["retrieved_chunks"][:MOST_PLACES]
    return RewriteView(
        question=limited(question),
        answer=limited(answer),
        error=error_line(written["error"]) if written["error"] else "",
        places=[(_golds(chunk), place_of(chunk)) for chunk in first_chunks],
        gaps=list(_gaps(record, metrics)),
    )


def _golds(chunk: Record) -> str:
    if not chunk["matches"]:
        return ""
    return f"gold {', '.join(str(gold + 1) for gold in chunk['matches'])}"


def _gaps(record: Record, metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the arithmetic of each gap that the run measures, or why this case has no part in it."""
    written = record["rewrite"]
    scores = record.get("scores", {})
    for gap in metrics:
        metric, _, name = gap.partition("@")
        if metric != rewrite_gap.name or written["error"]:
            continue
        if name in written["metric_errors"]:
            message = written["metric_errors"][name] or "the metric failed"  # a redacted run keeps no messages
            yield gap, f"no part: {message}"
        elif name in written["scores"] and name in scores:
            rewritten = written["scores"][name]
            in_conversation = scores[name]
            difference = score_text(rewritten - in_conversation)
            terms = f"{score_text(rewritten)} alone - {score_text(in_conversation)} in conversation"
            yield gap, f"{terms} = {difference}"
        elif name in written["scores"] or name in scores:
            yield gap, "no part: the metric has no value on one of the two sides"


def rewrite_line(metrics: Record) -> Line | None:
    """Return how follow-ups score as their rewrites and in conversation; None if none was asked as its rewrite.

    A gap of 0 may hide follow-ups that differ either way, so their numbers are shown.
    """
    gaps: list[tuple[int, str]] = []
    for name, metric in metrics["metrics"].items():
        is_gap = name.startswith(f"{rewrite_gap.name}@") and metric["mean"] is not None
        if is_gap and "n_higher_alone" in metric:
            gaps.append((metric["n_higher_alone"] + metric["n_lower_alone"], name))
    if not gaps:
        return None
    # The metric in which most follow-ups differ; of equal ones the first.
    differing, name = max(gaps, key=lambda gap: gap[0])
    metric = metrics["metrics"][name]
    follow_ups = counted(metric["n_scored"], "follow-up")
    if not differing:
        return Line(f"rewrites: {follow_ups} with equal scores as the rewrite and in conversation")
    compared = name.removeprefix(f"{rewrite_gap.name}@")
    alone = score_text(metric["rewritten"])
    in_conversation = score_text(metric["in_conversation"])
    means = f"{compared} {alone} as rewrites, {in_conversation} in conversation"
    numbers = f"{metric['n_higher_alone']} higher as the rewrite, {metric['n_lower_alone']} lower"
    text = f"rewrites: {follow_ups}, {means}; {numbers}"
    if len(gaps) > 1:
        text += f" ({and_more(len(gaps) - 1, 'metrics')}: -v)"
    return Line(text)
