"""Features that detect an abstention: runs of words and letters, and the cues of each sentence.

A feature is a number, and its last bits are the place of its weight in a table. Training and inference both read the
features from here. An answer's features are those of the whole, of its first sentence and of one more sentence: the one
that declines most.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, combinations, pairwise
from typing import NamedTuple
from zlib import crc32

TABLE = 1 << 16
"""Weights of one table."""
TABLES = WHOLE, FIRST, ONE, SIGNS = range(4)
"""Tables: the whole answer, its first sentence, the sentence that declines most, and the cues of sentences."""
HEAD, TAIL = 500, 200
"""Characters that are read at either end of an answer: a refusal is stated early, or concludes."""
LONGEST_QUESTION = 1_000
MOST_SENTENCES = 30
_LAST_SENTENCES = 5
"""Of the `MOST_SENTENCES`, those that are read at the end."""


class Word:
    """A word as it counts: its code, the cues in it, and the placeholder it stands for, if any.

    `sums` holds the weights of its letter runs by table and their number, once the detector has added them.
    """

    __slots__ = ("code", "flags", "place", "spelling", "starts", "stem", "sums")

    def __init__(self, folded: str, stands_for: str) -> None:
        self.spelling = (folded, stands_for)
        # Inflected forms of one word begin alike.
        self.stem = folded[:5]
        # A checksum, not `hash`, whose seed differs from process to process: two trainings must agree to the byte.
        self.code = crc32(f" {folded} ".encode("utf-16-le", "replace"))
        self.place = self.code >> 16
        self.starts = self.code * 0x2C1B3C6D
        self.flags = _PLACEHOLDERS.get(folded, "")
        # Few words are a cue: one look for any of them spares most words ten.
        if folded not in _PLACEHOLDERS and _any_cue().fullmatch(folded) is not None:
            self.flags = "".join(flag for flag, (cue, _) in _cues().items() if cue.fullmatch(folded))
        self.sums: Sequence[int] = ()

    def letters(self) -> list[int]:
        """Return the places of its runs of three to five letters."""
        coded = f" {self.spelling[0]} ".encode("utf-16-le", "replace")
        places: set[int] = set()
        for size in (3, 4, 5):
            n_bytes = 2 * size  # two bytes a letter in UTF-16
            for start in range(0, len(coded) - n_bytes + 1, 2):
                places.add(crc32(coded[start : start + n_bytes], size) % TABLE)
        return sorted(places)


class FeatureBlock(NamedTuple):
    """Features of one kind: those at `places` and the letters of `words`.

    Together they count as much as `scale`, however many they are.
    """

    table: int
    scale: float
    places: Sequence[int] = ()
    words: Sequence[Word] = ()

    def all_places(self) -> list[int]:
        """Return the places of all features."""
        return [*self.places, *chain.from_iterable(word.letters() for word in self.words)]


class Features(NamedTuple):
    """Features of an answer; of its sentences only the one with the highest sum counts."""

    answer: tuple[FeatureBlock, ...]
    sentences: list[tuple[FeatureBlock, ...]]


class _Sentence(NamedTuple):
    words: list[Word]
    runs: list[int]
    flags: str
    """A letter for each cue in the sentence."""


def features_of(answer: str, question: str = "") -> Features:
    """Return the features of an answer, with the question if it is known."""
    question = question[:LONGEST_QUESTION].casefold()
    asked = _stems(question)
    sentences = [_read(text, asked) for text in sentences_of(answer)]
    runs = sentences[0].runs
    if len(sentences) > 1:
        runs = [*set().union(*[sentence.runs for sentence in sentences])]
    words: dict[tuple[str, str], Word] = {}
    for sentence in sentences:
        words.update((word.spelling, word) for word in sentence.words)
    # The weights were learned with these scales, and hold for them alone.
    of_answer = (
        FeatureBlock(WHOLE, 1.3, runs),
        FeatureBlock(WHOLE, 1.0, words=[*words.values()]),
        FeatureBlock(SIGNS, 0.3, _signs_of_answer(sentences, question, len(answer))),
        FeatureBlock(FIRST, 1.0, sentences[0].runs),
    )
    return Features(of_answer, [_features_of_sentence(sentence) for sentence in sentences])


def _features_of_sentence(sentence: _Sentence) -> tuple[FeatureBlock, ...]:
    return (
        FeatureBlock(ONE, 1.0, sentence.runs),
        FeatureBlock(ONE, 0.7, words=sentence.words),
        FeatureBlock(SIGNS, 0.2, _signs_of_sentence("one", sentence.flags, _size(sentence))),
    )


def sentences_of(answer: str) -> list[str]:
    """Return the sentences at the beginning and at the end of an answer; at least one."""
    text = answer
    if len(answer) > HEAD + TAIL:
        # A line break in between: the two ends are no sentence together.
        text = f"{answer[:HEAD]}\n{answer[-TAIL:]}"
    parts: list[str] = []
    start = 0
    for border in _BORDER.finditer(text):
        end = border.start(border.lastindex or 0)
        parts.append(text[start:end].strip())
        start = border.end()
    parts.append(text[start:].strip())
    sentences = [part for part in parts if _WORD.search(part)] or [text.strip()]
    if len(sentences) <= MOST_SENTENCES:
        return sentences
    return [*sentences[: MOST_SENTENCES - _LAST_SENTENCES], *sentences[-_LAST_SENTENCES:]]


_BORDER = re.compile(r"[.!?…]([\"')\]]*\s+)|[。！？]()|(\n+)")
"""The group is what lies between two sentences. All begin with a character, which is searched for at full speed."""
_WORD = re.compile(r"\w")
_TOKEN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W_]+(?:['’][^\W_]+)*|[?!:;,.\"]")


def _stems(question: str) -> frozenset[str]:
    """Return the beginnings of the question's longer words: inflected forms count as the same word."""
    words = _TOKEN.findall(_nfkc(question))
    return frozenset(word[:5] for word in words if len(word) > 3 or not word.isascii())


