"""Whether an answer says no by what it allows or reports instead: only by post, held in German, out of order.

All words are data by language, in the form of `pytest_rageval.language.words.normalise`.
"""

from __future__ import annotations

from functools import lru_cache

from pytest_rageval.language.lazy_patterns import compiled_pattern


def says_otherwise(part: str, question: str) -> bool:
    """Check whether a part of an answer has another of a kind in the place of the one that a question asks for."""
    for kind in _KINDS:
        asked = _members(question, kind)
        said = _members(part, kind)
        if asked and said and asked.isdisjoint(said):
            return True
    return False


def is_exclusive(part: str) -> bool:
    """Check whether a part of an answer allows nothing else than it names."""
    return compiled_pattern(_EXCLUSIVE).search(part) is not None


def fails(part: str, question: str) -> bool:
    """Check for a predicate that denies by its meaning, where the question does not ask for it: it was removed."""
    failure = compiled_pattern(_FAILURES).search(part)
    return failure is not None and failure[0] not in question


@lru_cache(maxsize=256)
def _members(text: str, kind: int) -> frozenset[int]:
    """Return the places of a kind's members that a text names."""
    patterns = map(compiled_pattern, _PATTERNS[kind])
    return frozenset(place for place, pattern in enumerate(patterns) if pattern.search(text) is not None)


def _words_or_parts(words: str, parts: str) -> str:
    """Return the pattern of words in scripts with spaces, and of parts of words in others."""
    return rf"\b(?:{words})\b|{parts}"


_LANGUAGES = (
    _words_or_parts("english|englisch\\w*|anglais\\w*|inglés|inglesa", "영어|英語|英语|英文"),
    _words_or_parts("german|deutsch\\w*|allemand\\w*|alemán|alemana", "독일어|ドイツ語|德语|德文"),
    _words_or_parts("french|französisch\\w*|français\\w*|francés|francesa", "프랑스어|불어|フランス語|法语|法文"),
    _words_or_parts("spanish|spanisch\\w*|espagnol\\w*|español|española|castellano", "스페인어|スペイン語|西班牙语"),
    _words_or_parts("italian|italienisch\\w*|italien|italienne|italiano", "이탈리아어|イタリア語|意大利语"),
    _words_or_parts("portuguese|portugiesisch\\w*|portugais\\w*|portugués", "포르투갈어|ポルトガル語|葡萄牙语"),
    _words_or_parts("russian|russisch\\w*|russe|ruso", "러시아어|ロシア語|俄语"),
    _words_or_parts("korean|koreanisch\\w*|coréen\\w*|coreano", "한국어|韓国語|韩语|韩文"),
    _words_or_parts("japanese|japanisch\\w*|japonais\\w*|japonés", "일본어|日本語|日语|日文"),
    _words_or_parts("chinese|mandarin|chinesisch\\w*|chinois\\w*|chino|mandarín", "중국어|中国語|中文|汉语"),
    _words_or_parts("arabic|arabisch\\w*|arabe|árabe", "아랍어|アラビア語|阿拉伯语"),
    _words_or_parts("dutch|niederländisch\\w*|néerlandais\\w*|neerlandés|holandés", "네덜란드어|オランダ語|荷兰语"),
    _words_or_parts("polish|polnisch\\w*|polonais\\w*|polaco", "폴란드어|ポーランド語|波兰语"),
)
_CHANNELS = (
    _words_or_parts("online|internet|website|app|en ligne|en línea", "온라인|オンライン|ネット|网上|线上|在线"),
    _words_or_parts(
        "in writing|by (?:post|mail|letter)|in person|on paper|schriftlich|per (?:post|brief)|persönlich"
        "|par (?:courrier|écrit|la poste|lettre)|en personne|por (?:correo postal|escrito|carta)|en persona",
        "우편|서면|방문|郵送|書面|来店|窓口|书面|邮寄|现场|当面",
    ),
    _words_or_parts("by phone|by telephone|telefonisch|par téléphone|por teléfono", "전화|電話|电话"),
)
_PAYMENTS = (
    _words_or_parts("cash|bar|bargeld|espèces|liquide|efectivo", "현금|現金|现金"),
    _words_or_parts("(?:credit |debit )?cards?|\\w*karten?|cartes?|tarjetas?", "카드|カード|刷卡|信用卡|银行卡"),
)
_PLACES = (
    _words_or_parts(
        "outside|outdoors|draussen|ausserhalb|im freien|dehors|hors|fuera|afuera",
        "외부|바깥|밖|屋外|国外|外で|外面|以外|室外",
    ),
    _words_or_parts(
        "within|inside|indoors|drinnen|innerhalb|à intérieur|dedans|dentro", "내부|실내|안에서|屋内|国内|里面|室内|境内"
    ),
)
_PATTERNS = (_LANGUAGES, _CHANNELS, _PAYMENTS, _PLACES)
_KINDS = range(len(_PATTERNS))
_EXCLUSIVE = (
    r"\b(?<!not )(?:only|solely|exclusively|nothing but|(?:limited|restricted|confined) to|reserved for)\b(?! [0-9])"
    r"|\b(?<!nicht )(?:nur|ausschliesslich|lediglich|vorbehalten|(?:beschränkt|begrenzt) auf)\b(?! [0-9])"
    r"|\b(?<!pas )(?:seule?s?|uniquement|seulement|exclusivement|(?:réservée?s?|limitée?s?) (?:à|aux?))\b(?! [0-9])"
    r"|\b(?<!no )(?:solo|sólo|solamente|únicamente|exclusivamente|(?:reservad|limitad)[oa]s? (?:a|al|para))\b(?! [0-9])"
    r"|[가-힣](?<!지)(?<!\b다)만(?= |$)|전용|에 한해|한정|のみ|だけ|限定|に限|只|仅"
)
_FAILURES = (
    r"\b(?:unavailable|removed|discontinued|abolished|suspended|excluded|out of (?:order|service|stock)|broken|defunct"
    r"|refused|rejected|denied|abandoned|ceased|impossible|lacks?|lacking|unsupported|disabled|deactivated"
    r"|nicht verfügbar|abgeschafft|eingestellt|defekt|kaputt|ausser betrieb|gestrichen|entfernt|abgelehnt|ausgesetzt"
    r"|deaktiviert|fehlt|indisponibles?|supprimée?s?|hors service|en panne|refusée?s?|abolie?s?|suspendue?s?"
    r"|désactivée?s?|no disponibles?|eliminad[oa]s?|fuera de servicio|averiad[oa]s?|suprimid[oa]s?|rechazad[oa]s?"
    r"|suspendid[oa]s?|desactivad[oa]s?)\b"
    r"|어렵습니다|중단|폐지|고장|삭제되|제외|거부|終了しま|廃止|故障|中止|停止|削除|お断り|ご遠慮|承っており?ません|停用|取消了|坏了|下架"
)
