"""Metrics of abstention: whether the system declined to answer, and whether that was right."""

from __future__ import annotations

import threading
from functools import partial
from typing import NamedTuple

from pytest_rageval.abstention.detector import declines
from pytest_rageval.matching.passages import context_texts
from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import NotApplicable, Observation, Score

NO_ANSWER = NotApplicable("the record holds no answer", is_unobserved=True)
ANSWERABLE = NotApplicable("the case is answerable")
UNANSWERABLE = NotApplicable("the case is not answerable")
SMALL_TALK = NotApplicable("the turn is small talk")
ABSTAINED = NotApplicable("the system abstained")
IN_DOUBT = NotApplicable(
    "undecided: the wording leaves open whether the system abstained; let it send `abstained`, or use a model as judge",
    is_unobserved=True,
)


class AbstentionVerdict(NamedTuple):
    """Verdict on whether the system abstained, and what decided that.

    value       None if the wording leaves it open
    decided_by  one of 'response', 'empty answer', 'judge', 'phrasing', 'no answer'
    """

    value: bool | None
    decided_by: str


def abstention(obs: Observation) -> AbstentionVerdict:
    """Return whether the system abstained, as the first of these sources that is known decides.

    The response's own `abstained`; a blank answer, which is an abstention; the judge's classifier (rubric `abstention`,
    score `abstained`, 0 or 1); the wording, also if the judge went by it. A system whose answer is not recorded did not
    abstain.
    """
    # Several metrics and the record ask about the same observation, one after the other.
    latest = _latest.verdict
    if latest is None or latest[0] is not obs:
        latest = _latest.verdict = (obs, _decided(obs))
    return latest[1]


class _Latest(threading.local):
    """The observation that was asked about last on this thread, and its verdict."""

    verdict: tuple[Observation, AbstentionVerdict] | None = None


_latest = _Latest()


def _decided(obs: Observation) -> AbstentionVerdict:
    if obs.answer.abstained is not None:
        return AbstentionVerdict(obs.answer.abstained, "response")
    if obs.answer.text is not None and not obs.answer.text.strip():
        return AbstentionVerdict(True, "empty answer")
    judgement = obs.judged("abstained")
    if judgement is not None:
        decided_by = "phrasing" if judgement.extra.get("decided_by") == "phrasing" else "judge"
        return AbstentionVerdict(judgement.scores["abstained"] >= 0.5, decided_by)
    if obs.answer.text is None:
        return AbstentionVerdict(False, "no answer")
    texts = context_texts(obs.case, obs.answer, obs.k)
    # The gold of an unanswerable case may itself be a refusal, which is no right answer to find.
    golds = (obs.gold.answers or ()) if obs.case.answerable else ()
    detected = declines(obs.answer.text, obs.case.question, obs.refusals, texts, golds)
    return AbstentionVerdict(detected.abstained, "phrasing")


def _abstention(obs: Observation, _: int) -> str:
    decision = abstention(obs)
    return f"{_IN_WORDS[decision.value]}, decided by: {decision.decided_by}"


_IN_WORDS = {True: "abstained", False: "did not abstain", None: "undecided"}


def _undecided(obs: Observation) -> NotApplicable | None:
    # A system that says it abstained need not give a text.
    if obs.answer.text is None and obs.answer.abstained is None:
        return NO_ANSWER
    return IN_DOUBT if abstention(obs).value is None else None


def _of_unanswerable(obs: Observation) -> NotApplicable | None:
    return ANSWERABLE if obs.case.answerable else _undecided(obs)


def _of_answerable(obs: Observation) -> NotApplicable | None:
    if obs.case.conversational:
        return SMALL_TALK
    return _undecided(obs) if obs.case.answerable else UNANSWERABLE


decided = partial(metric, layer="abstention", binary=True, terms=_abstention)


@decided(
    better="higher",
    needs=("answer", "gold.unanswerable", "judge:abstention"),
    missing=_of_unanswerable,
    gates=("abstention_accuracy >= 1 tag abstention_fail",),
)
def abstention_accuracy(obs: Observation) -> Score:
    """1 if the system abstained from a question that the corpus does not answer, else 0.

    Higher is better; the detail `decided_by` says how the abstention was seen. Not applicable to answerable cases or
    where no answer is recorded. Source: accuracy on unanswerable questions, as in SQuAD 2.0.

    >>> score("abstention_accuracy", answered("The notes do not say.", answerable=False, abstained=True))
    1.0
    """
    return _share(obs, of_abstained=True)


@decided(
    better="lower",
    aggregate="hallucination_rate_unanswerable",
    needs=("answer", "gold.unanswerable", "judge:abstention"),
    missing=_of_unanswerable,
)
def hallucinated(obs: Observation) -> Score:
    """1 if the system answered a question that the corpus does not answer, else 0: 1 - `abstention_accuracy`.

    Lower is better; the mean is `hallucination_rate_unanswerable`. Not applicable to answerable cases or where no
    answer is recorded. Source: as for `abstention_accuracy`.

    >>> score("hallucinated", answered("It is 42.", answerable=False))
    1.0
    """
    return _share(obs, of_abstained=False)


@decided(
    better="lower",
    needs=("answer", "judge:abstention"),
    missing=_of_answerable,
    gates=("over_abstention <= 0 tag over_abstention_fail",),
)
def over_abstention(obs: Observation) -> Score:
    """1 if the system abstained although the corpus holds an answer, else 0.

    Lower is better; the detail `decided_by` says how the abstention was seen. Not applicable to unanswerable cases or
    where no answer is recorded. Source: false refusal rate.

    A blank answer is an abstention:

    >>> score("over_abstention", answered("", "42"))
    1.0
    """
    return _share(obs, of_abstained=True)


def _share(obs: Observation, *, of_abstained: bool) -> Score:
    seen = abstention(obs)
    return Score(float(seen.value is of_abstained), {"decided_by": seen.decided_by})