def _read(text: str, asked: frozenset[str]) -> _Sentence:
    """Replace words of the question, numbers and names by placeholders, and note the sentence's cues."""
    plain = _nfkc(text).replace("’", "'")
    flags = set[str]()
    if not plain.isascii():
        # In scripts without spaces cues are no words of their own.
        flags.update(flag for flag, (_, cue) in _cues().items() if cue.search(plain))
    repeated = 0
    words: list[Word] = []
    for written in _TOKEN.findall(plain):
        if written.isascii() and written.isdecimal():
            # Never a cue, and another one in each answer: as words of their own, numbers would drive out all others.
            word = _word("§0")
            stem = written[:5]
            stands_for = "§0"
        else:
            word = _word(written)
            stem = word.stem
            stands_for = word.spelling[1]
            flags.update(word.flags)
        if stem in asked:
            repeated += 1
            word = _word("§q")
        elif stands_for and (words or stands_for == "§0"):
            word = _word(stands_for)
            flags.update(word.flags)
        words.append(word)
    if repeated:
        flags.update("qQ" if 2 * repeated > len(asked) else "q")
    return _Sentence(words, _runs(words), "".join(sorted(flags)))


def _nfkc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _runs(words: Sequence[Word]) -> list[int]:
    """Return the places of runs of one to three words: the high bits of their codes, which are the best mixed."""
    # Multiplied in between: sums of codes would be equal for the same words in another order.
    codes = [*[word.code for word in words], 2]
    starts = [0x2C1B3C6D, *[word.starts for word in words]]
    twos = [(start + code) & 0xFFFFFFFF for start, code in zip(starts, codes, strict=True)]
    threes = [(two * 0x297A2D39 + code) >> 16 & 0xFFFF for two, code in zip(twos, codes[1:], strict=False)]
    return [*{0, *[word.place for word in words], *[two >> 16 for two in twos], *threes}]


@lru_cache(maxsize=16384)
def _word(text: str) -> Word:
    # No word of a cue is as long; one without an end must not fill the cache.
    folded = text.casefold()[:24]
    stands_for = ""
    if folded[:1].isdigit():
        stands_for = "§0"
    elif text[:1].isupper() and text != "I" and not text.startswith("I'"):
        # A name, unless it begins the sentence, which the caller knows. "I" tells who speaks.
        stands_for = "§x"
    return Word(folded, stands_for)


_UNSAID = frozenset("n?a")
"""Cues of sentences that state nothing: denials, questions, advice."""
_PLACEHOLDERS = {"§q": "", "§0": "0", "§x": "x"}
"""Placeholders of words of the question, numbers and names, with their flags."""


@lru_cache(maxsize=8192)
def _place(name: str) -> int:
    return crc32(name.encode("utf-8", "replace")) % TABLE


