"""Whether a case has an answer, as people write it: flags, expected behaviour, categories, in several languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from pytest_rageval.cases.names import name_words
from pytest_rageval.io.expected import flag_of
from pytest_rageval.model import Json

Sign = Literal["answerable", "unanswerable", "behaviour", "kind"]
"""What a column says: a flag, its opposite, how the system should behave, or of which kind the question is."""

_CORPUS = r"(scope|corpus|domain|context|docs?|documents?|documentation|kb|knowledge( base)?|topic|knowledge)"
_NO = (
    r"(un|non|not |nicht |un )answer(able|ed)|(nicht ?|un)beantwortbar|impossible|answer not (found|available|present)|"
    rf"(out of|outside( of)?|not in|off)( the)? {_CORPUS}|oos|ood|"
    r"no (\w+ )?(answer|context)|without answer|lacks answer|"
    r"(should|must|expect(s|ed)?|requires?|needs?|to)( \w+)? "
    r"(refus(e|al|ed)|abstain|abstention|declined?|idk|reject(ed)?|rejection|not answer|not be answered)|"
    r"refus(e|al)?|abstain|abstention|abstentie|abstencion|idk|rejection|ablehnung|verweigerung|negative|"
    r"sin respuesta|sans reponse|senza risposta|sem resposta|ohne antwort|geen antwoord|"
    r"(non|no|nao|niet|in) ?(repondable|respondible|rispondibile|respondivel|beantwoordbaar)|"
    r"hors (sujet|perimetre|du corpus|corpus|contexte)|fuera de(l)? (alcance|contexto|dominio|corpus)|"
    r"fuori (ambito|contesto|corpus)|fora do (escopo|contexto|corpus)|nicht (im|in) \w+( \w+)?"
)
_YES = (
    r"answer(able|ability)|(be)?antwortbar(keit)?|answer (exists|available|present|found|in \w+)|"
    rf"(in|within)( the)? {_CORPUS}|context( is)? sufficient|covered( by \w+)?|answered (by|in) \w+|"
    r"(has|have|contains|includes) (\w+ )?answer|context (has|contains) answer|"
    r"(should|must|can|could|to) (be )?answer(ed)?|supported|repondable|(se )?puede responder|respondible|"
    r"(tiene|hay) respuesta|rispondibile|ha risposta|respondivel|tem resposta|beantwoordbaar|heeft antwoord|"
    r"a( une)? reponse|reponse disponible|peut (on )?repondre|"
    r"antwort (vorhanden|moglich|existiert)|hat antwort|(kann )?beantwortet werden|"
    r"(im|in den|in der) (korpus|kontext|dokumente?n?|doku|dokumentation|unterlagen|wissensbasis)"
)
_BEHAVIOUR = (
    r"(expected|desired|correct|gold|target|required|reference) "
    r"(behaviou?rs?|actions?|outcome|decision|verdict|mode|policy|status|resolution)|behaviou?rs?|agent action|"
    r"(erwartetes )?verhalten"
)
_KIND = (
    r"((expected|gold|target|question|query|case|test|item|sample|answer|response|task|example|eval|prompt)s? ){0,2}"
    r"(type|category|kind|class|categories|types|label|scenario|bucket|group|tag|tags|intent|route|routing)|"
    r"kategorie|frage ?typ|(frage ?)?art|typ|categorie|tipo|categoria|tipo de pregunta|type de question"
)
_NAMES: Mapping[Sign, re.Pattern[str]] = {
    "unanswerable": re.compile(_NO),
    "answerable": re.compile(_YES),
    "behaviour": re.compile(_BEHAVIOUR),
    "kind": re.compile(_KIND),
}
_UNSPACED: Mapping[Sign, str] = {
    "unanswerable": "답변불가 답변불가능 무응답 回答不可 回答不能 不可回答 无法回答 無法回答 无答案 "
    "無答案 拒答 超出范围 範囲外",
    "answerable": "답변가능 응답가능 답변여부 답변존재 정답존재 문서내존재 범위내 回答できる 範囲内 回答可能 回答可否 "
    "可否回答 可回答 能回答 能否回答 可答 有答案 有无答案",
    "behaviour": "기대동작 预期行为 期待動作 期望行为",
    "kind": "유형 분류 카테고리 종류 タイプ 種類 種別 カテゴリ 分類 分类 类型 類型 类别 類別",
}
"""Names in scripts without spaces between words."""
_AROUND = re.compile(
    r"^((is|are|ist|es|est|e|expected|expect|gold|golden|ground truth|should be|question|query)\b ?)+|"
    r"( (flag|case|test|question|query|expected|bool|label))+$"
)
"""Words around a flag that say nothing of it."""
_FILLERS_BY_LANGUAGE = (
    "from in by with using based on via of the a an this that these is are it be bot system assistant chatbot model "
    "llm doc docs document documents documentation kb knowledge base corpus context contexts source sources manual "
    "handbook wiki faq website content provided given question query "
    "aus im in mit anhand durch uber der die das den dem des sich lasst ist wird frage doku dokument dokumente "
    "dokumenten dokumentation handbuch unterlagen wissensbasis kontext quelle quellen text "
    "avec par dans depuis le la les l une un est il elle on question documentation corpus contexte base "
    "con desde en el los las los documentos documento documentacion contexto pregunta es esta "
    "dai dal dalla nei nel con i gli documenti documento domanda contesto "
    "com nos no pelos pelo os as documentos pergunta "
    "met uit door de het vraag documenten"
)
_FILLERS = frozenset(_FILLERS_BY_LANGUAGE.split()) - {"no"}
"""Words around a flag in several languages: articles, prepositions, the documents, the system."""
_ABOUT_ANSWERS = re.compile(
    r"answer(able|ed)|should answer|beantwort|repond|respond|rispond|risposta|respuesta|resposta"
)
_FLAG_SIGNS: tuple[Sign, ...] = ("unanswerable", "answerable")
_NEGATIONS = ("不", "無", "无", "非", "否", "未", "안", "못")
_ENDINGS = ("여부", "유무", "是否", "か")
_IN_BRACKETS = re.compile(r"[(（\[][^()（）\[\]]*[)）\]]")
_LONGEST_LABEL = 80
"""Characters of a name, a flag or a category; longer ones are texts, and no pattern runs over them."""


@lru_cache(maxsize=4096)
def sign_of(name: str) -> Sign | None:
    """Return what a column of this name says about its questions' having an answer; None if nothing."""
    words = name_words(_IN_BRACKETS.sub("", name)) or name_words(name)
    if len(words) > _LONGEST_LABEL:
        return None
    for form in dict.fromkeys((words, _AROUND.sub("", words).strip())):
        for sign, pattern in _NAMES.items():
            if pattern.fullmatch(form):
                return sign
    bare = _without_fillers(words)
    if _ABOUT_ANSWERS.search(bare):
        for flag in _FLAG_SIGNS:
            if _NAMES[flag].fullmatch(bare):
                return flag
    return _sign_of_unspaced(words.replace(" ", ""))


