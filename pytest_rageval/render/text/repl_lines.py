"""Lines of an interactive session: chunks of a question, figures of a case, judgements, the report of all cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pytest_rageval.metrics.judged import abstention_quality, citation_accuracy, composite, faithfulness, relevance
from pytest_rageval.metrics.judged import synthesis as synthesis_metric
from pytest_rageval.metrics.registry import Measure, Metric
from pytest_rageval.metrics.retrieval import context_recall, mrr, negative_accuracy, precision, specificity_accuracy
from pytest_rageval.model import Chunk, NotApplicable, Observation, Score
from pytest_rageval.run.scoring import Evaluation
from pytest_rageval.text import NO_VALUE, counted, score_text
from pytest_rageval.tune.repl import RetrievalDiff
from pytest_rageval.tune.sweep.grid import value_text

START = 50
"""Characters of a chunk's text that a list shows."""
RULE = "═" * 60
THIN_RULE = "─" * 58
NOTHING = "  (no results above threshold)"
JUDGED: tuple[tuple[str, Metric], ...] = (
    ("Faithfulness", faithfulness),
    ("Citation accuracy", citation_accuracy),
    ("Abstention", abstention_quality),
    ("Synthesis", synthesis_metric),
    ("Relevance", relevance),
    ("Composite", composite),
)
REPORTED: tuple[tuple[str, Metric, bool], ...] = (
    ("Precision", precision, True),
    ("Recall", context_recall, True),
    ("MRR", mrr, False),
    ("Neg. accuracy", negative_accuracy, False),
    ("Specificity", specificity_accuracy, True),
)
"""The metrics of the report, and whether they take the cut-off of the run."""
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
    case = observation.case
    chunks = observation.answer.chunks or ()
    if observation.matching.kind == "anchors":
        expected = [str(anchor) for anchor in observation.gold.supports or ()]
        retrieved = [_place(chunk) for chunk in chunks]
    else:
        expected = list(observation.gold.chunk_ids or ())
        retrieved = [chunk_name(chunk) for chunk in chunks]
    yield f"  Query:    {_one_line(case.question)}"
    yield f"  Category: {case.category or NO_VALUE}"
    yield f"  Expected: {expected}"
    yield f"  Got:      {retrieved}"
    yield f"  Scores:   {[score_text(chunk.score_final) for chunk in chunks]}"
    yield "  " + _figures([observation])


def metric_line(observation: Observation, measure: Measure) -> str:
    """Return one metric of a case, with its formula filled in."""
    scored = measure.score(observation)
    if isinstance(scored, NotApplicable):
        return f"  {measure.name}: not applicable: {scored.reason}"
    line = f"  {measure.name}: {score_text(_value(scored))}"
    formula = measure.arithmetic(observation)
    return f"{line} = {formula}" if formula else line


def judged_lines(observation: Observation) -> Iterator[str]:
    """Yield the five dimensions and their mean, each with its value or why it has none, and the judge's reasoning."""
    for title, metric in JUDGED:
        scored = Measure(metric).score(observation)
        if isinstance(scored, NotApplicable):
            text = f"{NO_VALUE}  ({_one_line(scored.reason)})"
        else:
            text = f"{_value(scored):.2f}"
        yield f"  {title + ':':<18} {text}"
    # One judgement may give several dimensions, with one reasoning.
    reasons = [judgement.reasoning for judgement in observation.judgements.values() if judgement.reasoning]
    explanation = "; ".join(dict.fromkeys(reasons)) or NO_VALUE
    yield f"  Explanation: {_one_line(explanation)}"


