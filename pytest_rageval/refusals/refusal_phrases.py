"""Phrases with which seven languages decline. Patterns over NFKC, case-folded text (ß is ss, ’ is ').

A phrase speaks of the speaker or of the sources ("I cannot find", "the documents do not say"): a "cannot" about the
matter itself ("you cannot sort by date") is an answer. All gaps in the patterns are bounded.
"""

from __future__ import annotations

import re
from functools import cached_property


class Language:
    """A sentence declines where a cue and a refusal are found in it; the cue is the quick one."""

    def __init__(self, cue: str, *refusals: str) -> None:
        self._cue = cue
        self._refusals = refusals

    # Compiled where one is needed: the cues of all seven cost every start 4 ms, the refusals 50 ms.
    @cached_property
    def _cue_pattern(self) -> re.Pattern[str]:
        return re.compile(self._cue)

    @cached_property
    def _refusal(self) -> re.Pattern[str]:
        return re.compile("|".join(self._refusals))

    def refuses(self, folded: str) -> bool:
        """Is there a refusal in this sentence, or part of one?"""
        return self._cue_pattern.search(folded) is not None and self._refusal.search(folded) is not None


def _gap(most: int) -> str:
    """Up to so many words, as few as will do, each with the space after it."""
    return rf"(?:[\w'’-]+,? ){{0,{most}}}?"


# ── English ───────────────────────────────────────────────────────────────────────────────────────────────────

_SOURCE = (
    r"(?:contexts?|documents?|documentation|notes?|passages?|sources?|texts?|corpus|materials?|excerpts?|articles?"
    r"|snippets?|knowledge base|results?|information|vault|chunks?|references?|evidence|content|records?|files?"
    r"|handbooks?|manuals?|reports?|papers?|chapters?|transcripts?|minutes|data ?sets?)\b"
)
_GIVEN = (
    rf"(?:(?:provided|given|supplied|retrieved|available|attached|uploaded|these|your|my) {_gap(1)}{_SOURCE}"
    r"|(?:passages?|excerpts?|snippets?|chunks?|context|corpus|knowledge base)\b)"
)
_INFORMATION = (
    r"(?:information|info|details?|data|answers?|mention|references?|context|knowledge|records?|documentation"
    r"|indication|evidence|access|idea|figures?|entry|entries|way of knowing)\b"
)
_ADVERB = r"(?:\w+ly |even |also |just |still |really )*"
_BE = r"(?:is|was|are|were|'s|'re|'m|am)"
_DO_NOT = rf"\b(?:do not|does not|don't|doesn't|did not|didn't) {_ADVERB}"
_NOT = rf"(?:n't|\b(?:not|nowhere|never))(?: been)? {_ADVERB}"
_CANNOT = (
    rf"(?:\b(?:cannot|can't|can not|could not|couldn't|won't be able to|unable to|not able to|not in a position to)"
    rf"|n't able to|not been able to|not possible to) {_ADVERB}"
)
_TELL = (
    r"(?:answer|find|locate|determine|provide|help|assist|confirm|verify|identify|comply|respond|see any|infer|state"
    r"|tell (?:you\b|from|what|when|who|whether|which|where|how|why)"
    rf"|give (?:you )?(?:an?|any|the|more) {_gap(2)}{_INFORMATION}|say(?=[.! ]*$)"
    r"|say (?:for sure|for certain|from|based|what|when|who|whether|which|where|how|why))\b"
)
_HOLD = (
    r"(?:mention|say|specify|state|address|discuss|answer|cover|describe|indicate|explain|reveal|disclose|detail"
    r"|clarify|list|name|touch (?:on|upon)|go into|deal with|refer to)\b"
)
_HOLDS = (
    r"(?:(?:mention|state|address|discuss|answer|cover|describe|indicate|explain|reveal|detail|list|name)(?:s|es|ed)?"
    r"|sa(?:y|ys|id)|specif(?:y|ies|ied)|tells? (?:me|us|you))\b"
)
_HELD = (
    r"(?:mentioned|specified|stated|provided|given|covered|described|discussed|addressed|available|included|documented"
    r"|found|contained|answered|detailed|listed|indicated|present|known|clear)\b"
)

