"""Assertions that a judge decides: by a rubric in words, or by the similarity of embeddings."""

from __future__ import annotations

import hashlib

from pytest_rageval.assertions.assertion_type import (
    AssertionType,
    Checked,
    CheckedAnswer,
    ThresholdRule,
    assertion_type,
)
from pytest_rageval.assertions.values import STRING
from pytest_rageval.model import FailedJudgement
from pytest_rageval.model.assertion import Assertion
from pytest_rageval.text import cut

LONGEST_REASON = 300
MODEL, EMBEDDING = "model", "embedding"
_NO_JUDGE = {
    MODEL: "no model judged it: llm-rubric needs a model as judge",
    EMBEDDING: "no embedding judge compared it: similar needs --rageval-judge embedding:MODEL@URL",
}


@assertion_type(STRING, ThresholdRule("the lowest score", high=1, default=0.5), judged_by=MODEL)
def llm_rubric(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The judge model scores the answer by the value, a criterion in words: at least `threshold`, from 0 to 1.

    Needs a model as judge. A failed judgement is an error of the case.
    """
    return _judged(llm_rubric, answer, assertion)


@assertion_type(STRING, ThresholdRule("the lowest cosine", high=1, default=0.75), judged_by=EMBEDDING)
def similar(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The cosine of the embeddings of the answer and the value is at least `threshold`.

    Needs the judge `embedding:MODEL@URL`. Of a long answer, the first 2,000 characters count.
    """
    return _judged(similar, answer, assertion)


def _judged(kind: AssertionType, answer: CheckedAnswer, assertion: Assertion) -> Checked:
    name = judged_name(assertion)
    judgement = answer.judgements.get(name)
    if judgement is None:
        return Checked(None, _NO_JUDGE[kind.judged_by or MODEL])
    if judgement.error is not None:
        raise FailedJudgement(judgement, judgement.error)
    if name not in judgement.scores:
        return Checked(None, "the judge gave no score")
    score = judgement.scores[name]
    reason = f": {cut(judgement.reasoning, LONGEST_REASON)}" if judgement.reasoning else ""
    return Checked(score >= kind.limit(assertion), f"{judgement.model} gave {score:.4g}{reason}")


def judged_name(assertion: Assertion) -> str:
    """Return the name of the judgement of an assertion: the same for the same value, in whatever case."""
    digest = hashlib.sha256(str(assertion.value).encode("utf-8", "replace")).hexdigest()
    return f"{assertion.plain_type.replace('-', '_')}_{digest[:12]}"


TYPES: tuple[AssertionType, ...] = (llm_rubric, similar)
