"""What does a rubric hold, and in which exact version? Loaded from the TOML file of its name beside this one."""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from functools import cache
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.model import JudgeRequest, Rubric

MARKER = "marker"
"""The placeholder for the random fence of a request: no variable, the judge draws it."""

_FOLDER = Path(__file__).parent


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


def rubric_of(request: JudgeRequest) -> Rubric:
    """The rubric that a request is about: the wording it brings, else the shipped one of its name."""
    return request.wording or load_rubric(request.rubric)
