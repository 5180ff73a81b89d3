"""Names of numbers, powers of ten and months by language, as data; in lower case and in NFKC, as in folded text."""

from __future__ import annotations

from collections.abc import Mapping


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start=first)}


def _tens(tens: str, ones: str, *forms: str) -> dict[str, int]:
    """Return the names of 20, 21 and so on; `forms` say how a ten and a one are written together."""
    numbers: dict[str, int] = {}
    for ten, name in enumerate(tens.split(), start=2):
        numbers[name] = 10 * ten
        for one, name_of_one in enumerate(ones.split(), start=1):
            numbers.update({form.format(ten=name, one=name_of_one): 10 * ten + one for form in forms})
    return numbers


def _han_numbers() -> dict[str, int]:
    ones = _numbered("一 二 三 四 五 六 七 八 九", first=1)
    numbers = {"两": 2, "兩": 2, "十": 10, **ones}
    for tens in range(1, 10):
        lead = "" if tens == 1 else "一二三四五六七八九"[tens - 1]
        numbers[f"{lead}十"] = 10 * tens
        numbers.update({f"{lead}十{name}": 10 * tens + one for name, one in ones.items()})
    return numbers


NUMBERS: Mapping[str, Mapping[str, int]] = {
    "en": {
        **_numbered(
            "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen",
            first=2,
        ),
        **_tens(
            "twenty thirty forty fifty sixty seventy eighty ninety",
            "one two three four five six seven eight nine",
            "{ten}-{one}",
            "{ten} {one}",
        ),
    },
    "de": {
        **_numbered("zwei drei vier fünf sechs sieben acht neun zehn", first=2),
        **_numbered("zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn", first=12),
        **_tens(
            "zwanzig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig",
            "ein zwei drei vier fünf sechs sieben acht neun",
            "{one}und{ten}",
        ),
    },
    "fr": {
        **_numbered("deux trois quatre cinq", first=2),
        "huit": 8,
        **_numbered("dix onze douze treize quatorze quinze seize", first=10),
        **_tens(
            "vingt trente quarante cinquante soixante",
            "un deux trois quatre cinq six sept huit neuf",
            "{ten}-{one}",
            "{ten} et {one}",
        ),
    },
    "es": {
        **_numbered("tres cuatro cinco seis siete ocho nueve diez", first=3),
        **_numbered("doce trece catorce quince dieciséis diecisiete dieciocho diecinueve", first=12),
        **_numbered(
            "veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve",
            first=21,
        ),
        **_tens(
            "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
            "uno dos tres cuatro cinco seis siete ocho nueve",
            "{ten} y {one}",
        ),
    },
}
"""Words that are numbers wherever they stand, below 100."""

COUNTING_NUMBERS: Mapping[str, Mapping[str, int]] = {
    "en": {"one": 1},
    "de": {"ein": 1, "eine": 1, "einen": 1, "einem": 1, "einer": 1, "elf": 11},
    "fr": {"un": 1, "une": 1, "sept": 7, "neuf": 9},
    "es": {"un": 1, "una": 1, "dos": 2, "once": 11},
}
"""Words that mean something else too: numbers only before the name of a unit or currency."""

ORDINALS: Mapping[str, Mapping[str, int]] = {
    "en": {
        "third": 3,
        "fourth": 4,
        "fifth": 5,
        "sixth": 6,
        "seventh": 7,
        "eighth": 8,
        "ninth": 9,
        "tenth": 10,
        "eleventh": 11,
        "twelfth": 12,
    },
}

KOREAN_COUNTERS = tuple(
    _words(
        """
    시간 시 개월 개 명 달 살 번 대 마리 장 권 잔 병 가지 곳 배 사람 주 해 분 건 채 벌 쌍 쪽 단계 편 년 주일
    층 퍼센트
    """
    )
)
KOREAN_NUMBERS = {
    "한": 1,
    "두": 2,
    "세": 3,
    "네": 4,
    "다섯": 5,
    "여섯": 6,
    "일곱": 7,
    "여덟": 8,
    "아홉": 9,
    "열": 10,
    "열한": 11,
    "열두": 12,
    "일": 1,
    "이": 2,
    "삼": 3,
    "사": 4,
    "오": 5,
    "육": 6,
    "칠": 7,
    "팔": 8,
    "구": 9,
    "십": 10,
    "십일": 11,
    "십이": 12,
}
HAN_NUMBERS = _han_numbers()
HAN_COUNTERS = tuple(
    _words(
        """
    月 年 日 天 時 时 点 點 分 秒 週 周 星期 小时 小時 人 名 回 次 度 つ 倍 元 円 万 億 亿 米 公里 杯 本 冊
    枚 台 只 条 件 歳 岁 階 层 项 種 种 位 歩 步 か ヶ ケ カ 箇 个 個
    """
    )
)

MONTHS: Mapping[str, str] = {
    "en": (
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|"
        "october oct|november nov|december dec"
    ),
    "de": "januar jänner|februar|märz|april|mai|juni|juli|august|september|oktober okt|november|dezember dez",
    "fr": (
        "janvier janv|février févr fevrier|mars|avril avr|mai|juin|juillet juil|août aout|septembre|octobre|novembre|"
        "décembre decembre déc"
    ),
    "es": "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre setiembre|octubre|noviembre|diciembre",
}
"""The names of the twelve months in their order, each followed by its other forms."""

SCALES: Mapping[str, Mapping[str, int]] = {
    "en": {
        "thousand": 3,
        "million": 6,
        "millions": 6,
        "mn": 6,
        "mln": 6,
        "billion": 9,
        "billions": 9,
        "bn": 9,
        "trillion": 12,
    },
    "de": {"tausend": 3, "millionen": 6, "mio": 6, "milliarde": 9, "milliarden": 9, "mrd": 9, "billionen": 12},
    "fr": {"mille": 3, "milliard": 9, "milliards": 9},
    "es": {"mil": 3, "millón": 6, "millones": 6},
    "ko": {"천": 3, "만": 4, "십만": 5, "백만": 6, "천만": 7, "억": 8, "십억": 9, "백억": 10, "천억": 11, "조": 12},
    "zh, ja": {
        "千": 3,
        "万": 4,
        "萬": 4,
        "十万": 5,
        "百万": 6,
        "千万": 7,
        "亿": 8,
        "億": 8,
        "十億": 9,
        "十亿": 9,
        "百億": 10,
        "百亿": 10,
        "千億": 11,
        "千亿": 11,
        "兆": 12,
    },
}
"""Powers of ten. Spanish "mil millones" is read part by part."""