_ENGLISH = Language(
    r"\b(?:no|not|none|nothing|neither|nowhere|never|cannot|unable|unknown|unanswerable|insufficient|decline|refuse|n/a"
    r"|idk|lacks?|only|unclear|impossible|ambiguous|vague|broad|more|silent|outside|beyond|fail(?:s|ed)?|unrelated"
    r"|irrelevant)\b|n't\b",
    # The speaker cannot, or has nothing. "We" may be the people whom the sources tell of: we could not find the cause.
    rf"\bi(?: (?:am|was|have)|'m|'ve)? ?(?:currently |still |therefore )?{_CANNOT}{_gap(2)}{_TELL}",
    rf"\bwe(?: are|'re)? ?{_CANNOT}(?:answer|help|assist|comply|respond|(?:find|locate|provide) {_gap(3)}"
    rf"(?:{_INFORMATION}|{_SOURCE}|any ?thing))",
    rf"^{_CANNOT}{_TELL}",
    rf"\bi {_ADVERB}{_DO_NOT}(?:know\b|(?:have|see|find|possess) (?:anything\b|{_gap(4)}{_INFORMATION}))",
    rf"\b(?:i|we) (?:have|had|found|find|see|know of) (?:no|nothing)\b"
    rf"|\bwe {_DO_NOT}(?:know|have {_gap(3)}{_INFORMATION})|\bas an ai\b.{{0,30}}?\bi (?:{_DO_NOT}|{_CANNOT})",
    r"\bi(?:'m| am) not (?:aware of|familiar with|sure)\b",
    rf"\bi (?:lack|(?:would )?need more) {_gap(3)}{_INFORMATION}",
    r"\bi (?:must |have to |need to )?(?:decline|refuse) to\b"
    r"|\bi (?:can|am able to) only (?:answer|help|assist|discuss)\b",
    # The sources do not hold it.
    rf"\b(?:{_SOURCE} {_gap(5)}|(?:it|they|this|that) (?!did)){_DO_NOT}(?:(?:seem|appear) to )?{_gap(2)}"
    rf"(?:{_HOLD}|tell (?:me|us|you)\b|(?:contain|include|provide|give|offer|have) {_gap(4)}{_INFORMATION})",
    rf"\b{_GIVEN} {_gap(2)}(?:{_DO_NOT}{_gap(1)}(?:contain|include|provide|give|offer|have)\b|lacks?\b"
    rf"|{_BE} ?(?:n't|not) {_gap(1)}(?:(?:enough|sufficient) to|about|relevant)\b|{_BE} (?:un|ir)rel(?:at|ev)\w+)",
    rf"\b{_SOURCE} {_gap(3)}(?:never {_ADVERB}{_HOLDS}|fail(?:s|ed)? to {_HOLD}|lacks? any\b)",
    rf"^(?:never {_ADVERB}{_HOLDS}|fail(?:s|ed)? to {_HOLD})|\bno {_gap(1)}{_SOURCE} {_gap(5)}{_HOLDS}",
    rf"\b(?:search|query|retrieval) {_gap(2)}(?:returned|found|gave|yielded) (?:no|nothing)\b"
    rf"|\bbeyond what {_gap(3)}(?:{_SOURCE}|{_INFORMATION})"
    r"|\bi(?:'ve| have| was| am) ?(?:n't|not) (?:been )?(?:given|provided)\b",
    rf"\bnot something (?:that )?{_gap(2)}{_SOURCE} {_gap(1)}{_HOLDS}|\bnowhere in {_gap(3)}{_SOURCE}",
    rf"{_DO_NOT}(?:look|seem|appear) {_gap(5)}{_SOURCE} {_gap(2)}{_HOLDS}",
    rf"\b{_SOURCE} {_gap(4)}(?:contains?|provides?|includes?|gives?|offers?|makes?|has|have) no {_gap(2)}"
    rf"{_INFORMATION}",
    rf"\b{_SOURCE} {_gap(3)}(?:(?:says?|contains?|mentions?) nothing|(?:is|are) silent|lacks? {_gap(4)}{_INFORMATION})",
    rf"\b(?:none|nothing|neither) (?:of|in) {_gap(4)}{_SOURCE} {_gap(3)}"
    rf"(?:(?:{_HOLD[:-2]}|contain|provide)\w*\b|{_BE} {_gap(1)}(?:about|on|relevant)\b)",
    rf"{_NOT}{_HELD}.{{0,60}}?\b(?:in|by|within|among|from) {_gap(5)}{_SOURCE}",
    rf"\b(?:in|on|by|from|to|while|whereas) {_gap(4)}{_SOURCE}.{{0,160}}?{_NOT}{_HELD}",
    rf"\b(?:answer|information|details?|this|that|it) (?:is |are |was |'s )?{_NOT}{_gap(1)}"
    rf"(?:in|within|among|part of) {_gap(4)}{_SOURCE}|{_DO_NOT}(?:appear|occur) {_gap(1)}in {_gap(4)}{_SOURCE}",
    rf"\b(?:information|answer|details?) {_gap(8)}{_BE} ?{_NOT}{_HELD}",
    rf"\b(?:no|not enough|insufficient) {_gap(2)}{_INFORMATION}.{{0,80}}?\b{_HELD}",
    rf"\b(?:no|not any) {_gap(2)}\w+.{{0,60}}?\b{_HELD} {_gap(1)}(?:in|by|within) {_gap(4)}{_SOURCE}",
    rf"\bthere(?:'s| {_BE}) ?(?:n't|no|not|insufficient) {_gap(3)}(?:{_INFORMATION} {_gap(3)}(?:about|on|in|for"
    rf"|regarding|concerning|to|of|available|provided|given|that|which|as to|whether|how)\b|{_INFORMATION}[.! ]*$"
    rf"|{_SOURCE} (?:about|on|regarding|concerning)\b)",
    # The question cannot be answered.
    rf"{_CANNOT}be {_ADVERB}(?:answered|determined|found|inferred|established|derived|identified|confirmed)\b"
    rf".{{0,60}}?\b(?:from|on|with|in|using|within|by) {_gap(5)}{_SOURCE}",
    rf"\bquestion {_CANNOT}be answered\b"
    r"|\bit(?:'s| is| was) ?(?:n't|not) (?:possible to (?:answer|determine|say|tell)"
    r"|(?:stated|specified|mentioned|known|clear|indicated|recorded)"
    r" (?:who|what|when|where|which|whether|how|why|if))\b",
    rf"\b(?:unclear|not clear|impossible to (?:say|tell|know|determine)|unanswerable) from {_gap(4)}{_SOURCE}",
    rf"^(?:based on|from|given|judging by|in) {_gap(4)}{_SOURCE},? {_gap(2)}(?:unclear|not clear|impossible)\b",
    r"\b(?:the|this|your) question is (?:too |quite |rather )?(?:ambiguous|vague|unclear|broad|unspecific)\b",
    rf"\b(?:question|topic) {_gap(8)}(?:falls|is|lies) (?:outside|beyond) {_gap(4)}{_SOURCE}",
    rf"^{_DO_NOT}{_gap(2)}{_HOLD}|{_NOT}(?:mentioned|specified|stated|provided|detailed|indicated)[.! ]*$",
    # The whole sentence.
    r"^(?:n/a|unknown|unanswerable|idk|(?:no|not|nothing|insufficient|not enough|cannot) (?:relevant |matching )?"
    r"(?:found|available|known|specified|mentioned|stated|provided|sure|say|idea|answers?|information|context|data|results?"
    r"|documents?)(?: (?:was |were )?(?:found|available|match\w*))?(?: (?:to|your|in|for)\b.{0,40})?)[.! ]*$",
)

