"""Features by which an abstention is detected: n-grams of the wording, and what each sentence does.

A feature is a text, hashed to a bucket that has one weight. Training and inference both read the features from here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

BUCKETS = 1 << 18
HEAD, TAIL = 500, 200
"""Characters at the beginning and at the end of an answer that are read: a refusal is said early, or concludes."""
LONGEST_QUESTION = 1_000
MOST_SENTENCES = 30


class FeatureBlock(NamedTuple):
    """Features of one kind. Each bucket counts once; together they count as much as `scale`, however many they are."""

    scale: float
    buckets: frozenset[int]


class _Sentence(NamedTuple):
    words: tuple[str, ...]
    flags: str
    """A letter for each thing that the sentence does."""


def features_of(answer: str, question: str = "") -> tuple[FeatureBlock, ...]:
    """Return the features of an answer, with the question where it is known. The first sentence counts twice."""
    question = question[:LONGEST_QUESTION].casefold()
    asked = _stems(question)
    sentences = [_read(text, asked) for text in sentences_of(answer)]
    return (
        FeatureBlock(1.3, _buckets(_word_grams(sentences))),
        FeatureBlock(1.0, _character_grams(sentences)),
        FeatureBlock(1.0, _buckets(_signs(sentences, question, len(answer)))),
        FeatureBlock(1.0, _buckets(_word_grams(sentences[:1]))),
        FeatureBlock(0.7, _character_grams(sentences[:1])),
    )


def sentences_of(answer: str) -> list[str]:
    """Return the sentences at the beginning and at the end of an answer; at least one."""
    text = answer if len(answer) <= HEAD + TAIL else f"{answer[:HEAD]}\n{answer[-TAIL:]}"
    parts = [part.strip() for part in _BORDER.split(text) if _WORD.search(part)] or [text.strip()]
    return parts if len(parts) <= MOST_SENTENCES else [*parts[: MOST_SENTENCES - 5], *parts[-5:]]


_BORDER = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"\w")
_TOKEN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W_]+(?:['’][^\W_]+)*|[?!:;,.\"]")


def _stems(question: str) -> frozenset[str]:
    """Return the beginnings of the question's longer words: inflected forms count as the same word."""
    words = _TOKEN.findall(unicodedata.normalize("NFKC", question))
    return frozenset(word[:5] for word in words if len(word) > 3 or not word.isascii())


