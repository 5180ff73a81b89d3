"""Claim support: the judge takes the answer apart into claims, then judges each claim by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.gathering import ask_together, taken
from pytest_rageval.judges.judge import Judge, judges_at_once
from pytest_rageval.model import Judgement, JudgeRequest
from pytest_rageval.text import counted

SPLIT, SUPPORT = "claim_split", "claim_support"

MOST_CLAIMS = 50
"""Claims that are judged; of an answer with more, the first ones count, and a flag says so."""

CLAIMS_AT_ONCE = 10
"""Claims of one request: so many share one copy of the contexts, and few enough are judged with care."""

LONGEST_CLAIM = 2000
"""Characters; what a model calls a claim may be anything."""


async def judge_claims(judge: Judge, split: JudgeRequest, support: JudgeRequest) -> Judgement:
    """One judgement of the rubric `claim_support`: supported claims / claims, on 0 to 1.

    The judge is asked `split`, then `support` with some claims at a time in the place of its variable `claims`; where
    it reads `claim`, with one at a time. All of these are asked together. Without any claim there is no score. What a
    judge says that holds no list of claims, or no verdict on one, is a JudgeError. Tokens, cost and time are those of
    all calls together.
    """
    reply = await judge.judge(split)
    claims = _claims(reply, judge.model)
    judged = claims[:MOST_CLAIMS]
    at_once = CLAIMS_AT_ONCE if "claims" in support.variables else 1
    batches = [judged[start : start + at_once] for start in range(0, len(judged), at_once)]
    asked = (judge.judge(_support_of(batch, support)) for batch in batches)
    judgements = await ask_together(asked, in_turn=judges_at_once(judge))
    supported = [
        verdict
        for batch, judgement in zip(batches, judgements, strict=True)
        for verdict in _verdicts(judgement, len(batch), judge.model)
    ]
    parts = taken([reply, *judgements])
    if len(claims) > MOST_CLAIMS:
        parts["flags"] += (f"of {len(claims)} claims the first {MOST_CLAIMS} were judged",)
    return Judgement(
        rubric=SUPPORT,
        scores={SUPPORT: sum(supported) / len(judged)} if judged else {},
        reasoning=share_of_claims(sum(supported), len(judged)) if judged else "the answer makes no claim",
        supported_claims=tuple(claim for claim, held in zip(judged, supported, strict=True) if held),
        unsupported_claims=tuple(claim for claim, held in zip(judged, supported, strict=True) if not held),
        model=reply.model,
        prompt_version=f"{split.prompt_version},{support.prompt_version}",
        extra={name: value for name, value in reply.extra.items() if name != "claims"},
        **parts,
    )


def share_of_claims(supported: int, claims: int) -> str:
    """`3 of 4 claims are supported`."""
    return f"{supported} of {counted(claims, 'claim is', 'claims are')} supported"


def _claims(reply: Judgement, model: str) -> list[str]:
    """The claims in order, each once, cut where they are overlong; blank ones are none."""
    claims = reply.extra.get("claims")
    if not isinstance(claims, list | tuple) or not all(isinstance(claim, str) for claim in claims):
        raise JudgeError("invalid_reply", f"judge {model!r}, rubric {SPLIT!r}: its reply has no list of claims")
    texts = (" ".join(claim[:LONGEST_CLAIM].split()) for claim in claims)
    return [*dict.fromkeys(filter(None, texts))]


def _support_of(claims: Sequence[str], support: JudgeRequest) -> JudgeRequest:
    """The request about these claims, or about the one, as its prompt reads them."""
    values = {
        "claims": [{"number": number, "text": claim} for number, claim in enumerate(claims, start=1)],
        "claim": claims[0],
    }
    replaced = {name: value for name, value in values.items() if name in support.variables}
    return replace(support, variables={**support.variables, **replaced})


def _verdicts(judgement: Judgement, claims: int, model: str) -> list[bool]:
    """Whether each claim of a request is supported: by its verdict, or, of a single one, by the score."""
    verdicts = judgement.extra.get("verdicts")
    if isinstance(verdicts, list | tuple) and len(verdicts) == claims:
        return [verdict is True for verdict in verdicts]
    if SUPPORT not in judgement.scores:
        raise JudgeError("invalid_reply", f"judge {model!r}, rubric {SUPPORT!r}: its judgement has no score")
    if claims > 1:
        raise JudgeError(
            "invalid_reply",
            f"judge {model!r}, rubric {SUPPORT!r}: extra['verdicts'] is no list of {claims} truths, one a claim",
        )
    return [judgement.scores[SUPPORT] >= sum(judgement.scale) / 2]
