"""The judge without a model: how much of an answer's wording is in its contexts or in the gold.

Offline, deterministic and quick. It is a heuristic and marks its judgements so: it finds what is missing, but not a
wrong statement in the same words.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from pytest_rageval.abstention.detector import declines, only_declines
from pytest_rageval.io.suggestions import listed
from pytest_rageval.judges.judge import UNSUPPORTED, JudgeSpec, Share, ShareJudge
from pytest_rageval.judges.requests import judged_text, reference_texts
from pytest_rageval.language.quantities import QUANTITY
from pytest_rageval.language.words import STOP_WORDS, content_tokens, sentences
from pytest_rageval.model import JudgeRequest
from pytest_rageval.text import counted

SUPPORTED = 0.75
"""A claim counts as supported from this value on."""


def lexical_judge(_: JudgeSpec) -> LexicalJudge:
    """Create the judge of `lexical`."""
    return LexicalJudge()


class LexicalJudge(ShareJudge):
    """A judge by words: answers against contexts and references, relevance by question words, abstention by wording.

    If there is nothing to compare (correctness without reference or key facts), the judgement has no score: its metric
    is not applicable, and `reasoning` says why. Without any context, nothing is grounded.
    """

    model = "lexical/4"
    answers_at_once = True
    abstention_by_phrasing = True
    supported = SUPPORTED
    rubrics = frozenset(
        {
            "groundedness",
            "faithfulness",
            "claim_support",
            "correctness",
            "reference_match",
            "relevance",
            "abstention",
        }
    )

    async def share(self, request: JudgeRequest) -> Share:
        """Score at once, without waiting."""
        return _SCORED[request.rubric](request.variables)


def _groundedness(variables: Mapping[str, Any]) -> Share:
    """Return how far the contexts together cover the answer's claims, weighted by their information."""
    coverages, declining = _against_contexts(variables.get("answer"), variables)
    if not coverages:
        return _without_claim(variables)
    for coverage in sorted(declining, key=lambda coverage: coverage.value, reverse=True):
        # "It is not known" is no claim, but "It is known" is one: that must not score higher.
        if coverage.value > weighted(coverages):
            coverages.append(coverage)
    return _share(weighted(coverages), coverages, _where(variables))


def _claim_support(variables: Mapping[str, Any]) -> Share:
    """Return the share of the claim's sentences that are supported: 1 or 0 for a single sentence."""
    coverages, _ = _against_contexts(judged_text(variables), variables)
    if not coverages:
        return _without_claim(variables)
    supported = sum(coverage.value >= SUPPORTED for coverage in coverages)
    return _share(supported / len(coverages), coverages, _where(variables))


def _against_contexts(text: str | None, variables: Mapping[str, Any]) -> tuple[list[Coverage], list[Coverage]]:
    """Return the coverage of each claim and of each sentence that declines, ignoring negations; mere assent is skipped.

    Words cannot tell whether a negation is right: one that no passage has would make the opposite better grounded.
    """
    evidence = Evidence(context["text"] for context in variables.get("contexts") or ())
    claims: list[Coverage] = []
    declining: list[Coverage] = []
    for claim in claims_in((text or "")[:LONGEST_TEXT], without=frozenset({NEGATION})):
        if claim.is_small:
            continue
        kind = declining if only_declines(claim.text) else claims
        kind.append(evidence.coverage(claim))
    return claims, declining


def _without_claim(variables: Mapping[str, Any]) -> Share:
    if variables.get("contexts"):
        return Share(None, "the answer makes no claim that words could be compared of")
    return Share(0.0, UNSUPPORTED)


def _where(variables: Mapping[str, Any]) -> str:
    return "the context" if variables.get("contexts") else "the context, which is empty"


def _correctness(variables: Mapping[str, Any]) -> Share:
    """Return the mean of two shares, where they exist: key facts in the answer, and coverage of the best reference.

    An answer that declines scores 0. Statements beyond facts and reference cost nothing.
    """
    answer = Evidence([variables["answer"][:LONGEST_TEXT]])
    facts = _coverages(variables.get("key_facts") or (), answer)
    references = _coverages(reference_texts(variables), answer)
    if not facts and not references:
        return Share(None, "the lexical judge has no reference to compare with")
    if declines(variables["answer"], variables.get("question") or "").abstained:
        return Share(0.0, "the answer declines")

    shares: list[float] = []
    compared: list[Coverage] = []
    if facts:
        shares.append(math.fsum(map(weighted, facts)) / len(facts))
        compared += chain.from_iterable(facts)
    if references:
        # Any one of the gold answers is right; the others need not be covered.
        best = max(references, key=weighted)
        shares.append(weighted(best))
        compared += best
    return _share(math.fsum(shares) / len(shares), compared, "the answer")


def _coverages(texts: Iterable[str], answer: Evidence) -> list[list[Coverage]]:
    """Return how far an answer covers each gold text that makes a claim.

    By content terms only, since gold is terse.
    """
    coverages = []
    for text in texts:
        claims = claims_in(text[:LONGEST_TEXT])
        if claims:
            coverages.append([answer.coverage(claim, small_share=0.0) for claim in claims])
    return coverages


