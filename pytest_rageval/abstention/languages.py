"""Which language an answer is in, as far as the detector of abstentions needs to know: was it trained on that one?"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache

TRAINED = ("English", "Korean", "German", "Japanese", "Chinese", "French", "Spanish", "Portuguese")
"""Languages of the answers that the weights were trained on."""
READ = 600
"""Characters of an answer that tell its language."""
FEWEST_WORDS = 3
"""Common words of a language that must stand in an answer before it is named."""


@lru_cache(maxsize=256)
def untrained_language(answer: str) -> str | None:
    """Return the language or script of an answer if the detector was not trained on it, else None.

    Short answers and mixed ones have no language that could be told: they count as trained.

    >>> untrained_language("La risposta non è nei documenti che ho a disposizione.")
    'Italian'
    >>> untrained_language("The answer is not in the documents.") is None
    True
    """
    text = answer[:READ].lower()
    if not text.isascii():
        most = len(_LETTERS.findall(text)) / 2
        for script, letters in _OTHER_SCRIPTS.items():
            if len(letters.findall(text)) > most:
                return script
    words = {word for word in _WORDS.findall(text) if len(word) > 1}  # one letter says little: "i", "a"
    counts = dict.fromkeys(_COMMON_WORDS, 0)
    for word in words:
        for language in _languages_of_words().get(word, ()):
            counts[language] += 1
    likeliest = max(counts, key=counts.__getitem__)
    runner_up = max((counts[language] for language in TRAINED if language in counts), default=0)
    # In doubt trained: a wrong warning would send readers after nothing.
    if likeliest in TRAINED or counts[likeliest] < FEWEST_WORDS or counts[likeliest] <= runner_up:
        return None
    return likeliest


_LETTERS = re.compile(r"[^\W\d_]")
_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_OTHER_SCRIPTS = {
    "a language in Cyrillic script": re.compile(r"[\u0400-\u052f]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "a language in Arabic script": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "a language in Devanagari": re.compile(r"[\u0900-\u097f]"),
    "Bengali": re.compile(r"[\u0980-\u09ff]"),
    "Tamil": re.compile(r"[\u0b80-\u0bff]"),
    "Telugu": re.compile(r"[\u0c00-\u0c7f]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
    "Georgian": re.compile(r"[\u10a0-\u10ff]"),
    "Armenian": re.compile(r"[\u0530-\u058f]"),
    "Burmese": re.compile(r"[\u1000-\u109f]"),
    "Khmer": re.compile(r"[\u1780-\u17ff]"),
}


@cache
def _languages_of_words() -> dict[str, list[str]]:
    """Return the languages in which each frequent word is one."""
    languages: dict[str, list[str]] = {}
    for language, words in _COMMON_WORDS.items():
        for word in set(words.split()):
            languages.setdefault(word, []).append(language)
    return languages


def is_common_word(word: str) -> bool:
    """Return True if a word is frequent in a language of the training, whatever the text is about."""
    return not _TRAINED_CODES.isdisjoint(_languages_of_words().get(word, ()))


_TRAINED_CODES = frozenset(TRAINED)
_COMMON_WORDS = {
    "English": (
        "the and is are of to in that it for not with was on as this by be from or have has you can at "
        "which i'm do does they there but any about what we your my me so if no its was were than only "
        "per an"
    ),
    "German": (
        "der die das und ist nicht mit den von zu ein eine auf für dem im sich des sie es auch wird sind nach bei"
    ),
    "French": (
        "le la les des et est une du dans que qui pas pour sur ne avec sont par au ce cette vous il elle aux ou"
    ),
    "Spanish": "el la los las de que es en un una por para con no se del al lo su como más pero está son o este",
    "Portuguese": (
        "o a os as de e que é em um uma por para com não se do da no na ao como mais mas está são ou seu foi"
    ),
    "Italian": (
        "il lo la gli di e che è in un una per con non si del della nel nella dei delle sono come più ma ho alla"
    ),
    "Dutch": ("de het een en is van niet dat met op voor in te zijn er aan ook als bij door uit naar wordt deze geen"),
    "Swedish": "och att det är en ett som på för inte med av den till har de om kan från eller var så jag finns",
    "Danish": (
        "og at det er en et som på for ikke med af den til har de om kan fra eller var så jeg der findes "
        "hvad meget mig dig uden efter også mellem nogle være nu tager dage"
    ),
    "Norwegian": (
        "og at det er en et som på for ikke med av den til har de om kan fra eller var så jeg finnes der "
        "hva mye meg deg uten etter også mellom noen være nå tar dager"
    ),
    "Finnish": "ja on ei että se en ovat oli mutta kun myös tai joka siitä ole voi mukaan sekä tämä hän tietoa",
    "Polish": "i w na nie z się do że jest to o jak po od za ale przez dla są być ten czy lub może brak ma",
    "Czech": "a v na se je že to s z do o k pro ale jako jsou by od při nebo po není ve jsem který",
    "Romanian": "și în de la cu nu este pe un o din care pentru că sunt mai se au sau să fi ce nici",
    "Hungarian": "a az és hogy nem is egy van ez meg csak mint de volt ha vagy már kell még el erre nincs",
    "Turkish": "ve bir bu için ile de da çok daha olarak var ne gibi ama değil olan en kadar sonra yok bilgi",
    "Vietnamese": "và là của có không trong cho được với các một những này đã người để về từ khi theo tôi thông",
    "Indonesian": (
        "yang dan di ini itu dengan untuk tidak dari dalam pada adalah ke ada atau saya akan oleh bisa juga"
    ),
    "Catalan": "els amb més però són aquest està aquesta dels també sobre hi ha què això fins quan seva tots",
}
"""Frequent words by language."""


# ── the language of an answer ─────────────────────────────────────────────────────────────────────────────────

KNOWN_LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pt": "Portuguese",
    "it": "Italian",
    "nl": "Dutch",
    "sv": "Swedish",
    "da": "Danish",
    "no": "Norwegian",
    "fi": "Finnish",
    "pl": "Polish",
    "cs": "Czech",
    "ro": "Romanian",
    "hu": "Hungarian",
    "tr": "Turkish",
    "vi": "Vietnamese",
    "id": "Indonesian",
    "ca": "Catalan",
    "ko": "Korean",
    "ja": "Japanese",
    "zh": "Chinese",
    "el": "Greek",
    "he": "Hebrew",
    "th": "Thai",
    "ta": "Tamil",
    "te": "Telugu",
    "ka": "Georgian",
    "hy": "Armenian",
}
"""Languages that `language_of` tells apart, by their codes. Those that share a script with others without a list of
common words, such as Russian, are left out."""
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[a-zà-ɏḀ-ỿ]")
LEAD = 1.25
"""How many times as many common words the likeliest language must have as the next one. Danish and Norwegian share most
of theirs, so that short text in either is often left open."""
CLEARLY_OTHER = 2
"""How many times as many words of its own another language must have as the one that was expected."""
FOREIGN_SHARE = 0.25
"""Share of the letters that quoted names in the script of the expected language may have in a text of another one."""
SHORT_HAN = 20
"""Letters up to which a text of Han characters alone may be Japanese: an address, a name, a table."""


def language_of(text: str) -> str | None:
    """Return the code of the language of a text, or its script; None for too little text, or several languages.

    >>> language_of("The return costs four euros, and it takes a week.")
    'en'
    >>> language_of("반품 비용은 4유로입니다.")
    'ko'
    >>> language_of("OK.") is None
    True
    """
    text = text[:READ].lower()
    letters = len(_LETTERS.findall(text))
    if not letters:
        return None
    counts = {
        "ko": len(_HANGUL.findall(text)),
        "ja": len(_KANA.findall(text)),
        "zh": len(_HAN.findall(text)),
        "latin": len(_LATIN.findall(text)),
    }
    # Japanese mixes kana with Han; a Chinese text has hardly any kana.
    if counts["ja"] >= counts["zh"] / 8:
        counts["ja"] += counts["zh"]
        counts["zh"] = 0
    for script, pattern in _OTHER_SCRIPTS.items():
        counts[script] = len(pattern.findall(text))
    likeliest = max(counts, key=counts.__getitem__)
    # Half in one script and half in another has no language of its own.
    if 2 * counts[likeliest] <= letters:
        return None
    if likeliest == "latin":
        return _latin_language(text)
    if likeliest in KNOWN_LANGUAGES:
        return likeliest
    return _code_of(likeliest) or likeliest


def is_in_language(text: str, code: str) -> bool | None:
    """Return whether a text is in this language; None where that is not decided.

    Text of another language is told only if next to nothing speaks for the expected one: few of its common words, or
    few letters of its script.

    >>> is_in_language("The return costs four euros, and it takes a week.", "de")
    False
    >>> is_in_language("Det er en creme, og den er ikke dyr.", "no") is None
    True
    """
    found = language_of(text)
    if found is None:
        return None
    if found == code:
        return True
    read = text[:READ].lower()
    letters = len(_LETTERS.findall(read))
    if found == "zh" and code == "ja" and letters <= SHORT_HAN:
        return None
    if found in _LATIN_CODES and code in _LATIN_CODES:
        return None if _may_be(read, code, found) else False
    # A Japanese text has as many Han characters as a Chinese one; its kana tell.
    if found == "ja" and code == "zh":
        return False
    if len(_script_of(code).findall(read)) > FOREIGN_SHARE * letters:
        return None
    return False


def _may_be(text: str, code: str, found: str) -> bool:
    """Return True if words that only one of two languages has do not decide against the first."""
    own = set(_COMMON_WORDS[KNOWN_LANGUAGES[code]].split())
    others = set(_COMMON_WORDS[KNOWN_LANGUAGES[found]].split())
    words = [word for word in _WORDS.findall(text) if len(word) > 1]
    for_it = sum(word in own and word not in others for word in words)
    against_it = sum(word in others and word not in own for word in words)
    return against_it < FEWEST_WORDS or CLEARLY_OTHER * for_it >= against_it


def _script_of(code: str) -> re.Pattern[str]:
    """Return the letters of a known language."""
    if code in _LATIN_CODES:
        return _LATIN
    asian = {"ko": _HANGUL, "ja": _KANA, "zh": _HAN}
    return asian[code] if code in asian else _OTHER_SCRIPTS[KNOWN_LANGUAGES[code]]


_LATIN_CODES = frozenset(code for code, name in KNOWN_LANGUAGES.items() if name in _COMMON_WORDS)


def _common_words_in(text: str) -> Counter[str]:
    """Count the common words of each language in Latin script, by its code."""
    languages_of_words = _languages_of_words()
    counts: Counter[str] = Counter()
    for word in _WORDS.findall(text):
        if len(word) > 1:
            counts.update(filter(None, map(_code_of, languages_of_words.get(word, ()))))
    return counts


def _latin_language(text: str) -> str | None:
    """Return the language in Latin script that has clearly the most common words in a text."""
    ranked = [*_common_words_in(text).most_common(2), ("", 0), ("", 0)]
    likeliest, most = ranked[0]
    _, next_most = ranked[1]
    if most < FEWEST_WORDS or most < LEAD * next_most:
        return None
    return likeliest


@cache
def _code_of(name: str) -> str | None:
    return next((code for code, known in KNOWN_LANGUAGES.items() if known == name), None)
