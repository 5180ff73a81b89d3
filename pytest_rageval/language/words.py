"""Words and sentences of a text, as metrics, judges and the demo compare them.

Comparing: `normalise`, `squad_normalise`, `fold`, `as_label`. Cutting: `tokens`, `korquad_characters`,
`content_tokens`, `index_terms`, `sentences`. All are linear, shorter for ASCII.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from pytest_rageval.language.korean import LONE_PARTICLES, is_hangul, without_particles
from pytest_rageval.language.named_figures import may_hold_number_words
from pytest_rageval.language.plain_text import LONGEST, as_seen
from pytest_rageval.language.quantities import (
    QUANTITY,
    with_mega_units,
    with_plain_powers,
    with_plain_quantities,
)
from pytest_rageval.language.quantity_names import COMPARISONS, SIGNS

# ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=16)  # several metrics compare the same answer with the same gold, one after the other
def normalise(text: str) -> str:
    """Return the form in which two answers are compared: differences of typing disappear.

    NFKC, case folded, punctuation of all scripts removed, English articles removed, white space collapsed: the SQuAD
    normalisation, opened to other scripts. In addition, quantities keep what decides their value, in one form
    (see `pytest_rageval.language.quantities`), a hyphen between words is a space ("off-by-one" is "off by one"), a
    symbol of a name or unit stays (C++, C#, A+, .NET, m/s, m^2), and a step that would leave nothing is skipped ("A."
    is "a", "%" stays).
    """
    if len(text) <= LONGEST and not _UNUSUAL.search(text):
        folded = text.lower()
        has_mark = "." in folded or "-" in folded
        if not (has_mark and _JOINING_MARK.search(folded)) and not may_hold_number_words(folded):
            return _normalised_words(folded)
    return normalise_any(text)


def _normalised_words(folded: str) -> str:
    """Normalise a text of words and marks between them, in lower case, without figures and names with signs."""
    return _without_articles(folded.translate(_BETWEEN_WORDS)) or " ".join(folded.split())


def _without_articles(bare: str) -> str:
    words = bare.split()
    return " ".join([word for word in words if word not in _ARTICLES]) or " ".join(words)


def normalise_any(text: str) -> str:
    """Normalise a text of any kind; `normalise` gives the same, and takes a shorter way for plain words."""
    plain = _with_plain_quantities(text)
    if "-" in plain or "=" in plain:
        plain = _SPACE.sub(" ", plain)
    return _without_articles(_PUNCTUATION.sub("", plain)) or " ".join(as_label(text).split())


def _with_plain_quantities(text: str, *, compares: bool = True) -> str:
    """Fold the text, write quantities in one form and turn the punctuation of other scripts into ASCII."""
    text = as_seen(text)
    if text.isascii():
        return with_plain_quantities(with_mega_units(text).lower(), compares=compares)
    folded = _folded(with_plain_powers(with_mega_units(text)))
    return with_plain_quantities(folded.translate(_AS_ASCII), compares=compares)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def squad_normalise(text: str) -> str:
    """Apply `normalize_answer` of the official SQuAD script: lower case, no ASCII punctuation, no English articles.

    Source: evaluate-v2.0.py of rajpurkar/SQuAD-explorer. An answer of articles and punctuation alone becomes "".
    """
    return " ".join(_SQUAD_ARTICLE.sub(" ", text.lower().translate(_SQUAD_PUNCTUATION)).split())


def korquad_characters(text: str) -> list[str]:
    """Return the characters that the official KorQuAD script compares.

    These are the characters of the text in lower case, of any script, without white space and ASCII punctuation. The
    script splits words at quotation marks, round and angle brackets, which does not show in characters: they are
    left out too. Source: evaluate-v1.0.py of KorQuAD 1.0.
    """
    return [character for character in text.lower().translate(_KORQUAD_PUNCTUATION) if not character.isspace()]


def fold(text: str) -> str:
    """Fold case (NFC) and collapse white space, to find a quotation in a passage; punctuation stays."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFC", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())


def as_label(text: str) -> str:
    """Return the form in which names of entities, concepts and rules are compared: NFKC, case folded, trimmed."""
    if text.isascii():
        return text.lower().strip()
    return _folded(text).strip()