def _relevance(variables: Mapping[str, Any]) -> Share:
    """Return the share of the question's content terms that the answer takes up."""
    question_terms = terms_in(variables["question"][:LONGEST_TEXT]) - SMALL_WORDS
    if not question_terms:
        return Share(None, "the question has no word to look for")
    missing = sorted(question_terms - terms_in(variables["answer"][:LONGEST_TEXT]))
    words = len(question_terms)
    reasoning = f"heuristic: {words - len(missing)} of {words} question words are taken up"
    return Share(1 - len(missing) / words, reasoning + first_items("; missing", missing))


def _share(value: float, coverages: Sequence[Coverage], where: str) -> Share:
    rated = [(coverage.claim.text, coverage.value) for coverage in coverages]
    return Share(value, account(coverages, where), rated)


_SCORED: Mapping[str, Callable[[Mapping[str, Any]], Share]] = {
    "groundedness": _groundedness,
    "faithfulness": _groundedness,
    "claim_support": _claim_support,
    "correctness": _correctness,
    "reference_match": _correctness,
    "relevance": _relevance,
}


SMALL_SHARE = 0.5
"""Weight of a small word's information."""

SENTENCE_SHARE = 0.25
"""Share of a claim's value from the best single sentence: words scattered over all passages are easy to find."""

MISSING_FIGURES = 0.5
"""Factor of a claim with no figure in the passages: a missing word may be a synonym, a missing figure is an error."""

LONGEST_QUOTATION = 120
"""Characters shown of a sentence or term."""

MOST_SHOWN = 8
"""Terms listed by name; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of a claim by passages: value in [0, 1], the claim's information, and its missing content terms."""

    claim: Claim
    value: float
    information: float
    missing: tuple[str, ...] = ()


class Evidence:
    """The passages that claims are compared with, and the information of each term.

    A term's information is log(1 + N / n): N sentences, n of which have it, at least 1. A frequent word has little.
    """

    def __init__(self, passages: Iterable[str]) -> None:
        self._sentences = list(chain.from_iterable(map(terms_by_sentence, passages)))
        self._counts: Mapping[str, int] = Counter(chain.from_iterable(self._sentences))
        # Overlapping chunks repeat sentences: each is compared once.
        self._different_sentences = {*self._sentences}

    def coverage(self, claim: Claim, *, small_share: float = SMALL_SHARE) -> Coverage:
        """Return the share of the claim's information in the passages: 3/4 in all together, 1/4 in the best sentence.

        It is multiplied by 0.5 to 1, depending on the share of the claim's figures found.
        """
        counts = self._counts
        sentences = max(1, len(self._sentences))
        content = claim.content
        weights: dict[str, float] = {}
        for term in claim.terms:
            information = math.log(1 + sentences / counts.get(term, 1))
            weights[term] = information if term in content else information * small_share
        total = math.fsum(weights.values())

        together = math.fsum([weight for term, weight in weights.items() if term in counts])
        shared = [claim.terms & sentence_terms for sentence_terms in self._different_sentences]
        nearest = max([math.fsum(map(weights.__getitem__, terms)) for terms in shared], default=0.0)
        value = (1 - SENTENCE_SHARE) * (together / total) + SENTENCE_SHARE * (nearest / total)

        missing = content - counts.keys()
        if claim.figures:
            share_missing = len(claim.figures & missing) / len(claim.figures)
            value *= 1 - (1 - MISSING_FIGURES) * share_missing
        return Coverage(claim, value, total, tuple(sorted(missing)))


def weighted(coverages: Sequence[Coverage]) -> float:
    """Return the mean value of at least one coverage, weighted by the claims' information."""
    total = math.fsum(coverage.information for coverage in coverages)
    return math.fsum(coverage.information * coverage.value for coverage in coverages) / total


def account(coverages: Sequence[Coverage], where: str) -> str:
    """Summarize in one line how many sentences `where` bears out, the weakest one, and the terms not found."""
    supported = sum(coverage.value >= SUPPORTED for coverage in coverages)
    sentences_are = counted(len(coverages), "sentence is", "sentences are")
    line = f"heuristic: {supported} of {sentences_are} borne out by {where}"
    weakest = min(coverages, key=lambda coverage: coverage.value)
    if weakest.value < SUPPORTED:
        line += f"; weakest: {_quoted(weakest.claim.text)}"
    missing: set[str] = set().union(*(coverage.missing for coverage in coverages))
    return line + first_items("; not found", sorted(missing))


def first_items(label: str, items: Sequence[str]) -> str:
    """Return the label and the first items, or an empty string without items."""
    if not items:
        return ""
    return f"{label}: {listed([item[:LONGEST_QUOTATION] for item in items], MOST_SHOWN)}"


def _quoted(text: str) -> str:
    # Cut first: a text may be long, and white space within it does not count.
    shown = " ".join(text[: 4 * LONGEST_QUOTATION].split())
    if len(shown) > LONGEST_QUOTATION:
        shown = f"{shown[: LONGEST_QUOTATION - 1]}…"
    return repr(shown)


