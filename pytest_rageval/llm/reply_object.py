"""The one JSON object of a model's reply, read by a closed grammar: what a reply quotes is never taken for the reply.

A reply is optional thoughts, one JSON object, at most a code fence around it, and white space or stop tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from pytest_rageval.io.strict_json import LONE_SURROGATE, StrictJsonError, limits_broken, parse_beginning
from pytest_rageval.llm.json_exchange import INVISIBLE, UnreadableReply, quoted_json
from pytest_rageval.llm.thoughts import CLOSING_TAG
from pytest_rageval.model import Json
from pytest_rageval.text import excerpt

LONGEST_REPLY = 100_000
"""Characters; a longer reply is not read."""

DEEPEST = 8
"""Levels of brackets; a reply that nests deeper is not read."""


class ReplyObject(NamedTuple):
    """The object of a reply, its text, and whether thoughts without an opening tag stood before it."""

    members: dict[str, Json]
    text: str
    has_thoughts: bool = False


def stated_object(text: str) -> dict[str, Json]:
    """Return the members of the one JSON object in a reply; raise UnreadableReply if it has none, or more."""
    return reply_object(text).members


def reply_object(text: str, fields: Collection[str] = ()) -> ReplyObject:
    """Return the one JSON object in a reply, which may stand in a code fence with white space around it.

    Any other text makes the reply unreadable: the object may be a quotation, and the text say something else. The
    exception are thoughts that end with one closing tag: servers that put the opening tag into the prompt send only
    that. `fields` are those of a verdict: where one of them is stated before the tag, the verdict may stand there.
    Without them no object may.
    """
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(f"it is {len(text):,} characters long, more than {LONGEST_REPLY:,}")
    if LONE_SURROGATE.search(text):
        raise UnreadableReply("it holds a lone surrogate, which is no character")
    plain = _without_stop_tokens(text)
    if not plain:
        raise UnreadableReply("it is empty")
    try:
        return _whole_object(plain)
    except UnreadableReply:
        behind = _behind_thoughts(plain, fields)
        if behind is None:
            raise
    if not behind:
        raise UnreadableReply("it holds thoughts and no reply")
    return _whole_object(behind)._replace(has_thoughts=True)


def _behind_thoughts(plain: str, fields: Collection[str]) -> str | None:
    """Return what follows thoughts without an opening tag; None if the text before the tag may be the verdict."""
    closing = CLOSING_TAG.search(plain)
    if closing is None:
        return None
    verdict = _ANY_OBJECT
    if fields:
        names = "|".join(map(re.escape, fields))
        verdict = re.compile(rf'"(?:{names})"\s*:|<{closing[1]}>')
    thoughts = plain[: closing.start()]
    if verdict.search(thoughts):
        return None
    return plain[closing.end() :].strip(INVISIBLE)


_ANY_OBJECT = re.compile(r'\{\s*["}]|<think')


def _whole_object(plain: str) -> ReplyObject:
    """Return the object that a text is, alone or in a code fence."""
    fence = _FENCE.match(plain)
    if fence is not None:
        plain = _without_stop_tokens(plain[fence.end() :].removesuffix(fence[1]))
    if plain.startswith("["):
        raise UnreadableReply(f"it holds a list, expected one object: {quoted_json(plain)}")
    if "{" not in plain:
        raise UnreadableReply(f"it holds no JSON object: {quoted_json(plain)}")
    if not plain.startswith("{"):
        raise UnreadableReply(f"it does not begin with its JSON object: {quoted_json(plain)}")
    try:
        plain, stated, end = _parsed(plain)
    except StrictJsonError as error:
        raise UnreadableReply(excerpt(f"its object is not valid JSON ({error.oddities[0].message})", 250)) from None
    problem = limits_broken(stated, DEEPEST)
    if problem:
        raise UnreadableReply(f"its object {problem}")
    behind = plain[end:].strip(INVISIBLE)
    if behind:
        raise UnreadableReply(f"it goes on behind its JSON object: {quoted_json(behind)}")
    assert isinstance(stated, dict), "what begins with a brace and is JSON is an object"
    return ReplyObject(stated, plain[:end])


# The language may be missing, and so may the end: a stop sequence may cut it off.
_FENCE = re.compile(r"(```|~~~)[A-Za-z0-9]*\s*")


# ── what models write around an object and in its strings ─────────────────────────────────────────────────────


def _without_stop_tokens(text: str) -> str:
    """Strip white space, and at the end the stop tokens of models that a server did not take off."""
    plain = text.strip(INVISIBLE)
    while token := next((token for token in STOP_TOKENS if plain.endswith(token)), None):
        plain = plain.removesuffix(token).rstrip(INVISIBLE)
    return plain


STOP_TOKENS = (
    "</s>",
    "<eos>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|END_RESPONSE|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|eot|>",
    "<|im_end|>",
    "<|return|>",
    "<|user|>",
    "<|EOT|>",
    "<end_of_turn>",
    "<turn|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "[EOS]",
)
"""The last tokens of ChatML, Llama, Mistral, Gemma, Phi, Command, DeepSeek, GPT-OSS, GLM, SmolVLM and MiniMax."""


def _parsed(plain: str) -> tuple[str, Json, int]:
    """Parse the JSON value at the beginning of a text; return the text as it was read, the value and where it ends.

    Models without a schema leave line breaks in strings unescaped, and write LaTeX there: such an object is whole and
    means one thing.
    """
    try:
        return plain, *parse_beginning(plain)
    except StrictJsonError as error:
        mended = _STRING.sub(_with_escapes, plain)
        if error.kind != "syntax" or mended == plain:
            raise
    return mended, *parse_beginning(mended)


def _with_escapes(string: re.Match[str]) -> str:
    return _UNESCAPED.sub(lambda found: _ESCAPED.get(found[0], found[0]), string[0])


# To the end of the text where a string does not end: else each quotation mark would be tried from anew.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_UNESCAPED = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|[\\\n\r\t]')
_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