def _read(text: str, asked: frozenset[str]) -> _Sentence:
    """Put placeholders for words of the question, numbers and names, and note what the sentence does."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    words: list[str] = []
    repeated = 0
    held: set[str] = set()
    for place, word in enumerate(_TOKEN.findall(plain)):
        folded = word.casefold()
        held.update(_flags_of_a_word(folded[:24]))
        if folded[:5] in asked:
            repeated += 1
            folded = "§q"
        elif folded[:1].isdigit():
            held.add("0")
            folded = "§0"
        elif place and word[0].isupper() and word != "I" and not word.startswith("I'"):
            held.add("x")
            folded = "§x"
        words.append(folded[:24])
    if not plain.isascii():
        held.update(flag for flag, (_, cue) in _cues().items() if cue.search(plain))
    if repeated:
        held.update("qQ" if 2 * repeated > len(asked) else "q")
    return _Sentence(tuple(words), "".join(sorted(held)))


def _buckets(names: Iterable[str]) -> frozenset[int]:
    return frozenset([crc32(name.encode("utf-8", "replace")) % BUCKETS for name in names])


def _word_grams(sentences: list[_Sentence]) -> Iterator[str]:
    """Yield runs of one to four words; runs of one or two also with whether the first sentence holds them."""
    for number, sentence in enumerate(sentences):
        words = ("<", *sentence.words, ">")
        pairs = [" ".join(pair) for pair in pairwise(words)]
        where = "1" if number == 0 else "2"
        yield from words
        yield from pairs
        yield from [where + run for run in (*words, *pairs)]
        yield from map("{} {}".format, pairs, words[2:])
        yield from map("{} {}".format, pairs, pairs[2:])


def _character_grams(sentences: list[_Sentence]) -> frozenset[int]:
    words = {word for sentence in sentences for word in sentence.words}
    return frozenset().union(*map(_grams_of_a_word, words))


@lru_cache(maxsize=8192)
def _grams_of_a_word(word: str) -> frozenset[int]:
    coded = f" {word} ".encode("utf-16-le", "replace")
    return frozenset(
        crc32(coded[start : start + 2 * size], size) % BUCKETS
        for size in (2, 3, 4, 5)
        for start in range(0, len(coded) - 2 * size + 1, 2)
    )


def _signs(sentences: list[_Sentence], question: str, length: int) -> Iterator[str]:
    """Yield what the sentences do and where, how much is said, and how that fits the question."""
    last = len(sentences) - 1
    for number, (words, flags) in enumerate(sentences):
        place = "first" if number == 0 else "last" if number == last else "middle"
        for where in ("any", place):
            yield from (f"{where}={flags}", f"{where}~{min(len(words) // 5, 5)}")
            for at, flag in enumerate(flags):
                yield f"{where}:{flag}"
                yield from [f"{where}:{flag}{other}" for other in flags[at + 1 :]]
        if number < 3:
            yield f"{number}>{flags}"
    yield from (f"{one.flags}>{other.flags}" for one, other in pairwise(sentences))
    denials = [number for number, sentence in enumerate(sentences) if "n" in sentence.flags]
    said = sum(len(words) for words, flags in sentences if not {*"n?a"} & {*flags})
    together = "".join(sorted({flag for _, flags in sentences for flag in flags}))
    size = min(length.bit_length(), 12)
    yield from (f"length {size}", f"sentences {min(len(sentences), 6)}", f"holds {together}")
    yield f"denies {min(len(denials), 3)} says {min(said.bit_length(), 7)}"
    yield f"denies at {min(denials[0], 3) if denials else None} of {min(last, 4)}"
    asks = next((name for name, cue in _kinds() if cue.search(question)), "other" if question else "unasked")
    for flag in "0xqQnsia?bt":
        yield f"{asks} {flag} {flag in together} {bool(denials)}"
        yield f"{asks} {flag} {flag in sentences[0].flags} first"
    yield f"{asks} {size}"
    for word in sentences[0].words[:2]:
        yield f"{asks} begins {word}"


@lru_cache(maxsize=8192)
def _flags_of_a_word(word: str) -> str:
    return "".join(flag for flag, (cue, _) in _cues().items() if cue.fullmatch(word))


@cache
def _cues() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    return {flag: (re.compile(words), re.compile(unspaced)) for flag, (words, unspaced) in _CUES.items()}


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in _KINDS.items())


_CUES = {
    "n": (
        r".*n't|n'.*|not?|none|nothing|never|neither|nor|nowhere|cannot|without|unable|lacks?|missing|absent|silent"
        r"|blank|un(?:clear|known|specified|stated|available|able)|beyond|outside|nichts?|kein.*|weder|ohne|fehl.*|nie"
        r"|offen|unklar|unbekannt|ne|pas|aucune?|rien|jamais|sans|manque.*|nada|ning[uú]n.*|sin|ni|nunca|tampoco"
        r"|falta.*|.*(?:없|않|못|아니|모르|모릅).*|안",
        "ない|なし|ません|未|不|没|沒|无|無|缺|空白",
    ),
    "s": (
        r"contexts?|documents?|documentation|notes?|passages?|sources?|texts?|corpus|materials?|excerpts?|articles?"
        r"|snippets?|knowledge|information|info|chunks?|records?|files?|handbooks?|manuals?|reports?|papers?|chapters?"
        r"|pages?|minutes|guides?|leaflets?|archives?|data|unterlagen|quellen?|notiz.*|angaben?|protokoll.*|handbuch.*"
        r"|kapitel.*|auszug|auszüge.*|archiv.*|contexte|extraits?|pièces?|dossiers?|notices?|manuel.*|registres?"
        r"|contexto|fuentes?|fragmentos?|registros?|actas?|archivos?|expedientes?|apuntes?|información|dokument.*|text.*"
        r"|.*bericht.*|rapport.*|documento.*|informe.*|.*(?:문서|자료|규정|문맥|노트|정보|기록|내용|본문).*",
        "資料|文書|文脈|記録|記載|情報|本文|文档|文件|资料|上下文|记录|材料|原文",
    ),
    "i": (
        r"i|i'.*|we|we'.*|me|us|my|our|ich|wir|mir|uns|mein.*|unser.*|je|j'.*|nous|moi|notre|nos|yo|tengo|puedo|mis?"
        r"|nosotros|tenemos|podemos|제가|저는|저희.*|나는",
        "私|当方|弊社|我",
    ),
    "a": (
        r"please|contact.*|ask|check|consult.*|recommend|suggest|try|refer|visit|call|e?mail|happy|bitte|wenden|fragen"
        r"|anrufen|veuillez|adress.*|appel.*|favor|llam.*|pregunt.*|puede|.*(?:문의|확인해|연락|참고).*",
        "問い合わせ|ください|请|請|联系|聯繫|咨询|查阅",
    ),
    "b": (
        r"but|however|(?:al)?though|while|instead|only|just|aber|jedoch|allerdings|nur|lediglich|mais|cependant"
        r"|seulement|uniquement|pero|embargo|aunque|sol[oa]|sólo|únicamente|하지만|그러나|다만|.*(?:뿐|지만).*",
        "しかし|ただし|のみ|だけ|但|不过|然而|只|仅",
    ),
    "r": (
        r"sorry|unfortunately|regrettably|afraid|apolog.*|leider|leid|désolée?s?|malheureusement|lament.*"
        r"|siento|.*(?:죄송|아쉽|안타깝).*",
        "申し訳|すみません|残念|抱歉|对不起|遗憾",
    ),
    "t": (
        r"because|since|therefore|so|thus|if|weil|daher|wenn|denn|parce|donc|puisque|si|porque|tanto|.*때문.*|따라서",
        "ため|ので|因为|因此|所以",
    ),
    "h": (
        r"may|might|perhaps|probably|likely|seems?|appears?|maybe|vielleicht|wohl|vermutlich|peut-être|doute"
        r"|probablemente|quizás?|parece|아마.*|듯.*",
        "かもしれ|おそらく|可能|也许",
    ),
    "?": (r"\?", "？"),
    '"': ('"', "[“„«「『]"),
}
"""Words by which a sentence denies, names a source, speaks of itself, advises, turns, regrets, reasons or hedges, and
the same in scripts without spaces."""

_KINDS = {
    "number": r"\bhow (?:many|much|long|far|old|big|high|tall|large|often|deep|fast|wide)\b|\bwie ?(?:viele?|lange|hoch"
    r"|gross|weit|oft|alt)\b|\bcombien\b|\bcu[aá]nt|몇|얼마|いくつ|いくら|何(?:人|回|年|個|メートル)|多少|几|多[大长高久]",
    "time": r"\b(?:when|what (?:year|date|day|time)|which year|wann|quand|quelle (?:année|date|heure)|cu[aá]ndo)\b"
    r"|언제|いつ|什么时候|何时|哪一?年",
    "person": r"\b(?:who|whom|whose|wer|wem|wen|wessen|qui|qui[eé]n(?:es)?)\b|누[가구]|誰|だれ|谁",
    "place": r"\b(?:where|wo|wohin|où|d[oó]nde)\b|어디|どこ|哪里|哪儿|在哪",
    "reason": r"\b(?:why|warum|weshalb|pourquoi|por qu[eé])\b|왜|なぜ|どうして|为什么|为何",
    "manner": r"\b(?:how|wie|comment|c[oó]mo)\b|어떻게|어떤 방법|どのように|どうやって|怎么|如何",
    "choice": r"^(?:is|are|was|were|do|does|did|can|could|may|has|have|had|will|would|should|ist|sind|war|hat|haben"
    r"|kann|darf|gibt|est-ce|y a-t-il|peut-on|hay|es|est[aá]|puedo|se puede|tiene)\b"
    r"|(?:나요|습니까|까요|가요|ますか|ですか|吗)[?？]?$",
}
"""Kinds of questions, by what answers them."""