# ── terms of a text, normalized so that two texts can be compared ───────────────────────────────────────────────

LONGEST_TEXT = 20_000
"""Characters compared of an answer or a reference, about 3,000 words."""

LONGEST_PASSAGE = 200_000
"""Characters compared of one passage: input from outside is bounded."""

_BESIDE_STOP_WORDS = """
    please tell mine myself yes yeah yep nope sure okay ok right correct true false
    네 예 아니요 아니오 무엇 무엇인가요 뭐 뭐야 어떤 어떻게 언제 어디 누구 누가 왜 몇 얼마 얼마나
    ja doch oui sí はい wer wie wo wann warum welche welcher welches qui que quoi où quand comment pourquoi
    quel quelle qué quién cuándo dónde cómo cuál 什么 什麼 何時
"""
SMALL_WORDS = STOP_WORDS | frozenset(_BESIDE_STOP_WORDS.split())
"""Function words, question words and words of assent, which weigh less."""

NEGATION = "not"
"""The term of every negation."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a text and its terms."""

    text: str
    terms: frozenset[str]

    @cached_property
    def content(self) -> frozenset[str]:
        """Return the terms that carry meaning: all but small words, or all if there are only small words."""
        return self.terms - SMALL_WORDS or self.terms

    @cached_property
    def figures(self) -> frozenset[str]:
        """Return the terms that are numbers."""
        return frozenset(filter(_FIGURE.match, self.terms))

    @property
    def is_small(self) -> bool:
        """Return True if the claim has only small words: Yes. It is not."""
        return self.terms - {NEGATION} <= SMALL_WORDS


@lru_cache(maxsize=4096)
def terms_in(text: str) -> frozenset[str]:
    """Return the distinct terms of a text; the last 4,096 texts are cached."""
    if not any(map(str.isalnum, text)):
        return frozenset()
    text = _CONTRACTED.sub(lambda match: f"{match[1] or ''} {NEGATION} ", text)
    # Removed, not replaced: the characters around it form the same pairs as without the negation.
    text, chinese_negations = _CHINESE_NEGATION.subn("", text)
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    # `content_tokens` leaves small words out.
    small_words = SMALL_WORDS.intersection(_LETTERS.findall(folded))
    terms = small_words.union(map(_plain, content_tokens(text)))
    return terms | {NEGATION} if chinese_negations else terms


# Many questions retrieve the same chunks, and several rubrics read them.
@lru_cache(maxsize=256)
def terms_by_sentence(passage: str) -> tuple[frozenset[str], ...]:
    """Return the terms of each sentence of a passage; the last 256 passages are cached."""
    return tuple(map(terms_in, sentences(passage[:LONGEST_PASSAGE])))


def claims_in(text: str, *, without: frozenset[str] = frozenset()) -> list[Claim]:
    """Return the sentences of a text as claims, without citation marks; sentences without terms are dropped.

    Sentences of figures only, such as list numbers, are dropped unless there is nothing else. `without`: terms to omit.
    """
    claims: list[Claim] = []
    for sentence in sentences(_CITATION.sub(" ", text)):
        terms = terms_in(sentence) - without
        if terms:
            claims.append(Claim(sentence, terms))
    with_words = [claim for claim in claims if claim.figures != claim.content]
    return with_words or claims


def _plain(token: str) -> str:
    """Normalize a token: three becomes 3, 동작합니다 becomes 동작, nicht becomes not."""
    if token in _NEGATIONS or _KOREAN_NEGATION.match(token):
        return NEGATION
    verb = _KOREAN_VERB.fullmatch(token)
    return verb["noun"] if verb else _NUMBER_WORDS.get(token, token)


_FIGURE = re.compile(QUANTITY)
_LETTERS = re.compile(r"[^\W\d_]+")
_CITATION = re.compile(r"\[\^?\d{1,3}(?:[,;\s–-]+\d{1,3})*\]|【[^】\n]{1,80}】")
_CONTRACTED = re.compile(r"\b(can)(?:not|['’]t)\b|n['’]t\b", re.IGNORECASE)
_CHINESE_NEGATION = re.compile("[不没沒]")
_NEGATION_WORDS = """
    not no never none nor neither nothing nobody nowhere without nicht kein keine keinen keinem keiner keines nie
    niemals nichts nein ohne ne pas jamais aucun aucune non nunca ningún ninguna não 안
"""
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
_KOREAN_NEGATION = re.compile("[않없못]|아니[다라고며었한에요]|아닙|아닌")
_UP_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_UP_TO_TWELVE.split())}
_KOREAN_VERB = re.compile(
    "(?P<noun>[가-힣]{2,8}?)(?:[하한할함합해했]|하였|[되된될됨됩돼됐])"
    "(?:습니다|니다|는다|다|였다|였습니다|었다|었습니다|지|며|고|여|여서|서|는|던|면|게|기|기로|도록|어|야|요)?"
)
"""A verb made from a noun, such as 동작합니다 or 증가했다, which counts as the noun."""
