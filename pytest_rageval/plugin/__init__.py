"""The face for pytest.

Its finder of this package's modules comes before pytest's, which rewrites the assertions of every plugin. Ours say
nothing that a rewritten one would say better, and rewriting adds a second to a run of one second wherever its result is
not kept: in the first run after an installation, as in CI, and where no compiled files are written. pytest has no
setting for it: it rewrites every module of a distribution that has an entry point of its.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class PlainImports:
    """Finds modules below this package where Python itself would find them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("pytest_rageval.") else None


FINDERS: list[object] = sys.meta_path  # type: ignore[assignment] # because a class will do
if PlainImports not in FINDERS:
    FINDERS.insert(0, PlainImports)