class _Characters(dict[int, "int | str | None"]):
    """A table for `str.translate` that classifies characters as they come; its size is bounded by the basic plane."""

    def __init__(self, mapping: dict[int, int | str | None], classify: Callable[[str, str], str | None]) -> None:
        super().__init__(mapping)
        self._classify = classify

    def __missing__(self, codepoint: int) -> int | str | None:
        character = chr(codepoint)
        replacement = self._classify(character, unicodedata.category(character))
        if codepoint <= 0xFFFF:
            self[codepoint] = replacement
        return replacement


def _as_ascii(character: str, category: str) -> str | None:
    if category == "Nd":
        return str(unicodedata.decimal(character))
    # Cf: zero-width and direction marks are invisible; two answers cannot differ by them.
    if category == "Cf":
        return None
    is_punctuation = category[0] == "P"
    return '"' if is_punctuation else character


# Marks that `statements` puts between clauses, \x01 to \x03, stay as words.
_UNUSUAL = re.compile(r"[^A-Za-z\s\x01-\x03,;:!?'\"().-]", re.ASCII)
_JOINING_MARK = re.compile(r"\.(?=[a-z])|(?<![a-z])-|-(?![a-z])")
"""A point before a letter, or a hyphen that is not between two letters: .NET, e.g, -x."""
_BETWEEN_WORDS = str.maketrans("-", " ", ",;:!?'\"().")
_ARTICLES = frozenset(("a", "an", "the"))
_SPECIAL: dict[int, int | str | None] = dict(zip(range(128), range(128), strict=True))
_SPECIAL.update(str.maketrans("‐‑‒–−—―·•’⁄∕×∼〜٫٬٪≦≧‰′", "-----    '//x~~.,%≤≥‰′"))
_AS_ASCII = _Characters(_SPECIAL, _as_ascii)
# Punctuation is kept if a quantity, a name or a unit would be another without it.
_SPACE = re.compile(
    rf"""
    =
    | (?=-)(?<=[^\s^{COMPARISONS}0-9])(?<![0-9]e)-(?=["'(\[]*\w) | (?<=[0-9])-(?=[^\s0-9])  # a hyphen between words
    """,
    re.VERBOSE,
)
_PUNCTUATION = re.compile(
    rf"""
    [^a-z0-9\s](?<=(?:  # a set first, since the search for one is several times faster than any other
    ["!&'(),;?@\[\\\]_`{{|}}~]
    | (?<![0-9])\.(?=[0-9]) | \.(?!\w) | (?<=[^\s"'(\[])\.(?=[^\W0-9])
    | (?<![0-9]): | :(?![0-9]) | /(?!\w) | (?<=[^\w\s])/ | (?<!\w)\^ | \^(?![\w-])
    | (?<![0-9])% | \$(?![0-9-]) | \* | (?<![\w+])\+ | (?<!\b[a-z])\# | \#(?=\w)
    | (?<!\ )[<>](?![-0-9{SIGNS}]) | [<>](?![-\ 0-9{SIGNS}])
    | (?<!\b[a-z])(?<!\bab)-(?![0-9{SIGNS}])
    ))
    """,
    re.VERBOSE,
)
_SQUAD_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KORQUAD_PUNCTUATION = str.maketrans("", "", string.punctuation + "《》〈〉‘’")
_SQUAD_ARTICLE = re.compile(r"\b(?:a|an|the)\b")

# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────

