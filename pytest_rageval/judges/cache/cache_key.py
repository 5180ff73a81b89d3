"""The parts of a cache key: all that a judgement depends on. Two requests with equal parts are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.records import RecordReader
from pytest_rageval.model import NOTHING, Json, JudgeRequest
from pytest_rageval.text import excerpt, printable

LONGEST_ASKED = 200
"""Characters of a question that are stored in clear text."""
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$"), Expects("64 hex digits")]


@dataclass(frozen=True, slots=True)
class KeyParts:
    """All that a judgement depends on: short values in clear text, long ones as SHA-256 (64 hex digits).

    `variables` has a hash for each other variable of the rubric; question, answer and contexts are None if the rubric
    does not read them. `model` is the judge with its server, if it has one. `asked` is the beginning of the question
    for people to read, and no part of the key.
    """

    rubric: str
    prompt_version: str
    model: str
    sampling: Mapping[str, Json]
    trial: Annotated[int, Field(ge=0, lt=2**31), Expects("a whole number, 0 or more")]
    question: Hash | None
    answer: Hash | None
    contexts: Hash | None
    variables: Mapping[str, Hash]
    asked: Annotated[str, Field(max_length=LONGEST_ASKED), Expects(f"at most {LONGEST_ASKED} characters")] | None = (
        field(default=None, compare=False)
    )

    @property
    def key(self) -> str:
        """Return the SHA-256, 64 hex digits, over the canonical JSON of all parts but `asked`."""
        parts = self.as_json()
        del parts["asked"]
        return _sha256(parts)

    def as_json(self) -> dict[str, Json]:
        """Return the parts as JSON, by name."""
        return {name: getattr(self, name) for name in self.__slots__}


PARTS: RecordReader[KeyParts] = RecordReader(KeyParts)
"""Reads the output of `as_json`."""


def key_parts(request: JudgeRequest, model: str, sampling: Mapping[str, Json] = NOTHING) -> KeyParts:
    """Return all that a judgement of this request by this model depends on."""
    variables = request.variables
    named = {name: _hash_unless_none(variables.get(name)) for name in _NAMED}
    # By hash: a key has a few hundred bytes, whatever the answer and its contexts have.
    others = {name: _sha256(value) for name, value in sorted(variables.items()) if name not in _NAMED}
    asked = variables.get("question")
    if asked is not None:
        # Cut before and after escaping, which bounds huge questions and those of control characters only.
        asked = printable(str(asked)[:LONGEST_ASKED])[:LONGEST_ASKED]
    return KeyParts(
        rubric=request.rubric,
        prompt_version=request.prompt_version,
        model=model,
        sampling=dict(sampling),
        trial=request.trial,
        question=named["question"],
        answer=named["answer"],
        contexts=named["contexts"],
        variables=others,
        asked=asked,
    )


def _hash_unless_none(value: Json) -> str | None:
    return None if value is None else _sha256(value)


def distance(stored: KeyParts, current: KeyParts) -> int:
    """Return the number of parts in which two keys differ."""
    parts = [name for name in _COMPARED if getattr(stored, name) != getattr(current, name)]
    names = {*stored.variables, *current.variables}
    variables = [name for name in names if stored.variables.get(name) != current.variables.get(name)]
    return len(parts) + len(variables)


def difference_line(stored: KeyParts, current: KeyParts) -> str:
    """Describe in one line what a stored key and the wanted one have in common, and what differs."""
    if stored == current:
        return "the same in all parts, but its judgement cannot be read"
    old_hashes = {**{name: getattr(stored, name) for name in _NAMED}, **stored.variables}
    new_hashes = {**{name: getattr(current, name) for name in _NAMED}, **current.variables}
    variables = sorted({*stored.variables, *current.variables})
    compared: list[str] = []
    for name in dict.fromkeys((*_NAMED, *variables)):
        old = old_hashes.get(name)
        new = new_hashes.get(name)
        if old is None and new is None:
            continue
        if name == "question" and old != new and stored.asked is not None:
            compared.append(f"other question {_short(stored.asked)}")
        else:
            compared.append(f"same {name}" if old == new else f"other {name}")
    phrases = [", ".join(compared)] if compared else []
    for name in ("prompt_version", "model", "trial", "sampling"):
        old = getattr(stored, name)
        new = getattr(current, name)
        if old != new:
            phrases.append(f"{name} was {_short(old)}, now {_short(new)}")
    return "; ".join(phrases)


def one_line(value: Json) -> str:
    """Return the beginning of a value for a message: one line, without characters that steer a terminal."""
    return excerpt(str(value), 61)


def _sha256(value: Json) -> str:
    return hashlib.sha256(_CANONICAL.encode(value).encode("ascii")).hexdigest()


def _short(value: Json) -> str:
    return f"'{one_line(value)}'" if isinstance(value, str) else one_line(value)


# In ASCII, where a lone surrogate is an escape and cannot fail to encode.
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))
_NAMED = ("question", "answer", "contexts")
"""Variables with a part of their own, since most rubrics read them."""
_COMPARED = ("rubric", "prompt_version", "model", "sampling", "trial", "question", "answer", "contexts")
