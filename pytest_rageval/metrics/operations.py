"""Operations: rates of errors, time-outs, empty answers and chunks left out of the index, and the overall score.

Metrics of a whole run, scored once from its `RunFacts`; scores of single cases are in the other modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_rageval.metrics.index_coverage import indexing_rates
from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import NotApplicable, RunFacts

NOTHING_ASKED = NotApplicable("no case was asked")
NOTHING_JUDGED = NotApplicable("no case was judged")
NO_COVERAGE = NotApplicable("the system does not report this of its index")
NOTHING_SCORED = NotApplicable("no metric has a score")


@metric(layer="operations", better="lower", binary=True, run_level=True)
def error_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases whose asking failed / cases asked, time-outs included.

    In [0, 1], lower is better. Not applicable where no case was asked.

    >>> score("error_rate", a_run(asked=8, failed=2, timed_out=1))
    0.25
    """
    return facts.failed / facts.asked if facts.asked else NOTHING_ASKED


@metric(layer="operations", better="lower", binary=True, run_level=True)
def timeout_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases whose asking timed out / cases asked; a part of `error_rate`.

    In [0, 1], lower is better. Not applicable where no case was asked.

    >>> score("timeout_rate", a_run(asked=8, failed=2, timed_out=1))
    0.125
    """
    return facts.timed_out / facts.asked if facts.asked else NOTHING_ASKED


@metric(layer="operations", better="lower", binary=True, run_level=True)
def empty_response_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases with a blank answer that the system did not declare as an abstention / cases asked.

    In [0, 1], lower is better; such an answer is no error. Not applicable where no case was asked.

    >>> score("empty_response_rate", a_run(asked=8, blank=1))
    0.125
    """
    return facts.blank / facts.asked if facts.asked else NOTHING_ASKED


@metric(layer="operations", better="lower", run_level=True)
def judge_error_rate(facts: RunFacts) -> float | NotApplicable:
    """Cases of which a judgement failed / cases that were judged.

    In [0, 1], lower is better. A case is an error only if a gate in effect reads a metric whose judgement failed. Not
    applicable where no case was judged.

    >>> score("judge_error_rate", a_run(judged=8, judge_failed=2))
    0.25
    """
    return facts.judge_failed / facts.judged if facts.judged else NOTHING_JUDGED


@metric(layer="operations", better="lower", run_level=True)
def no_chunks_generated_rate(facts: RunFacts) -> float | NotApplicable:
    """Documents with 0 chunks / documents processed: what indexing left out entirely.

    In [0, 1], lower is better. Not applicable where the system does not report its indexing coverage.

    >>> score("no_chunks_generated_rate", a_run(coverage={"docs_processed": 50, "docs_with_0_chunks": 5}))
    0.1
    """
    rate = indexing_rates(facts.coverage or {})["no_chunks_generated_rate"]
    return NO_COVERAGE if rate is None else rate


@metric(layer="operations", better="lower", run_level=True)
def chunks_skipped_due_to_context_rate(facts: RunFacts) -> float | NotApplicable:
    """Chunks skipped for `context_limit_exceeded` / chunks attempted; without reasons, all that were skipped count.

    In [0, 1], lower is better. Not applicable where the system does not report its indexing coverage.

    >>> coverage = {"chunks_attempted": 200, "chunks_skipped_reasons": {"context_limit_exceeded": 3, "empty": 9}}
    >>> score("chunks_skipped_due_to_context_rate", a_run(coverage=coverage))
    0.015
    """
    rate = indexing_rates(facts.coverage or {})["chunks_skipped_due_to_context_rate"]
    return NO_COVERAGE if rate is None else rate


@metric(layer="operations", better="higher", run_level=True)
def overall_score(facts: RunFacts) -> float | NotApplicable:
    """All scores as one number: every score mapped to 0–1 with higher better, mean by metric, by layer, over layers.

    In [0, 1], higher is better; layers without scores do not count, the others weigh equally unless configured. Not
    applicable where nothing was scored.

    Retrieval came to 0.8 and answers to 0.6, each the mean of its metrics: (0.8 + 0.6) / 2.

    >>> score("overall_score", a_run(overall=(0.8 + 0.6) / 2))
    0.7
    """
    return NOTHING_SCORED if facts.overall is None else facts.overall


def percentile(values: Iterable[float], q: float) -> float | None:
    """Return the smallest value that at least the share q (0 to 1) of the values do not exceed; None without values.

    Source: the nearest-rank method: always a value that was measured.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    # Nearest rank: always a value that was measured, nothing in between.
    rank = max(1, math.ceil(q * len(ordered)))
    return ordered[rank - 1]