_HAN = r"\u3005\u3006\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HIRAGANA = r"\u3041-\u309f"
_KATAKANA = r"\u30a0-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"
_BRAHMIC = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Burmese and Khmer: written without spaces between words."""
# Patterns of these ranges take milliseconds to compile: only for texts outside ASCII.
_UNSPACED = _HAN + _HIRAGANA + _KATAKANA + _BRAHMIC
_HANGUL = r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"


@cache
def _token() -> re.Pattern[str]:
    # A combining mark (not a word character to `re`) belongs to the character that it stands on.
    return re.compile(rf"[{_UNSPACED}](?:(?!\w)[{_UNSPACED}])*|[^{_UNSPACED}\s]+")


@cache
def _run() -> re.Pattern[str]:
    return re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)|[^{_UNSPACED}{_HANGUL}\s]+")


@cache
def _content_run() -> re.Pattern[str]:
    return re.compile(rf"[{_HAN}]+|[{_KATAKANA}]+|[{_BRAHMIC}]+")


def tokens(text: str) -> list[str]:
    """Split the normalised text into tokens: words if the script writes spaces, else single characters.

    Single characters (with their combining marks): Han, Hiragana, Katakana, Thai, Lao, Khmer, Burmese. Particles are
    cut off Korean words (`서울에서` is `서울`). English articles are no tokens, as in SQuAD's F1; nor is a lone
    particle. A hyphen separates words, other punctuation joins them (`don't` is one token), and a unit is separated
    from its number (`110mW` is `110`, `mw`).
    """
    normal = normalise(text)
    if normal.isascii():
        return normal.split()
    pieces = _token().findall(normal)
    return list(_without_particles(pieces)) or pieces


def index_terms(text: str) -> list[str]:
    """Return the terms for a search index: case-folded words, and overlapping pairs of characters in unspaced scripts.

    Pairs are made of each run of Hangul (particles hang on its words) and of each run of a script without spaces. A
    term holds letters, digits and marks only. The number of terms serves as a text's size in tokens.
    """
    if text.isascii():
        return _ASCII_TERM.findall(text.lower())
    terms: list[str] = []
    for script, run in _runs(_folded(text).translate(_TERM_CHARACTERS)):
        terms.extend(_pairs(run) if script else (run,))
    return terms


def content_tokens(text: str, *, compares: bool = False) -> list[str]:
    """Return the words that carry meaning, to compare the subjects of two texts; never empty unless `tokens` is.

    English stop words are left out (negations are not stop words), Korean particles are cut off, quantities are in one
    form, and the parts of dates and ranges stand beside the whole. Han, Katakana and the scripts of South East Asia
    give pairs of characters; Hiragana, mostly grammar, is left out. With `compares`, "up to 5" is one word.
    """
    words: list[str] = []
    for at, part in enumerate(_ATOM.split(_with_plain_quantities(text, compares=compares))):
        if at % 2:
            words.append(part)
            if "-" in part[1:]:
                words.extend(_PARTS.findall(part))
        elif part.isascii():
            words.extend(word for word in _ASCII_CONTENT.findall(_CLITIC.sub("", part)) if word not in STOP_WORDS)
        else:
            words.extend(_foreign_content(_CLITIC.sub("", part)))
    return words or tokens(text)


def has_few_words(text: str, most: int) -> bool:
    """Check whether a text has at most so many content words.

    A short text mostly shows it before it is normalised: its tokens are no more than its runs of letters and digits.
    """
    if _PLAIN.fullmatch(text) is not None and 0 < len(_LETTERS_OR_DIGITS.findall(text)) <= most:
        return True
    return content_words(text) <= most


def content_words(text: str) -> float:
    """Count the tokens other than English stop words; a character of an unspaced script is half a word."""
    words = [word for word in tokens(text) if word not in STOP_WORDS]
    if text.isascii():
        return len(words)
    runs = [match for word in words if (match := _run().match(word))]
    return len(runs) - sum(run.lastgroup == "unspaced" for run in runs) / 2


def _foreign_content(folded: str) -> Iterator[str]:
    # A point within a figure belongs to it, as in ASCII texts: v2.0.
    for script, run in _runs(_LONE_POINT.sub(" ", folded).translate(_CONTENT_CHARACTERS)):
        if script == "unspaced":
            for content in _content_run().findall(run):
                yield from _pairs(content)
        elif script == "hangul":
            if run not in LONE_PARTICLES:
                yield without_particles(run)
        elif run not in STOP_WORDS:
            yield run


def _runs(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the words of a text, split where the script changes, each with 'hangul', 'unspaced' or None."""
    return ((match.lastgroup, match.group()) for match in _run().finditer(text))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _without_particles(words: list[str]) -> Iterator[str]:
    """Strip particles from words; a counter may be one syllable long: 2024 년에 → 2024 년."""
    after_number = False
    for word in words:
        if word not in LONE_PARTICLES:
            yield without_particles(word, least=1 if after_number else 2)
        after_number = word[-1].isdigit()


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


def _letters_digits_marks(character: str, category: str) -> str:
    return character if category[0] in "LNM" else " "


_TERM_CHARACTERS = _Characters({}, _letters_digits_marks)
_CONTENT_CHARACTERS = _Characters({ord("."): "."}, _letters_digits_marks)
_LONE_POINT = re.compile(r"(?<![0-9])\.|\.(?![0-9])")
_ASCII_TERM = re.compile(r"[a-z0-9]+")
_ATOM = re.compile(rf"({QUANTITY}|(?<!\w)[a-z]{{1,3}}(?:\#|\++)(?!\w)|(?<![^\s\"'(\[])\.[^\W\d]\w*)")
"""A word with its symbols: a quantity, C++, .NET."""
_PARTS = re.compile(r"[0-9.:]+")
_ASCII_CONTENT = re.compile(r"[a-z0-9]+(?:(?<=[0-9])\.(?=[0-9])[a-z0-9]+)*")
_LETTERS_OR_DIGITS = re.compile("[A-Za-z]+|[0-9]+")
_PLAIN = re.compile(r"""[A-Za-z0-9 .,;:!?'"()-]*""")
_CLITIC = re.compile(r"'(?:s\b)?")
"""An apostrophe joins (`don't` is `dont`); a possessive `'s` goes."""

