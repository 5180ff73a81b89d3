"""Pairs of words of which a gold has one and an answer the other: rose and fell, before and after, from A to B.

The pairs are data by language, as patterns in the form of `pytest_rageval.language.words.normalise`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_rageval.language.lazy_patterns import compiled_pattern


def says_the_opposite(gold: str, answer: str) -> bool:
    """Check whether an answer has only the other one of a pair of which a gold has one; both are normalised."""
    for place, is_first in _sides(gold):
        wanted, other = _PAIRS[place] if is_first else reversed(_PAIRS[place])
        if compiled_pattern(other).search(answer) is not None and compiled_pattern(wanted).search(answer) is None:
            return True
    return _is_reversed(gold, answer)


@lru_cache(maxsize=4096)
def _sides(gold: str) -> tuple[tuple[int, bool], ...]:
    """Return the place of each pair of which a gold has one alone, and whether it is the first one."""
    sides: list[tuple[int, bool]] = []
    # Most golds have no word that begins like one of them, and no pattern need look.
    if gold.isascii() and _BEGINNINGS.isdisjoint(word[:3] for word in gold.split()):
        return ()
    for place, (first, second) in enumerate(_PAIRS):
        has_first = compiled_pattern(first).search(gold) is not None
        has_second = compiled_pattern(second).search(gold) is not None
        if has_first is not has_second:
            sides.append((place, has_first))
    return tuple(sides)


def _is_reversed(gold: str, answer: str) -> bool:
    """Check whether a gold goes from one place to another, and an answer the other way only."""
    if not _STARTS_OF_ROUTES.intersection(gold.split()):
        return False
    route = compiled_pattern(_ROUTE).search(gold)
    if route is None:
        return False
    begin, end = route["begin"], route["end"]
    if begin not in answer or end not in answer:
        return False
    return _goes(answer, end, begin) and not _goes(answer, begin, end)


def _goes(answer: str, begin: str, end: str) -> bool:
    way = rf"\b(?:from|von|vom|de|desde) (?:\w+ )?{re.escape(begin)}\b.*\b{re.escape(end)}\b"
    return re.search(way, answer) is not None


def _pair(first: tuple[str, str], second: tuple[str, str]) -> tuple[str, str]:
    return _words_or_parts(*first), _words_or_parts(*second)


def _words_or_parts(words: str, parts: str) -> str:
    """Return the pattern of words in scripts with spaces, and of parts of words in others."""
    return rf"\b(?:{words})\b|{parts}"


_PAIRS = (
    _pair(
        (
            r"rose|rises?|risen|rising|increas\w+|grew|grows?|grown|growth|stieg\w*|steig\w*|gestiegen"
            r"|wuchs\w*|gewachsen|erhöh\w*|zugenommen|augment\w*|haussé|progressé|subi[óo]|aument\w*|creci\w*|incrementó",
            "증가|상승|올랐|늘었|늘어|増加|上昇|増え|上が|增长|增加|上升|上涨|提高",
        ),
        (
            r"fell|falls?|fallen|falling|decreas\w+|dropp\w+|drops?|declin\w+|shrank|sank\w*|sink\w*|gesunken"
            r"|fiel\w*|gefallen|verringert\w*|abgenommen|baiss\w*|diminu\w*|reculé|chuté|baj[óo]|disminuy\w*|cay[óo]"
            r"|descendió|redujo",
            "감소|하락|내렸|줄었|줄어|減少|下落|減っ|下が|下降|减少|下跌|降低",
        ),
    ),
    _pair(
        (
            r"before|prior to|vor|avant|antes",
            r"(?<=[0-9일월년]) ?이?전(?:에|까지|$)|以前|[日月年天]前|之前",
        ),
        (
            r"after|nach|après|después|tras",
            r"(?<=[0-9일월년]) ?(?:이후|후)|以降|以後|[日月年天]後|之后|以后",
        ),
    ),
    _pair(
        (
            r"within|innerhalb|binnen|en un plazo|dans un délai|sous|dentro",
            "이내|以内|≤",
        ),
        (
            r"after|later than|nach|après|después|no earlier than|not before|frühestens",
            "이후|経過後|以降|之后|以后|以後",
        ),
    ),
    _pair(
        (r"minimum|at least|mindestens|minimal|mínimo", "최소|最低|最少|至少|≥"),
        (r"maximum|at most|höchstens|maximal|máximo", "최대|最大|最高|最多|≤"),
    ),
    _pair(
        (r"left|links|linke[rnms]?|gauche|izquierda", "왼쪽|좌측|左"),
        (r"right|rechts|rechte[rnms]?|droite|derecha", "오른쪽|우측|右"),
    ),
    _pair(
        (r"open|offen|geöffnet|ouverte?s?|abiert[oa]s?", "열려|開い|营业"),
        (r"closed|geschlossen|fermée?s?|cerrad[oa]s?", "닫혀|닫힌|휴무|閉ま|关闭"),
    ),
    _pair((r"heavier|schwerer|plus lourde?", "더 무거|重い"), (r"lighter|leichter|plus léger", "더 가벼|軽い")),
    _pair(
        (r"(?:north|south)? ?east(?:ern)?|osten|östlich", "동쪽|東|东"),
        (r"(?:north|south)? ?west(?:ern)?|westen|westlich", "서쪽|西"),
    ),
    _pair((r"upstairs|oben|arriba", "위층|上の階|楼上"), (r"downstairs|unten|abajo", "아래층|下の階|楼下")),
    _pair((r"earlier|früher|plus tôt", "더 일찍"), (r"later|später|plus tard", "더 늦게")),
)
_BEGINNINGS = frozenset(
    beginning for pair in _PAIRS for pattern in pair for beginning in re.findall(r"(?<![^|:(\s?])([a-z]{2,3})", pattern)
)
_STARTS_OF_ROUTES = frozenset(("from", "von", "vom", "de", "desde"))
_ROUTE = r"\b(?:from|von|vom|de|desde) (?P<begin>[^\W\d_]+) (?:to|nach|à|a|bis|hasta) (?P<end>[^\W\d_]+)\b"
