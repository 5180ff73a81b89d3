"""Texts as they are seen: without the marks that a PDF, a web page or Markdown adds and that no reader sees."""

from __future__ import annotations

import html
import re

LONGEST = 1_000_000
"""Characters of a text that are compared."""


def as_seen(text: str) -> str:
    """Return a text without invisible characters and marks of Markdown and HTML, with plain quotes and dashes.

    Links become their text, escapes and entities the character that they stand for, a word that is hyphenated at the
    end of a line becomes whole, and spaces between characters of scripts without spaces go. All patterns are linear.
    """
    text = text[:LONGEST]
    if _ANY_MARK.search(text) is None:
        return text
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if not text.isascii():
        text = text.translate(SEEN_SIGNS)
        text = without_cjk_spaces(text)
    if "[" in text:
        text = _LINK.sub(r"\1", text)
    if "|" in text:
        text = _TABLE_RULE.sub("", text).replace("|", " ")
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    return _HYPHENATED.sub("", text) if "-" in text else text


def without_cjk_spaces(text: str) -> str:
    """Return a text without the spaces and line breaks between characters of scripts that are written without."""
    return _SPACE_WITHIN_CJK.sub("", text)


_ANY_MARK = re.compile(r"[&|\\\[\u0080-\U0010ffff]|-\s*\n")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_INVISIBLE = (0xAD, 0x34F, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
SEEN_SIGNS: dict[int, str | None] = {
    **dict.fromkeys(_INVISIBLE),
    **dict.fromkeys(map(ord, "‘’‚‛ʼ＇"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»＂"), '"'),
    ord("…"): "...",
}
"""How signs are seen: invisible ones not at all, and one kind of quotes."""
_CJK = "\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SPACE_WITHIN_CJK = re.compile(rf"(?<=[{_CJK}])\s{{1,20}}(?=[{_CJK}])")
_LINK = re.compile(
    r"!?\[([^\[\]\n]{1,1000})\](?:\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?:\s\"[^\"\n]{0,200}\")?\)|\[[^\[\]\n]{1,200}\])"
)
"""A link or picture with its address, or with the name of one."""
_TABLE_RULE = re.compile(r"(?<![^\n])[ \t]{0,9}\|[ \t|:-]{2,400}(?![^\n])")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-[ \t]{0,9}\r?\n[ \t]{0,99}(?=[a-zß-ÿ])")
