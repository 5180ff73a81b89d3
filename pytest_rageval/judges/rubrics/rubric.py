"""What does a rubric hold, and in which exact version? Loaded from the TOML file of its name beside this one."""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.model import Json

VARIABLES = frozenset({"question", "answer", "contexts", "references", "key_facts", "history"})
"""What a prompt may ask for; `JudgeRequest.variables` holds those that it does."""

MARKER = "marker"
"""The placeholder for the random fence of a request: no variable, the judge draws it."""

_FOLDER = Path(__file__).parent
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Rubric:
    """One kind of question to a judge.

    version         written by the author, raised when the meaning changes
    prompt_version  version and the first 12 hex digits of the file's SHA-256: no edit escapes caches and comparisons
    scale           lowest and highest value of every score
    scores          metric name → the field of the reply that holds it
    prompt          text with placeholders `{question}` …; any other brace stands for itself
    schema          JSON Schema of the reply
    """

    name: str
    version: str
    prompt_version: str
    scale: tuple[float, float]
    scores: Mapping[str, str]
    prompt: str
    schema: Mapping[str, Json]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the prompt reads: only these are sent, hashed and stored."""
        return frozenset(_PLACEHOLDER.findall(self.prompt)) & VARIABLES


def rubric_names() -> tuple[str, ...]:
    """All shipped rubrics, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def load_rubric(name: str) -> Rubric:
    """The rubric of that name; an unknown name is a SettingsError with the nearest known one."""
    if name not in rubric_names():
        near = difflib.get_close_matches(name, rubric_names(), n=1)
        known = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(rubric_names())}"
        raise SettingsError(f"unknown rubric {name!r}; {known}")
    content = (_FOLDER / f"{name}.toml").read_bytes()
    held = tomllib.loads(content.decode())
    low, high = held["scale"]
    return Rubric(
        name=name,
        version=held["version"],
        prompt_version=f"{held['version']}+{hashlib.sha256(content).hexdigest()[:12]}",
        scale=(float(low), float(high)),
        scores=held["scores"],
        prompt=held["prompt"].strip() + "\n",
        schema=held["schema"],
    )
