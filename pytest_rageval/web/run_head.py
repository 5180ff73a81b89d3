"""The head of a run's pages: which versions it is made from, where it was started, what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.versions.slugs import is_slug

PYTEST = "pytest (unversioned)"


class RunHead(NamedTuple):
    """What stands beside a run's id. `agent` and `dataset` with their versions, None of a run of pytest."""

    source: str
    agent: MadeFrom | None
    dataset: MadeFrom | None


class MadeFrom(NamedTuple):
    """A version that a run is made from, as its configuration names it. `address` of its page, '' where the name could
    be none of a version here."""

    slug: str
    version: int
    address: str


def head_of_run(config: Mapping[str, Any]) -> RunHead:
    """The head of a run with this config.json."""
    origin = config.get("origin")
    origin = origin if isinstance(origin, Mapping) else {}
    source = origin.get("source")
    return RunHead(
        source if isinstance(source, str) else PYTEST,
        _version("agents", origin.get("agent"), origin.get("agent_version")),
        _version("datasets", origin.get("dataset"), origin.get("dataset_version")),
    )


def _version(kind: str, name: object, version: object) -> MadeFrom | None:
    if not isinstance(name, str) or not isinstance(version, int):
        return None
    return MadeFrom(name, version, path_to(kind, name, "versions", str(version)) if is_slug(name) else "")
