"""How an answer opens: with yes or no, with assent, with a bare denial, or with regret before either.

"Leider nein" says no, "Of course not" does too, and "Unfortunately" before anything else leans towards no. The phrases
are data by language, in the form of `pytest_rageval.language.words.normalise`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.negation import has_negation
from pytest_rageval.language.polarity_words import DETERMINERS, NO, YES
from pytest_rageval.language.stated_words import UNSPACED_RUN


class AnswerOpening(NamedTuple):
    """What the first clauses of a text say before any content.

    alone       the first clause, if it is one word or run
    says_yes    None for a text without words
    is_plain    whether a yes, no, assent or bare denial stands there
    is_regret   whether it regrets what follows: Unfortunately, …
    """

    alone: str = ""
    says_yes: bool | None = None
    is_plain: bool = False
    is_regret: bool = False


def read_opening(clauses: Sequence[Sequence[str]]) -> AnswerOpening:
    """Read a yes or no at the beginning of one of the first clauses, else the first clause of more than two words."""
    if not clauses:
        return AnswerOpening()
    alone = clauses[0][0] if len(clauses[0]) == 1 else ""
    is_regret = False
    for clause in clauses:
        text = " ".join(clause)
        is_regret = is_regret or compiled_pattern(_REGRET).match(text) is not None
        polarity = _polarity(compiled_pattern(_INTRODUCTION).sub("", text, count=1))
        if polarity is not None:
            return AnswerOpening(alone, polarity, is_plain=True, is_regret=is_regret)
    deciding = clauses[0]
    for clause in clauses:
        # A run of a script without spaces holds many words.
        if len(clause) > 2 or UNSPACED_RUN.match(clause[0]):
            deciding = clause
            break
    return AnswerOpening(alone, not has_negation(deciding), is_regret=is_regret)


def _polarity(text: str) -> bool | None:
    """Return what a clause without its introduction says plainly: yes, no, or neither."""
    if compiled_pattern(_DENIAL).match(text) is not None:
        return False
    assent = compiled_pattern(_ASSENT).match(text)
    if assent is not None:
        return compiled_pattern(_DENIAL_BEHIND).match(text, assent.end()) is None
    first, _, rest = text.partition(" ")
    if rest and first in DETERMINERS:
        return None
    if first in YES:
        return compiled_pattern(_DENIAL_BEHIND).match(text, len(first)) is None
    return False if first in NO else None


def _merged(tables: Mapping[str, Iterable[str]]) -> list[str]:
    return [phrase for table in tables.values() for phrase in table]


def _begins_with(tables: Mapping[str, Iterable[str]]) -> str:
    """Return the pattern of phrases at a beginning; only in East Asian scripts a word may go on behind them."""
    phrases = sorted(_merged(tables), key=len, reverse=True)
    return "|".join(phrase if phrase[-1] >= "぀" else rf"{phrase}(?!\w)" for phrase in phrases)


REGRETS: Mapping[str, tuple[str, ...]] = {
    "en": ("unfortunately", "sadly", "regrettably", "im afraid", "i am afraid", "regretfully", "alas"),
    "de": ("leider", "bedauerlicherweise", "unglücklicherweise", "zu meinem bedauern"),
    "fr": ("malheureusement", "hélas", "je crains que", "à regret"),
    "es": ("lamentablemente", "desafortunadamente", "desgraciadamente", "por desgracia", "infelizmente", "me temo que"),
    "ko": ("아쉽게도", "유감스럽게도", "안타깝게도", "유감이지만", "아쉽지만", "안타깝지만"),
    "ja": ("残念ながら", "残念ですが", "あいにく", "遺憾ながら", "生憎"),
    "zh": ("很遗憾", "遗憾的是", "很可惜", "可惜", "遗憾地", "恐怕", "很遺憾"),
}
"""Before what the asker will not like."""
COURTESIES: Mapping[str, tuple[str, ...]] = {
    "en": ("good news", "great news", "well", "sorry", "im sorry", "i am sorry", "thanks for asking", "happy to say"),
    "de": ("gute nachricht(?:en)?", "tut mir leid", "es tut mir leid", "entschuldigung", "verzeihung", "nun", "also"),
    "fr": ("bonnes? nouvelles?", "désolée?", "je suis désolée?", "pardon", "eh bien"),
    "es": ("buenas? noticias?", "lo siento", "lo sentimos", "perdón", "bueno", "pues"),
    "ko": ("죄송하지만", "죄송합니다만", "죄송합니다", "미안하지만", "좋은 소식입니다"),
    "ja": (
        "申し訳ありませんが",
        "申し訳ございませんが",
        "申し訳ありません",
        "申し訳ございません",
        "すみませんが",
        "すみません",
    ),
    "zh": ("很抱歉", "抱歉", "对不起", "不好意思", "好消息"),
}
"""Say nothing themselves."""
ASSENTS: Mapping[str, tuple[str, ...]] = {
    "en": (
        "of course",
        "naturally",
        "by all means",
        "no problem",
        "no worries",
        "without (?:any )?(?:doubt|question)",
        "affirmative",
        "thats (?:right|correct|true)",
        "you bet",
        "(?:it|they|you|we|he|she|there|that|this|i) (?:is|are|does|do|can|may|will|has|have|was|were|did)$",
    ),
    "de": (
        "natürlich",
        "selbstverständlich",
        "klar",
        "na klar",
        "sicher(?:lich)?",
        "auf jeden fall",
        "kein problem",
        "freilich",
        "gewiss",
        "durchaus",
        "das geht$",
    ),
    "fr": (
        "bien sûr",
        "bien entendu",
        "évidemment",
        "naturellement",
        "tout à fait",
        "absolument",
        "certainement",
        "sans (?:aucun )?(?:doute|problème)",
        "pas de (?:problème|souci)",
        "effectivement",
        "volontiers",
    ),
    "es": (
        "por supuesto",
        "claro(?: que sí)?",
        "desde luego",
        "naturalmente",
        "sin (?:duda|problema)",
        "efectivamente",
        "en efecto",
        "así es",
        "cómo no",
        "no hay problema",
        "evidentemente",
    ),
    "ko": (
        "물론",
        "당연",
        "그럼요",
        "그렇습니다",
        "맞아요",
        "됩니다",
        "돼요",
        "가능합니다",
        "가능해요",
        "문제 없",
        "문제없",
    ),
    "ja": (
        "もちろん",
        "勿論",
        "当然",
        "大丈夫",
        "問題ありません",
        "問題ございません",
        "問題ない",
        "構いません",
        "かまいません",
        "差し支えありません",
        "その通り",
        "できます",
        "可能です",
        "いいです",
    ),
    "zh": (
        "当然",
        "當然",
        "没问题",
        "沒問題",
        "没错",
        "沒錯",
        "有的",
        "是的",
        "可以的",
        "没关系",
        "行$",
        "能$",
        "好的",
    ),
}
"""Say yes, unless a bare denial follows: of course not."""
DENIALS: Mapping[str, tuple[str, ...]] = {
    "en": (
        "not$",
        "not (?:at all|yet|currently|anymore|any more|any longer|in any way|really|so|possible)",
        "not at (?:the moment|present|this time)",
        "negative",
        "no longer$",
        "in no way",
        "by no means",
        "under no circumstances",
        "far from it",
        "never$",
        "none$",
        "(?:it|that|this) is not (?:so|the case)",
    ),
    "de": (
        "nicht$",
        "noch nicht",
        "nicht mehr$",
        "gar nicht",
        "überhaupt nicht",
        "keineswegs",
        "keinesfalls",
        "auf keinen fall",
        "in keiner weise",
        "unter keinen umständen",
        "kein(?:e[nrms]?)?$",
    ),
    "fr": (
        "pas (?:du tout|encore|vraiment)",
        "pas$",
        "(?:absolument|certainement) pas",
        "en aucun cas",
        "aucunement",
        "nullement",
        "hélas non",
    ),
    "es": (
        "en absoluto",
        "todavía no",
        "aún no",
        "de ninguna (?:manera|forma)",
        "de ningún modo",
        "para nada",
        "en ningún caso",
        "tampoco$",
    ),
    "ko": (
        "안 ?됩니다",
        "안 ?돼",
        "안 ?되",
        "불가",
        "아직(?: 안| 아니|$)",
        "전혀",
        "아뇨",
        "할 수 없",
        "없습니다",
        "없어요",
        "못 ?합니다",
    ),
    "ja": (
        "できません",
        "できない",
        "だめ",
        "ダメ",
        "駄目",
        "無理",
        "不可",
        "禁止",
        "お断り",
        "ご遠慮",
        "いけません",
        "まだです",
        "ありません",
        "ございません",
    ),
    "zh": (
        "不行",
        "不可以",
        "不能",
        "不允许",
        "不准",
        "禁止",
        "还没",
        "尚未",
        "没有$",
        "无法",
        "并不",
        "并非",
        "绝不",
        "不会",
    ),
}
"""Say no alone."""
_REGRET_PATTERN = _begins_with(REGRETS)
_REGRET = _REGRET_PATTERN
_INTRODUCTION = rf"(?:(?:{_REGRET_PATTERN}|{_begins_with(COURTESIES)}) ?){{1,3}}"
_ASSENT = _begins_with(ASSENTS)
_DENIAL = _begins_with(DENIALS)
_DENIAL_BEHIND = r" ?(?:que |dass )?(?:not|nicht|pas|non|no|nein|없|안 |아닙|아니|不|没)(?!\w{3})"
