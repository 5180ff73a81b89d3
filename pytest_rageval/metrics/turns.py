"""Conversations: how many pass as a whole, and how far later turns fall behind first ones.

Metrics of a whole run, scored once from its `RunFacts`; on in runs that have conversations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import NotApplicable, RunFacts

NO_CONVERSATION = NotApplicable("no case is a turn of a conversation")
NO_TURNS = NotApplicable("no first turn or no later turn has a value of this metric")


@metric(
    layer="operations",
    better="higher",
    binary=True,
    on_by_default=False,
    run_level=True,
)
def conversation_pass_rate(facts: RunFacts) -> float | NotApplicable:
    """Conversations of which every turn passes / conversations.

    In [0, 1], higher is better. Turns that were skipped or not selected do not count; a turn that ends in an error, is
    blocked or is a known failure does not pass. Each run with conversations has this metric. Not applicable without
    conversations.

    Of two conversations, all turns pass in one.

    >>> score("conversation_pass_rate", a_run(conversations=conversations(passed=(True, False))))
    0.5
    """
    if not facts.conversations:
        return NO_CONVERSATION
    return sum(each.passed for each in facts.conversations) / len(facts.conversations)


@metric(
    layer="operations",
    better="higher",
    scale=(-1, 1),
    on_by_default=False,
    run_level=True,
    of_metric=True,
)
def turn_decay(facts: RunFacts, *, of: str = "") -> float | NotApplicable:
    """The mean of a metric over later turns minus its mean over first turns: `turn_decay@recall_any@5`.

    Higher is better, for a metric where lower is better lower. Below 0, later turns score lower; the range is that of
    differences on the metric's scale. Each run with conversations has it for the metrics that gates of cases read. Not
    applicable where no first or no later turn has a value.

    First turns score 1 and 1, later turns 0.5, 0 and 1.

    >>> score("turn_decay@mrr", a_run(conversations=conversations(mrr=((1.0, 0.5, 0.0), (1.0, 1.0)))))
    -0.5
    """
    if not facts.conversations:
        return NO_CONVERSATION
    first = _mean_of([each.first.get(of, ()) for each in facts.conversations])
    later = _mean_of([each.later.get(of, ()) for each in facts.conversations])
    if first is None or later is None:
        return NO_TURNS
    return later - first


def _mean_of(columns: Sequence[Sequence[float]]) -> float | None:
    # Over turns, not over conversations: a long one counts by its turns.
    values = [value for column in columns for value in column]
    return math.fsum(values) / len(values) if values else None
