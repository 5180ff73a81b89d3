"""The judge's prompts of an agent: the shipped ones, and a person's own as rubric files of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.io.atomic import write_text
from pytest_rageval.judges.rubrics import load_rubric, rubric_names
from pytest_rageval.llm.fencing import MARKER

MAIN_RUBRIC = "reference_match"
"""The rubric that compares an answer with its reference: the one whose prompt is edited first."""


def editable_rubrics() -> tuple[str, ...]:
    """The shipped rubrics whose prompts may be replaced, the main one first."""
    return (MAIN_RUBRIC, *(name for name in rubric_names() if name != MAIN_RUBRIC))


def default_prompt(rubric: str) -> str:
    """The shipped prompt."""
    return load_rubric(rubric).prompt.strip("\n") + "\n"


def own_prompt(rubric: str, written: str) -> str | None:
    """A prompt as it is kept; None where it is blank or the shipped one."""
    text = written.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return None if not text.strip() or text == default_prompt(rubric).strip("\n") else f"{text}\n"


def write_prompts(prompts: Mapping[str, str], folder: Path) -> None:
    """Write each prompt as the rubric file that replaces the shipped one.

    A prompt with the marker fences what is judged by itself, as the shipped ones do, and needs the whole form; any
    other is plain text.
    """
    for rubric, prompt in prompts.items():
        if f"{{{MARKER}}}" in prompt:
            write_text(folder / f"{rubric}.toml", _whole_rubric(rubric, prompt))
        else:
            write_text(folder / f"{rubric}.txt", prompt)


def _whole_rubric(name: str, prompt: str) -> str:
    shipped = load_rubric(name)
    table: dict[str, Any] = {"version": shipped.version, "scale": list(shipped.scale)}
    if shipped.step is not None:
        table["step"] = shipped.step
    return toml_document({**table, "prompt": prompt, "scores": dict(shipped.scores), "schema": dict(shipped.schema)})
