"""Claim support: the judge takes the answer apart into claims, then judges each claim by itself."""

from __future__ import annotations

from dataclasses import replace

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.gathering import ask_together, taken
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import Judgement, JudgeRequest

SPLIT, SUPPORT = "claim_split", "claim_support"

MOST_CLAIMS = 50
"""Claims that are judged; of an answer with more, the first ones count, and a flag says so."""

LONGEST_CLAIM = 2000
"""Characters; what a model calls a claim may be anything."""


async def judge_claims(judge: Judge, split: JudgeRequest, support: JudgeRequest) -> Judgement:
    """One judgement of the rubric `claim_support`: supported claims / claims, on 0 to 1.

    The judge is asked `split`, then `support` once for each claim in the place of its variable `claim`, all at the same
    time. Without any claim there is no score. What a judge says that holds no list of claims, or no verdict on one, is
    a JudgeError. Tokens, cost and time are those of all calls together.
    """
    reply = await judge.judge(split)
    claims = _claims(reply, judge.model)
    judged = claims[:MOST_CLAIMS]
    verdicts = await ask_together(
        judge.judge(replace(support, variables={**support.variables, "claim": claim})) for claim in judged
    )
    supported = [_is_supported(verdict, judge.model) for verdict in verdicts]
    parts = taken([reply, *verdicts])
    if len(claims) > MOST_CLAIMS:
        parts["flags"] += (f"of {len(claims)} claims the first {MOST_CLAIMS} were judged",)
    return Judgement(
        rubric=SUPPORT,
        scores={SUPPORT: sum(supported) / len(judged)} if judged else {},
        reasoning=f"{sum(supported)} of {len(judged)} claims are supported" if judged else "the answer makes no claim",
        supported_claims=tuple(claim for claim, held in zip(judged, supported, strict=True) if held),
        unsupported_claims=tuple(claim for claim, held in zip(judged, supported, strict=True) if not held),
        model=reply.model,
        prompt_version=f"{split.prompt_version},{support.prompt_version}",
        extra={name: value for name, value in reply.extra.items() if name != "claims"},
        **parts,
    )


def _claims(reply: Judgement, model: str) -> list[str]:
    """The claims in order, each once, cut where they are overlong; blank ones are none."""
    claims = reply.extra.get("claims")
    if not isinstance(claims, list | tuple) or not all(isinstance(claim, str) for claim in claims):
        raise JudgeError("invalid_reply", f"judge {model!r}, rubric {SPLIT!r}: its reply has no list of claims")
    texts = (" ".join(claim[:LONGEST_CLAIM].split()) for claim in claims)
    return [*dict.fromkeys(filter(None, texts))]


def _is_supported(verdict: Judgement, model: str) -> bool:
    if SUPPORT not in verdict.scores:
        raise JudgeError("invalid_reply", f"judge {model!r}, rubric {SUPPORT!r}: its judgement has no score")
    return verdict.scores[SUPPORT] >= sum(verdict.scale) / 2
