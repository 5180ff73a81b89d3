"""One request for several rubrics of an answer: its prompt, and a reply with a part for each rubric.

The instructions stand first and are the same in every case, so that servers can cache them. The material follows,
each chunk once; citations refer to chunks by their numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.judges.rubrics.prompt_text import joint_prompt
from pytest_rageval.model import Json, JudgeRequest, Rubric

VERSION = f"2+{hashlib.sha256(joint_prompt([]).encode()).hexdigest()[:12]}"
"""Part of the cache key: number and hash of the frame of joint prompts. Single and joint requests share no entry."""
OPTIONAL = ("history", "key_facts", "references")
"""Variables that are left out where they are empty. An empty list of contexts or citations says something."""


def can_join(rubric: Rubric) -> bool:
    """Return True if the rubric's prompt was made of its parts, and its material is the same for all rubrics.

    Rubrics on single claims are left out, since each of their requests has claims of its own.
    """
    return bool(rubric.material) and not rubric.variables & {"claim", "claims"}


def joint_request(requests: Sequence[JudgeRequest]) -> JudgeRequest:
    """Return the request for all rubrics of these requests about one answer, which share a trial."""
    variables: dict[str, Json] = {}
    for request in requests:
        variables |= request.variables
    left_out = frozenset(name for name in OPTIONAL if not variables.get(name))
    rubric = _joint(tuple(_Hashed(rubric_of(request)) for request in requests), left_out)
    return JudgeRequest(rubric.name, rubric.prompt_version, _by_number(variables), requests[0].trial, rubric)


class _Hashed:
    """A rubric as a key: name and version stand for its content."""

    def __init__(self, rubric: Rubric) -> None:
        self.rubric, self.key = rubric, (rubric.name, rubric.prompt_version)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.key == other.key


@lru_cache(maxsize=64)
def _joint(hashed: tuple[_Hashed, ...], left_out: frozenset[str]) -> Rubric:
    rubrics = [each.rubric for each in hashed]
    return Rubric(
        name="answer",
        version=VERSION,
        prompt_version=",".join(rubric.prompt_version for rubric in rubrics),
        scale=(0.0, 1.0),
        scores={},
        prompt=joint_prompt(rubrics, left_out),
        schema={
            "type": "object",
            "additionalProperties": False,
            "required": [rubric.name for rubric in rubrics],
            "properties": {rubric.name: rubric.schema for rubric in rubrics},
        },
    )


def _by_number(variables: Mapping[str, Json]) -> dict[str, Json]:
    """Add numbers to the contexts, and replace the texts of citations by them."""
    contexts = variables.get("contexts") or []
    numbered = [{"number": number, **context} for number, context in enumerate(contexts, start=1)]
    number_of = {context["text"]: context["number"] for context in reversed(numbered)}

    def cited(citation: Mapping[str, Any]) -> dict[str, Any]:
        if (number := number_of.get(citation["text"])) is None:
            return dict(citation)
        return {name: value for name, value in citation.items() if name != "text"} | {"context": number}

    replaced: dict[str, Json] = {"contexts": numbered} if "contexts" in variables else {}
    if "citations" in variables:
        replaced["citations"] = [cited(citation) for citation in variables["citations"]]
    return {**variables, **replaced}
