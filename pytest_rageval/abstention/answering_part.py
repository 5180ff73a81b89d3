"""The part of an answer that gives what is asked, next to sentences that only limit it or point elsewhere.

"The fee is 5 EUR. The documents do not mention any exceptions." sounds like a refusal as a whole, and is an answer.
"The tower has 214 steps. Its height is not stated." is a refusal that tells something else. The two differ in whether a
part that denies nothing has the words of the question, and all of those that the denying parts have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from pytest_rageval.abstention.features import kind_of_question, sentences_of
from pytest_rageval.abstention.languages import is_common_word
from pytest_rageval.language.words import content_tokens

MOST_PARTS = 12
"""Parts of an answer that are read: a longer one has room for what is asked and for much else."""
LONGEST_CLEAR = 3
"""Sentences up to which an answer with a limit is clear; a longer one may be a refusal that tells other things."""
SURELY_SAYS = -0.3
"""Log odds of an abstention below which a part, read alone, says something."""
HARDLY_SAYS = -1.0
"""Log odds above which a part with a denial declines: "The winner had not been announced."."""
SURELY_ANSWERS = -2.5
"""Log odds below which a part answers that shares no word with its question: "Three months."."""
SHORT = 60
"""Characters of such a part that can hardly say anything but the answer."""
MAY_ANSWER = 0.5
"""Share of the question's words from which a part may answer it."""
HAS_THE_QUESTION = 0.67
"""Share of the question's words from which a part surely answers it."""


class AnsweringPart(NamedTuple):
    """The part of an answer that gives what is asked; `is_clear` is False if it may be about something else."""

    text: str
    is_clear: bool


class _Part(NamedTuple):
    text: str
    odds: float
    """Log odds of an abstention of the part, read alone."""
    words: frozenset[str]
    denies: bool


class _Asked(NamedTuple):
    """The content of a question: its words, the kind of its answer, and whether that is a figure."""

    words: frozenset[str]
    kind: str
    wants_figure: bool

    def share_in(self, part: _Part) -> float:
        """Return the share of the question's words that a part has."""
        return len(self.words & part.words) / max(1, len(self.words))


def answering_part(answer: str, question: str, odds_of: Callable[[str], float]) -> AnsweringPart | None:
    """Return the part of an answer that gives what is asked; None if no part does, or the answer has one part only.

    odds_of  the log odds of an abstention of a text, as an answer to the question
    """
    texts = answer_parts(answer)
    if not 1 < len(texts) <= MOST_PARTS:
        return None
    asked = _asked(question[:_LONGEST].casefold())
    parts = [_part(text, odds_of(text)) for text in texts]
    place = _best(parts, asked)
    if place is None:
        return None
    part = parts[place]
    ahead = [other for other in parts[:place] if other.denies]
    behind = [other for other in parts[place + 1 :] if other.denies]
    # The whole sounds like a refusal, so that what follows must limit the part, whatever its words.
    others = [*ahead, *behind] or parts[place + 1 :]
    if not others or _denies_first(ahead, asked):
        return None
    denied = _words_of(others) & asked.words
    # "The south gate opens at 8. I have nothing on the north gate."
    if not denied <= part.words or part.words <= asked.words:
        return None
    shares_none = asked.words.isdisjoint(part.words)
    is_bare = place == 0 and shares_none and part.odds < SURELY_ANSWERS
    refers_back = any(_REFERS_BACK.match(other.text) for other in others)
    if not _may_answer(part, asked, is_bare=is_bare, refers_back=refers_back):
        return None
    is_long = len(parts) - len(ahead) > LONGEST_CLEAR
    is_open = refers_back or bool(denied) or is_long
    return AnsweringPart(part.text, is_clear=not is_open and _surely_answers(part, asked, place, is_bare=is_bare))


def _words_of(parts: Iterable[_Part]) -> frozenset[str]:
    return frozenset(chain.from_iterable(part.words for part in parts))


def _may_answer(part: _Part, asked: _Asked, *, is_bare: bool, refers_back: bool) -> bool:
    """Return True if a part has enough of what is asked."""
    share = asked.share_in(part)
    # "The tower has 214 steps. Its height is not stated."
    if refers_back and share < 1:
        return False
    if is_bare or share >= MAY_ANSWER:
        return True
    return asked.wants_figure and (share > 0 or not asked.words)


