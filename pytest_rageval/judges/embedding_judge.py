"""The judge by sentence embeddings: cosines between the answer's sentences and the expected ones."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from operator import mul
from typing import Any, TypeAlias

from pytest_rageval.abstention.detector import declines, only_declines
from pytest_rageval.errors import JudgeError, ModelFailure, SettingsError
from pytest_rageval.judges.judge import UNSUPPORTED, Cost, JudgeSpec, Share, ShareJudge, sum_costs
from pytest_rageval.judges.requests import reference_texts
from pytest_rageval.language.words import sentences
from pytest_rageval.llm.chat_model import PaidEndpoint
from pytest_rageval.llm.chat_protocol import below, read_by, token_count
from pytest_rageval.llm.credentials import judge_key, key_header
from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff, estimated_tokens
from pytest_rageval.llm.model_spec import model_and_url, model_identity
from pytest_rageval.llm.openai import OPENAI, OPENAI_KEY
from pytest_rageval.model import Json, Judgement, JudgeRequest

SUPPORTED = 0.6
"""A sentence counts as supported from this share on."""
MOST_SENTENCES = 60
"""Sentences compared of an answer."""
MOST_PASSAGES = 240
"""Sentences compared of the contexts, or of the references."""
LONGEST_TEXT = 20_000
"""Characters compared of one text."""

BATCH = 64
"""Texts in one request."""
LONGEST_INPUT = 2_000
"""Characters sent of a text: many embedding models read no more than 512 tokens."""
MOST_VECTORS = 2_048
"""Texts whose vectors are cached: many questions retrieve the same passages."""
MOST_DIMENSIONS = 16_384

Vector: TypeAlias = "array[float]"
"""A unit vector, so that the cosine of two is the sum of their products."""


UNRELATED = (
    "The bakery opens at six in the morning.",
    "Granite is an igneous rock with large crystals.",
    "Her appeal was dismissed by the court in March.",
    "Press the red button twice to reset the printer.",
    "Penguins feed their chicks after long journeys at sea.",
    "The orchestra tuned its instruments before the second act.",
    "기차는 오후 세 시에 부산역에 도착한다.",
    "Die Steuererklärung ist bis Ende Juli abzugeben.",
)
"""Unrelated sentences: their mean cosine is the model's value for unrelated texts."""

HIGHEST_FLOOR = 0.98
"""Above this floor, a model gives nearly the same vector to every text."""


def embedding_judge(spec: JudgeSpec) -> EmbeddingJudge:
    """Create the judge of `embedding:MODEL@URL`; the URL in the spec overrides that of the options."""
    options = spec.options or EndpointOptions()
    model, own_url = model_and_url(spec.kind, spec.rest)
    url = own_url or options.base_url
    if url is None:
        raise SettingsError("no server; write it as embedding:MODEL@URL")
    return EmbeddingJudge(model, url, options)


