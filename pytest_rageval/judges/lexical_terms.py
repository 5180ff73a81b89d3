"""Terms of a text, normalized so that two texts can be compared.

The same for all scripts: content tokens (Korean without particles, Han and Katakana as pairs of characters, quantities
in one form), plus the small words. All negations are one term.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_rageval.quantities import QUANTITY
from pytest_rageval.words import STOP_WORDS, content_tokens, sentences

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


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a text and its terms.

    content  the terms that carry meaning: all but small words, or all if there are only small words
    figures  the terms that are numbers
    """

    text: str
    terms: frozenset[str]
    content: frozenset[str] = field(init=False, repr=False, compare=False)
    figures: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", self.terms - SMALL_WORDS or self.terms)
        object.__setattr__(self, "figures", frozenset(filter(_FIGURE.match, self.terms)))

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
    text, negations = _CHINESE_NEGATION.subn("", text)
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    small = SMALL_WORDS.intersection(_LETTERS.findall(folded))
    return small.union(map(_plain, content_tokens(text)), (NEGATION,) * bool(negations))


# Many questions retrieve the same chunks, and several rubrics read them.
@lru_cache(maxsize=256)
def terms_by_sentence(passage: str) -> tuple[frozenset[str], ...]:
    """Return the terms of each sentence of a passage; the last 256 passages are cached."""
    return tuple(map(terms_in, sentences(passage[:LONGEST_PASSAGE])))


def claims_in(text: str, *, without: frozenset[str] = frozenset()) -> list[Claim]:
    """Return the sentences of a text as claims, without citation marks; sentences without terms are dropped.

    Sentences of figures only, such as list numbers, are dropped unless there is nothing else. `without`: terms to omit.
    """
    cut = (Claim(sentence, terms_in(sentence) - without) for sentence in sentences(_CITATION.sub(" ", text)))
    claims = [claim for claim in cut if claim.terms]
    return [claim for claim in claims if claim.figures != claim.content] or claims


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
