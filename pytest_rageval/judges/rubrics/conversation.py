"""Rubrics for cases with earlier turns: each also reads the conversation before the answer that it judges."""

from __future__ import annotations

from dataclasses import replace

from pytest_rageval.judges.rubrics.prompt_text import fenced, single_prompt
from pytest_rageval.model import Rubric

HISTORY = "history"
RETENTION = "knowledge_retention"
OF_CONVERSATION = frozenset({RETENTION, "conversation_completeness"})
"""Rubrics that judge a whole conversation, at its last turn."""
READING = """\
# The conversation so far
The question is the last turn of a conversation, which is part of the material. Read the question as its earlier turns \
make it plain: they tell what "it" or "there" stands for. The assistant's turns are no source: what they say supports \
no claim."""

READING_WITHOUT_QUESTION = """\
# The conversation so far
{judged} of the last turn of a conversation, whose earlier turns are part of the material. Read what is judged as \
they make it plain: they tell what "it" or "there" stands for. The assistant's turns are no source: what they say \
supports no claim, also where it is repeated word for word."""


def with_history(rubric: Rubric) -> Rubric:
    """Return the rubric with the earlier turns in its material, unless it reads them already.

    Only for cases with earlier turns: prompt and cache key of all others stay as they are. The version stays too, since
    the turns are part of the key.
    """
    if HISTORY in rubric.variables:
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
    reading = _reading(rubric)
    if not rubric.material:  # it brings its own fences
        return replace(rubric, prompt=f"{rubric.prompt}\n{reading}\n{fenced([HISTORY])}")
    task = f"{rubric.task}\n\n{reading}"
    material = (HISTORY, *rubric.material)
    return replace(rubric, prompt=single_prompt(task, rubric.reply, material), task=task, material=material)


def _reading(rubric: Rubric) -> str:
    """Return how the earlier turns are to be read beside what this rubric judges."""
    if "question" in rubric.variables:
        return READING
    is_of_claims = not rubric.variables.isdisjoint({"claim", "claims"})
    judged = "The claims are those of the answer" if is_of_claims else "The answer is that"
    return READING_WITHOUT_QUESTION.format(judged=judged)
