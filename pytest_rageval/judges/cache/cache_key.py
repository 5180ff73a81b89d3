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
    hashes = {name: None if value is None else _sha256(value) for name, value in request.variables.items()}
    asked = request.variables.get("question")
    question, answer, contexts = (hashes.pop(name, None) for name in ("question", "answer", "contexts"))
    return KeyParts(
        request.rubric,
        request.prompt_version,
        model,
        dict(sampling),
        request.trial,
        question,
        answer,
        contexts,
        {name: value or _sha256(None) for name, value in sorted(hashes.items())},
        # Cut before and after escaping, which bounds huge questions and those of control characters only.
        None if asked is None else printable(str(asked)[:LONGEST_ASKED])[:LONGEST_ASKED],
    )


def distance(stored: KeyParts, current: KeyParts) -> int:
    """Return the number of parts in which two keys differ."""
    names = {*stored.variables, *current.variables}
    others = sum(1 for name in names if stored.variables.get(name) != current.variables.get(name))
    return others + sum(1 for name in _COMPARED if getattr(stored, name) != getattr(current, name))


def difference_line(stored: KeyParts, current: KeyParts) -> str:
    """Describe in one line what a stored key and the wanted one have in common, and what differs."""
    if stored == current:
        return "the same in all parts, but its judgement cannot be read"
    hashes = {name: (getattr(stored, name), getattr(current, name)) for name in ("question", "answer", "contexts")}
    for name in sorted({*stored.variables, *current.variables}):
        hashes[name] = (stored.variables.get(name), current.variables.get(name))
    phrases = [f"{'same' if old == new else 'other'} {name}" for name, (old, new) in hashes.items() if old or new]
    if stored.question != current.question and stored.asked is not None:
        phrases[0] = f"other question {_short(stored.asked)}"
    in_clear = [
        f"{name} was {_short(getattr(stored, name))}, now {_short(getattr(current, name))}"
        for name in ("prompt_version", "model", "trial", "sampling")
        if getattr(stored, name) != getattr(current, name)
    ]
    return "; ".join([", ".join(phrases), *in_clear] if phrases else in_clear)


def one_line(value: Json) -> str:
    """Return the beginning of a value for a message: one line, without characters that steer a terminal."""
    return excerpt(str(value), 61)


def _sha256(value: Json) -> str:
    return hashlib.sha256(_CANONICAL.encode(value).encode("ascii")).hexdigest()


def _short(value: Json) -> str:
    return f"'{one_line(value)}'" if isinstance(value, str) else one_line(value)


# In ASCII, where a lone surrogate is an escape and cannot fail to encode.
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))
_COMPARED = ("rubric", "prompt_version", "model", "sampling", "trial", "question", "answer", "contexts")