# ── Korean, Japanese, Chinese ─────────────────────────────────────────────────────────────────────────────────

_KO_INFORMATION = r"(?:정보|내용|자료|문서|노트|답변?|근거|기록|데이터|언급|문맥|컨텍스트|출처)"
_KO_END = r"(?:습니다|었습니다|네요|어요|음|다(?!는)|군요|지만)"
_KO_NO_CLAUSE = r"(?!으면|다면|하면|할|을 때|다는|한 (?!상태|것|점|상황))"

_KOREAN = Language(
    r"[없않못]|모르|모릅|몰라|어렵|불가|부족",
    rf"(?:{_KO_INFORMATION}|규정|항목|조항)[^.]{{0,25}}?"
    rf"(?:찾을 수가? 없{_KO_NO_CLAUSE}|찾지 못|발견하지 못|발견되지 않|존재하지 않|확인할 수 없|확인되지 않"
    r"|(?:보유하|가지)고 있지 않)",
    rf"(?:^|제가|저는|저희)[^.]{{0,30}}?찾을 수 없{_KO_END}",
    rf"{_KO_INFORMATION}[가이는은를을도]? ?(?:전혀 |충분히 )?"
    rf"(?:없{_KO_END}|부족{_KO_NO_CLAUSE}|포함되어 있지 않|포함되지 않|충분하지 않|제공되지 않|나와 ?있지 않)",
    r"(?:문서|자료|노트|문맥|컨텍스트|출처|본문|내용|발췌문|기사|보고서|메모|매뉴얼)[^.]{0,25}?"
    r"(?:언급|명시|기재|기록|설명|나와|나오|포함|제공|서술|수록|제시|적혀|쓰여|다루|밝히)"
    r"[^.]{0,6}?[않없못](?!으면|는다면|은 )",
    r"(?:문서|자료|내용|정보|본문|매뉴얼)만(?:으로|을 보고|[ 을]?가지고)[^.]{0,20}(?:어렵|없)",
    r"(?:규정|^)[^.]{0,10}(?:언급|명시|기재)[^.]{0,6}?[않없못]|^(?:검색 )?결과가 없"
    r"|관련(?:된|한)? (?:결과|항목|규정)[가이은는] 없|(?:문서|자료|내용|결과)[^.]{0,20}관련이 없",
    rf"(?:^|[,을를은는이가지도서로] )(?:잘 )?(?:알 수 (?:가 )?없{_KO_END}|알고 있지 않|모르겠|모릅니다|몰라요)",
    r"(?:답변?|대답|말씀|도움|안내|제공)[을를해은]? ?(?:드릴|드리기|할|하기) ?(?:수 ?(?:가 )?없|어렵|불가)",
    rf"(?:정보|내용|답변?|언급|설명|기록)[은는이가도] [^.]{{0,15}}?(?:문서|자료|노트|문맥|컨텍스트|본문|출처|매뉴얼)"
    rf"[^.]{{0,6}}?없{_KO_END}",
    rf"^찾을 수 없{_KO_END}[.]?$",
    r"답변?[이은]? (?:불가|어렵)|도와드릴 수 없|판단할 수 없|답할 수 없",
)
_JAPANESE = Language(
    r"ません|ない|かね|不明|不足",
    r"(?:わかりません|分かりません|分かりかねます|わかりかねます|存じません|判断できません|不明です)",
    r"(?:情報|記載|資料|文書|回答|内容|ドキュメント|データ|コンテキスト|文脈|ノート|記述)[^。]{0,25}?"
    r"(?:見つかりません|見つけられません|見つかっていません|見当たりません|ありません|含まれていません|不足して)(?!と)",
    r"(?:記載|言及|説明|記述|明記|提供)[はが]?されては?(?:いません|おりません|いない)",
    r"(?:資料|文書|ノート|文脈|本文)には?[^。]{0,12}?(?:書かれて|載って|出て)い(?:ません|ない)",
    r"(?:お?答え|回答|お伝え|お手伝い|ご案内)(?:する(?:こと)?)?[はがを]?(?:でき(?:ません|かね|ない)|いたしかね)",
)
_ZH_INFORMATION = r"(?:信息|資訊|資料|资料|内容|內容|答案|说明|說明|数据|數據|记录|記錄|文档|文件|上下文|依据|依據)"
_CHINESE = Language(
    r"[不没沒未无無缺]|有限",
    r"(?:我|我们|我們)(?:也|并|並|确实|確實|暂时|暫時)?(?:不知道|不清楚|不了解|不确定|不確定)|^(?:不知道|不清楚)",
    r"(?:无法|無法|不能)(?:为您|為您|给出|給出|直接|[从從][^，。]{0,12}中?)?"
    r"(?:回答|作答|解答|确定|確定|得知|判断|判斷|确认|確認)",
    r"(?:找不到|没有|沒有|未能?|无法|無法|缺乏|缺少)"
    r"(?:找到|提供|包含|提到|提及|足够|足夠|任何|相关|相關|有关|有關|的|该|該|具体|具體){0,4}"
    rf"[^，。]{{0,10}}?{_ZH_INFORMATION}(?=[，。；,.!！可能来來]|$)",
    r"(?:文档|文件|资料|資料|上下文|文中|材料|笔记|筆記|信息|內容|内容|原文|来源|來源)[^，。]{0,15}?"
    r"(?:没有|沒有|并未|並未|未|均未|不)(?:明确|明確|具体|具體|直接)?"
    r"(?:提到|提及|说明|說明|提供|包含|涉及|记载|記載|指出)",
    rf"{_ZH_INFORMATION}(?:不足|不够|不夠|有限)(?=[，。；,.!！以]|$)",
)

