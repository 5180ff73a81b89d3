"""Whole conversations by a judge, scored at their last turn: one value a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.metrics.judged import judged_score
from pytest_rageval.metrics.registry import Metric, metric
from pytest_rageval.model import NotApplicable, Observation, Score

NO_TURN = NotApplicable("the case is no turn of a conversation")
LATER = NotApplicable("the last turn of the conversation has this score")
GOLD_HISTORY = NotApplicable("the earlier replies are references, not the system's (history is 'gold')")
NO_DIALOGUE = NotApplicable("what was said before the turn is not recorded")
NOTHING_BEFORE = NotApplicable("the person said nothing before the last turn")
NOTHING_TOLD = NotApplicable("the person told nothing that could be kept in mind")
NO_OUTCOME = NotApplicable("the conversation has no expected_outcome")


def judges_conversation(rubric: str) -> Metric:
    """Declare the metric of a rubric on whole conversations; in other runs a default gate would look at nothing."""
    return metric(
        layer="L5",
        better="higher",
        needs=("answer", f"judge:{rubric}"),
        on_by_default=False,
        missing=_why_not,
    )


def _why_not(obs: Observation) -> NotApplicable | None:
    """Return why a turn has no value of its whole conversation, or None."""
    if obs.case.turn is None:
        return NO_TURN
    if not obs.case.is_last:
        return LATER
    if obs.dialogue is None:
        return NO_DIALOGUE
    # A judge would score the references, which are not the system's words.
    return GOLD_HISTORY if obs.dialogue.is_gold else None


@judges_conversation("knowledge_retention")
def knowledge_retention(obs: Observation) -> float | Score | NotApplicable:
    """Judged, of a whole conversation: facts of the person that no later reply loses / facts that the person told.

    In [0, 1], higher is better. The last turn has the score. A reply loses a fact if it asks for it again, contradicts
    it or ignores it where it matters. The detail has the number of facts and the lost ones. DeepEval's metric of this
    name is the share of replies that lose nothing. Not applicable where the person told nothing before the last turn,
    with `history = "gold"`, in single cases, or where no judge scored it. Source: the rubric `knowledge_retention`.

    Of two facts, one was asked for again:

    >>> score("knowledge_retention", judged_conversation("knowledge_retention", 0.5))
    0.5
    """
    assert obs.dialogue is not None  # `_why_not` was asked first
    if not any(turn.role == "user" for turn in obs.dialogue.history):
        return NOTHING_BEFORE
    judgement = obs.judgements.get("knowledge_retention")
    # Of an empty list of facts there is no share.
    if judgement is not None and judgement.error is None and not judgement.scores:
        return NOTHING_TOLD
    scored = _judged(obs, "knowledge_retention")
    if isinstance(scored, NotApplicable):
        return scored
    facts = _listed_facts(obs)
    if not facts:  # a judge or a rubric of the project's own, which lists none
        return scored
    value, detail = (scored.value, scored.detail) if isinstance(scored, Score) else (scored, {})
    lost = [fact["fact"] for fact in facts if not fact["kept"]]
    return Score(value, {**detail, "told": len(facts), "lost": lost})


@judges_conversation("conversation_completeness")
def conversation_completeness(obs: Observation) -> float | Score | NotApplicable:
    """Judged, of a whole conversation: does the person have at its end what `expected_outcome` names?

    In [0, 1], higher is better. The last turn has the score, and all replies count. DeepEval's metric of this name is
    the share of the person's intentions that were met, which a model infers; here the case says what is to be reached.
    Not applicable without `expected_outcome`, with `history = "gold"`, in single cases, or where no judge scored it.
    Source: the rubric `conversation_completeness`.

    >>> score("conversation_completeness", judged_conversation("conversation_completeness", 0.75, outcome="A price."))
    0.75
    >>> score("conversation_completeness", judged_conversation("conversation_completeness", 0.75))
    NotApplicable(reason='the conversation has no expected_outcome')
    """
    if obs.case.expected_outcome is None:
        return NO_OUTCOME
    return _judged(obs, "conversation_completeness")


def _judged(obs: Observation, name: str) -> float | Score | NotApplicable:
    return judged_score(obs, name, even_if_abstained=True, from_context=False)


def _listed_facts(obs: Observation) -> list[Mapping[str, Any]]:
    """Return the facts that the judge lists, each with whether it was kept; a user's own judge may write anything."""
    judgement = obs.judgement_of("knowledge_retention")
    written = None if judgement is None else judgement.extra.get("facts")
    if not isinstance(written, list | tuple):
        return []
    return [fact for fact in written if isinstance(fact, Mapping) and {"fact", "kept"} <= fact.keys()]


OF_WHOLE_CONVERSATION = frozenset({knowledge_retention.name, conversation_completeness.name})
"""Metrics with one value a conversation, at its last turn: they have no decay over turns."""