def _surely_answers(part: _Part, asked: _Asked, place: int, *, is_bare: bool) -> bool:
    """Return True if a part that may answer has what is asked: most of its words, or a name for "who"."""
    if asked.kind == "person" and _NAME.search(part.text) is None:
        return False
    share = asked.share_in(part)
    if share >= HAS_THE_QUESTION:
        return True
    if share >= MAY_ANSWER and (asked.wants_figure or place == 0):
        return True
    return is_bare and len(part.text) <= SHORT


def answer_parts(answer: str) -> list[str]:
    """Return the sentences of an answer, each cut where it turns: "…, though I could not verify it"."""
    parts: list[str] = []
    for sentence in sentences_of(answer):
        concession = _CONCESSION.match(sentence)
        if concession is not None:
            parts.append(concession[0].strip())
            sentence = sentence[concession.end() :]
        parts += [part.strip() for part in _TURN.split(sentence) if part.strip()]
    return parts


def _best(parts: Sequence[_Part], asked: _Asked) -> int | None:
    """Return the place of the part with most of the question's words that denies nothing; None without one."""
    places = []
    for place, part in enumerate(parts):
        if part.odds >= SURELY_SAYS or part.denies:
            continue
        if asked.wants_figure and not _has_figure(part.text, asked):
            continue
        if asked.kind == "reason" and _REASON.search(part.text) is None:
            continue
        places.append(place)

    def rank(place: int) -> tuple[int, float]:
        part = parts[place]
        return len(part.words & asked.words), -part.odds

    return max(places, key=rank, default=None)


def _part(text: str, odds: float) -> _Part:
    denies = odds >= 0 or _REGRET.fullmatch(text) is not None
    if not denies and _DENIAL.search(text):
        is_about_sources = _SOURCE.search(text) is not None
        refers_back = _REFERS_BACK.match(text) is not None
        denies = odds > HARDLY_SAYS or is_about_sources or refers_back
    return _Part(text, odds, _words(text), denies)


def _denies_first(ahead: Sequence[_Part], asked: _Asked) -> bool:
    """Return True if the parts before deny what is asked: "I don't know that. Weekday breakfast is from 7."."""
    for part in ahead:
        is_about_it = bool(part.words & asked.words) or part.words <= asked.words
        if is_about_it or _REFERS.search(part.text) is not None:
            return True
    return False


def _asked(question: str) -> _Asked:
    kind = kind_of_question(question)
    wants_figure = kind in ("number", "time") or _ASKS_PRICE.search(question) is not None
    return _Asked(_words(question), kind, wants_figure)


def _has_figure(text: str, asked: _Asked) -> bool:
    if _FIGURE.search(text) is not None:
        return True
    return asked.kind == "time" and _DAY.search(text) is not None


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    """Return the stems of the words that a text is about."""
    stems = set()
    for word in content_tokens(text[:_LONGEST]):
        if is_common_word(word) or word in _GENERAL or _ASKING_KOREAN.match(word):
            continue
        # Korean words carry their particles and endings.
        stems.add(word[:2] if "가" <= word[0] <= "힣" else word[:5])
    return frozenset(stems)


