"""The judge without a model: how much of what an answer says do the words of its contexts, or of the gold, hold?

Offline, deterministic and quick, and a heuristic: it sees what is missing, not what is said wrongly in the same words.
Every judgement of it is marked so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_rageval.abstention.detector import declines, only_declines
from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.lexical.coverage import SUPPORTED, Coverage, Evidence, account, first_items, weighted
from pytest_rageval.judges.lexical.terms import LONGEST_TEXT, NEGATION, SMALL_WORDS, claims_in, terms_in
from pytest_rageval.judges.phrasing import phrasing_judgement
from pytest_rageval.judges.requests import judged_text, reference_texts
from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.model import Judgement, JudgeRequest

Scored = tuple[float | None, str, Sequence[Coverage]]
"""Share in [0, 1] or None where nothing can be said, why, and the claims looked at."""


class LexicalJudge:
    """Scores answers against contexts and references by words, relevance by question words, abstention by the detector.

    A rubric that the words give no hold for (correctness without reference or key facts) gets a judgement without a
    score: its metric is not applicable, and `reasoning` says why. Without any context, nothing is grounded.
    """

    model = "lexical/4"
    heuristic = True
    answers_at_once = True
    abstention_by_phrasing = True
    rubrics = frozenset(
        {
            *("groundedness", "faithfulness", "claim_support"),
            *("correctness", "reference_match", "relevance", "abstention"),
        }
    )

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge at once, without waiting for anything; a rubric not in `rubrics` is a JudgeError."""
        if request.rubric == "abstention":
            return phrasing_judgement(request, model=self.model, heuristic=True)
        score = _SCORED.get(request.rubric)
        if score is None:
            known = ", ".join(sorted(self.rubrics))
            raise JudgeError(
                "invalid_request", f"judge {self.model!r} has no rubric {request.rubric!r}; it has {known}"
            )
        low, high = rubric_of(request).scale
        share, reasoning, coverages = score(request.variables)
        return Judgement(
            rubric=request.rubric,
            scores={} if share is None else {request.rubric: round(low + share * (high - low), 4)},
            scale=(low, high),
            reasoning=reasoning,
            supported_claims=tuple(coverage.claim.text for coverage in coverages if coverage.value >= SUPPORTED),
            unsupported_claims=tuple(coverage.claim.text for coverage in coverages if coverage.value < SUPPORTED),
            model=self.model,
            prompt_version=request.prompt_version,
            tokens_in=0,
            tokens_out=0,
            cost_usd=0.0,
            heuristic=True,
        )

    async def aclose(self) -> None:
        """Nothing to give back."""


def _groundedness(variables: Mapping[str, Any]) -> Scored:
    """How far the contexts together cover the answer's claims, each weighing as much as it informs."""
    coverages, declining = _against_contexts(variables.get("answer"), variables)
    if not coverages:
        return _without_claim(variables)
    for coverage in sorted(declining, key=lambda coverage: coverage.value, reverse=True):
        # "It is not known" is no claim, "It is known" would be one: it must not be worth more.
        if coverage.value > weighted(coverages):
            coverages.append(coverage)
    return weighted(coverages), account(coverages, _where(variables)), coverages


def _claim_support(variables: Mapping[str, Any]) -> Scored:
    """Share of the claim's sentences that are supported: of a single claim, 1 or 0."""
    coverages, _ = _against_contexts(judged_text(variables), variables)
    if not coverages:
        return _without_claim(variables)
    held = sum(coverage.value >= SUPPORTED for coverage in coverages)
    return held / len(coverages), account(coverages, _where(variables)), coverages


def _against_contexts(text: str | None, variables: Mapping[str, Any]) -> tuple[list[Coverage], list[Coverage]]:
    """The coverage of each claim, and of each sentence that declines, negations left out; assent is no claim.

    What words cannot see must not count: with a negation that no passage has, the opposite would be better grounded.
    """
    evidence = Evidence(context["text"] for context in variables.get("contexts") or ())
    claims: list[Coverage] = []
    declining: list[Coverage] = []
    for claim in claims_in((text or "")[:LONGEST_TEXT], without=frozenset({NEGATION})):
        if not claim.is_small:
            (declining if only_declines(claim.text) else claims).append(evidence.coverage(claim))
    return claims, declining


def _without_claim(variables: Mapping[str, Any]) -> Scored:
    if variables.get("contexts"):
        return None, "the answer makes no claim that words could be compared of", ()
    return 0.0, "the system reported no passage that the answer could rest on", ()


def _where(variables: Mapping[str, Any]) -> str:
    return "the context" if variables.get("contexts") else "the context, which is empty"


def _correctness(variables: Mapping[str, Any]) -> Scored:
    """Mean of two shares, where there are any: key facts that the answer has, and how much of the best reference.

    An answer that declines is worth 0. What it says beyond facts and reference costs nothing.
    """
    answer = Evidence([variables["answer"][:LONGEST_TEXT]])
    facts = [coverages for text in variables.get("key_facts") or () if (coverages := _borne_out(text, answer))]
    references = [coverages for text in reference_texts(variables) if (coverages := _borne_out(text, answer))]
    if not facts and not references:
        return None, "the lexical judge has no reference to compare with", ()
    if declines(variables["answer"], variables.get("question") or "").abstained:
        return 0.0, "the answer declines", ()
    best = max(references, key=weighted, default=[])
    shares = [math.fsum(map(weighted, facts)) / len(facts)] if facts else []
    shares += [weighted(best)] if best else []
    coverages = [coverage for fact in facts for coverage in fact] + best
    return math.fsum(shares) / len(shares), account(coverages, "the answer"), coverages


def _borne_out(text: str, by: Evidence) -> list[Coverage]:
    """How far an answer has what a gold text says; by content alone, since gold is worded tersely."""
    return [by.coverage(claim, small_share=0.0) for claim in claims_in(text[:LONGEST_TEXT])]


def _relevance(variables: Mapping[str, Any]) -> Scored:
    """Share of the question's content terms that the answer takes up."""
    asked = terms_in(variables["question"][:LONGEST_TEXT]) - SMALL_WORDS
    if not asked:
        return None, "the question has no word to look for", ()
    missing = sorted(asked - terms_in(variables["answer"][:LONGEST_TEXT]))
    reasoning = f"heuristic: {len(asked) - len(missing)} of {len(asked)} question words are taken up"
    return 1 - len(missing) / len(asked), reasoning + first_items("; missing", missing), ()


_SCORED: Mapping[str, Callable[[Mapping[str, Any]], Scored]] = {
    "groundedness": _groundedness,
    "faithfulness": _groundedness,
    "claim_support": _claim_support,
    "correctness": _correctness,
    "reference_match": _correctness,
    "relevance": _relevance,
}
