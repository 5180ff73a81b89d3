"""Finder of this package's modules that comes before pytest's, which rewrites the assertions of every plugin.

Ours say nothing that a rewritten one would say better. Rewriting all modules doubles what a short run costs wherever
its result is not kept: in the first run after an installation, as in CI, and where no compiled files are written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class PlainImports:
    """Finds modules below this package where Python itself would find them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("pytest_rageval.") else None


def import_plainly() -> None:
    """From now on; safe to call twice."""
    if PlainImports not in sys.meta_path:
        sys.meta_path.insert(0, PlainImports)
