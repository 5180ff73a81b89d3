"""What yes/no questions ask and its opposite, as patterns by language: open and closed, free and paid.

They are searched in text as `pytest_rageval.language.words.normalise` writes it. The more special pairs come first:
"Can I park for free?" asks whether it is free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pytest_rageval.language.lazy_patterns import compiled_pattern


@dataclass(frozen=True)
class Opposites:
    """A pair of patterns; a text that matches neither says nothing about the pair."""

    of_positive: str
    of_negative: str

    @cached_property
    def positive(self) -> re.Pattern[str]:
        return re.compile(self.of_positive)

    @cached_property
    def negative(self) -> re.Pattern[str]:
        return re.compile(self.of_negative)


def _pair(positive: tuple[str, str], negative: tuple[str, str]) -> Opposites:
    return Opposites(_words_or_parts(*positive), _words_or_parts(*negative))


def _words_or_parts(words: str, parts: str) -> str:
    """Return the pattern of words in scripts with spaces, and of parts of words in others."""
    return rf"\b(?:{words})\b|{parts}"


@lru_cache(maxsize=256)
def asks_for_exception(question: str) -> bool:
    """Check whether an answer may deny the opposite of what a question asks: when is it closed, what is excluded."""
    return compiled_pattern(_ASKS_FOR_EXCEPTION).search(question.lower()) is not None


OPPOSITES = (
    _pair(
        (
            r"cover(?:s|ed|age)?|insured|abgedeckt|versichert|gedeckt|mitversichert|couverte?s?|couvre\w*"
            r"|cubiert[oa]s?|cubre\w*",
            "보장|보상|補償|赔付|承保|保障",
        ),
        (
            r"exclu(?:ded?|des|sions?)|exempt\w*|ausgeschlossen|ausgenommen|exclue?s?|exclut|excluid[oa]s?|excluye\w*",
            "제외|対象外|除外|不赔|不保",
        ),
    ),
    _pair(
        (
            r"(?<!feel )free(?: of charge| of cost)?|frei(?:e[rnms]?)?|complimentary|gratis|kostenlos\w*"
            r"|kostenfrei\w*|umsonst|gebührenfrei\w*|unentgeltlich\w*|gratuit\w*",
            "무료|공짜|無料|免费|免費",
        ),
        (
            r"charge[ds]?|chargeable|fees?|pay|pays|paying|payable|paid|costs?|costing|kostenpflichtig\w*|gebühr\w*"
            r"|kostet|kosten|bezahl\w*|zahlen|zahlt|payante?s?|payer|paie\w*|coûte\w*|frais|pago|pagar|pag[au]\w*"
            r"|cuesta\w*|cobra\w*|de pago",
            "[€$£¥₩][0-9]|유료|요금이 있|요금을 내|비용이|돈을 내|지불|有料|料金がかか|料金が必要|收费|付费|付款|要钱",
        ),
    ),
    _pair(
        (
            r"includ(?:e|es|ed|ing)|part of|inbegriffen|inklusive|inkludiert|enthalten|enthält|inclus\w*|compris\w*"
            r"|incluid\w*|incluye\w*",
            "포함|含まれ|込み|包含|包括",
        ),
        (
            r"extra|separate|separately|additional\w*|exclud\w*|surcharge|supplement\w*|zusätzlich|aufpreis"
            r"|gesondert|extrakosten|en sus|supplément|aparte|adicional\w*|suplement\w*",
            "별도|추가 요금|別途|別料金|另付|另收|额外|另外|不含",
        ),
    ),
    _pair(
        (
            r"open|opens|opened|offen|geöffnet|öffnet|ouverte?s?|ouvre\w*|abiert[oa]s?|abre\w*",
            "영업|열려|엽니다|열어|문을 여|문을 연|営業|開い|開館|開店|开门|开放|营业",
        ),
        (
            r"closed|clos(?:e|es|ing)(?! at| until| [0-9])|shut|shuts|geschlossen|ruhetag|fermée?s?|ferme(?! à| [0-9])"
            r"|cerrad[oa]s?|cierra(?! a | [0-9])",
            "휴무|휴업|휴관|닫|쉽니|쉬는|쉬어|休業|休館|定休|お休み|休み|閉ま|閉店|休息|关门|关闭|停业|闭馆",
        ),
    ),
    _pair(
        (
            r"mandatory|compulsory|obligatory|obliged|required?|requires|must|ha(?:ve|s) to|needs?|needed|necessary"
            r"|pflicht|vorgeschrieben|verpflichtend|verpflichtet|erforderlich|nötig|notwendig|muss|müssen|brauch\w*"
            r"|benötig\w*|obligatoires?|nécessaires?|doi(?:t|s|vent)|devez|faut|besoin|obligatori[oa]s?|necesari[oa]s?"
            r"|necesit\w+|debe[ns]?|hay que|hace falta",
            "필수|의무|필요|해야|必須|必要|義務|必须|必需|强制|需要",
        ),
        (
            r"optional\w*|voluntary|recommended|unnecessary|freiwillig\w*|empfohlen|unnötig|überflüssig|freigestellt"
            r"|optionnel\w*|facultati\w+|recommand\w*|opcional\w*|voluntari\w*|recomend\w*",
            "선택|권장|자율|任意|不要|推奨|可选|自愿|不必|无需|不需要",
        ),
    ),
    _pair(
        (r"available|in stock|verfügbar|lieferbar|vorrätig|disponibles?", "재고|在庫あり|有货|有貨"),
        (
            r"unavailable|sold out|out of stock|ausverkauft|vergriffen|épuisée?s?|agotad[oa]s?",
            "품절|売り切れ|品切れ|在庫なし|售罄|缺货",
        ),
    ),
    _pair(
        (
            r"w[io]n|wins|winning|winner|winners|beats?|gewinnt|gewann|gewonnen|siegte|besiegte|gagne|gagné|vainqueur"
            r"|remporté|ganó|gana|ganado|venció",
            "이겼|우승|승리|勝った|勝ち|優勝|勝利|赢|获胜|夺冠",
        ),
        (
            r"lost|loses?|(?:was|were|been|got) (?:beaten|defeated)|verlor|verloren|unterlag|wurde besiegt"
            r"|perdu|perd|battue?s? par|perdió|perdido|derrotad[oa]s? por",
            "졌|패배|패했|負け|敗れ|敗北|输|落败|失利",
        ),
    ),
    _pair(
        (r"valid|gültig|valables?|válid[oa]s?", "유효|有効|有效"),
        (
            r"invalid|expired|abgelaufen|ungültig|périmée?s?|expirée?s?|caducad[oa]s?|inválid[oa]s?",
            "만료|期限切れ|过期|失效",
        ),
    ),
    _pair(
        (r"safe|sicher|ungefährlich|sûre?s?|segur[oa]s?", "안전|安全"),
        (r"unsafe|dangerous|gefährlich|dangereu\w*|peligros[oa]s?", "위험|危険|危险"),
    ),
    _pair(
        (
            r"allow\w*|permit\w*|may|can|could|possible|welcomes?|accepted|erlaubt|gestattet|zulässig|dürfen|darf"
            r"|können|kann|möglich|willkommen|autorisée?s?|permise?s?|admise?s?|peu(?:t|x|vent|vez)|possibles?"
            r"|permitid[oa]s?|permite\w*|puede\w*|admit\w*|posibles?",
            "허용|가능|수 있|환영|됩니다|可以|允许|可能|でき(?!ま?せん|ない)|許可|いただけます|歓迎",
        ),
        (
            r"forbid\w*|forbidden|prohibit\w*|ban|banned|impossible|disallow\w*|cannot|cant|verboten|untersagt"
            r"|unzulässig|unmöglich|interdite?s?|défendue?s?|prohib\w+|imposibles?",
            "금지|불가능|불가|수 없|안 됩|안 돼|안됩|되지 않"
            "|禁止|不可|不能|不得|不允许|不准|できません|できない|お断り",
        ),
    ),
)
ALLOWED = OPPOSITES[-1]
_ASKS_FOR_EXCEPTION = (
    r"\b(?:exclu\w*|except\w*|exempt\w*|ausgenommen|ausgeschlossen|ausnahme\w*|closed|forbidden|prohibited|banned"
    r"|unavailable|missing|lacks?|lost|lose[rs]?|verlor\w*|geschlossen|verboten|interdite?s?|fermée?s?|cerrad[oa]s?"
    r"|prohibid[oa]s?)\b|제외|예외|대상 ?외|対象外|例外|除外|금지|禁止"
)
