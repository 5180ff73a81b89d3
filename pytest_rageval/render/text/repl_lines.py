"""Lines of an interactive session: chunks of a question, figures of a case, judgements, the report of all cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pytest_rageval.metrics.judged import abstention_quality, citation_accuracy, composite, faithfulness, relevance
from pytest_rageval.metrics.judged import synthesis as synthesis_metric
from pytest_rageval.metrics.registry import Measure, Metric
from pytest_rageval.metrics.retrieval import context_recall, mrr, negative_accuracy, precision, specificity_accuracy
from pytest_rageval.model import Chunk, NotApplicable, Observation, Score
from pytest_rageval.run.engine import Evaluation
from pytest_rageval.text import NO_VALUE, counted, score_text
from pytest_rageval.tune.repl import RetrievalDiff
from pytest_rageval.tune.sweep.grid import value_text

START = 50
"""Characters of a chunk's text that a list shows."""
RULE, THIN_RULE = "═" * 60, "─" * 58
NOTHING = "  (no results above threshold)"
JUDGED: tuple[tuple[str, Metric], ...] = (
    ("Faithfulness", faithfulness),
    ("Citation accuracy", citation_accuracy),
    ("Abstention", abstention_quality),
    ("Synthesis", synthesis_metric),
    ("Relevance", relevance),
    ("Composite", composite),
)
OF_IDS = ("retrieval", "synthesis", "specificity", "negative")
"""Categories of cases with ids, in the order of the report; others follow in the order of the cases."""


def query_lines(observation: Observation) -> Iterator[str]:
    """Yield the chunks of a question: rank, id, score, author and the start of the text."""
    chunks = observation.answer.chunks
    if chunks is None:
        yield "  (the system reports no retrieved chunks)"
        return
    if not chunks:
        yield NOTHING
    for rank, chunk in enumerate(chunks, start=1):
        author = chunk.extra.get("author")
        by = f" ({author})" if author else ""
        score = score_text(chunk.score_final)
        yield f"  {rank}. [{chunk_name(chunk)}] score={score}{by} {beginning(chunk.text)}".rstrip()


def evaluation_lines(observation: Observation) -> Iterator[str]:
    """Yield a case: what was expected, what was retrieved, and its precision, recall and rank."""
    case, chunks = observation.case, observation.answer.chunks or ()
    by_anchor = observation.matching.kind == "anchors"
    if by_anchor:
        expected = [str(anchor) for anchor in observation.gold.supports or ()]
    else:
        expected = list(observation.gold.chunk_ids or ())
    yield f"  Query:    {_one_line(case.question)}"
    yield f"  Category: {case.category or NO_VALUE}"
    yield f"  Expected: {expected}"
    yield f"  Got:      {[_place(chunk) if by_anchor else chunk_name(chunk) for chunk in chunks]}"
    yield f"  Scores:   {[score_text(chunk.score_final) for chunk in chunks]}"
    yield "  " + _figures([observation])


def metric_line(observation: Observation, measure: Measure) -> str:
    """Return one metric of a case, with its formula filled in."""
    scored = measure.score(observation)
    if isinstance(scored, NotApplicable):
        return f"  {measure.name}: not applicable: {scored.reason}"
    value = scored.value if isinstance(scored, Score) else scored
    formula = measure.arithmetic(observation)
    return f"  {measure.name}: {score_text(value)}" + (f" = {formula}" if formula else "")


def judged_lines(observation: Observation) -> Iterator[str]:
    """Yield the five dimensions and their mean, each with its value or why it has none, and the judge's reasoning."""
    for title, metric in JUDGED:
        scored = Measure(metric).score(observation)
        if isinstance(scored, NotApplicable):
            text = f"{NO_VALUE}  ({_one_line(scored.reason)})"
        else:
            text = f"{scored.value if isinstance(scored, Score) else scored:.2f}"
        yield f"  {title + ':':<18} {text}"
    reasons = (judgement.reasoning for judgement in observation.judgements.values())
    yield f"  Explanation: {_one_line('; '.join(dict.fromkeys(filter(None, reasons))) or NO_VALUE)}"


