"""Right answers that are none: sentences that decline to answer, and marks for a blank cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_rageval.abstention.detector import log_odds
from pytest_rageval.cases.answerability import is_unanswerable_kind
from pytest_rageval.cases.names import name_words
from pytest_rageval.model import Json

GOLD_KEYS = frozenset(
    [
        "reference",
        "expected_answers",
        "expected_key_facts",
        "gold_supports",
        "required_support_groups",
        "recency_conflict_rule",
        "relevant_ids",
        "gold",
    ]
)
"""The keys of a record that say what is right."""
DECLINING_GOLD = (
    "right answer that only says that there is none: read as a question without an answer; --map answerable= keeps it"
)
"""The note of a conversion on such rows."""
_NONE_WORDS = (
    "none keine keiner keines kein nil nichts niemand aucun aucune ninguno ninguna nessuno nessuna nenhum nenhuma geen "
    "niemand 없음 なし 無し 無 无"
)
_NONE = frozenset(_NONE_WORDS.split())
"""Words that answer a question for a number or for one of several, and else say that a cell holds nothing."""
_BLANK_MARKS = "n.a. - -- --- – — ― . .. ... … / tbd tba todo ? ?? ??? 해당없음 暂无 待定"
_BLANK = _NONE | frozenset(_BLANK_MARKS.split())
"""What people write into a cell of right answers that holds none, in lower case."""
_ASKS_FOR_ONE = re.compile(
    r"\b(how (many|much)|which|who|whom|whose|welche[mnrs]?|wer|wen|wem|wie ?viele?|quel(le)?s?|qui|combien|"
    r"cu[aá]l(es)?|qui[eé]n(es)?|cu[aá]nt[oa]s?|quale|quali|quant[oaie]|chi|qual|quais|quem|welke|hoeveel)\b|몇|누구|어느|어떤|"
    r"いくつ|何|誰|どの|どれ|多少|几|幾|谁|哪",
    re.IGNORECASE,
)
_FEWEST_WORDS = 5
"""Words from which the detector decides: "Me, not you." sounds to it like a refusal of "Who?"."""
_SURELY = 5.5
"""Log odds of the detector from which a right answer declines. "No information is stored." has 4.5, "Say 'I don't
know' and escalate." 5.4; of 24 refusals of people, those that name what they lack have more."""
_LONGEST = 400
"""Characters of a right answer that declines; longer ones say something, too."""
_LONGEST_FORM = 160
"""Characters of a text that is compared with the usual forms: their patterns take long over long texts."""
_SOURCE = (
    r"(the |this |these |any |provided |given |available |supplied |our ){0,3}"
    r"(documents?|documentation|docs?|contexts?|passages?|texts?|sources?|corpus|knowledge base|kb|articles?|"
    r"materials?|excerpts?|files?|data|manual)"
)
_SYSTEM = r"(the |our )?(bot|chatbot|assistant|system|model|llm|agent|it|answer)"
_NOT = r"(do not|dont|does not|doesnt|did not|didnt|cannot|cant|could not|couldnt)"
_REFUSE = rf"(refuse|abstain|decline|reject|not answer|say (that )?(it |he |she |i )?{_NOT} \w+)"
_STATES = r"(mention|contain|say|cover|include|specify|state|provide|answer|describe|discuss|tell|address|give)"
_STATED = (
    r"(mentioned|specified|stated|answered|described|documented|covered|contained|included|given|provided|available|"
    r"present|found|answerable)"
)
_THERE = r"(available|found|given|provided|possible|exists|expected|known|there|present)"
_ENGLISH = (
    rf"(i |we |it )?{_NOT} (know|answer|find)( (this|that|it|(the|an) (question|answer)))?"
    rf"( (from|in|based on|with|using) {_SOURCE})?",
    rf"(should|must) {_REFUSE}( to answer)?( \w+){{0,3}}",
    rf"{_SYSTEM} (should|must|is expected to) {_REFUSE}( \w+){{0,6}}",
    r"(i am |im )?sorry (but )?(i |we )?(cannot|cant|am unable to|am not able to) (help|answer|assist)( \w+){0,6}",
    r"(expected )?(refus(e|al|ed)|abstain|abstention|idk|no response|declines?( to answer)?)",
    rf"((the )?(answer|information|question) |it |this )?(is |was |are )?not ({_STATED} )?(in|by|from) {_SOURCE}",
    r"not (mentioned|specified|stated|answerable|documented)",
    rf"no (answer|information|info|data|evidence|mention|such information)( (is |was )?{_THERE})?"
    rf"( (about|on|regarding|of) (this|that|it))?( (in|from) {_SOURCE})?( should refuse| expected)?",
    rf"(the question |this |it )?(cannot|can not|cant) be (answered|found|determined)"
    rf"( (from|with|using|based on|by) {_SOURCE})?",
    rf"{_SOURCE} {_NOT} {_STATES}( \w+){{0,8}}",
)
_GERMAN = (
    r"(die frage ist |das ist )?(nicht|un) ?beantwortbar",
    r"keine (antwort|information(en)?|angaben?)( (vorhanden|moglich|verfugbar|gefunden|enthalten))?",
    r"(steht )?nicht (in|im) (den |der |dem )?(dokument\w*|doku|kontext|unterlagen|text|quellen?)"
    r"( enthalten| vorhanden)?",
    r"weiss ich nicht|ich weiss (es |das )?nicht",
)
_ROMANCE = (
    r"(sans|pas de|aucune) (reponse|information)( disponible)?|je ne sais pas|impossible de repondre",
    r"(sin|no hay) (respuesta|informacion)( disponible)?|no (lo )?(se|sabe)",
    r"(senza|nessuna) (risposta|informazione)|non (lo )?so|(sem|nenhuma) (resposta|informacao)|nao sei",
    r"geen (antwoord|informatie)( beschikbaar)?",
)
_FORMS = re.compile("|".join([*_ENGLISH, *_GERMAN, *_ROMANCE]))
"""Sentences without an answer, as the words of `name_words`."""
_UNSPACED_FORMS = (
    "답변불가 답변할수없음 답변할수없습니다 알수없음 모름 정보없음 문서에없음 자료없음 回答不可 回答不能 "
    "回答できません わかりません 分かりません 情報なし 記載なし 无法回答 無法回答 不知道 没有答案 沒有答案 未提及 "
    "文档中未提及 没有相关信息"
)
_UNSPACED = frozenset(_UNSPACED_FORMS.split())
_ASKS_ABOUT_SOURCE = re.compile(rf"\b{_SOURCE}\b", re.IGNORECASE)


