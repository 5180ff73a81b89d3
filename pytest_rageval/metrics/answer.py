"""L5 Answer: exact match, token F1 and key fact recall against the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

from pytest_rageval.language.korean import has_hangul
from pytest_rageval.language.words import (
    content_tokens,
    has_few_words,
    korquad_characters,
    normalise,
    sentences,
    squad_normalise,
    tokens,
)
from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER, abstention
from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import Gold, NotApplicable, Observation
from pytest_rageval.text import counted

Normalizer = Literal["default", "squad"]
Hangul = Literal["word", "char"]

NO_GOLD_ANSWER = NotApplicable("no gold answer is labelled")
NO_KEY_FACTS = NotApplicable("no key facts are labelled")


def _answers(obs: Observation, _: int) -> str:
    return f"against {counted(len(obs.gold.answers or ()), 'gold answer')}"


def _f1_terms(obs: Observation, _: int, *, normalizer: Normalizer = "default", hangul: Hangul = "word") -> str:
    """Return the arithmetic of F1 with the nearest gold answer: shared tokens, precision and recall."""
    golds = gold_answers(obs, normalizer)
    if not golds or is_refused(obs):
        return _answers(obs, 0)
    pairs = [_compared_tokens(obs.answer.text or "", gold, normalizer, hangul) for gold in golds]
    answer, gold = max(pairs, key=lambda pair: _f1(*pair))
    if not answer or not gold:
        return _answers(obs, 0)
    shared = shared_tokens(answer, gold)
    of_answer = f"precision {shared} / {counted(len(answer), 'token')} of the answer = {shared / len(answer):.3f}"
    of_gold = f"recall {shared} / {counted(len(gold), 'token')} of the gold answer = {shared / len(gold):.3f}"
    formula = f"F1 2·{shared} / ({len(answer)} + {len(gold)})"
    return f"{counted(shared, 'shared token')}, {of_answer}, {of_gold}, {formula}"


def unanswered(obs: Observation) -> NotApplicable | None:
    """Return why there is no answer to compare."""
    return NO_ANSWER if obs.answer.text is None else None


def declined(obs: Observation) -> NotApplicable | None:
    """Return why there is no answer to compare; a refusal of an answerable question is compared, as wrong."""
    missing = unanswered(obs)
    if missing is not None or obs.case.answerable:
        return missing
    return ABSTAINED if abstention(obs).value else None


def is_refused(obs: Observation) -> bool:
    """Check whether the system refused a question that has an answer: then nothing of the gold is in its answer."""
    return obs.case.answerable and bool(abstention(obs).value)


compared = partial(metric, layer="L5", better="higher", missing=unanswered)


@compared(binary=True, needs=("answer", "gold.answer"), terms=_answers)
def exact_match(obs: Observation, *, normalizer: Normalizer = "default") -> float | NotApplicable:
    """1 if the answer equals any gold answer after normalisation, else 0.

    Higher is better. `default`: NFKC, case folded, punctuation of all scripts and English articles removed, a hyphen
    between words taken for a space, quantities in one form (`3,5 %` is `3.5%`, never `35`). `squad`: as the official
    script, which also gives 1 for an answer that normalises to nothing where a case is unanswerable. Not applicable
    without a gold answer or where no answer is recorded. Source: exact match of SQuAD 2.0.

    >>> score("exact_match", answered("The “Normans”!", "normans"))
    1.0
    >>> score("exact_match", answered("3.5", "35"))
    0.0
    """
    golds = gold_answers(obs, normalizer)
    return equals_any(obs.answer.text or "", golds, normalizer) if golds else NO_GOLD_ANSWER


@compared(
    needs=("answer", "gold.answer"),
    missing=declined,
    gates=("token_f1 >= 0.50 when answer=layered tag L5_wrong_answer",),
    yields_to="reference_match",
    settled_by="gold_in_answer",
    terms=_f1_terms,
)
def token_f1(obs: Observation, *, normalizer: Normalizer = "default", hangul: Hangul = "word") -> float | NotApplicable:
    """Bag-of-tokens F1 of the answer and the gold answer that it is nearest to.

    F1 = 2·|common| / (|answer tokens| + |gold tokens|), counted with repetitions, in [0, 1], higher is better. Tokens
    are words where the script writes spaces, else single characters, and a number is apart from what is written onto
    it. Hangul by `hangul`: `word` compares words without particles, and a compound in the parts that the other text
    writes apart; `char` is KorQuAD's F1: characters of every script, digits and Latin letters too, in lower case and
    without ASCII punctuation. `normalizer = "squad"`: words as the official script cuts them, in every script. Not
    applicable without a gold answer, where no answer is recorded, or where the system abstained. Source: F1 of SQuAD
    2.0; with `hangul = "char"` of KorQuAD 1.0.

    Of three tokens (`the` is none) two are common with the four of the gold answer: 2·2 / (3 + 4).

    >>> score("token_f1", answered("the red sports car", "a very fast red car"))
    0.5714285714285714
    """
    golds = gold_answers(obs, normalizer)
    if not golds:
        return NO_GOLD_ANSWER
    return 0.0 if is_refused(obs) else best_f1(obs.answer.text or "", golds, normalizer, hangul)


@compared(
    needs=("answer", "gold.key_facts"),
    gates=("key_fact_recall >= 1 when answer=none tag L5_missing_fact",),
    terms=lambda obs, _: _count_of_facts(facts_in_answer(obs)),
)
def key_fact_recall(obs: Observation) -> float | NotApplicable:
    """Key facts found in the answer / key facts.

    In [0, 1], higher is better. A fact is found if the normalised answer quotes it word by word, or if one sentence of
    the answer has all its content words; neither synonyms nor negation are understood. A refusal of an answerable
    question has none. Not applicable without key facts or where no answer is recorded. Source: nugget recall of TREC
    question answering, matched lexically.

    One fact is quoted, one has all its words in one sentence, one is missing: 2 / 3.

    >>> answer = "It is 236 metres high. The tower was opened to the public in 1975."
    >>> score("key_fact_recall", answered(answer, facts=["236 metres", "opened in 1975", "by the river"]))
    0.6666666666666666
    """
    facts = facts_in_answer(obs)
    if not facts:
        return NO_KEY_FACTS
    return sum(is_stated for _, is_stated in facts) / len(facts)


def facts_in_answer(obs: Observation) -> list[tuple[str, bool]]:
    """Return each key fact, and whether the answer states it; a refusal of an answerable question states none."""
    facts = [fact for fact in obs.gold.key_facts or () if fact.strip()]
    if is_refused(obs):
        return [(fact, False) for fact in facts]
    return list(zip(facts, stated_facts(obs.answer.text or "", facts), strict=True))


def _count_of_facts(facts: Sequence[tuple[str, bool]]) -> str:
    return f"{sum(is_stated for _, is_stated in facts)} of {counted(len(facts), 'key fact')}"


def stated_facts(answer: str, facts: Sequence[str]) -> list[bool]:
    """Return for each fact whether the answer quotes it or has all of its content words in one sentence.

    A fact that compares ("up to 5") needs its comparison; one that does not is stated by "up to 5" as well.
    """
    words = _as_phrase(answer)
    parts = sentences(answer)
    plain: list[list[str]] = []
    comparing: list[list[str]] = []
    stated = []
    for fact in facts:
        if _as_phrase(fact) in words:
            stated.append(True)
            continue
        fact_words = content_tokens(fact, compares=True)
        # Cutting a long answer costs more than all else here: only as it is needed, and once for all facts.
        if fact_words == content_tokens(fact):
            plain = plain or [content_tokens(sentence) for sentence in parts]
            stated.append(_is_in_any(fact_words, plain))
        else:
            comparing = comparing or [content_tokens(sentence, compares=True) for sentence in parts]
            stated.append(_is_in_any(fact_words, comparing))
    return stated


def _is_in_any(fact: Sequence[str], contents: Sequence[Sequence[str]]) -> bool:
    """Check whether one sentence has all words of a fact, and no other figures of them."""
    wanted = frozenset(fact)
    for content in contents:
        if wanted.issubset(content):
            bound_content, bound_fact = with_bound_figures(content, fact)
            if frozenset(bound_fact).issubset(bound_content):
                return True
    return False


def gold_answers(obs: Observation, normalizer: Normalizer) -> Sequence[str]:
    """Return the answers any of which is right; empty if none is labelled.

    For `squad` as the official script does: answers that normalise to nothing are dropped, and if none is left,
    or the case is unanswerable, the empty answer is right.
    """
    golds = obs.gold.answers or ()
    if normalizer == "default":
        return [gold for gold in golds if gold.strip()]
    if not golds and obs.case.answerable:
        return ()
    return [gold for gold in golds if squad_normalise(gold)] or ("",)


def answer_kinds(gold: Gold) -> frozenset[str]:
    """Return what a gate's condition on `answer` reads: short, long or none; layered if the case is labelled so.

    Short: every gold answer has at most six content words. Right answers word a longer one in too many ways.
    """
    if not any(answer.strip() for answer in gold.answers or ()):
        return frozenset({"none"})
    length = "short" if _are_short(gold.answers or ()) else "long"
    labels = (gold.concepts, gold.constraints, gold.kg_entities, gold.kg_edges)
    is_layered = any(part is not None for part in labels) or (gold.chunk_ids and not gold.ids_are_prefixes)
    return frozenset({length, "layered"} if is_layered else {length})


@lru_cache(maxsize=1024)
def _are_short(answers: tuple[str, ...]) -> bool:
    return all(has_few_words(answer, MOST_WORDS) for answer in answers)


MOST_WORDS = 6
"""Content words of a short answer."""


def equals_any(answer: str, golds: Sequence[str], normalizer: Normalizer = "default") -> float:
    """Return 1 if the normalised answer is one of the normalised golds, else 0."""
    comparable = squad_normalise if normalizer == "squad" else normalise
    normal = comparable(answer)
    return float(any(comparable(gold) == normal for gold in golds))


def best_f1(answer: str, golds: Sequence[str], normalizer: Normalizer = "default", hangul: Hangul = "word") -> float:
    """Return the highest bag-of-tokens F1 over the golds, in [0, 1]; 1 for two texts without tokens (KorQuAD: 0)."""
    cut = _cut(normalizer, hangul)
    answer_tokens = cut(answer)
    if cut is not tokens:
        without_tokens = float(cut is not korquad_characters)
        return max(_f1(answer_tokens, cut(gold), without_tokens) for gold in golds)
    # Compounds are Korean: text in ASCII has none to look for.
    if answer.isascii():
        return max(_f1(*with_bound_figures(answer_tokens, tokens(gold))) for gold in golds)
    return max(_f1(*with_bound_figures(*split_compounds(answer_tokens, tokens(gold)))) for gold in golds)


def _compared_tokens(
    answer: str, gold: str, normalizer: Normalizer, hangul: Hangul
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the tokens of both texts as `best_f1` compares them."""
    cut = _cut(normalizer, hangul)
    if cut is not tokens:
        return cut(answer), cut(gold)
    return with_bound_figures(*split_compounds(tokens(answer), tokens(gold)))


