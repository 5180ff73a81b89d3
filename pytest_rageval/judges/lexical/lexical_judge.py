"""The judge without a model: how far do the words of an answer agree with what it should agree with?

Offline, deterministic and quick, and a heuristic: it sees what is missing from a context, and of what is said wrongly
in the context's own words only what swaps one figure, name, unit, opposite or sign. Every judgement of it is marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.lexical.account import account, first_items
from pytest_rageval.judges.lexical.evidence import SUPPORTED, Support, read_claims, support, weighted
from pytest_rageval.judges.lexical.refusals import declines, only_declines
from pytest_rageval.judges.lexical.statements import LONGEST_TEXT, ReadPassage, read_passage, read_statement
from pytest_rageval.judges.lexical.wordlist import words
from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.model import Judgement, JudgeRequest

Scored = tuple[float | None, str, Sequence[Support]]
"""Share in [0, 1] or None where nothing can be said, why, and the claims looked at."""


class LexicalJudge:
    """Scores answers against contexts and references by words, relevance by question words, abstention by phrases.

    A rubric that the words give no hold for (correctness without reference or key facts, groundedness without context)
    gets a judgement without a score: its metric is not applicable, and `reasoning` says why.
    """

    model = "lexical/2"
    heuristic = True
    rubrics = frozenset(
        {
            *("groundedness", "faithfulness", "claim_support"),
            *("correctness", "reference_match", "relevance", "abstention"),
        }
    )

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge at once, without waiting for anything; a rubric not in `rubrics` is a JudgeError."""
        if request.rubric == "abstention":
            return _abstention(request)
        score = _SCORED.get(request.rubric)
        if score is None:
            known = ", ".join(sorted(self.rubrics))
            raise JudgeError(
                "invalid_request", f"judge {self.model!r} has no rubric {request.rubric!r}; it has {known}"
            )
        low, high = rubric_of(request).scale
        share, reasoning, claims = score(request.variables)
        return Judgement(
            rubric=request.rubric,
            scores={} if share is None else {request.rubric: round(low + share * (high - low), 4)},
            scale=(low, high),
            reasoning=reasoning,
            supported_claims=tuple(one.claim.text for one in claims if one.value >= SUPPORTED),
            unsupported_claims=tuple(one.claim.text for one in claims if one.value < SUPPORTED),
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
    """Mean support of the answer's claims by all contexts together, less where one of them is contradicted."""
    found = _against_contexts(variables.get("answer"), variables)
    return found if isinstance(found, tuple) else (weighted(found), account(found, "the context"), found)


def _claim_support(variables: Mapping[str, Any]) -> Scored:
    """Share of the claim's sentences that are supported: of a single claim, 1 or 0."""
    found = _against_contexts(variables.get("claim", variables.get("answer")), variables)
    if isinstance(found, tuple):
        return found
    held = sum(one.value >= SUPPORTED for one in found)
    return held / len(found), account(found, "the context"), found


def _against_contexts(text: str | None, variables: Mapping[str, Any]) -> list[Support] | Scored:
    """The support of each claim, or why there is none; sentences that decline or assent are no claims."""
    passages = [read_passage(context["text"]) for context in variables.get("contexts") or ()]
    if not any(passage.words for passage in passages):
        return None, "there is no context to compare with", ()
    claims = [c for c in read_claims(text or "") if not (only_declines(c.text) or c.content <= _ASSENT)]
    if not claims:
        return None, "the answer makes no claim that words could be compared of", ()
    return [support(claim, passages) for claim in claims]


def _correctness(variables: Mapping[str, Any]) -> Scored:
    """Mean of two shares, where given: key facts borne out by the answer, and the best reference borne out by it.

    An answer that declines is worth 0. What it says beyond facts and reference costs nothing.
    """
    answer = read_passage(variables["answer"][:LONGEST_TEXT])
    facts = [fact for text in variables.get("key_facts") or () if (fact := _borne_out(text, answer))]
    references = [found for text in variables.get("references") or () if (found := _borne_out(text, answer))]
    if not facts and not references:
        return None, "the lexical judge has no reference to compare with", ()
    if declines(variables["answer"]).abstained:
        return 0.0, "the answer declines", ()
    best = max(references, key=weighted, default=[])
    shares = [sum(map(weighted, facts)) / len(facts)] if facts else []
    shares += [weighted(best)] if best else []
    looked_at = [one for fact in facts for one in fact] + best
    return sum(shares) / len(shares), account(looked_at, "the answer"), looked_at


def _borne_out(text: str, by: ReadPassage) -> list[Support]:
    return [support(claim, [by], to_the_word=False) for claim in read_claims(text)]


def _relevance(variables: Mapping[str, Any]) -> Scored:
    """Share of the question's content words that the answer takes up."""
    asked = read_statement(variables["question"][:LONGEST_TEXT]).content - _QUESTION_WORDS
    if not asked:
        return None, "the question has no word to look for", ()
    missing = sorted(asked - read_passage(variables["answer"][:LONGEST_TEXT]).words.keys())
    reasoning = f"heuristic: {len(asked) - len(missing)} of {len(asked)} question words are taken up"
    return 1 - len(missing) / len(asked), reasoning + first_items("; missing", missing), ()


def _abstention(request: JudgeRequest) -> Judgement:
    found = declines(request.variables["answer"])
    return Judgement(
        rubric=request.rubric,
        scores={"abstained": float(found.abstained)},
        reasoning=f"heuristic: the answer declines in {found.phrase!r}"
        if found.phrase
        else "heuristic: no refusal phrase",
        model=LexicalJudge.model,
        prompt_version=request.prompt_version,
        tokens_in=0,
        tokens_out=0,
        cost_usd=0.0,
        heuristic=True,
        extra={"confidence": found.confidence},
    )


_SCORED: Mapping[str, Callable[[Mapping[str, Any]], Scored]] = {
    "groundedness": _groundedness,
    "faithfulness": _groundedness,
    "claim_support": _claim_support,
    "correctness": _correctness,
    "reference_match": _correctness,
    "relevance": _relevance,
}
_ASSENT = words("yes no yeah yep nope sure okay ok right correct true false 네 예 아니요 ja nein doch oui non sí はい")
_QUESTION_WORDS = words(
    """
    i me my mine myself please tell
    무엇 무엇인가요 뭐 뭐야 어떤 어떻게 언제 어디 누구 누가 왜 몇 얼마 얼마나
    wer wie wo wann warum welche welcher welches qui que quoi où quand comment pourquoi quel quelle
    qué quién cuándo dónde cómo cuál 什么 什麼 何時
    """
)