STOP_WORDS = _words(
    """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here
    hers him his how i if in into is it its itself just me more most my of off on once only or other our ours
    out over own same she should so some such than that the their theirs them themselves then there these they
    this those through to too under until up very was we were what when where which while who whom why will with
    would you your yours
    """
)
"""English words of grammar; negations are none."""

# ── sentences ─────────────────────────────────────────────────────────────────────────────────────────────────


def sentences(text: str) -> list[str]:
    """Split a text into sentences, without surrounding white space, list markers or heading marks; drop blank ones.

    A sentence ends at the end of a line (so list items and table rows stand alone), at CJK, Indic and Arabic full
    stops, and at `.`, `!`, `?`, `…` before white space. A point ends none inside numbers, after abbreviations and
    initials, or before a lower-case word; nor does the end of a quotation before one. Closing quotes and citations such
    as `[1]` stay with the sentence that they follow.
    """
    parts: list[str] = []
    for line in text.splitlines():
        rest = _LIST_MARKER.sub("", line, count=1).strip()
        start = 0
        for end in _SENTENCE_END.finditer(rest):
            if _is_border(rest, start, end):
                parts.append(rest[start : end.end()].strip())
                start = end.end()
        parts.append(rest[start:].strip())
    return [sentence for sentence in parts if any(map(str.isalnum, sentence))]


def _is_border(line: str, start: int, end: re.Match[str]) -> bool:
    stop = end["stop"]
    if stop is None:
        # A quotation that the sentence goes on after: 「…。」と言った.
        return not (end["closing"] and line.startswith(("と", "って", "、", "，"), end.end()))
    following = line[end.end() : end.end() + 1]
    if following and not following.isspace():
        # Korean is often typed without a space after the point: 했다.그리고
        return stop == "." and is_hangul(following) and is_hangul(line[end.start() - 1 : end.start()])
    next_word = line[end.end() : end.end() + 8].lstrip()[:1]
    if next_word.islower() and (end["closing"] or not stop.strip(".…")):
        return False
    if stop != "." or end["closing"]:
        return True
    # No abbreviation is longer than 24 characters; the bound keeps a line without spaces linear.
    before = line[max(start, end.start() - 24) : end.start()].rsplit(maxsplit=2)
    word = before[-1].lstrip("([\"'“‘") if before else ""
    if len(before) > 1 and before[-2][-1].isdigit() and (len(word) == 1 or word in ("ms", "sec")):
        return True  # a unit, not an initial or a title: 5 g. The …
    if word.casefold() in _NEVER_LAST or (word[:1].isupper() and word.casefold() in _TITLES):
        return False
    if _INITIALS.fullmatch(word):
        return False
    return not (word.casefold() in _NUMBERED and next_word.isdigit())


_SENTENCE_END = re.compile(
    r"(?:(?P<stop>[.!?…]+)|[。！？｡।॥۔؟።။។]+)"
    r"(?P<closing>[\"'”’»)\]」』】》]*)(?:\s?\[\d{1,3}(?:[,\s–-]+\d{1,3})*\])*"
)
_LIST_MARKER = re.compile(r"\s*(?:>\s*)*(?:#{1,6}\s+|(?:[-*+•◦▪‣·]|\d{1,3}[.)]|\(\d{1,3}\)|[①-⑳])\s+)?")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_NEVER_LAST = _words(
    """
    vs cf ca approx fig figs eq eqs sec ch vol ed eds dept est bzw usw evtl ggf vgl sog inkl zzgl bspw nr tel abs
    bd hrsg env resp incl esp viz
    """
)
_TITLES = _words("dr mr mrs ms prof st mt gen gov sen rep rev hon capt lt col sgt")
"""Before a name, with a capital: Ms. Lee, but 7 ms."""
_NUMBERED = _words("no nos p pp art para jan feb mar apr jun jul aug sep sept oct nov dec")
"""Abbreviations before a number only: No. 5, p. 12, Mar. 3."""
