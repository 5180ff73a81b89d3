"""The meaning of the names that other tools and people give to fields and columns, in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pytest_rageval.model.case_fields import DESCRIPTIVE_FIELDS, DESCRIPTIVE_NAMES, PROMINENT_NAMES

QUESTION: Final = "question"
ANSWER: Final = "gold.answer"
CONTEXTS: Final = "contexts"
PLACES: Final = "gold.paths"
HEADINGS: Final = "gold.headings"
IDS: Final = "gold.chunk_ids"
FACTS: Final = "gold.key_facts"
PAGES: Final = "gold.pages"
GRADES: Final = "gold.grades"
"""Grades in the order of the ids."""
ALTERNATIVES: Final = "gold.alternatives"
"""More right answers, beside the first one."""
ANSWERABLE: Final = "answerable"
GIVEN: Final = "answer"
"""The answer that a system gave; it belongs in an answers file, as do the four below."""
RETRIEVED: Final = "retrieved"
RETRIEVED_IDS: Final = "retrieved_ids"
RETRIEVED_PATHS: Final = "retrieved_paths"
ABSTAINED: Final = "abstained"
"""Whether a system declined to answer."""
OF_SYSTEM = frozenset({GIVEN, ABSTAINED, RETRIEVED, RETRIEVED_IDS, RETRIEVED_PATHS})
LABELS = (
    "id",
    *PROMINENT_NAMES,
    "tags",
    *(name for name in DESCRIPTIVE_NAMES if name not in PROMINENT_NAMES),
    "history",
)
"""Of a name with words for two of them, the first is meant."""
_OF_CASE = (
    QUESTION,
    ANSWER,
    ALTERNATIVES,
    FACTS,
    ANSWERABLE,
    PLACES,
    HEADINGS,
    PAGES,
    IDS,
    GRADES,
    CONTEXTS,
    *LABELS,
)
FIELDS = (*_OF_CASE, GIVEN, ABSTAINED, RETRIEVED, RETRIEVED_IDS, RETRIEVED_PATHS)
"""What a name can mean, and what `--map` can set."""

_WORDS: Mapping[str, str] = {
    QUESTION: "question questions query queries q prompt input inputs ask utterance instruction frage fragen anfrage "
    "pregunta preguntas consulta domanda domande quesito pergunta perguntas questao vraag vragen "
    "질문 문의 질의 質問 問い 问题 問題 提问 提問",
    "given": "answer answers antwort antworten reponse reponses respuesta respuestas risposta risposte resposta "
    "respostas antwoord antwoorden solution losung gt 답변 답안 답 回答 答え 答案 解答",
    "gold": "expected reference references gold golden golds truths ideal ideals targets correct true truth "
    "ground target desired relevant muster soll erwartet erwartete erwarteter richtige referenz attendue "
    "attendu esperada esperado attesa atteso correcta corretta correta verwacht referencia riferimento gt "
    "정답 모범 기대 正解 模範 期待 标准 標準 参考 正确 期望",
    "system": "actual generated model system bot predicted prediction llm chatbot retrieved retrieval candidate",
    "output": "output outputs response responses completion reply",
    "unwanted": "not never forbidden prohibited unwanted banned disallowed negative wrong incorrect bad irrelevant "
    "distractor distractors avoid exclude excluded excludes hallucinated verboten falsche falscher interdit",
    "alternative": "acceptable accepted accept alternative alternatives alternate variants variant aliases alias "
    "synonyms any either valid varianten alternativen akzeptabel",
    "address": "url urls uri link",
    PLACES: "source sources document documents doc docs file files filename path paths url urls uri link material "
    "quelle quellen quelldokument quelldatei dokument dokumente datei fundstelle fuente fuentes "
    "documento documentos archivo fonte fonti fontes fichier bron bronnen citation citations 출처 문서 "
    "出典 参照元 文書 資料 来源 來源 出处 文档 文檔",
    HEADINGS: "heading headings section sections chapter abschnitt abschnitte kapitel uberschrift uberschriften "
    "seccion capitulo sezione capitolo secao chapitre hoofdstuk kop 섹션 제목 見出し 章節 章节 标题 標題",
    CONTEXTS: "context contexts passage passages evidence chunk chunks excerpt kontext contexte contexto contesto "
    "문맥 맥락 文脈 コンテキスト 上下文",
    "id": "id ids qid uuid guid",
    FACTS: "fact facts fakten keyword keywords nugget nuggets substring substrings stichwort stichworte stichworter "
    "schlusselwort schlusselworter schlusselbegriffe motscles palabrasclave palavraschave parolechiave "
    "키워드 핵심어 关键词 關鍵詞 关键字 要点 要點 キーワード",
    "part": "fragment fragments point points term terms phrase phrases claim claims contain contains containing "
    "include includes including mention mentions element elements statement statements string strings punkt punkte "
    "begriff begriffe stichpunkt stichpunkte pflichtbegriffe enthalten enthalt contenir contient contener contiene "
    "contenere conter termes mentioned needle needles criterion criteria 必含 必須 필수 포함 핵심 得分点 评分点",
    PAGES: "page pages seite seiten pagina paginas pagine bladzijde 페이지 쪽 ページ 頁 页 页码 頁碼",
    **{field.name: f"{field.name} {field.other_names}" for field in DESCRIPTIVE_FIELDS},
    "tags": "tag tags schlagwort schlagworte 태그 タグ 标签",
    "history": "history verlauf",
    "name": "name names title titel titre titulo titolo",
    "number": "nr no number num nummer kennung 番号 编号 編號 번호",
    "other": "score kind kinds quality min max status "
    "type style length count by date time tokens created updated hash version split trace run "
    "dataset session language metric index rating comment mode plausible",
    "": "must should required require requires needed expects expect has have all key essential mandatory in "
    "main core be muss doit debe deve the a of text string user query case test example item row content key "
    "list relevant full short long final standard result results value values v best "
    "conversation chat your our human s",
}
_ROLES: dict[str, set[str]] = {}
for _role, _listed in _WORDS.items():
    for _word in _listed.split():
        _ROLES.setdefault(_word, set()).add(_role)
_UNSPACED = sorted((word for word in _ROLES if not word.isascii()), key=len, reverse=True)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


@lru_cache(maxsize=4096)
def name_words(name: str) -> str:
    """Return the words of a name in lower case without accents: `expectedAnswer-1` gives `expected answer 1`."""
    plain = unicodedata.normalize("NFKD", name.replace("'", "").replace("\u2019", ""))
    plain = unicodedata.normalize("NFC", "".join(one for one in plain if not "\u0300" <= one <= "\u036f"))
    words = " ".join(_PART.findall(plain)).lower()
    return _KEYWORDS.sub(lambda two: two[0].replace(" ", ""), words)


_KEYWORDS = re.compile(r"\b(mots cles|palabras clave|palavras chave|parole chiave)\b")
"""Key words in languages that write them as two."""


@lru_cache(maxsize=4096)
def field_of(name: str, *, is_exact: bool = False) -> str | None:
    """Return the field that a name means; None if it is unknown. `is_exact`: every word of it must be known."""
    roles, has_unknown = _roles_in(name)
    if has_unknown and is_exact:
        return None
    return _field(roles - {""}, has_unknown=has_unknown)


def _roles_in(name: str) -> tuple[set[str], bool]:
    """Return the roles of a name's words, and whether it has a word that is not known."""
    roles: set[str] = {"number"} if _NUMBER_SIGN.search(name) else set()
    has_unknown = False
    before = ""
    for word in name_words(name).split():
        is_count = word.isdigit() and len(before) > 1  # `answer 1`, but not `q1`, which is somebody's question
        known = {""} if is_count else _roles_of(word)
        has_unknown |= known is None
        roles |= known or set()
        before = word
    return roles, has_unknown


