"""What agents and datasets are called, by the slug that runs name: one of another script says nothing to a reader."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pytest_rageval.config.files import AGENT
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.web.versions.dataset_store import ABOUT
from pytest_rageval.web.versions.version_folder import VersionFolder, is_slug

Kind = Literal["agents", "datasets"]


def versions_title(
    data: Path, agent: tuple[str | None, object], dataset: tuple[str | None, object]
) -> str:  # fmt: skip
    """`Shop bot v4 × Products v2`; what a run does not name is left out."""
    kinds: tuple[tuple[Kind, str | None, object], ...] = (("agents", *agent), ("datasets", *dataset))
    named = [(version_name(data, kind, slug), version) for kind, slug, version in kinds if slug]
    return " × ".join(f"{name} v{version}" if version else name for name, version in named)


def version_name(data: Path, kind: Kind, slug: str) -> str:
    """The name that the newest version has; the slug where nothing says one."""
    if not is_slug(slug):
        return slug
    files = VersionFolder(data / kind, ".toml" if kind == "agents" else ".jsonl")
    try:
        number = files.newest(slug)
        path = files.path(slug, number) if kind == "agents" else files.beside(slug, number, ABOUT)
        return _name_in(path, path.stat().st_mtime_ns) or slug
    except (SettingsError, OSError):
        return slug


@lru_cache(maxsize=2_000)
def _name_in(path: Path, _mtime_ns: int) -> str | None:
    try:
        about: Any = _about(path)
        name = about["name"]
    except (ValueError, RecursionError, StrictJsonError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name.strip() else None


def _about(path: Path) -> Any:
    """The part of a version's file that says what it is."""
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text("utf-8-sig"))[AGENT]
    return parse(path.read_bytes())["about"]