class EmbeddingJudge(PaidEndpoint, ShareJudge):
    """A judge by cosines between sentences, for one event loop.

    It detects abstentions from the wording, as the lexical judge does.

    A share is (cosine - floor) / (1 - floor), at least 0, and is mapped to the rubric's scale. The floor is the mean
    cosine of unrelated sentences, measured once, since it differs widely between models.

    groundedness  mean over the answer's sentences of the nearest sentence in the contexts; 0 without any context
    correctness   mean of two shares, where given: key facts, each by the nearest sentence of the answer; and the best
                  reference, its sentences likewise. An answer that declines scores 0
    relevance     the question, by the nearest sentence of the answer

    It is a heuristic, but unlike the lexical judge not free: `is_local` is False, so its judgements are cached.
    """

    supported = SUPPORTED
    is_local = False
    takes_turns = True
    abstention_by_phrasing = True
    compares_texts = True
    rubrics = frozenset({"groundedness", "correctness", "relevance", "abstention"})

    def __init__(self, model: str, url: str, options: EndpointOptions, *, backoff: float = 0.5) -> None:
        address = below(url, "/embeddings")
        headers, key_name = key_header(judge_key(address, OPENAI_KEY, OPENAI.home))
        super().__init__(address, headers, key_name, Tariff(model, address), options, backoff=backoff)
        self._name = model
        self.models_url = below(url, "/models")
        self.model = f"embedding/1:{model}"
        self.identity = model_identity("embedding/1", model, address, options.server_name)
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._dimensions: int | None = None
        self._floor: float | None = None
        self._measuring = asyncio.Lock()

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge one request: by a rubric, or the similarity of the answer and another text."""
        if "criterion" in request.variables:
            return await self._similarity(request)
        return await super().judge(request)

    async def _similarity(self, request: JudgeRequest) -> Judgement:
        """Return the cosine of answer and criterion as they are: the limit of an assertion is written for it."""
        texts = [request.variables["answer"].strip(), request.variables["criterion"].strip()]
        bill = [Cost(0, 0, 0.0, 0.0)]
        vectors = await self.vectors(texts, bill)
        value = max(0.0, min(1.0, cosine(vectors[texts[0]], vectors[texts[1]])))
        return Judgement(
            rubric=request.rubric,
            scores={request.rubric: round(value, 4)},
            reasoning=f"the cosine of the embeddings is {value:.3f}",
            model=self.model,
            prompt_version=request.prompt_version,
            heuristic=True,
            **sum_costs(bill),
        )

    async def share(self, request: JudgeRequest) -> Share:
        """Compare sentences; raise JudgeError if the server returns no usable vectors."""
        bill = [Cost(0, 0, 0.0, 0.0)]
        share = await _SHARES[request.rubric](self, request.variables, bill)
        return share._replace(reasoning=f"heuristic: {share.reasoning}", fields=sum_costs(bill))

    async def _near(self, texts: Iterable[str], bill: list[Cost]) -> Callable[[str, Iterable[str]], float]:
        """Return a function for how close the nearest of other texts is, from 0 (as unrelated texts) to 1 (equal)."""
        vectors = await self.vectors(texts, bill)
        # Locked: of answers judged at the same time, one measures the floor for all.
        async with self._measuring:
            if self._floor is None:
                self._floor = await self._measured_floor(bill)
            floor = self._floor

        def near(text: str, others: Iterable[str]) -> float:
            best = max((cosine(vectors[text], vectors[other]) for other in others), default=floor)
            return min(1.0, max(0.0, (best - floor) / (1 - floor)))

        return near

    async def _measured_floor(self, bill: list[Cost]) -> float:
        """Return the mean cosine of unrelated sentences."""
        unrelated = await self.vectors(UNRELATED, bill)
        floor = _mean(cosine(one, other) for one, other in combinations(unrelated.values(), 2))
        if floor > HIGHEST_FLOOR:
            problem = f"tells nothing apart: unrelated texts have a mean cosine of {floor:.3f}"
            raise JudgeError("invalid_response", f"judge {self.model!r} {problem}")
        return floor

    async def _groundedness(self, variables: Mapping[str, Any], bill: list[Cost]) -> Share:
        contexts = variables.get("contexts") or ()
        answer_sentences = [sentence for sentence in _sentences(variables["answer"]) if not only_declines(sentence)]
        if not contexts:
            return Share(0.0, UNSUPPORTED, [(sentence, 0.0) for sentence in answer_sentences])
        passages = _passages(context["text"] for context in contexts)
        if not passages:
            return Share(None, "there is no context to compare with")
        if not answer_sentences:
            return Share(None, "the answer makes no claim that could be compared")
        near = await self._near([*answer_sentences, *passages], bill)
        rated = [(sentence, near(sentence, passages)) for sentence in answer_sentences]
        return Share(_mean_rating(rated), _account(rated, "the context"), rated)

    async def _correctness(self, variables: Mapping[str, Any], bill: list[Cost]) -> Share:
        facts = _passages(variables.get("key_facts") or ())
        references = list(filter(None, (_passages([text]) for text in reference_texts(variables))))
        if not facts and not references:
            return Share(None, "there is no reference to compare with")
        if declines(variables["answer"], variables.get("question") or "").abstained:
            return Share(0.0, "the answer declines")
        answer_sentences = _sentences(variables["answer"])
        if not answer_sentences:
            return Share(0.0, "the answer says nothing")
        near = await self._near(chain(answer_sentences, facts, *references), bill)

        def rated_by_answer(expected: Iterable[str]) -> list[tuple[str, float]]:
            return [(text, near(text, answer_sentences)) for text in expected]

        rated_facts = rated_by_answer(facts)
        best_reference = max(map(rated_by_answer, references), key=_mean_rating, default=[])
        means = [_mean_rating(rated) for rated in (rated_facts, best_reference) if rated]
        rated = rated_facts + best_reference
        return Share(_mean(means), _account(rated, "the answer"), rated)

    async def _relevance(self, variables: Mapping[str, Any], bill: list[Cost]) -> Share:
        question = variables["question"].strip()
        answer_sentences = _sentences(variables["answer"])
        if not question or not answer_sentences:
            return Share(None, "there is no question or no answer to compare")
        near = await self._near([question, *answer_sentences], bill)
        share = near(question, answer_sentences)
        return Share(share, f"the sentence nearest to the question is at {share:.2f}")

    # ── vectors ─────────────────────────────────────────────────────────────────────────────────────────────

    async def vectors(self, texts: Iterable[str], bill: list[Cost]) -> dict[str, Vector]:
        """Return the vector of each text that is not blank, by text; raise JudgeError for an unusable reply."""
        # Some servers refuse a blank text.
        distinct = dict.fromkeys(text for text in texts if text.strip())
        vectors = {text: self._known[text] for text in distinct if text in self._known}
        missing = [text for text in distinct if text not in vectors]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            try:
                vectors.update(zip(batch, await self._vectors_of(batch, bill), strict=True))
            except ModelFailure as failure:
                raise JudgeError(failure.kind, str(failure), status=failure.status) from None
        for text, vector in vectors.items():
            self._known[text] = vector
            # Those that were used last stay: passages come again in the next questions.
            self._known.move_to_end(text)
        while len(self._known) > MOST_VECTORS:
            self._known.popitem(last=False)
        return vectors

    async def _vectors_of(self, texts: Sequence[str], bill: list[Cost]) -> list[Vector]:
        """Return the vectors of texts by one request; raise ModelFailure."""
        # Servers cannot read a lone surrogate in JSON.
        sent = [text[:LONGEST_INPUT].encode("utf-8", "replace").decode() for text in texts]
        estimate = estimated_tokens("".join(sent), 0)
        data, latency_ms = await self.ask({"model": self._name, "input": sent}, estimate)
        usage = data.get("usage") if isinstance(data, Mapping) else None
        tokens = token_count(usage, "prompt_tokens")
        bill.append(Cost(tokens, 0, self.pay(estimate, tokens, 0), round(latency_ms, 3)))
        return read_by(partial(self._read, expected=len(texts)), data, self.where)

    def _read(self, data: Json, *, expected: int) -> list[Vector]:
        """Return one vector per text, in the order of their `index`; raise ValueError with what is wrong."""
        entries = data.get("data") if isinstance(data, Mapping) else None
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise ValueError("the response has no list of embeddings")
        if len(entries) != expected:
            raise ValueError(f"{len(entries)} embeddings came for {expected} texts")
        # Servers need not keep the order of the texts.
        indices = [entry.get("index", position) for position, entry in enumerate(entries)]
        if not all(type(index) is int for index in indices) or sorted(indices) != list(range(expected)):
            raise ValueError(f"the indices of the embeddings are not 0 to {expected - 1}")
        by_index = dict(zip(indices, entries, strict=True))
        return [self._unit(by_index[index].get("embedding")) for index in range(expected)]

    def _unit(self, written: Json) -> Vector:
        numbers = written if isinstance(written, list) else []
        if not 0 < len(numbers) <= MOST_DIMENSIONS or not all(type(x) in (int, float) for x in numbers):
            raise ValueError(f"an embedding is not a list of 1 to {MOST_DIMENSIONS:,} numbers")
        # Another length is another model behind the same name.
        if self._dimensions is not None and len(numbers) != self._dimensions:
            raise ValueError(f"an embedding has {len(numbers)} dimensions, others have {self._dimensions}")
        try:
            length = math.hypot(*numbers)
        except OverflowError:
            length = math.inf
        if not 0 < length < math.inf:
            raise ValueError("an embedding has no length, or holds a number that is not finite")
        self._dimensions = len(numbers)
        return array("d", [x / length for x in numbers])


_SHARES = {
    "groundedness": EmbeddingJudge._groundedness,
    "correctness": EmbeddingJudge._correctness,
    "relevance": EmbeddingJudge._relevance,
}


def _sentences(text: str) -> list[str]:
    with_words = [sentence for sentence in sentences(text[:LONGEST_TEXT]) if any(map(str.isalnum, sentence))]
    return with_words[:MOST_SENTENCES]


def _passages(texts: Iterable[Json]) -> list[str]:
    """Return the distinct sentences of texts."""
    distinct = dict.fromkeys(chain.from_iterable(map(_sentences, texts)))
    return list(distinct)[:MOST_PASSAGES]


def _mean(values: Iterable[float]) -> float:
    shares = list(values)
    return math.fsum(shares) / len(shares)


def _mean_rating(rated: Sequence[tuple[str, float]]) -> float:
    return _mean(value for _, value in rated)


def _account(rated: Sequence[tuple[str, float]], where: str) -> str:
    near = sum(value >= SUPPORTED for _, value in rated)
    text, value = min(rated, key=lambda item: item[1])
    return f"{near} of {len(rated)} sentences have one like them in {where}; farthest, at {value:.2f}: {text[:120]}"


def cosine(first: Vector, second: Vector) -> float:
    """Return the cosine of two unit vectors, in [-1, 1]."""
    return math.fsum(map(mul, first, second))
