"""Texts without the tags of HTML and the commands of LaTeX that no reader sees: <b>50</b> MB."""

from __future__ import annotations

import re


def without_markup(text: str) -> str:
    """Return a text without tags of HTML that shape text, and without delimiters and commands of formulas."""
    if "<" in text and ">" in text:
        text = _POWER.sub("^", text)
        text = _INLINE_TAG.sub("", text)
        text = _TAG.sub(" ", text)
    if "\\" in text:
        text = _FORMULA_TEXT.sub(r"\1", text)
        text = _FORMULA_SPACE.sub(" ", text)
        text = _DELIMITER.sub(" ", text)
    if text.count("$") > 1:
        text = _DOLLARS.sub(r"\1", text)
    return text


_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|code|em|i|kbd|mark|s|small|span|strong|sub|u)(?:\s[^<>]{0,500})?/?>", re.IGNORECASE
)
_TAG = re.compile(
    r"</?(?:blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|sup|table|tbody|td|th|thead|tr|ul)(?:\s[^<>]{0,500})?/?>",
    re.IGNORECASE,
)
_POWER = re.compile(r"(?<=m)<sup>(?=[23])", re.IGNORECASE)
_FORMULA_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit|boxed|operatorname)\{([^{}]{0,200})\}")
_FORMULA_SPACE = re.compile(r"\\[,;:! ]|\\(?:quad|qquad|thinspace)\b")
_DELIMITER = re.compile(r"\\[()\[\]]")
_DOLLARS = re.compile(r"(?<![\w$\\])\$([^\s$](?:[^$\n]{0,200}[^\s$])?)\$(?![\w$])")
"""A formula between dollar signs; of amounts, "$5 and $60", the second sign stands before a figure."""