def _cut(normalizer: Normalizer, hangul: Hangul) -> Callable[[str], list[str]]:
    if normalizer == "squad":
        return lambda text: squad_normalise(text).split()
    return korquad_characters if hangul == "char" else tokens


def _f1(answer: Sequence[str], gold: Sequence[str], without_tokens: float = 1.0) -> float:
    total = len(answer) + len(gold)
    return 2 * shared_tokens(answer, gold) / total if total else without_tokens


def with_bound_figures(answer: Sequence[str], gold: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Join a figure with the next word where the two texts disagree: 10 wins and 3 losses, 3 wins and 10 losses."""
    counted_by_gold = _counted(gold)
    if not counted_by_gold:
        return answer, gold
    counted_by_answer = _counted(answer)
    disputed = [
        word
        for word, figures in counted_by_gold.items()
        if word in counted_by_answer and figures.isdisjoint(counted_by_answer[word])
    ]
    if not disputed:
        return answer, gold
    return _bound(answer, disputed), _bound(gold, disputed)


def _counted(words: Sequence[str]) -> dict[str, set[str]]:
    """Return the figures that stand before each word."""
    counted: dict[str, set[str]] = {}
    for figure, word in pairwise(words):
        if figure[0].isdigit() and not word[0].isdigit():
            counted.setdefault(word, set()).add(figure)
    return counted


def _bound(words: Sequence[str], disputed: Collection[str]) -> list[str]:
    bound = list(words)
    for at, (figure, word) in enumerate(pairwise(words)):
        if word in disputed and figure[0].isdigit():
            bound[at] = f"{figure} {word}"
    return bound


def shared_tokens(answer: Sequence[str], gold: Sequence[str]) -> int:
    """Return the size of the multiset intersection of both token lists."""
    # With repetitions: else "no no no" would share three tokens with one "no".
    left = Counter(gold)
    shared = 0
    for token in answer:
        if left.get(token):
            left[token] -= 1
            shared += 1
    return shared


def split_compounds(answer: Sequence[str], gold: Sequence[str]) -> tuple[list[str], list[str]]:
    """Cut Korean compounds into the parts that the other text writes apart: 시장점유율 as 시장 점유율."""
    gold_words = frozenset(gold)
    parts_of_answer: list[str] = []
    for word in answer:
        parts_of_answer += _parts(word, gold_words)
    answer_words = frozenset(parts_of_answer)
    parts_of_gold: list[str] = []
    for word in gold:
        parts_of_gold += _parts(word, answer_words)
    return parts_of_answer, parts_of_gold


def _parts(word: str, other_words: frozenset[str]) -> list[str]:
    if word in other_words or not 2 < len(word) <= _LONGEST_COMPOUND or not has_hangul(word):
        return [word]
    # The longest part first, as a reader sees it.
    for cut in range(len(word) - 1, 1, -1):
        if word[:cut] in other_words:
            return [word[:cut], *_parts(word[cut:], other_words)]
    for cut in range(1, len(word) - 1):
        if word[cut:] in other_words:
            return [*_parts(word[:cut], other_words), word[cut:]]
    return [word]


_LONGEST_COMPOUND = 40
"""Most syllables of a compound; the bound keeps the search linear in the length of a text."""


def _as_phrase(words: str) -> str:
    """Join the tokens with spaces, so that a phrase matches only at the borders of words."""
    return f" {' '.join(tokens(words))} "
