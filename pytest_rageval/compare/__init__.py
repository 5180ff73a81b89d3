"""Two runs side by side: pairing, changes, verdicts. Called, it compares two runs: `compare(before, after)`."""

import sys
from types import ModuleType
from typing import Any


# Python binds a package as an attribute of the one above it: a mere function `pytest_rageval.compare` would be gone
# after the first import of a module from here. So the package itself is what scripts and notebooks call.
class _CallablePackage(ModuleType):
    """`from pytest_rageval import compare`: the package, and what it does as a function."""

    def __call__(self, before: Any, after: Any, *, ignore_invariants: bool = False) -> Any:
        """Compare two runs, each as `evaluate` returned it or by its name: an id, `latest`, `latest~1`, `baseline`.

        The same as `pytest_rageval.compare_runs`. SettingsError where there is no such run.
        """
        public_names = sys.modules[self.__name__.rpartition(".")[0]]
        return public_names.compare_runs(before, after, ignore_invariants=ignore_invariants)


sys.modules[__name__].__class__ = _CallablePackage