# ── German, French, Spanish ───────────────────────────────────────────────────────────────────────────────────

_DE_SOURCE = (
    r"(?:dokument(?:e|en|s|ation)?|kontext(?:s|es)?|quellen?|notiz(?:en)?|unterlagen|texte?[ns]?|passagen?|abschnitte?n?"
    r"|auszügen?|materialien|informationen|artikeln?|berichte?n?|protokolle?n?|handbuch|handbüchern?|(?:wissens)?datenbank"
    r"|richtlinien?)\b"
)
_DE_INFORMATION = (
    r"(?:informationen|angaben?|hinweise?|antwort|daten|zugriff|auskunft|aufschluss|aussagen?|erkenntnisse|ergebnisse|treffer"
    r"|eintr[aä]ge?"
    r"|regelung(?:en)?)\b"
)
_DE_NO = r"(?:keine?[mnrs]?|nichts)"
_DE_HELD = (
    r"(?:erwähnt|angegeben|genannt|beschrieben|enthalten|behandelt|aufgeführt|ersichtlich|festgelegt|geregelt|dokumentiert"
    r"|hervor|(?:zu )?(?:finden|lesen|entnehmen)|ausreichend)\b"
)
_DE_HOLD = (
    r"(?:erwähn(?:t|en)|nenn(?:t|en)|sag(?:t|en)|enthält|enthalten|beschreib(?:t|en)|behandel[nt]|regel[nt]|g(?:ibt|eben)"
    r"|mach(?:t|en)|steht|stehen|finde[nt]|lieg(?:t|en)|verrät|verraten)\b"
)