_NUMBER_SIGN = re.compile(r"#(?!\s?\d)|№")
"""A sign that means a number of the row, as in `Q#`; not the `#1` of one column among several."""
_NO_FACTS = frozenset({QUESTION, CONTEXTS, PLACES, HEADINGS, PAGES, "id", "other", "name"})
"""Roles beside which a word for facts means something else, as in `section_contains`."""
_OF_GOLD = frozenset({"given", "gold", "output", "part", FACTS, PLACES, CONTEXTS, "id"})


_LONGEST_WORD = 40
"""Letters of a word that may be two known ones."""


def _roles_of(word: str) -> set[str] | None:
    if word in _ROLES:
        return _ROLES[word]
    if not word.isascii():
        found = [known for known in _UNSPACED if known in word]
        return set().union(*(_ROLES[known] for known in found)) if found else None
    if len(word) > _LONGEST_WORD:
        return None
    for at in range(2, len(word) - 1):  # groundtruth, musterantwort
        if word[:at] in _ROLES and word[at:] in _ROLES:
            return _ROLES[word[:at]] | _ROLES[word[at:]]
    return None


def _field(roles: set[str], *, has_unknown: bool = False) -> str | None:
    """Return the field of a name with words of these roles.

    Some words mean a field only among words that are all known: a `contract term` is no key fact, and what is
    `expected` without a word for an answer may be a tool, a behaviour or a number.
    """
    is_of_system = "system" in roles
    if "address" in roles:
        roles = roles - {"address", PAGES}
    if "unwanted" in roles and roles & _OF_GOLD:
        return None
    if roles & {FACTS, "part"} and not is_of_system:
        if "alternative" in roles:
            return None if has_unknown else ANSWER
        is_named = FACTS in roles or not has_unknown
        return FACTS if is_named and not roles & _NO_FACTS else None
    if PAGES in roles:
        return PAGES if roles <= {PAGES, PLACES, "gold", "number", "name"} else None
    if HEADINGS in roles and roles <= {HEADINGS, PLACES, "gold", "name"}:
        return HEADINGS
    if "other" in roles or ("name" in roles and PLACES not in roles):
        return None
    if "id" in roles:
        if roles & {PLACES, CONTEXTS} or "gold" in roles:
            return RETRIEVED_IDS if is_of_system else IDS
        return "id" if roles <= {"id", "number", QUESTION} else None
    if "history" in roles:
        return "history"
    if CONTEXTS in roles or (PLACES in roles and is_of_system):
        return RETRIEVED if is_of_system else CONTEXTS
    if FACTS in roles:
        return FACTS
    if PLACES in roles:
        return PLACES
    if QUESTION in roles and not roles & {"given", "output", "number"}:
        return QUESTION
    if is_of_system and roles & {"given", "output"}:
        return GIVEN
    if "given" in roles or ("gold" in roles and not has_unknown):
        return ANSWER
    if "output" in roles:
        return GIVEN
    if "number" in roles and roles <= {"number", QUESTION}:
        return "id"
    return next((label for label in LABELS if label in roles), None)