def _without_fillers(words: str) -> str:
    """Return the words of a name without those that say from what, by whom and of what."""
    return " ".join(word for word in words.split() if word not in _FILLERS)


def _sign_of_unspaced(name: str) -> Sign | None:
    """Return what a Japanese, Chinese or Korean name says: it has no spaces that would divide words."""
    for ending in _ENDINGS:
        name = name.removesuffix(ending).removeprefix(ending)
    for sign, names in _UNSPACED.items():
        if name in names.split():
            return sign
    # "Can be answered from the documents": the words before it say from what.
    for flag in _FLAG_SIGNS:
        for known in _UNSPACED[flag].split():
            before = name.removesuffix(known)
            if before != name and not before.endswith(_NEGATIONS):
                return flag
    return None


_YES_WORDS = (
    "はい あり 有 可 可能 是 能 对 對 네 가능 있음 sim sì si j answerable beantwortbar possible supported "
    "○ 〇 ◯ o ✓ ✔ ✅ ☑ √"
)
_NO_WORDS = (
    "いいえ なし 無し 無 无 不可 不可能 否 不能 不是 错 錯 불가 불가능 없음 não nao nee unanswerable unsupported "
    "× x ✗ ✘ ❌ ☐"
)
_FLAGS = {**dict.fromkeys(_YES_WORDS.split(), True), **dict.fromkeys(_NO_WORDS.split(), False)}
_REFUSES = re.compile(
    r"(should |must |to )?(refus(e|es|al|ed)|abstain(s|ed)?|abstention|declin(e|es|ed)|reject(s|ed|ion)?|idk|"
    r"i do not know|i dont know|dont know|unknown|no answer|not answer|do not answer|dont answer|"
    r"say (i )?(dont|do not) know|deny|denied|verweigern|ablehnen|refuser|rechazar|rifiutare|recusar)( \w+){0,3}"
)
_ANSWERS = re.compile(
    r"(should |must |to )?(\w+ )?(answer(s|ed|able)?|respond(s)?|reply|comply|complies|help|grounded answer|cite|allow|"
    r"antworten|repondre|responder|rispondere)( (with|and|using|from|in|the|a|only|directly|fully|citations?|sources?|"
    r"cite|context|documents?|correctly|normally|question|evidence|grounded))*"
)
_IS_KIND = re.compile(
    r"(\w+ )*(unanswer(able|ed)|nonanswerable|not answerable|non answerable|unbeantwortbar|nicht beantwortbar)( \w+)*|"
    r"(is )?impossible|noanswer|(no|missing|lacks|without|not|sin|sans|senza|sem|ohne) "
    r"(answer|info|information|evidence|respuesta|reponse|risposta|resposta|antwort)( \w+)?|"
    r"(out|outside)( of)?( the)? (scope|domain|corpus|context|kb|knowledge base|knowledge|docs?|documents?)|oos|ood|"
    r"(not|not found) in( the)? (corpus|context|docs?|documents?|kb|scope|knowledge base)|off topic|"
    r"insufficient (context|information|evidence|info)|(should |must |expected )?(refus(e|al)|abstain|abstention)|"
    r"(negative )?rejection|nicht im korpus|hors sujet|hors (du )?corpus|fuera de alcance"
)
_KINDS_UNSPACED = (
    "답변불가 답변불가능 범위밖 범위외 정답없음 답변없음 근거없음 回答不可 回答不能 範囲外 対象外 "
    "不可回答 无法回答 無法回答 无答案 無答案 超出范围 超出範圍 拒答"
)
_IS_KIND_UNSPACED = frozenset(_KINDS_UNSPACED.split())
_RAGAS_SAYS = re.compile(r"the answer to (the )?given question is not present in (the )?context\W*", re.IGNORECASE)


