"""The judge by sentence embeddings: how near what the answer says is to what it should say. No language model."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from pytest_rageval.abstention.detector import declines, only_declines
from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.embedding.vectors import Bill, Embedder, Vector, cosine
from pytest_rageval.judges.lexical.lexical_judge import LexicalJudge
from pytest_rageval.judges.requests import reference_texts
from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.llm.chat_protocol import below
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.model_identity import model_identity
from pytest_rageval.model import Json, Judgement, JudgeRequest
from pytest_rageval.words import sentences

SUPPORTED = 0.6
"""A sentence counts as supported from this share on."""
MOST_SENTENCES = 60
"""Sentences of an answer that are looked at."""
MOST_PASSAGES = 240
"""Sentences of the contexts, or of references, that are looked at."""
LONGEST_TEXT = 20_000
"""Characters of one text that are looked at."""

STRANGERS = (
    "The bakery opens at six in the morning.",
    "Granite is an igneous rock with large crystals.",
    "Her appeal was dismissed by the court in March.",
    "Press the red button twice to reset the printer.",
    "Penguins feed their chicks after long journeys at sea.",
    "The orchestra tuned its instruments before the second act.",
    "기차는 오후 세 시에 부산역에 도착한다.",
    "Die Steuererklärung ist bis Ende Juli abzugeben.",
)
"""Sentences that have nothing in common: their mean cosine is what this model gives to unrelated texts."""

HIGHEST_FLOOR = 0.98
"""Above it a model gives nearly the same vector to every text."""


class Share(NamedTuple):
    """A share in [0, 1], or None where nothing can be said; why; and each sentence looked at with its share."""

    value: float | None
    reasoning: str
    rated: Sequence[tuple[str, float]] = ()


@dataclass(slots=True)
class _Near:
    """Nearness within one judgement."""

    vectors: Mapping[str, Vector]
    floor: float

    def share(self, text: str, others: Iterable[str]) -> float:
        """How near the nearest of the other texts is: 0 as near as strangers, 1 the same."""
        mine = self.vectors[text]
        best = max((cosine(mine, self.vectors[other]) for other in others), default=self.floor)
        return min(1.0, max(0.0, (best - self.floor) / (1 - self.floor)))


class EmbeddingJudge:
    """Scores by cosines between sentences; abstention by phrases, as the lexical judge does.

    A share is (cosine - floor) / (1 - floor), no less than 0, where floor is the mean cosine of unrelated sentences,
    measured once: models differ widely in what they give to those. A score is as far up the rubric's scale.

    groundedness  mean over the answer's sentences, of the nearest sentence of the contexts; 0 without any context
    correctness   mean of two, where given: key facts, each by the nearest sentence of the answer; and the best
                  reference, its sentences likewise. An answer that declines is worth 0
    relevance     the question, by the nearest sentence of the answer

    It is a heuristic, but not free of cost as the lexical one is: `is_local` is False, so its judgements are cached.
    """

    heuristic = True
    is_local = False
    abstention_by_phrasing = True
    rubrics = frozenset({"groundedness", "correctness", "relevance", "abstention"})

    def __init__(self, model: str, url: str, options: EndpointOptions, *, backoff: float = 0.5) -> None:
        self.model = f"embedding/1:{model}"
        self.identity = model_identity("embedding/1", model, below(url, "/embeddings"), options.server_name)
        self._embedder = Embedder(model, url, options, backoff=backoff)
        self._floor: float | None = None
        self._measuring = asyncio.Lock()

    async def judge(self, request: JudgeRequest) -> Judgement:
        """One judgement; JudgeError where the server gives no usable vectors."""
        if request.rubric == "abstention":
            return await self._abstention(request)
        if request.rubric not in self.rubrics:
            raise JudgeError("invalid_request", f"judge {self.model!r} has no rubric {request.rubric!r}")
        bill = Bill()
        share = await _SHARES[request.rubric](self, request.variables, bill)
        scale = low, high = rubric_of(request).scale
        return Judgement(
            rubric=request.rubric,
            scores={} if share.value is None else {request.rubric: round(low + share.value * (high - low), 4)},
            scale=scale,
            reasoning=f"heuristic: {share.reasoning}",
            supported_claims=tuple(text for text, value in share.rated if value >= SUPPORTED),
            unsupported_claims=tuple(text for text, value in share.rated if value < SUPPORTED),
            model=self.model,
            prompt_version=request.prompt_version,
            tokens_in=bill.tokens,
            tokens_out=0,
            cost_usd=bill.cost_usd,
            latency_ms=round(bill.latency_ms, 3),
            heuristic=True,
        )

    async def check(self) -> str | None:
        """Why the server cannot be asked, in one line, or None; costs nothing."""
        return await self._embedder.check()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._embedder.aclose()

    async def _abstention(self, request: JudgeRequest) -> Judgement:
        return replace(await LexicalJudge().judge(request), model=self.model)

    async def _near(self, texts: Iterable[str], bill: Bill) -> _Near:
        return _Near(await self._embedder.vectors(texts, bill), await self._measured_floor(bill))

    async def _measured_floor(self, bill: Bill) -> float:
        async with self._measuring:
            if self._floor is None:
                strangers = await self._embedder.vectors(STRANGERS, bill)
                cosines = [cosine(one, other) for one, other in combinations(strangers.values(), 2)]
                floor = math.fsum(cosines) / len(cosines)
                if floor > HIGHEST_FLOOR:
                    raise JudgeError(
                        "invalid_response",
                        f"judge {self.model!r} tells nothing apart: unrelated texts have a mean cosine of {floor:.3f}",
                    )
                self._floor = floor
            return self._floor

    async def _groundedness(self, variables: Mapping[str, Any], bill: Bill) -> Share:
        contexts = variables.get("contexts") or ()
        answer_sentences = [sentence for sentence in _sentences(variables["answer"]) if not only_declines(sentence)]
        if not contexts:
            nothing = "the system reported no passage that the answer could rest on"
            return Share(0.0, nothing, [(sentence, 0.0) for sentence in answer_sentences])
        passages = _passages(context["text"] for context in contexts)
        if not passages:
            return Share(None, "there is no context to compare with")
        if not answer_sentences:
            return Share(None, "the answer makes no claim that could be compared")
        near = await self._near([*answer_sentences, *passages], bill)
        rated = [(sentence, near.share(sentence, passages)) for sentence in answer_sentences]
        return Share(_mean(value for _, value in rated), _account(rated, "the context"), rated)

    async def _correctness(self, variables: Mapping[str, Any], bill: Bill) -> Share:
        facts = _passages(variables.get("key_facts") or ())
        references = [sentences_of for text in reference_texts(variables) if (sentences_of := _passages([text]))]
        if not facts and not references:
            return Share(None, "there is no reference to compare with")
        if declines(variables["answer"], variables.get("question") or "").abstained:
            return Share(0.0, "the answer declines")
        answer_sentences = _sentences(variables["answer"])
        if not answer_sentences:
            return Share(0.0, "the answer says nothing")
        near = await self._near(
            [*answer_sentences, *facts, *(text for reference in references for text in reference)], bill
        )
        rated_facts = [(fact, near.share(fact, answer_sentences)) for fact in facts]
        rated_references = [
            [(text, near.share(text, answer_sentences)) for text in reference] for reference in references
        ]
        best = max(rated_references, key=lambda rated: _mean(value for _, value in rated), default=[])
        means = [_mean(value for _, value in rated) for rated in (rated_facts, best) if rated]
        rated = rated_facts + best
        return Share(_mean(means), _account(rated, "the answer"), rated)

    async def _relevance(self, variables: Mapping[str, Any], bill: Bill) -> Share:
        question, answer_sentences = variables["question"].strip(), _sentences(variables["answer"])
        if not question or not answer_sentences:
            return Share(None, "there is no question or no answer to compare")
        near = await self._near([question, *answer_sentences], bill)
        share = near.share(question, answer_sentences)
        return Share(share, f"the sentence nearest to the question is at {share:.2f}")


_SHARES = {
    "groundedness": EmbeddingJudge._groundedness,
    "correctness": EmbeddingJudge._correctness,
    "relevance": EmbeddingJudge._relevance,
}


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in sentences(text[:LONGEST_TEXT]) if any(map(str.isalnum, sentence))][:MOST_SENTENCES]


def _passages(texts: Iterable[Json]) -> list[str]:
    distinct = dict.fromkeys(sentence for text in texts for sentence in _sentences(text))
    return list(distinct)[:MOST_PASSAGES]


def _mean(values: Iterable[float]) -> float:
    shares = list(values)
    return math.fsum(shares) / len(shares)


def _account(rated: Sequence[tuple[str, float]], where: str) -> str:
    held = sum(value >= SUPPORTED for _, value in rated)
    text, value = min(rated, key=lambda pair: pair[1])
    return f"{held} of {len(rated)} sentences have one like them in {where}; farthest, at {value:.2f}: {text[:120]}"
