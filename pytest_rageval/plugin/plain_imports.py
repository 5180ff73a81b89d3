"""Finder of this package's modules that comes before pytest's, which rewrites the assertions of every plugin.

Ours say nothing that a rewritten one would say better. Rewriting all modules adds a second to a run of one second
wherever its result is not kept: in the first run after an installation, as in CI, and where no compiled files are
written. pytest has no setting for it: it rewrites every module of a distribution that has an entry point of its.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class PlainImports:
    """Finds modules below this package where Python itself would find them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("pytest_rageval.") else None


def import_plainly() -> None:
    """From now on; safe to call twice."""
    finders: list[Any] = sys.meta_path
    if PlainImports not in finders:
        finders.insert(0, PlainImports)