_GERMAN = Language(
    r"\bnichts?\b|\bkeine?[mnrs]?\b|\bunbekannt\b|\bweder\b|\bschweig|\bfehl|\boffen\b",
    # Who speaks cannot, or has nothing.
    rf"\b(?:ich|wir) (?:weiss|wissen) {_gap(3)}nicht\b|\bweiss ich {_gap(2)}nicht\b",
    rf"\b(?:(?:ich|wir) (?:kann|können|konnten?)|(?:kann|können|konnten?) (?:ich|wir)) {_gap(8)}(?:nichts?|keine?n?) "
    rf"{_gap(5)}(?:beantworten|finden|(?:weiter)?helfen|sagen|ermitteln|bestätigen|beurteilen|nennen|treffen|geben"
    r"|machen|feststellen)\b",
    rf"\b(?:ich|wir|mir|uns) (?:habe|haben|finde|finden|fand|liegen) {_gap(5)}(?:keine?n?|nicht genug) {_gap(3)}"
    rf"(?:{_DE_INFORMATION}|{_DE_SOURCE})|\b(?:habe|haben|finde|finden) (?:ich|wir) {_gap(4)}{_DE_NO}\b",
    rf"\b(?:ich|wir) finden? {_gap(2)}(?:dazu|hierzu|darüber) nichts\b|\b(?:mir|uns) ist {_gap(3)}nichts? bekannt\b"
    rf"|\b(?:(?:mir|uns) fehlen|fehlen (?:mir|uns)) {_gap(3)}(?:{_DE_INFORMATION}|{_DE_SOURCE})",
    rf"\b(?:da(?:zu|rüber|von)|hier(?:zu|über|von)|diesbezüglich|zu diesem \w+)\b {_gap(6)}{_DE_NO} {_gap(1)}"
    rf"{_DE_INFORMATION}(?! (?:nötig|notwendig|erforderlich))"
    rf"|\b(?:dazu|hierzu|darüber)\b {_gap(3)}steht {_gap(4)}nichts\b",
    # The question cannot be answered.
    rf"\bfrage {_gap(4)}(?:kann|konnte|lässt sich) {_gap(6)}nicht {_gap(2)}beantworte[nt]\b",
    rf"\b{_DE_SOURCE} {_gap(3)}lässt sich {_gap(6)}nicht\b|\b{_DE_SOURCE} {_gap(2)}reich(?:t|en) {_gap(6)}nicht\b",
    # The sources do not hold it.
    rf"\b{_DE_SOURCE} (?!(?:darf|dürfen|soll|muss|müssen)){_gap(4)}{_DE_NO} {_gap(5)}"
    rf"(?:{_DE_INFORMATION}|{_DE_HELD}|rede\b|wort\b)",
    rf"\b{_DE_SOURCE} {_gap(1)}{_DE_HOLD} {_gap(5)}(?:{_DE_NO}\b|nicht(?:[.! ]*$|,| {_gap(1)}{_DE_HELD}))",
    rf"\b{_DE_SOURCE} {_gap(6)}nicht(?: {_gap(2)}{_DE_HELD}|[.! ]*$)"
    rf"|\bkeine?[mnrs]? (?:der|dieser|von) {_gap(2)}{_DE_SOURCE}",
    rf"\bkeine? {_gap(1)}{_DE_SOURCE} {_gap(2)}{_DE_HOLD}"
    rf"|\b(?:steht|stehen|ist|sind|wird|werden) nicht (?:in|im) {_gap(3)}{_DE_SOURCE}"
    rf"|\bweder {_gap(3)}{_DE_SOURCE} {_gap(1)}noch\b",
    rf"\b{_DE_SOURCE} {_gap(1)}(?:schweig(?:t|en)|(?:lässt|lassen) {_gap(2)}offen)\b",
    rf"\bkeine {_gap(2)}(?:{_DE_INFORMATION}|{_DE_SOURCE}) {_gap(6)}(?:gefunden|verfügbar|vorhanden|enthalten|vor)\b",
    rf"\b(?:gibt es|es gibt|enthält|enthalten) {_gap(2)}keine {_gap(1)}(?:informationen|angaben|hinweise)\b",
    # The whole sentence, or its end.
    r"\b(?:wird|werden|ist|sind) nicht (?:genannt|erwähnt|angegeben|beschrieben)[.! ]*$",
    rf"^(?:unbekannt|keine? {_DE_INFORMATION}(?: (?:gefunden|verfügbar|vorhanden))?|nicht {_gap(2)}{_DE_HELD})[.! ]*$",
)
_FR_SOURCE = r"(?:documents?|contexte|sources?|notes|textes?|passages?|extraits?|informations?)\b"
_FR_INFORMATION = r"(?:d'|l')?(?:informations?|réponse|données|accès|mention|éléments)\b"

