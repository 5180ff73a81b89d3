"""Right answers that are none: sentences that decline to answer, marks for a blank cell, replies to a greeting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_rageval.abstention.detector import log_odds
from pytest_rageval.cases.answerability import is_unanswerable_kind
from pytest_rageval.cases.names import name_words
from pytest_rageval.model import Json

_BLANK_MARKS = (
    "none n.a. - -- --- – — ― . .. ... … / tbd tba todo ? ?? ??? keine keiner nil nichts aucun aucune ninguno "
    "ninguna nessuno nessuna nenhum geen 없음 해당없음 なし 無し 無 无 暂无 待定"
)
_BLANK = frozenset(_BLANK_MARKS.split())
"""What people write into a cell of right answers that holds none, in lower case."""
_SURELY = 5.5
"""Log odds of the detector from which a right answer declines. "No information is stored." has 4.5, "Say 'I don't
know' and escalate." 5.4; of 24 refusals of people, those that name what they lack have more."""
_LONGEST = 400
"""Characters of a right answer that declines; longer ones say something, too."""
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
_TALK = frozenset(
    [
        "hi", "hello", "hey", "hi there", "hello there", "hey there", "good morning", "good afternoon", "good evening",
        "thanks", "thank you", "thank you very much", "thanks a lot", "many thanks", "ok", "okay", "ok thanks", "great",
        "great thanks", "cool", "perfect", "bye", "goodbye", "good bye", "see you", "how are you",
        "hallo", "guten tag", "guten morgen", "guten abend", "moin", "servus", "gruezi", "danke", "vielen dank",
        "danke schon", "tschuss", "auf wiedersehen", "bonjour", "salut", "bonsoir", "merci", "merci beaucoup",
        "au revoir", "hola", "buenos dias", "buenas tardes", "gracias", "muchas gracias", "adios", "ciao", "buongiorno",
        "grazie", "arrivederci", "ola", "bom dia", "obrigado", "obrigada", "hoi", "dank je", "bedankt", "안녕하세요",
        "안녕", "감사합니다", "고맙습니다", "こんにちは", "ありがとう", "ありがとうございます", "你好", "您好", "谢谢",
        "謝謝", "再见",
    ]
)  # fmt: skip


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
"""What a conversion notes of such rows."""


def is_blank_gold(text: str) -> bool:
    """Return True for what people write where there is no right answer: `-`, `none`, `tbd`."""
    return len(text) < 20 and text.strip().casefold() in _BLANK


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
    return bool(len(words) <= 160 and _FORMS.fullmatch(words)) or log_odds(text, question) >= _SURELY


def golds_decline(golds: Sequence[Json], question: Json) -> bool:
    """Return True if there are right answers and all of them say that there is none."""
    asked = question if isinstance(question, str) else ""
    texts = [gold for gold in golds if isinstance(gold, str)]
    return bool(texts) and len(texts) == len(golds) and all(declines_as_gold(text, asked) for text in texts)


def written_golds(case: Mapping[str, Json]) -> list[Json]:
    """Return the right answers of a record."""
    several = case.get("expected_answers")
    golds = list(several) if isinstance(several, list) else []
    return golds if case.get("reference") is None else [*golds, case["reference"]]


def is_small_talk(question: Json) -> bool:
    """Return True for a turn that asks nothing: a greeting, thanks, a goodbye."""
    return isinstance(question, str) and len(question) <= 40 and name_words(question) in _TALK
