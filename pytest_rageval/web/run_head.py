"""The head of a run's pages: which versions it is made from, where it was started, what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

PYTEST = "pytest (unversioned)"


class RunHead(NamedTuple):
    """What stands beside a run's id. `agent` and `dataset` with their versions, None of a run of pytest."""

    source: str
    agent: tuple[str, int] | None
    dataset: tuple[str, int] | None


def head_of_run(config: Mapping[str, Any]) -> RunHead:
    """The head of a run with this config.json."""
    origin = config.get("origin")
    origin = origin if isinstance(origin, Mapping) else {}
    source = origin.get("source")
    return RunHead(
        source if isinstance(source, str) else PYTEST,
        _version(origin.get("agent"), origin.get("agent_version")),
        _version(origin.get("dataset"), origin.get("dataset_version")),
    )


def _version(name: object, version: object) -> tuple[str, int] | None:
    return (name, version) if isinstance(name, str) and isinstance(version, int) else None