_FRENCH = Language(
    r"\b(?:pas|aucune?|rien|impossible)\b",
    r"\bje ne (?:le |la |les )?(?:sais|connais) (?:\w+ )?pas\b",
    rf"\bje ne (?:peux|puis|suis|parviens) {_gap(5)}(?:répondre|trouver|fournir|aider|déterminer|confirmer|dire)\b",
    rf"\bje (?:n'ai|ne dispose|ne trouve|ne vois|n'ai trouvé) {_gap(2)}(?:pas|aucune?) {_gap(4)}{_FR_INFORMATION}",
    rf"\b{_FR_SOURCE} {_gap(4)}(?:ne |n'){_gap(2)}(?:(?:mentionne|précise|indique|parle|évoque|aborde)(?:nt)?"
    r"|contien(?:nen)?t|fourni(?:ssen)?t|di(?:sen)?t|permet(?:tent)?|répond(?:ent)?) (?:pas|aucune?|rien)\b",
    rf"\b(?:il n'y a|il n'existe) (?:pas|aucune?) {_gap(1)}(?:d'|de )?{_FR_INFORMATION}",
    r"\baucune (?:information|réponse|mention|donnée)\b.{0,60}\b(?:trouvée?|disponible|fournie|n'est)\b",
    r"\bn'(?:est|a) pas (?:été )?(?:mentionnée?|précisée?|indiquée?|fournie?|disponible)s? "
    rf"{_gap(2)}(?:dans|par) {_gap(3)}{_FR_SOURCE}",
    r"\b(?:information|réponse)s? n'(?:est|sont) pas (?:disponible|fournie|mentionnée|précisée|indiquée)s?\b",
    r"\b(?:impossible|pas possible) de (?:répondre|déterminer|le dire)\b",
)
_ES_SOURCE = r"(?:documentos?|contexto|fuentes?|notas|textos?|pasajes?|materiales|información|fragmentos?)\b"
_ES_INFORMATION = (
    r"(?:información|respuesta|detalles|mención|acceso|referencias?"
    r"|datos (?:sobre|disponibles|suficientes|acerca|para))\b"
)

