"""Identifiers of a gold answer, which are compared as a whole: GPT-4o, API_KEY, `debug = true`, npm ci.

A part of one is another: GPT-4, API_KEY_ID. Case and what joins the parts do not count: COVID-19 is Covid 19.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.statements import LONGEST


class Identifier(NamedTuple):
    """An identifier as a gold has it, and the pattern of the texts that have it too."""

    written: str
    pattern: re.Pattern[str]


@lru_cache(maxsize=4096)
def identifiers_of(gold: str, question: str) -> tuple[Identifier, ...]:
    """Return the identifiers of a gold that its question does not have."""
    gold = gold[:_LONGEST_GOLD]
    # Few golds have any, and their patterns try every place.
    if _HINT.search(gold) is None and not _asks_for_code(question):
        return ()
    found = [one for one in _found(gold, question) if one.pattern.search(question[:LONGEST]) is None]
    return tuple(found)


def acronyms_of(gold: str) -> tuple[str, ...]:
    """Return the words of a gold in capitals, in which a last S is no plural: HTTP and HTTPS."""
    return tuple(compiled_pattern(_ACRONYM).findall(gold[:_LONGEST_GOLD]))


def has_acronyms(answer: str, acronyms: Sequence[str]) -> bool:
    """Check that an answer has no acronym only with another end: HTTP where the gold has HTTPS."""
    said = set(compiled_pattern(_ACRONYM).findall(answer[:LONGEST]))
    for acronym in acronyms:
        other = acronym[:-1] if acronym.endswith("S") else f"{acronym}S"
        if other in said and acronym not in said:
            return False
    return True


def as_named(answer: str, identifiers: Sequence[Identifier]) -> str:
    """Return an answer with the identifiers written as the gold has them."""
    if not identifiers:
        return answer
    answer = unicodedata.normalize("NFKC", answer[:LONGEST])  # CO₂
    for identifier in identifiers:
        answer = identifier.pattern.sub(identifier.written.replace("\\", r"\\"), answer)
    return answer


def _found(gold: str, question: str) -> Iterator[Identifier]:
    bare = gold.strip(" `.\n")
    asks_for_code = _asks_for_code(question)
    is_code = bare.isascii() and 1 <= bare.count(" ") <= _WORDS_OF_A_COMMAND and bare[:1].islower()
    is_quoted = gold.count("`") == len("``")
    is_command = is_code and (asks_for_code or is_quoted)
    is_package = asks_for_code and compiled_pattern(_JOINED).fullmatch(bare) is not None
    if (is_command or is_package) and "=" not in bare:
        yield Identifier(bare, _whole(r"[\s`]+".join(map(re.escape, bare.split()))))
    for setting in compiled_pattern(_SETTING).finditer(gold):
        key, value = map(re.escape, setting.groups())
        yield Identifier(setting[0], _whole(rf"{key}[`\"']?\s*(?:(?:=|:|to|is|as|auf|à|a)\s*)?[`\"']?{value}"))
    for name in compiled_pattern(_NAME).finditer(gold):
        parts = compiled_pattern(_PART).findall(name[0])
        plural = "s?" if name[0][-1].isdigit() else ""
        yield Identifier(name[0], _whole(r"[-_\s./]?".join(parts) + plural))


@lru_cache(maxsize=256)
def _asks_for_code(question: str) -> bool:
    return compiled_pattern(_ASKS_FOR_CODE, re.IGNORECASE).search(question[:LONGEST]) is not None


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_])(?<![0-9][.,]){pattern}{_NOTHING_MORE}", re.IGNORECASE)


_LONGEST_GOLD = 200
_WORDS_OF_A_COMMAND = 6
_HINT = re.compile("[_=`]|[0-9]-?[A-Za-z]|[A-Za-z]-?[0-9]|[A-Z]{2}-[A-Z]")
_NAME = (
    r"(?<![\w.,/-])(?:"
    r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+"  # API_KEY
    r"|(?<![0-9] )(?!(?:mid|pre|post|early|late)-|[QqHh][1-4]\b|(?:EUR|USD|GBP|CHF|JPY|KRW|INR|CNY|Rs|RM)[0-9])"
    r"[A-Za-z]+(?:-[A-Za-z]+){0,3}-?[0-9]+[A-Za-z0-9]*(?:-[A-Za-z0-9]+){0,4}"  # GPT-4o, eu-west-1, MP3; not 50 m2, Q3
    r"|[A-Z]{2,}-[A-Z]"  # USB-C
    r"|[0-9]+-[A-Z]|(?<=[A-Za-z] )[0-9]+[a-c]"  # form 12-B, article 7a
    r")(?![\w/]|-\w|\.[0-9])"
)
_ACRONYM = r"\b[A-Z]{3,8}\b"
_PART = "[A-Za-z]+|[0-9]+"
_SETTING = r"(?<![\w.-])([A-Za-z_][\w.-]*)\s*=\s*[\"'`]?([\w.-]*\w)"
_JOINED = r"(?<![a-z0-9])[a-z0-9]+(?:[-_.][a-z0-9]+)+"
_ASKS_FOR_CODE = (
    r"\b(?:command|package|library|module|branch|befehl|kommando|paket|commande|paquet|comando|paquete)\b"
    r"|명령|패키지|コマンド|パッケージ|命令|软件包"
)
_NOTHING_MORE = r"(?![A-Za-z0-9]|_[A-Za-z0-9]|-[0-9]|-[A-Za-z](?![A-Za-z])|\.[0-9])"
"""Behind an identifier: GPT-4 is not in GPT-4o, nor X-204 in X-204-B, but COVID-19 is in COVID-19-related."""
