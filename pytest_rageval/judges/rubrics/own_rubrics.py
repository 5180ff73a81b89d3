"""A project's own rubrics: the files in its folder, which replace shipped rubrics or add metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.judges.rubrics.rubric_file import SUFFIXES, read_rubric, read_text_rubric
from pytest_rageval.judges.rubrics.rubric_lookup import rubric_names, shipped_rubric
from pytest_rageval.model import Rubric

_LARGEST_FILE = 256 * 1024
"""Bytes of a rubric file, since every request includes it."""


def check_rubrics(folder: Path, shown: str | None = None) -> dict[str, Rubric]:
    """Read the rubrics in a project's folder, by name; raise one SettingsError with all problems of all files.

    `shown` is the folder as messages name it. Each file replaces the shipped rubric of its name, or is a new one.
    """
    place = shown or str(folder)
    paths = _files(folder)
    if not paths:
        expected = f"rubric files, as in {rubric_names()[0]}.toml" if folder.is_dir() else "a folder"
        raise SettingsError(f"rubrics: {place} is not there or empty; expected {expected}")
    rubrics: dict[str, Rubric] = {}
    problems: list[str] = []
    stems: dict[str, Path] = {}
    for path in paths:
        if path.stem in stems:
            problems.append(f"{place}/{path.name}: {stems[path.stem].name} is the same rubric; keep one of the two")
        stems[path.stem] = path
        try:
            rubrics[path.stem] = _own(path, f"{place}/{path.name}")
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(*problems)
    return rubrics


def _files(folder: Path) -> list[Path]:
    """Return the rubric files of a folder in order, without a README."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if path.suffix in (".toml", *SUFFIXES) and path.stem.casefold() != "readme"]


def _own(path: Path, shown: str) -> Rubric:
    name = path.stem
    is_shipped = name in rubric_names()
    if not is_shipped and (problem := _unfit_name(name)) is not None:
        raise SettingsError(f"{shown}: {problem}")
    content = _content(path, shown)
    shipped = shipped_rubric(name) if is_shipped else None
    if path.suffix == ".toml":
        rubric = read_rubric(name, content, shown)
    else:
        rubric = read_text_rubric(name, content, shown, shipped)
    if problems := list(_mismatches(rubric, shipped, shown) if shipped else _missing_parts(rubric, shown)):
        raise SettingsError(*problems)
    return rubric


def _content(path: Path, shown: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise SettingsError(f"{shown}: cannot be read: {error.strerror or error}") from None
    if len(content) > _LARGEST_FILE:
        raise SettingsError(f"{shown}: larger than {_LARGEST_FILE // 1024} KiB; a rubric goes out with every request")
    return content


def _unfit_name(name: str) -> str | None:
    """Return why a new rubric cannot have this name, or None: it is no metric name, or like a shipped one mistyped."""
    # Stricter than usual: completeness and conciseness are valid names, though similar to correctness.
    if (meant := suggestion(name, rubric_names(), cutoff=_MISTYPED)) is not None:
        return f"unknown rubric {name!r}; did you mean {meant!r}? A new one needs a name less like it"
    if _NEW_NAME.fullmatch(name) is None:
        return f"{name!r} cannot be a metric's name; use lower-case letters, digits and underscores, as in politeness"
    return None


_MISTYPED = 0.85
_NEW_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _missing_parts(rubric: Rubric, shown: str) -> Iterator[str]:
    """Yield what a rubric lacks to be a metric of its own."""
    if rubric.scores.keys() != {rubric.name}:
        written = ", ".join(rubric.scores) or "nothing"
        yield f'{shown}: scores holds {written}, expected {rubric.name} = "FIELD": a new file is one metric of its name'
    if "answer" not in rubric.variables:
        yield f"{shown}: prompt has no {{answer}}, without which there is nothing to judge"
    yield from _claim_problems(rubric, shown)


def _claim_problems(rubric: Rubric, shown: str) -> Iterator[str]:
    for name in sorted(rubric.variables & {"claim", "claims"}):
        yield f"{shown}: prompt has {{{name}}}, which only claim_support is given; write {{answer}}"


def _mismatches(own: Rubric, shipped: Rubric, shown: str) -> Iterator[str]:
    """Yield what a project's rubric lacks of the shipped one it replaces: scores, required fields, placeholders."""
    if own.scores.keys() != shipped.scores.keys():
        expected = ", ".join(f'{score} = "FIELD"' for score in shipped.scores) or "no score"
        yield f"{shown}: scores holds {', '.join(own.scores) or 'nothing'}, expected {expected}"
    if not shipped.scores:
        for field in shipped.schema["required"]:
            if field not in own.schema["required"]:
                yield f"{shown}: schema.required lacks {field!r}, which is what this rubric is asked for"
    needed = shipped.variables & {"question", "answer", "contexts"}
    if "claims" in shipped.variables and not own.variables & {"claim", "claims"}:
        yield f"{shown}: prompt has no {{claims}}, without which {shipped.name} cannot be judged"
    # The context is optional if the rubric has references; otherwise it is what the answer is judged by.
    for name in sorted(needed - ({"contexts"} if "references" in shipped.variables else set()) - own.variables):
        yield f"{shown}: prompt has no {{{name}}}, without which {shipped.name} cannot be judged"
    if "claims" not in shipped.variables:
        yield from _claim_problems(own, shown)