_SPANISH = Language(
    r"\bno\b|\bdesconozco\b",
    r"\bno (?:lo )?(?:sé|sabemos)\b(?! que)|\bdesconozco\b",
    r"\bno (?:tengo|tenemos|dispongo de|cuento con|hay|existe|encontré|encuentro|encontramos|he encontrado|se encontró)"
    rf" {_gap(3)}{_ES_INFORMATION}",
    rf"\bno (?:puedo|podemos|pude|me es posible|es posible) {_gap(2)}"
    r"(?:responder|contestar|encontrar|determinar|ayudar|proporcionar|confirmar|decir)\w{0,4}\b",
    rf"\b{_ES_SOURCE} {_gap(4)}no {_gap(1)}(?:mencionan?|contienen?|indican?|proporcionan?|especifican?|incluyen?"
    r"|dicen?|responden?|aclaran?)\b",
    r"\b(?:información|respuesta) no (?:está|se encuentra|figura|aparece)\b",
    rf"\bno se (?:menciona|especifica|indica|proporciona|encuentra|detalla)n? {_gap(4)}(?:en {_gap(3)}{_ES_SOURCE}"
    r"|información\b)",
)

LANGUAGES = (_ENGLISH, _KOREAN, _JAPANESE, _CHINESE, _GERMAN, _FRENCH, _SPANISH)

