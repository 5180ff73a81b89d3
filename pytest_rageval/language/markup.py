"""Texts without the tags of HTML and the commands of LaTeX that no reader sees: <b>50</b> MB."""

from __future__ import annotations

import re

from pytest_rageval.language.lazy_patterns import compiled_pattern


def without_markup(text: str) -> str:
    """Return a text without tags of HTML that shape text, and without delimiters and commands of formulas."""
    if "<" in text and ">" in text:
        text = compiled_pattern(_POWER, re.IGNORECASE).sub("^", text)
        text = compiled_pattern(_INLINE_TAG, re.IGNORECASE).sub("", text)
        text = compiled_pattern(_TAG, re.IGNORECASE).sub(" ", text)
    if "\\" in text:
        text = compiled_pattern(_FORMULA_TEXT).sub(r"\1", text)
        text = compiled_pattern(_FORMULA_SPACE).sub(" ", text)
        text = compiled_pattern(_DELIMITER).sub(" ", text)
    if text.count("$") > 1:
        text = compiled_pattern(_DOLLARS).sub(r"\1", text)
    return text


_INLINE_TAG = r"</?(?:a|abbr|b|code|em|i|kbd|mark|s|small|span|strong|sub|u)(?:\s[^<>]{0,500})?/?>"
_TAG = (
    r"</?(?:blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|sup|table|tbody|td|th|thead|tr|ul)(?:\s[^<>]{0,500})?/?>"
)
_POWER = r"(?<=m)<sup>(?=[23])"
_FORMULA_TEXT = r"\\(?:text|mathrm|mathbf|textbf|mathit|boxed|operatorname)\{([^{}]{0,200})\}"
_FORMULA_SPACE = r"\\[,;:! ]|\\(?:quad|qquad|thinspace)\b"
_DELIMITER = r"\\[()\[\]]"
_DOLLARS = r"(?<![\w$\\])\$([^\s$](?:[^$\n]{0,200}[^\s$])?)\$(?![\w$])"
"""A formula between dollar signs; of amounts, "$5 and $60", the second sign stands before a figure."""
