"""Follow-ups asked again as their rewrites: what a system loses by not resolving the reference.

A metric of a whole run, scored once from its `RunFacts`; on in runs with `rewrites`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_rageval.metrics.registry import Measure, metric
from pytest_rageval.model import NotApplicable, RunFacts, ScorePair

NO_FOLLOW_UP = NotApplicable("no follow-up with a rewrite was asked as it; --rageval-rewrites asks them so, too")
NO_PAIR = NotApplicable("no follow-up has a value of this metric both as its rewrite and in conversation")
NOT_ASKED = "needs follow-ups asked as their rewrites, too: add --rageval-rewrites, or rewrites = true to the table"


@metric(
    layer="operations",
    better="lower",
    scale=(-1, 1),
    on_by_default=False,
    run_level=True,
    of_metric=True,
)
def rewrite_gap(facts: RunFacts, *, of: str = "") -> float | NotApplicable:
    """The mean over follow-ups of a metric when asked as the `rewrite`, minus when asked in conversation.

    Lower is better; if lower values of the metric itself are better, a higher gap is better. It is a mean: a
    follow-up that scores higher in conversation cancels one that scores lower, so 0 does not mean that every reference
    is resolved. `rageval explain` shows each pair. The range is that of differences on the metric's scale;
    `rewrite_gap@recall_any@5` is about `recall_any@5`. Follow-ups are the cases with a `rewrite` and a question before
    theirs. Each run with `--rageval-rewrites` asks them once more, as their `rewrite` and without history except
    instructions, and has this metric for the metrics that gates of cases read. Several trials count with their means.
    A follow-up without a value on one of the two sides does not count; metrics.json has how many do. Not applicable
    where none does.

    Two follow-ups score 1 and 1 as their rewrites, and 0 and 1 in conversation: (1 - 0 + 1 - 1) / 2.

    >>> score("rewrite_gap@mrr", a_run(follow_ups=follow_ups(mrr=((1, 0), (1, 1)))))
    0.5
    """
    if not facts.follow_ups:
        return NO_FOLLOW_UP
    pairs = score_pairs(facts, of)
    if not pairs:
        return NO_PAIR
    return math.fsum(pair.gap for pair in pairs) / len(pairs)


def score_pairs(facts: RunFacts, of: str) -> Sequence[ScorePair]:
    """Return the scores of each follow-up that has them on both sides."""
    return [each.pairs[of] for each in facts.follow_ups if of in each.pairs]


def is_rewrite_gap(measure: Measure) -> bool:
    """Return True for the measure of a gap, which needs follow-ups asked as their rewrites."""
    return measure.metric.name == rewrite_gap.name