# ── what stands around a refusal ──────────────────────────────────────────────────────────────────────────────

COURTESY = re.compile(
    r"^(?:unfortunately|regrettably|leider|malheureusement|lamentablemente)[.,! ]*$"
    r"|\b(?:i'm|i am|we're|we are) (?:very |so |really )?(?:sorry|afraid)\b|^(?:sorry|apologies)\b|\bi apologi[sz]e\b"
    r"|\bplease (?:\w+ )?(?:provide|contact|consult|check|refer|rephrase|clarify|try|ask|share|specify|let me|feel)\b"
    r"|\bif you (?:can |could )?(?:provide|share|give|have|need) (?:me |us )?(?:more|further|additional|any|other|a)\b"
    r"|\bwould you like\b|\blet me know\b|\bfeel free\b"
    r"|\b(?:could|can) you (?:please |kindly )?(?:provide|clarify|specify|rephrase|share)\b"
    r"|\byou (?:may|might|could) (?:want to |wish to |need to |have to |try to )?(?:try|consult|check|contact|refer)\b"
    r"|\bi (?:recommend|suggest) (?:checking|consulting|contacting)\b"
    r"|죄송|유감|궁금하[신시셨]|문의해|문의하|확인해 (?:주|보)|알려 ?주시|말씀해 ?주|참고해 ?주"
    r"|申し訳|すみません|恐れ入り|お問い合わせ|ご確認ください|お知らせください|教えてください"
    r"|抱歉|对不起|對不起|很遗憾|很遺憾|[请請][您你]?(?:提供|联系|聯繫|咨询|諮詢|查阅|查閱|参考|參考)"
    r"|\b(?:tut mir leid|entschuldigung|bitte (?:\w+ )?(?:wenden|kontaktieren|geben|prüfen))\b"
    r"|\b(?:désolée?|veuillez)\b|\b(?:lo siento|lamento|disculpa|por favor)\b"
)
"""Regrets, advice where to turn, questions back: parts that neither decline nor answer."""

TURN = re.compile(
    r"\b(?:but|however|(?:al|even )?though|that said|nevertheless|aber|jedoch|allerdings|mais|cependant|toutefois|pero"
    r"|sin embargo)\b,?"
    r"|(?:^|(?<=[,\s]))(?:하지만|그러나|그렇지만|다만)(?=[,\s])"
    r"|(?:^|(?<=[、。]))(?:しかし|ただし|ですが|だが)、?"
    r"|(?:^|(?<=[，,；;]))(?:但是?|不過|不过|然而)，?",
    re.IGNORECASE,
)
"""Words after which a sentence says something else after all."""

SOURCES = re.compile(
    r"\b(?:contexts?|documents?|documentation|notes?|passages?|sources?|texts?|corpus|excerpts?|articles?|snippets?"
    r"|evidence|(?:provided|given|available) (?:information|materials?|content))\b"
    r"|\b(?:it|they) (?:(?:do|does|only|also|merely|simply|just) )*(?:states?|mentions?|notes?|describes?"
    r"|discuss(?:es)?|provides?|indicates?|explains?|contains?|says?|identif(?:y|ies)|cover|address)\b"
    r"|\bi (?:am|can|was|'m)\b"
    r"|문서|자료|규정|문맥|컨텍스트|資料|文書|文脈|文档|文件|资料|上下文"
    r"|\b(?:dokument|kontext|quelle|text|unterlage|contexte|documento|contexto|texto|fuente)\w*\b"
)
"""A part that tells of the sources or of the speaker: what is related, not what was asked."""

CONCLUSION = re.compile(
    r"^(?:and )?(?:therefore|thus|hence|so|consequently|as a result|as such|in conclusion)\b"
    r"|^(?:따라서|그러므로|결론적으로)|^(?:したがって|よって)|^(?:因此|所以)"
    r"|^(?:daher|deshalb|somit|donc|par conséquent|por lo tanto|por tanto)\b"
)
"""Words that begin a conclusion."""