_LONGEST = 1_000
_GENERAL_WORDS = """
    take takes get gets use used mean means may must should would will shall need needs like many much long tell
    say says give name find work happen apply called know how who what when where which why whose you your my me i
    their her his she he they mich mein meine meinen meinem meiner darf muss kann können wurde wurden wird werden
    haben habe gibt bekomme bekommt soll sollte lautet wer wo wann warum wie was welche welcher welches ich sie er
    es du ihr wir uns je tu il elle nous puis peut faut sont était quel quelle quels quelles qui où quand hay que
    puedo debo son cuál cuáles tiene dónde cuándo quién qué y 何 誰 幾
"""
_GENERAL = frozenset(_GENERAL_WORDS.split())
"""Words of questions that name nothing, and that a limit of the answer may share with it by chance."""
_ASKING_KOREAN = re.compile(
    "얼마|어디|언제|누구|무엇|뭐|몇|어떻게|어떤|왜|하나요|있나요|되나요|인가요|걸리나요|있습니까|입니까|여나요"
)
_TURN = re.compile(
    r"[,;]\s+(?=(?:but|though|although|however|yet|aber|jedoch|allerdings|obwohl|mais|cependant|toutefois|bien que|pero"
    r"|aunque|sin embargo)\b)|;\s+|(?<=지만)\s|(?<=으나)\s|(?<=ませんが)、|(?<=ですが)、|，(?=但|不过|然而)"
)
_CONCESSION = re.compile(
    r"\W*(?:while|although|though|whereas|obwohl|während|auch wenn|bien que|même si|aunque|si bien|embora)\b"
    r"[^,]{3,200},\s*(?=\S)",
    re.IGNORECASE,
)
"""A clause at the beginning of a sentence that concedes something: "While they do not say who, …"."""
_FIGURE = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|dozen|hundred|thousand|million|half|zwei|drei|vier"
    r"|fünf|sechs|sieben|acht|neun|zehn|zwölf|deux|trois|quatre|cinq|sept|huit|neuf|dix|dos|tres|cuatro|cinco|seis|siete"
    r"|ocho|nueve|diez)\b|[一二三四五六七八九十百千万两]|(?:한|두|세|네|다섯|여섯) (?:시|개|명|달|주|시간)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)s?\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)s?\b|\b(?:lunes|martes|miércoles|jueves|viernes|sábados?"
    r"|domingos?)\b|[월화수목금토일]요일|曜日|星期|周[一二三四五六日末]"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december|januar|februar|märz|juni|juli"
    r"|oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|enero|febrero"
    r"|marzo|abril|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|noon|midnight|mittag|mitternacht|midi|minuit"
    r"|mediodía|medianoche)\b|정오|자정|正午|中午",
    re.IGNORECASE,
)
_ASKS_PRICE = re.compile(
    r"\b(?:cost|costs|price|fee|kostet|kosten|preis|gebühr|coûte|prix|tarif|cuesta|cuestan|precio|custa|preço)\b"
    r"|요금|가격|비용|料金|価格|値段|价格|费用",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|due|so that|in order|as|owing|caused?|reasons?|weil|denn|da|wegen|damit|aufgrund|parce|car"
    r"|puisque|pour|afin|raison|porque|pues|para|debido)\b|때문|위해|므로|니까|ため|ので|から|因为|由于|为了",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=\S )[A-ZÀ-Þ]\w|[가-힣]{2,}|[\u4e00-\u9fff]{2,}|[\u30a0-\u30ff]{3,}")
_DENIAL = re.compile(
    r"n't\b|\b(?:not?|none|nothing|never|neither|cannot|without|unable|unclear|unknown|silent|nichts?|kein\w*|weder|ohne"
    r"|ne|n'|pas|aucune?|rien|jamais|nada|ning[uú]n\w*|sin|nunca|não|nenhum\w*)\b"
    r"|없|않|못|아니|모르|ない|なし|ません|未|不|没|無|无",
    re.IGNORECASE,
)
_REGRET = re.compile(
    r"\W{0,5}(?:i'm|i am|we're|we are|je suis|es tut mir|tut mir)?\W{0,3}(?:so|very|really|sehr)?\W{0,3}"
    r"(?:sorry|unfortunately|regrettably|afraid|apologies|my apologies|leider|leid|désolée?|malheureusement"
    r"|lo siento|lamentablemente|infelizmente|desculpe"
    r"|죄송하지만|죄송합니다|아쉽지만|申し訳ありませんが|申し訳ございませんが|すみませんが|抱歉|对不起|很遗憾)\W*",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"\b(?:contexts?|documents?|documentation|notes|passages?|sources?|texts?|excerpts?|articles?|evidence|information"
    r"|unterlagen|quellen?|dokument\w*|angaben?|auszug|contexte|extraits?|textes?|contexto|documentos?|textos?|fuentes?)\b"
    r"|문서|자료|규정|정보|資料|文書|記載|情報|文档|文件|资料|材料",
    re.IGNORECASE,
)
_REFERS_BACK = re.compile(
    r"^\W*(?:(?:but|however|although|and|aber|jedoch|allerdings|mais|cependant|pero|sin embargo"
    r"|하지만|그러나|다만|しかし|ただし|但|不过)\b\W*)?(?:(?:its?|it's|they|their|he|she|his|her|this|that|these|those|which|none|nothing|neither|er"
    r"|sie|es|sein\w*|ihr\w*|dies\w*|das|davon|dazu|il|elle|ils|son|sa|ses|cela|ce|leur|su|sus|esto|ese|lo)\b"
    r"|그|이(?=[ 는가를에])|その|これ|其|它|这)",
    re.IGNORECASE,
)
_REFERS = re.compile(
    r"\b(?:that|this|these|it|so|das|dazu|davon|darüber|hierzu|dies\w*|cela|ça|en|ce point|eso|esto|ello|lo|la)\b|\bl'"
    r"|그것|이에|그에|해당|それ|これ|当該|这|那",
    re.IGNORECASE,
)
"""Words for what was asked about."""