def _size(sentence: _Sentence) -> int:
    return min(len(sentence.words) // 5, 5)


def _signs_of_answer(sentences: list[_Sentence], question: str, length: int) -> tuple[int, ...]:
    """Return the sentences' cues and their places, the answer's length, and its fit with the question."""
    said = sum(len(sentence.words) for sentence in sentences if _UNSAID.isdisjoint(sentence.flags))
    shapes = tuple([(sentence.flags, _size(sentence)) for sentence in sentences])
    # By doublings: a length in characters would be another sign in each answer.
    size = min(length.bit_length(), 12)
    return _signs_of_shapes(shapes, said=min(said.bit_length(), 7), kind=kind_of_question(question), size=size)


@lru_cache(maxsize=4096)
def _signs_of_shapes(shapes: tuple[tuple[str, int], ...], *, said: int, kind: str, size: int) -> tuple[int, ...]:
    """Return the signs of sentences with these flags and sizes; short answers have few different ones."""
    return tuple(set().union(*_signs(shapes, said, kind, size)))


def _signs(shapes: Sequence[tuple[str, int]], said: int, kind: str, size: int) -> Iterator[Iterable[int]]:
    last = len(shapes) - 1
    for number, (flags, sentence_size) in enumerate(shapes):
        place = "middle"
        if number == 0:
            place = "first"
        elif number == last:
            place = "last"
        yield _signs_of_sentence(place, flags, sentence_size)
        yield _signs_of_sentence("any", flags, sentence_size)
    flags_in_order = [flags for flags, _ in shapes]
    yield (_place(f"{one}>{other}") for one, other in pairwise(flags_in_order))
    denials = [number for number, flags in enumerate(flags_in_order) if "n" in flags]
    together = "".join(sorted(set().union(*flags_in_order)))
    first_denial = min(denials[0], 3) if denials else None
    signs = [
        f"length {size}",
        f"sentences {min(len(shapes), 6)}",
        f"holds {together}",
        f"denies {min(len(denials), 3)} says {said}",
        f"denies at {first_denial} of {min(last, 4)}",
    ]
    yield map(_place, signs)
    yield _signs_of_kind(kind, together, flags_in_order[0], bool(denials), size)


@lru_cache(maxsize=8192)
def _signs_of_sentence(where: str, flags: str, size: int) -> tuple[int, ...]:
    signs = [f"{where}={flags}", f"{where}~{size}", *(f"{where}:{flag}" for flag in flags)]
    signs += [f"{where}:{flag}{other}" for flag, other in combinations(flags, 2)]
    return tuple(map(_place, signs))


@lru_cache(maxsize=1024)
def _signs_of_kind(kind: str, together: str, first: str, denies: bool, size: int) -> tuple[int, ...]:
    signs = [f"{kind} {size}"]
    for flag in "0xqQnsia?bt":
        signs.append(f"{kind} {flag} {flag in together} {denies}")
        signs.append(f"{kind} {flag} {flag in first} first")
    return tuple(map(_place, signs))


@lru_cache(maxsize=64)
def kind_of_question(question: str) -> str:
    """Return the kind of a question in lower case; the first of several in the order of the tables."""
    words = _QUESTION_WORD.findall(question)
    phrases = {*words, *map(" ".join, pairwise(words))}
    ranks = [_RANKS[known] for known in phrases & _RANKS.keys()]
    if not question.isascii():
        ranks += [rank for rank, (_, unspaced) in enumerate(_KINDS.values()) if re.search(unspaced, question)]
    if ranks:
        return [*_KINDS][min(ranks)]
    if _OPENS_CHOICE.match(question) or (not question.isascii() and _ENDS_CHOICE.search(question)):
        return "choice"
    return "other" if question else "unasked"


@cache
def _cues() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    return {flag: (re.compile(words), re.compile(unspaced)) for flag, (words, unspaced) in _CUES.items()}


@cache
def _any_cue() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{words})" for words, _ in _CUES.values()))


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
"""Cues of denials, sources, self-reference, advice, contrast, regret, reasons and hedges, also in scripts without
spaces."""

_KINDS = {
    "number": (
        "how many|how much|how long|how far|how old|how big|how high|how tall|how large|how often|how deep|how fast"
        "|how wide|wie viel|wie viele|wie lange|wie hoch|wie gross|wie weit|wie oft|wie alt|wieviel|wieviele|combien"
        "|cuantía|cuanto|cuanta|cuantos|cuantas|cuánto|cuánta|cuántos|cuántas",
        "몇|얼마|いくつ|いくら|何(?:人|回|年|個|メートル)|多少|几|多[大长高久]",
    ),
    "time": (
        "when|what year|what date|what day|what time|which year|wann|quand|quelle année|quelle date|quelle heure"
        "|cuando|cuándo",
        "언제|いつ|什么时候|何时|哪一?年",
    ),
    "person": ("who|whom|whose|wer|wem|wen|wessen|qui|quien|quienes|quién|quiénes", "누[가구]|誰|だれ|谁"),
    "place": ("where|wo|wohin|où|donde|dónde", "어디|どこ|哪里|哪儿|在哪"),
    "reason": ("why|warum|weshalb|pourquoi|por que|por qué", "왜|なぜ|どうして|为什么|为何"),
    "manner": ("how|wie|comment|como|cómo", "어떻게|어떤 방법|どのように|どうやって|怎么|如何"),
}
"""Kinds of questions, by the kind of their answers: words, and patterns of scripts without spaces."""
_RANKS = {words: rank for rank, (spoken, _) in enumerate(_KINDS.values()) for words in spoken.split("|")}
_QUESTION_WORD = re.compile(r"\w+")
_OPENS_CHOICE = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|may|has|have|had|will|would|should|ist|sind|war|hat|haben|kann|darf|gibt"
    r"|est-ce|y a-t-il|peut-on|hay|es|est[aá]|puedo|se puede|tiene)\b"
)
_ENDS_CHOICE = re.compile("(?:나요|습니까|까요|가요|ますか|ですか|吗)[?？]?$")