def is_plain_answer(name: str) -> bool:
    """Return True if a name means an answer without saying whose: the right one, unless another field is that."""
    roles, _ = _roles_in(name)
    return "gold" not in roles and "alternative" not in roles


def says_answer(name: str) -> bool:
    """Return True if a name has a word for an answer, as `expected_answer` has and `expected` has not."""
    return "given" in _roles_in(name)[0]


def means_alternatives(name: str) -> bool:
    """Return True if a name means more right answers beside another one, such as `acceptable_answers`."""
    return "alternative" in _roles_in(name)[0]


def is_whole_name(name: str) -> bool:
    """Return True if every word of a name is known."""
    return not _roles_in(name)[1]


_OF_CASE_IDS = frozenset(
    [
        "id",
        "ids",
        "qid",
        "uuid",
        "guid",
        "question",
        "query",
        "q",
        "qa",
        "test",
        "case",
        "item",
        "example",
        "sample",
        "row",
        "record",
        "entry",
        "eval",
        "golden",
        "gold",
        "prompt",
        "instance",
        "input",
        "user",
    ]
)


def is_case_id(name: str) -> bool:
    """Return True if a name means the id of a case and of nothing else: `question_id`, not `contract_id`."""
    return _OF_CASE_IDS.issuperset(name_words(name).split())


CONVERT = "`rageval cases convert` reads such files"


def key_hint(name: str) -> str:
    """Return how to convert another tool's JSON key, as a remedy; empty if the name is unknown."""
    field = field_of(name.strip(), is_exact=True)
    return _hint(field) if field in _HINTED else ""


def column_hint(name: str) -> str:
    """Return how to convert another tool's CSV column, as a remedy; empty if the name is unknown."""
    field = field_of(name.strip(), is_exact=True)
    if field not in _HINTED:
        return ""
    return _hint("reference" if field == ANSWER else field)


_HINTED = {QUESTION, ANSWER, CONTEXTS} | OF_SYSTEM


def _hint(field: str | None) -> str:
    if field in OF_SYSTEM:
        return (
            "what a system gave stands in a file of answers, apart from the cases; `rageval cases convert` parts them"
        )
    return f"it is {field!r} here; {CONVERT}"