def is_blank_gold(text: str) -> bool:
    """Return True for a mark of a missing right answer: `-`, `none`, `tbd`."""
    return len(text) < 20 and text.strip().casefold() in _BLANK


def is_none_word(text: str) -> bool:
    """Return True for a word such as `none`, which may be an answer or say that there is none."""
    return len(text) < 20 and text.strip().casefold() in _NONE


def asks_for_one(question: Json) -> bool:
    """Return True for a question for a number or for one of several, to which "None" is an answer."""
    return isinstance(question, str) and bool(_ASKS_FOR_ONE.search(question[:_LONGEST]))


def declines_as_gold(text: str, question: str = "") -> bool:
    """Return True for a right answer that says that there is none, in one of the usual forms or beyond doubt.

    A question about the documents themselves may have such a sentence as its right answer.
    """
    if len(text) > _LONGEST or not text.strip():
        return False
    words = name_words(text)
    if is_unanswerable_kind(text) or words.replace(" ", "") in _UNSPACED:
        return True
    if _ASKS_ABOUT_SOURCE.search(question[:_LONGEST]):
        return False
    if len(words) <= _LONGEST_FORM and _FORMS.fullmatch(words):
        return True
    if text.isascii() and len(words.split()) < _FEWEST_WORDS:
        return False
    return log_odds(text, question) >= _SURELY


def golds_decline(golds: Sequence[Json], question: Json) -> bool:
    """Return True if there are right answers and all of them say that there is none."""
    asked = question if isinstance(question, str) else ""
    for gold in golds:
        if not isinstance(gold, str) or not declines_as_gold(gold, asked):
            return False
    return bool(golds)


def written_golds(case: Mapping[str, Json]) -> list[Json]:
    """Return the right answers of a record."""
    several = case.get("expected_answers")
    golds = list(several) if isinstance(several, list) else []
    return golds if case.get("reference") is None else [*golds, case["reference"]]


def without_none_words(case: dict[str, Json]) -> dict[str, Json]:
    """Return a record without right answers such as "None" unless its question asks for one of several."""
    golds = written_golds(case)
    known = [gold for gold in golds if not (isinstance(gold, str) and is_none_word(gold))]
    if len(known) == len(golds) or asks_for_one(case.get("question")):
        return case
    others = {name: value for name, value in case.items() if name not in ("reference", "expected_answers")}
    if len(known) > 1:
        others["expected_answers"] = known
    elif known:
        others["reference"] = known[0]
    return others
