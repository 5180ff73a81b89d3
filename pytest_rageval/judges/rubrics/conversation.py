"""Rubrics for cases with earlier turns: a rubric that reads the question also reads the conversation before it."""

from __future__ import annotations

from dataclasses import replace

from pytest_rageval.judges.rubrics.prompt_text import fenced, single_prompt
from pytest_rageval.model import Rubric

HISTORY = "history"
READING = """\
# The conversation so far
The question is the last turn of a conversation, which is part of the material. Read the question as its earlier turns \
make it plain: they tell what "it" or "there" stands for. The assistant's turns are no source: what they say supports \
no claim."""


def with_history(rubric: Rubric) -> Rubric:
    """Return the rubric with the earlier turns in its material, if it reads the question without them.

    Only for cases with earlier turns: prompt and cache key of all others stay as they are. The version stays too, since
    the turns are part of the key.
    """
    if "question" not in rubric.variables or HISTORY in rubric.variables:
        return rubric
    key = (rubric.name, rubric.prompt_version)
    extended = _MADE.get(key)
    if extended is None:
        extended = _made(rubric)
        _MADE[key] = extended
    return extended


_MADE: dict[tuple[str, str], Rubric] = {}
"""By name and version, which stand for the content of a rubric."""


def _made(rubric: Rubric) -> Rubric:
    if not rubric.material:  # it brings its own fences
        return replace(rubric, prompt=f"{rubric.prompt}\n{READING}\n{fenced([HISTORY])}")
    task = f"{rubric.task}\n\n{READING}"
    material = (HISTORY, *rubric.material)
    return replace(rubric, prompt=single_prompt(task, rubric.reply, material), task=task, material=material)
