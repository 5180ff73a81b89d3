"""Of whom or what an answer says what is asked: "The treasurer signs; the secretary receives a copy".

An answer may name the gold and deny what is asked of it: "The carrier is not liable", "Everything except water damage",
"It used to be 24 months", "Berlin is only a branch". The gold is denied if each part that names it does so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.opposites import ALLOWED, asks_for_exception
from pytest_rageval.language.polarity_words import NOT_DENYING_BEFORE
from pytest_rageval.language.question_fit import read_part, shared_content, shared_words
from pytest_rageval.language.statements import read
from pytest_rageval.language.yes_or_no import asked_sides, asked_words, denies, parts_of, side_of


def are_of_another(names: frozenset[str], answer: str, question: str) -> bool:
    """Check whether an answer gives all names only beside another to whom the question's words belong.

    "Ms Weber chairs the meeting; Mr Klein takes the minutes." Only parts are compared that a semicolon or a word such
    as "while" divides: a name behind a comma is often the answer itself.
    """
    if compiled_pattern(_CHANGE_OF_SUBJECT, re.IGNORECASE).search(answer) is None:
        return False
    is_given = False
    for sentence in compiled_pattern(_SENTENCE_END).split(answer):
        parts = [
            read_part(list(read(part).pieces))
            for part in compiled_pattern(_CHANGE_OF_SUBJECT, re.IGNORECASE).split(sentence)
        ]
        fits = [shared_content(words, runs, question) for words, _, runs in parts]
        for (words, _, _), fit in zip(parts, fits, strict=True):
            if names.isdisjoint(words):
                continue
            is_given = True
            is_subject = words[0] in names
            if not is_subject or not any(fit < other for other in fits):
                return False
    return is_given


def is_denied_of(names: Collection[str], answer: str, question: str) -> bool:
    """Check whether each part of an answer that names a gold denies what the question asks of it.

    names  the words and runs of the gold, as they are written
    """
    parts = _parts_that_may_deny(answer)
    if not parts or _asks_negatively(question):
        return False
    naming = [(part, min(places)) for part in parts if (places := _places(names, part))]
    if not naming:
        return False
    if _is_past(parts, [part for part, _ in naming], question):
        return True
    is_alone = len(parts) == 1
    return all(
        _is_excepted(part, place, names)
        or _is_demoted(part, place, is_alone=is_alone)
        or _lacks_what_is_asked(part[place:], question, is_alone=is_alone)
        for part, place in naming
    )


@lru_cache(maxsize=16)
def _parts_that_may_deny(answer: str) -> tuple[str, ...]:
    """Return the parts of an answer; none if nothing in it may deny, as in most."""
    pieces = read(answer).pieces
    may_deny = not _MAY_DENY.isdisjoint(pieces)
    if not may_deny and not answer.isascii():
        may_deny = compiled_pattern(_MAY_DENY_WITHIN).search(answer) is not None
    if not may_deny:
        return ()
    return tuple(parts_of(list(_with_exceptions(pieces))))


def _with_exceptions(pieces: Sequence[str]) -> Iterator[str]:
    """Yield the pieces with "except" in place of a "but" that makes an exception: everyone but interns."""
    before = ""
    for piece in pieces:
        yield "except" if piece == "but" and before in _ALL else piece
        before = piece


def _places(names: Collection[str], part: str) -> list[int]:
    """Return where a part names a gold."""
    found = [_place(name, part) for name in names]
    return [place for place in found if place >= 0]


def _place(name: str, part: str) -> int:
    """Return where a part has a figure, a word with any ending, or a run of a script without spaces; -1 for nowhere.

    Without a pattern: to compile one for each name takes longer than all else.
    """
    place = part.find(name)
    if name[-1].isdigit():
        while place >= 0 and not _is_whole_figure(part, place, place + len(name)):
            place = part.find(name, place + 1)
    elif name[0] < "぀":
        while place > 0 and _is_letter_or_digit(part[place - 1]):
            place = part.find(name, place + 1)
    return place


def _is_whole_figure(text: str, begin: int, end: int) -> bool:
    before = text[begin - 1 : begin]
    if before and (_is_letter_or_digit(before) or before in ".,"):
        return False
    behind = text[end : end + 2]
    return not (behind[:1].isdigit() or (behind[:1] in (".", ",") and behind[1:].isdigit()))


def _is_letter_or_digit(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=256)
def _asks_negatively(question: str) -> bool:
    asked = asked_words(question)
    return denies(asked) or asks_for_exception(question) or compiled_pattern(_ASKS_WHY).search(asked) is not None


def _is_excepted(part: str, place: int, names: Collection[str]) -> bool:
    """Check that the gold stands behind "except", or before it where a language has it there: 구매자를 제외한."""
    before = part[:place].rstrip()
    if compiled_pattern(_EXCEPT_BEFORE).search(before) is not None:
        return True
    longest = max(map(len, names))
    return compiled_pattern(_EXCEPT_BEHIND).match(part, place) is not None and len(part) > place + longest


def _is_demoted(part: str, place: int, *, is_alone: bool) -> bool:
    """Check for a subject that only is something else, beside a part that answers: Berlin is only a branch."""
    if is_alone:
        return False
    only = compiled_pattern(_IS_ONLY).search(part, place)
    return only is not None and part[place : only.start()].count(" ") <= _WORDS_BEFORE_ONLY and place <= _NEAR_BEGINNING


def _is_past(parts: Sequence[str], naming: list[str], question: str) -> bool:
    """Check that the gold is named only as what was, or as what some say, and another part says what is."""
    for earlier, later, in_question in _SUPERSEDED:
        if compiled_pattern(in_question).search(question.lower()) is not None:
            continue
        is_told = all(compiled_pattern(earlier).search(part) is not None for part in naming)
        if is_told and any(compiled_pattern(later).search(part) is not None for part in parts if part not in naming):
            return True
    return False


def _lacks_what_is_asked(behind: str, question: str, *, is_alone: bool) -> bool:
    """Check that what follows a gold in its part denies the predicate of the question."""
    predicate = compiled_pattern(_SUBORDINATE).split(behind, maxsplit=1)[0]
    for opposites, side in asked_sides(question):
        its_side = side_of(predicate, opposites)
        if its_side is not None:
            return side is not its_side
    negation = compiled_pattern(_NEGATION).search(predicate)
    if negation is None or negation[1] in NOT_DENYING_BEFORE:
        return False
    before = predicate[: negation.start()]
    if shared_words(before, question) and compiled_pattern(_NEGATED_BEFORE).match(negation[0]) is None:
        # "The carrier is liable for no more than…": what is asked is said before the negation.
        return False
    rest = predicate[negation.end() :]
    if is_alone and before.count(" ") <= _WORDS_OF_A_SUBJECT:
        # Whatever is denied of the only subject of an answer, it is not what is asked for.
        return True
    return bool(shared_words(predicate, question)) or not rest.strip() or ALLOWED.positive.search(rest) is not None


_MAY_DENY = frozenset(
    (
        *("not", "no", "never", "cannot", "cant", "wont", "dont", "doesnt", "didnt"),
        *("isnt", "arent", "wasnt", "werent", "hasnt", "havent", "hadnt", "couldnt", "shouldnt"),
        *("wouldnt", "mustnt", "neednt", "except", "excepting", "excluding", "excluded", "but", "apart"),
        *("other", "only", "just", "merely", "used", "formerly", "previously", "originally", "until"),
        *("earlier", "some", "often", "lost", "lose", "loses", "beaten", "defeated", "nicht"),
        *("kein", "keine", "keinen", "keinem", "keiner", "nie", "niemals", "ausser", "ausgenommen"),
        *("ausgeschlossen", "ausnahme", "bis", "nur", "bloss", "lediglich", "früher", "ehemals", "einst"),
        *("bislang", "manche", "einige", "verlor", "verloren", "unterlag", "besiegt", "verboten", "pas"),
        *("ne", "jamais", "sauf", "excepté", "hormis", "exception", "part", "seulement", "autrefois"),
        *("auparavant", "jusquen", "avant", "certains", "perdu", "battu", "battue", "nunca", "tampoco"),
        *("menos", "excepto", "salvo", "solo", "sólo", "solamente", "antes", "anteriormente", "hasta"),
        *("algunos", "perdió", "derrotado", "prohibited", "forbidden", "banned", "closed", "exempt", "unavailable"),
        *("expired"),
    )
)
_MAY_DENY_WITHIN = (
    "않|없|못|(?<![가-힣])안 |제외|빼고|단지|예전|이전|과거|졌|ない|ません"
    "|以外|以前|かつて|除|だけ|過ぎ|不|没|只|仅|过去|原来"
)
"""Without any of these no part denies; most answers have none."""
_ASKS_WHY = r"\b(?:why|warum|wieso|pourquoi|por qué)\b|왜|なぜ|为什么"
_ALL = frozenset(("all", "anybody", "anyone", "anything", "everybody", "everyone", "everything", "everywhere"))
_EXCEPT_BEFORE = (
    r"(?:\b(?:except(?:ing)?(?: for)?|excluding|apart from|other than|with the exception of|ausser|ausgenommen"
    r"|mit ausnahme (?:von|der|des)|bis auf|sauf|excepté|hormis|à (?:exception|part)(?: d\w*)?|todos menos|todo menos"
    r"|excepto|salvo)"
    r"(?: (?:the|der|den|dem|die|das|des|le|la|les|l|el|los|las|to|für|for|pour|para))?|除了?|제외하고)$"
)
_EXCEPT_BEHIND = (
    r"[^ ]{1,20}?(?:를|을)? ?(?:제외한|제외하고|빼고)"
    r"|[一-鿿぀-ヿ]{1,20}?(?:以外|を除)"
)
_IS_ONLY = (
    r"\b(?:is|are|was|ist|sind|est|sont|es|son) (?:only|just|merely|nur|bloss|lediglich|seulement|solo|sólo"
    r"|solamente)\b"
    r"|은? ?단지|は.{0,6}(?:にすぎ|だけ|に過ぎ)|只是|仅是"
)
_WORDS_BEFORE_ONLY = 4
_WORDS_OF_A_SUBJECT = 3
_NEAR_BEGINNING = 12
"""Characters before a subject: an article, or a preposition."""
_SUPERSEDED = (
    (
        (
            r"\b(?:used to|formerly|previously|originally|until|earlier|früher|ehemals|einst|bislang|bis [12][0-9]{3}"
            r"|autrefois|auparavant|jusquen|avant|antes|anteriormente|hasta)\b|예전|이전에|과거|以前|かつて|过去|原来|从前"
        ),
        (
            r"\b(?:now|today|currently|nowadays|since|meanwhile|jetzt|heute|inzwischen|mittlerweile|derzeit|seitdem|seit"
            r"|maintenant|aujourdhui|désormais|actuellement|depuis|ahora|hoy|actualmente|desde)\b"
            r"|지금|현재|이제|現在|今は|今では|现在|如今|目前"
        ),
        (
            r"\b(?:was|were|did|used to|former\w*|previous\w*|original\w*|until|before|had|war|waren|früher|hatte|bis"
            r"|était|avait|avant|jusqu|era|fue|antes|hasta|tenía)\b|예전|이전|과거|였|었|以前|かつて|でした|ました|过去|原来|之前"
        ),
    ),
    (
        (
            r"\b(?:some (?:say|claim|think|believe)|often (?:thought|said)|manche sagen|einige sagen|certains disent"
            r"|algunos dicen)\b"
        ),
        (
            r"\b(?:it (?:is|was)|actually|in fact|in reality|es (?:ist|war)|tatsächlich|en réalité|cétait|en realidad"
            r"|fue)\b"
        ),
        r"\b(?:say|claim|think|believe|sagen|disent|dicen)\b",
    ),
)
"""What was or is only said, what is in its place, and questions that ask for the former."""
_SUBORDINATE = (
    r" (?:if|when|unless|because|that|who|which|where|whose|wenn|falls|weil|dass|quand|parce|cuando|porque|rather"
    r"|instead|unlike|without|statt|anstatt|ohne|sans|sin) "
    "|而不是|而非|ではなく|じゃなく"
)
_NEGATED_BEFORE = "nicht|nie|kein|ne |n|[가-힣぀-ヿ一-鿿]"
"""Negations that may stand behind the verb that they deny."""
_NEGATION = (
    r"\b(?:not|never|cannot|cant|wont|dont|doesnt|didnt|isnt|arent|wasnt|werent|hasnt|havent|hadnt|couldnt|shouldnt"
    r"|wouldnt|mustnt|neednt|no longer|nicht|nie|niemals|keine?[nrms]?|ne|pas|jamais|no|nunca|tampoco)\b ?(\w*)"
    r"|(?:(?<![가-힣])안 |않|없|못하|못합|불가|아니|ない|ません|不|没|无法)()"
)
_SENTENCE_END = r"(?<=[.!?])\s+|\n+"
_CHANGE_OF_SUBJECT = (
    r";|\s(?:while|whereas|während|wohingegen|tandis que|alors que|mientras que)\s"
    r"|,\s(?:with|but|aber|mais|pero)\s"
    r"|(?<=\w)\s(?:and|und|et|y)\s(?=(?:Mr|Ms|Mrs|Dr|Herr|Frau|Mme)\b)"
)