def report_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield the figures of all cases, those of each category, and the failures."""
    results = [each.overall for each in evaluations]
    observations = [result.observation for result in results if result.observation is not None]
    yield "  " + RULE
    yield "    Eval Run: interactive-full"
    yield "  " + RULE
    for title, metric, k in (
        ("Precision", precision, True),
        ("Recall", context_recall, True),
        ("MRR", mrr, False),
        ("Neg. accuracy", negative_accuracy, False),
        ("Specificity", specificity_accuracy, True),
    ):
        yield f"    {title + ':':<14} {score_text(_mean(observations, metric, has_k=k))}"
    yield "  " + THIN_RULE
    categories = sorted(
        dict.fromkeys(result.case.category for result in results),
        key=lambda category: OF_IDS.index(category) if category in OF_IDS else len(OF_IDS),
    )
    width = max(16, *(len(category or NO_VALUE) for category in categories))
    for category in categories:
        of_it = [observation for observation in observations if observation.case.category == category]
        n = sum(result.case.category == category for result in results)
        yield f"    {category or NO_VALUE:<{width}} n={n:<3} {_figures(of_it, '  ')}"
    yield "  " + THIN_RULE
    failing = [result for result in results if result.outcome in ("failed", "error")]
    yield f"    ✗ {counted(len(failing), 'failure')}" if failing else "    ✓ No failures"
    for result in failing:
        why = result.error.message if result.error else "; ".join(map(str, result.failed_gates))
        yield f"      {result.case.id}: {_one_line(why)}"
    yield "  " + RULE


def diff_lines(comparison: RetrievalDiff) -> Iterator[str]:
    """Yield the settings that differ, and the rank of each chunk before and now."""
    before, after = comparison.settings_before, comparison.settings_after
    yield f"  Query:    {_one_line(comparison.question)}"
    for name in dict.fromkeys((*before, *after)):
        values = [value_text(side[name]) if name in side else "(server default)" for side in (before, after)]
        if values[0] != values[1]:
            yield f"  {name}: {values[0]} → {values[1]}"
    ranks = [_ranks(side) for side in (comparison.before, comparison.after)]
    if ranks[0] == ranks[1]:
        yield "  (the same chunks)"
        return
    names = {**_names(comparison.before), **_names(comparison.after)}
    # The chunks of now in order, then those that are gone.
    for chunk in sorted({*ranks[0], *ranks[1]}, key=lambda each: (ranks[1].get(each, math.inf), ranks[0].get(each))):
        was, now = ranks[0].get(chunk), ranks[1].get(chunk)
        word = "new" if was is None else "gone" if now is None else "" if was == now else "moved"
        yield f"  {was or '–':>3} → {now or '–':<3} [{names[chunk]}] {word}".rstrip()


def settings_line(settings: dict[str, object]) -> str:
    """Return the settings that are sent with a question."""
    return "  " + ", ".join(f"{name} {value_text(value)}" for name, value in settings.items())


def chunk_name(chunk: Chunk) -> str:
    """Return the name of a chunk in a list: the id of its document, its path, or its own id."""
    return chunk.doc_id or chunk.rel_path or chunk.chunk_id or NO_VALUE


def beginning(text: str | None) -> str:
    """Return the start of a chunk's text, cut between words."""
    line = _one_line(text or "")
    if len(line) <= START:
        return line
    return (line[:START].rpartition(" ")[0] or line[:START]) + "..."


def _ranks(observation: Observation) -> dict[str, int]:
    """Return the rank of each chunk by its id or, without one, its place."""
    chunks = observation.answer.chunks or ()
    return {_identity(chunk): rank for rank, chunk in reversed([*enumerate(chunks, start=1)])}


def _names(observation: Observation) -> dict[str, str]:
    return {
        _identity(chunk): f"{chunk_name(chunk)} > {chunk.heading_path}" if chunk.heading_path else chunk_name(chunk)
        for chunk in observation.answer.chunks or ()
    }


def _identity(chunk: Chunk) -> str:
    return chunk.chunk_id or f"{_place(chunk)} {chunk.start_line} {chunk.text}"


def _place(chunk: Chunk) -> str:
    return f"{chunk.rel_path} > {chunk.heading_path}" if chunk.rel_path and chunk.heading_path else chunk_name(chunk)


def _figures(observations: Sequence[Observation], space: str = " ") -> str:
    figures = (("P", precision, True), ("R", context_recall, True), ("MRR", mrr, False))
    return space.join(f"{name}={score_text(_mean(observations, metric, has_k=k))}" for name, metric, k in figures)


def _mean(observations: Iterable[Observation], metric: Metric, *, has_k: bool) -> float | None:
    scores = (Measure(metric, observation.k if has_k else None).score(observation) for observation in observations)
    present = (score for score in scores if not isinstance(score, NotApplicable))
    values = [score.value if isinstance(score, Score) else score for score in present]
    return math.fsum(values) / len(values) if values else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
