"""The thoughts of a model in front of its answer: in tags, behind labels, or in channels.

An answer is what is left without them. A text that only mentions a tag is not cut.
"""

from __future__ import annotations

import re


def thoughts_and_answer(text: str) -> tuple[str, str]:
    r"""Split the answer of a system into its thoughts and what it says; the second is blank for thoughts alone.

    >>> thoughts_and_answer("<think>I do not know. Wait, it is 50 MB.</think>The limit is 50 MB.")
    ('I do not know. Wait, it is 50 MB.', 'The limit is 50 MB.')
    >>> thoughts_and_answer("Thought: I should search.\nFinal Answer: 50 MB")
    ('I should search.', '50 MB')
    >>> thoughts_and_answer("The tag `</think>` ends the thoughts.")
    ('', 'The tag `</think>` ends the thoughts.')
    """
    # Nearly every answer has none of them, and is spared the patterns.
    if not any(sign in text for sign in _SIGNS):
        return "", text
    found: list[str] = []
    rest = text
    for _ in range(_MOST_BLOCKS):
        block = _first_block(rest)
        if block is None:
            break
        thoughts, rest = block
        found.append(thoughts)
    if not found:
        thoughts, rest = unopened_thoughts(rest)
        found.append(thoughts)
    thoughts, rest = _labelled_thoughts(rest)
    found.append(thoughts)
    if rest == text:
        return "", text
    return "\n\n".join(filter(None, found)), _unwrapped(rest)


def thoughts_and_text(content: str | None) -> tuple[str, str | None]:
    """Split a reply into the thoughts between a pair of tags at its very beginning and what it says.

    A reply cut off within its thoughts has no text.
    """
    if content is None:
        return "", None
    opening = _OPENING_TAG.match(content)
    if opening is None:
        return "", content
    thoughts, is_closed, text = content[opening.end() :].partition(f"</{opening[1]}>")
    return thoughts.strip(), text if is_closed else ""


def unopened_thoughts(text: str) -> tuple[str, str]:
    """Split a text without a form into thoughts without an opening tag, and what it says.

    Servers that put the opening tag into the prompt send only the closing one, behind a sentence or on a line of its
    own. A tag in the middle of a sentence, in quotes or in code is mentioned: the text says something about it.
    """
    closing = _END_OF_THOUGHTS.search(text)
    if closing is None:
        return "", text
    thoughts = text[: closing.start("tag")]
    if thoughts.count("```") % 2 == 1 or _ANY_OPENING_TAG.search(thoughts):
        return "", text
    return thoughts.strip(), text[closing.end() :]


def _first_block(text: str) -> tuple[str, str] | None:
    """Return the thoughts in tags at the very beginning of a text, and the rest; None if it has none."""
    opening = _ANY_FORM.match(text)
    if opening is None:
        return None
    closing_tag = _closing_of(opening[0].strip(_WHITE))
    inner = text[opening.end() :]
    closing = re.search(re.escape(closing_tag), inner, re.IGNORECASE)
    if closing is None:
        # "<think> is the opening tag." mentions it; a model that thinks until its tokens end goes on for long.
        is_mention = _GOES_ON.match(inner) is not None
        return None if is_mention else (inner.strip(), "")
    thoughts = inner[: closing.start()]
    # "<think> and </think> are its tags."
    if _BETWEEN_MENTIONS.fullmatch(thoughts):
        return None
    return thoughts.strip(), inner[closing.end() :].lstrip(_WHITE)


def _closing_of(opening: str) -> str:
    """Return the tag that closes thoughts: `</think>` of `<think>`, `[/THINK]` of `[THINK]`."""
    lowered = opening.lower()
    if lowered.startswith("<details"):
        return "</details>"
    if lowered in _PAIRS:
        return _PAIRS[lowered]
    return f"{opening[0]}/{opening[1:]}"


def _labelled_thoughts(text: str) -> tuple[str, str]:
    """Split a text whose lines are labelled, as those of an agent are: Thought, Action, Observation, Final Answer."""
    beginning = _FIRST_LABEL.match(text)
    if beginning is None:
        return "", text
    answers = list(_ANSWER_LABEL.finditer(text))
    if answers:
        last = answers[-1]
        thoughts = text[beginning.end() : last.start()]
        return thoughts.strip(), text[last.end() :].lstrip(_WHITE)
    # Reasons without another label may be all that there is of an answer: "Reasoning: the leaflet says 50 MB."
    if _ACTION_LABEL.search(text):
        return text[beginning.end() :].strip(), ""
    return "", text


def _unwrapped(text: str) -> str:
    """Return what stands in the tags of an answer, if they are around all of it."""
    wrapped = _WRAPPED.fullmatch(text)
    return wrapped["answer"] if wrapped else text


_TAGS = "(think|thinking|thought|thoughts|reasoning)"
_OPENING_TAG = re.compile(rf"[\s\ufeff]*<{_TAGS}>")
CLOSING_TAG = re.compile(rf"</{_TAGS}>")
_ANY_OPENING_TAG = re.compile(rf"<{_TAGS}>")
_END_OF_THOUGHTS = re.compile(
    rf"""(?:\A\s*|[.!?…。！？)\]}}]["'”’]?[^\S\n]*|\n[^\S\n]*)(?P<tag></{_TAGS}>)(?=[^\S\n]*(?:\n|\Z)|[\w#*\[(])"""
)
"""A tag behind a sentence or at the beginning of a line, where the line ends or the answer begins at once."""
_SIGNS = ("<", "[", "◁", "hought", "easoning")
"""One of them is in every text with thoughts, whatever their form."""
_MOST_BLOCKS = 20
"""Blocks of thoughts one after the other: some models think again before each part."""
_WHITE = " \t\r\n\ufeff"
_PAIRS = {
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
"""Opening and closing marks of Kimi, of Open Thoughts, and of GPT-OSS, whose answer is a channel of its own."""
_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratchpad"
_ANY_FORM = re.compile(
    rf"[\s\ufeff]*(?:<(?:{_NAMES})>|\[(?:{_NAMES})\]|<details type=\"reasoning\"[^>\n]{{0,100}}>|"
    rf"{'|'.join(map(re.escape, _PAIRS))})",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[^\S\n]+[a-z]|[^\S\n]*[,;:.)/]")
"""A sentence that goes on behind a tag that it mentions."""
# Bounded, since a pattern that may begin anywhere in a row of signs or spaces takes the square of its length.
_BETWEEN_MENTIONS = re.compile(
    r"[^\w\n]{0,20}(?:\b(?:and|or|to|und|oder|et|ou|y|o)\b|[…/,+&-]|와|과|と|和)[^\w\n]{0,20}", re.IGNORECASE
)
_LINE = r"^[^\S\n]{0,20}(?:[*_#]{1,4}[^\S\n]{0,4})?"
"""The beginning of a line, and the marks of a heading or of bold type."""
_COLON = r"[*_]{0,2}:[*_]{0,2}"
_FIRST_LABEL = re.compile(
    rf"\s*(?:{_LINE}question{_COLON}.{{0,500}}\n)?{_LINE}(?:thoughts?|thinking|reasoning){_COLON}",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_LABEL = re.compile(rf"{_LINE}(?:final answer|answer){_COLON}", re.IGNORECASE | re.MULTILINE)
_ACTION_LABEL = re.compile(rf"{_LINE}(?:action|action input|observation){_COLON}", re.IGNORECASE | re.MULTILINE)
_WRAPPED = re.compile(r"\s*<(?P<tag>answer|response|output)>(?P<answer>.*)</(?P=tag)>\s*", re.IGNORECASE | re.DOTALL)