def report_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield the figures of all cases, those of each category, and the failures."""
    results = [each.overall for each in evaluations]
    observations = [result.observation for result in results if result.observation is not None]
    yield "  " + RULE
    yield "    Eval Run: interactive-full"
    yield "  " + RULE
    for title, metric, has_k in REPORTED:
        yield f"    {title + ':':<14} {score_text(_mean(observations, metric, has_k=has_k))}"
    yield "  " + THIN_RULE
    categories = sorted(dict.fromkeys(result.case.category for result in results), key=_category_order)
    width = max(16, *(len(category or NO_VALUE) for category in categories))
    for category in categories:
        of_it = [observation for observation in observations if observation.case.category == category]
        # Cases that ended in an error have no observation, and count all the same.
        n = sum(result.case.category == category for result in results)
        yield f"    {category or NO_VALUE:<{width}} n={n:<3} {_figures(of_it, '  ')}"
    yield "  " + THIN_RULE
    failing = [result for result in results if result.outcome in ("failed", "error")]
    yield f"    ✗ {counted(len(failing), 'failure')}" if failing else "    ✓ No failures"
    for result in failing:
        why = result.error.message if result.error else "; ".join(map(str, result.failed_gates))
        yield f"      {result.case.id}: {_one_line(why)}"
    yield "  " + RULE


def _category_order(category: str | None) -> int:
    return OF_IDS.index(category) if category in OF_IDS else len(OF_IDS)


def diff_lines(comparison: RetrievalDiff) -> Iterator[str]:
    """Yield the settings that differ, and the rank of each chunk before and now."""
    before, after = comparison.settings_before, comparison.settings_after
    yield f"  Query:    {_one_line(comparison.question)}"
    for name in dict.fromkeys((*before, *after)):
        value_before = value_text(before[name]) if name in before else "(server default)"
        value_after = value_text(after[name]) if name in after else "(server default)"
        if value_before != value_after:
            yield f"  {name}: {value_before} → {value_after}"
    ranks_before = _ranks(comparison.before)
    ranks_after = _ranks(comparison.after)
    if ranks_before == ranks_after:
        yield "  (the same chunks)"
        return
    names = {**_names(comparison.before), **_names(comparison.after)}
    gone = [chunk for chunk in ranks_before if chunk not in ranks_after]
    for chunk in (*sorted(ranks_after, key=ranks_after.__getitem__), *sorted(gone, key=ranks_before.__getitem__)):
        was = ranks_before.get(chunk)
        now = ranks_after.get(chunk)
        yield f"  {was or '–':>3} → {now or '–':<3} [{names[chunk]}] {_move(was, now)}".rstrip()


def _move(rank_before: int | None, rank_after: int | None) -> str:
    if rank_before is None:
        return "new"
    if rank_after is None:
        return "gone"
    return "" if rank_before == rank_after else "moved"


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
    ranks: dict[str, int] = {}
    for rank, chunk in enumerate(observation.answer.chunks or (), start=1):
        ranks.setdefault(_identity(chunk), rank)
    return ranks


def _names(observation: Observation) -> dict[str, str]:
    names = {}
    for chunk in observation.answer.chunks or ():
        name = chunk_name(chunk)
        names[_identity(chunk)] = f"{name} > {chunk.heading_path}" if chunk.heading_path else name
    return names


def _identity(chunk: Chunk) -> str:
    # Two chunks of one section differ in their lines and texts alone.
    return chunk.chunk_id or f"{_place(chunk)} {chunk.start_line} {chunk.text}"


def _place(chunk: Chunk) -> str:
    if chunk.rel_path and chunk.heading_path:
        return f"{chunk.rel_path} > {chunk.heading_path}"
    return chunk_name(chunk)


def _figures(observations: Sequence[Observation], space: str = " ") -> str:
    figures = (
        f"P={score_text(_mean(observations, precision, has_k=True))}",
        f"R={score_text(_mean(observations, context_recall, has_k=True))}",
        f"MRR={score_text(_mean(observations, mrr, has_k=False))}",
    )
    return space.join(figures)


def _mean(observations: Iterable[Observation], metric: Metric, *, has_k: bool) -> float | None:
    values = []
    for observation in observations:
        scored = Measure(metric, observation.k if has_k else None).score(observation)
        if not isinstance(scored, NotApplicable):
            values.append(_value(scored))
    # No value is no mean of 0.
    return math.fsum(values) / len(values) if values else None


def _value(scored: Score | float) -> float:
    return scored.value if isinstance(scored, Score) else scored


def _one_line(text: str) -> str:
    return " ".join(text.split())
