"""Operations: what did the run cost in failures and time, and how much of the corpus can be found at all?

Metrics of a whole run, scored once from its `RunFacts`; scores of single cases are in the other modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import Json, NotApplicable, RunFacts

NOTHING_ASKED = NotApplicable("no case was asked")
NO_COVERAGE = NotApplicable("the system does not report this of its index")
NOTHING_SCORED = NotApplicable("no metric has a score")


@metric(layer="operations", better="lower", run_level=True)
def error_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases whose asking failed / cases asked, time-outs included.

    In [0, 1], lower is better. Not applicable where no case was asked.
    """
    return facts.failed / facts.asked if facts.asked else NOTHING_ASKED


@metric(layer="operations", better="lower", run_level=True)
def timeout_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases whose asking timed out / cases asked; a part of `error_rate`.

    In [0, 1], lower is better. Not applicable where no case was asked.
    """
    return facts.timed_out / facts.asked if facts.asked else NOTHING_ASKED


@metric(layer="operations", better="lower", run_level=True)
def empty_response_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases with a blank answer that the system did not declare as an abstention / cases asked.

    In [0, 1], lower is better; such an answer is no error. Not applicable where no case was asked.
    """
    return facts.blank / facts.asked if facts.asked else NOTHING_ASKED


@metric(layer="operations", better="lower", run_level=True)
def no_chunks_generated_rate(facts: RunFacts) -> float | NotApplicable:
    """Documents with 0 chunks / documents processed: what indexing left out entirely.

    In [0, 1], lower is better. Not applicable where the system does not report its indexing coverage.
    """
    rate = indexing_rates(facts.coverage or {})["no_chunks_generated_rate"]
    return NO_COVERAGE if rate is None else rate


@metric(layer="operations", better="lower", run_level=True)
def chunks_skipped_due_to_context_rate(facts: RunFacts) -> float | NotApplicable:
    """Chunks skipped for `context_limit_exceeded` / chunks attempted.

    In [0, 1], lower is better. Not applicable where the system does not report its indexing coverage.
    """
    rate = indexing_rates(facts.coverage or {})["chunks_skipped_due_to_context_rate"]
    return NO_COVERAGE if rate is None else rate


@metric(layer="operations", better="higher", run_level=True)
def overall_score(facts: RunFacts) -> float | NotApplicable:
    """All scores as one number: every score mapped to 0–1 with higher better, mean by metric, by layer, over layers.

    In [0, 1], higher is better; layers without scores do not count, the others weigh equally unless configured. Not
    applicable where nothing was scored.
    """
    return NOTHING_SCORED if facts.overall is None else facts.overall


def indexing_rates(coverage: Mapping[str, Json]) -> dict[str, float | None]:
    """The two rates of an `indexing_coverage` report; None where its counts are absent, no counts, or contradictory.

    Read are `docs_with_0_chunks` of `docs_processed`, and `chunks_skipped_reasons.context_limit_exceeded` (absent: 0)
    of `chunks_attempted`.
    """
    reasons = coverage.get("chunks_skipped_reasons")
    skipped = reasons.get("context_limit_exceeded", 0) if isinstance(reasons, Mapping) else None
    return {
        "no_chunks_generated_rate": _rate(coverage.get("docs_with_0_chunks"), coverage.get("docs_processed")),
        "chunks_skipped_due_to_context_rate": _rate(skipped, coverage.get("chunks_attempted")),
    }


def percentile(values: Iterable[float], q: float) -> float | None:
    """The smallest value that at least the share q (0 to 1) of the values do not exceed; None of no values.

    Source: the nearest-rank method: always a value that was measured.
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else None


def _rate(part: Json, whole: Json) -> float | None:
    if type(part) is not int or type(whole) is not int or not 0 <= part <= whole or whole == 0:
        return None
    return part / whole
