"""Findings of `rageval doctor`: a mark, what was found, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pytest_rageval.io.masking import Mask

Mark = Literal["ok", "warning", "problem"]
MARKS: dict[Mark, str] = {"ok": "✔", "warning": "!", "problem": "✘"}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finding, and what to do about it; `fix` is blank if nothing is to be done."""

    mark: Mark
    what: str
    fix: str = ""
    command: str = ""
    """A command that helps, without placeholders; empty without one."""

    def masked(self, mask: Mask) -> Diagnosis:
        """Return the finding without credentials."""
        return replace(self, what=mask.output(self.what), fix=mask.output(self.fix))


success = partial(Diagnosis, "ok")
warning = partial(Diagnosis, "warning")
failure = partial(Diagnosis, "problem")