@lru_cache(maxsize=1024)
def is_unanswerable_kind(label: str) -> bool:
    """Return True if a category says that the corpus has no answer: such as out_of_scope."""
    if len(label) > _LONGEST_LABEL:
        return False
    words = name_words(label)
    return bool(_IS_KIND.fullmatch(words)) or words.replace(" ", "") in _IS_KIND_UNSPACED


def is_negative(label: Json) -> bool:
    """Return True for categories that mean an unanswerable question only where no place of an answer is named."""
    labels = label if isinstance(label, list) else [label]
    return any(isinstance(each, str) and each.strip().lower() in ("negative", "negatives") for each in labels)


def says_not_present(answer: Json) -> bool:
    """Return True for the sentence that Ragas writes as the reference of a question without an answer."""
    return isinstance(answer, str) and len(answer) < 200 and bool(_RAGAS_SAYS.fullmatch(answer.strip()))


def answerable_by(sign: Sign, value: Json) -> bool | None:
    """Return whether a value of a column says that there is an answer; None if it cannot be read.

    A category that does not say that there is none says nothing: it cannot be read, either.
    """
    if sign == "kind":
        labels = value if isinstance(value, list) else [value]
        says_no = any(isinstance(label, str) and is_unanswerable_kind(label) for label in labels)
        return False if says_no else None
    if sign == "behaviour":
        return behaviour_of(value)
    flag = truth_of(value)
    if flag is None:
        return None
    return flag if sign == "answerable" else not flag


def truth_of(value: Json) -> bool | None:
    """Return a flag of a table or a document as true or false; None for all else."""
    if isinstance(value, bool):
        return value
    # Of numbers only 0 and 1 are flags: a column may hold scores or counts.
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    if not isinstance(value, str) or len(value) > _LONGEST_LABEL:
        return None
    flag = flag_of(value)
    return _FLAGS.get(value.strip().casefold()) if flag is None else flag


def behaviour_of(value: Json) -> bool | None:
    """Return True for `answer` and the like, False for `refuse` and the like, None for all else."""
    if not isinstance(value, str) or len(value) > _LONGEST_LABEL:
        return None
    words = name_words(value)
    if _REFUSES.fullmatch(words) or is_unanswerable_kind(value):
        return False
    return True if _ANSWERS.fullmatch(words) else None
