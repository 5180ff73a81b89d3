"""The founding documents: inputs to copy into a project, outputs whose keys must be met."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from project import Project

FOUNDING = Path(__file__).parents[1] / "data" / "founding"


def document(name: str) -> Any:
    """The content of one of its JSON files."""
    return json.loads((FOUNDING / name).read_text(encoding="utf-8"))


def copied(project: Project, name: str, to: str) -> Path:
    """One of its files, in the project."""
    path = project.path / to
    path.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(FOUNDING / name, path))


def key_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all that is not an object; a list counts by its first member."""
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from key_paths(member, (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield from key_paths(value[0], (*path, "[]"))
    else:
        yield path


def at(value: Any, path: tuple[str, ...]) -> Any:
    """What stands at such a place; KeyError or IndexError where it is not there."""
    for step in path:
        value = value[0] if step == "[]" else value[step]
    return value


def has(value: Any, path: tuple[str, ...]) -> bool:
    """Is there such a place, whatever stands in it?"""
    try:
        at(value, path)
    except (KeyError, IndexError):
        return False
    return True
