"""Rubrics by name: the TOML file of that name, a project's own, else the one beside this module."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.judges.rubrics.rubric_file import read_rubric
from pytest_rageval.model import JudgeRequest, Rubric

__all__ = ["check_rubrics", "load_rubric", "rubric_names", "rubric_of"]

_FOLDER = Path(__file__).parent
_LARGEST_FILE = 256 * 1024
"""Bytes: what goes out with every request is no book."""


@cache
def rubric_names() -> tuple[str, ...]:
    """All shipped rubrics, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_rubric(name: str, folder: Path | None = None) -> Rubric:
    """The rubric of that name: `NAME.toml` in `folder` where there is such a file, else the shipped one.

    An unknown name is a SettingsError with the nearest known one; so is a file with problems, all of them.
    """
    if name not in rubric_names():
        raise SettingsError(_unknown(name))
    own = None if folder is None else folder / f"{name}.toml"
    return _own(own, str(own)) if own is not None and own.is_file() else _shipped(name)


def check_rubrics(folder: Path, shown: str | None = None) -> dict[str, Rubric]:
    """The rubrics of a project's own folder by name; all problems of all its files are one SettingsError.

    `shown` is the folder as messages name it. Each file replaces the shipped rubric of its name.
    """
    place = shown or str(folder)
    paths = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    if not paths:
        expected = f"rubric files, as in {rubric_names()[0]}.toml" if folder.is_dir() else "a folder"
        raise SettingsError(f"rubrics: {place} is not there or empty; expected {expected}")
    rubrics: dict[str, Rubric] = {}
    problems: list[str] = []
    for path in paths:
        try:
            rubrics[path.stem] = _own(path, f"{place}/{path.name}")
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(*problems)
    return rubrics


def rubric_of(request: JudgeRequest) -> Rubric:
    """The rubric that a request is about: the wording it brings, else the shipped one of its name."""
    return request.wording or load_rubric(request.rubric)


@cache
def _shipped(name: str) -> Rubric:
    path = _FOLDER / f"{name}.toml"
    return read_rubric(name, path.read_bytes(), path.name)


def _own(path: Path, shown: str) -> Rubric:
    if path.stem not in rubric_names():
        raise SettingsError(f"{shown}: {_unknown(path.stem)}")
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise SettingsError(f"{shown}: cannot be read: {error.strerror or error}") from None
    if len(content) > _LARGEST_FILE:
        raise SettingsError(f"{shown}: larger than {_LARGEST_FILE // 1024} KiB; a rubric goes out with every request")
    rubric = read_rubric(path.stem, content, shown)
    problems = list(_unlike(rubric, _shipped(path.stem), shown))
    if problems:
        raise SettingsError(*problems)
    return rubric


def _unlike(own: Rubric, shipped: Rubric, shown: str) -> Iterator[str]:
    """Where a project's rubric does not give what is read of it: the scores of the shipped one, or its lists."""
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
    # Beside a reference the context is a help; elsewhere it is what the answer is judged by.
    for name in sorted(needed - ({"contexts"} if "references" in shipped.variables else set()) - own.variables):
        yield f"{shown}: prompt has no {{{name}}}, without which {shipped.name} cannot be judged"
    for name in ("claim", "claims"):
        if name in own.variables and "claims" not in shipped.variables:
            yield f"{shown}: prompt has {{{name}}}, which only claim_support is given; write {{answer}}"


def _unknown(name: str) -> str:
    return f"unknown rubric {name!r}" + did_you_mean(name, rubric_names(), f"; known: {', '.join(rubric_names())}")
