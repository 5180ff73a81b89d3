"""The planned extent of a run, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_rageval.comparison.verdict_reasons import RUN_THROUGH


@dataclass(frozen=True, slots=True)
class Extent:
    """The planned extent of a run. How far it got, and so whether it is partial, follows from the keys of its records.

    every           keys of all cases
    expected        keys of the selected cases
    unreached       number of selected tests of the project's own that may evaluate cases and did not end
    selection       the options that selected them
    has_unread_files  True if the cases of some files are unknown: then no selection counts as complete
    is_ended_early  True if the run was ended (Ctrl-C, -x): then missing records are not an error
    earlier         metrics.json of a stored run that is finished again; it keeps when and where the run was asked
    exit_status     of pytest before the gates of the run; the verdict must not be better
    uncounted       keys of cases that failed or ended in errors, and that pytest did not count so
    damage          how the records of a stored run differ from those that it wrote
    overcounted     keys of cases that passed when run again after their worker died, which pytest counts as an error
    unjudged_because  why no answer was judged though a judge is named: it could not be asked at the start, or judges
                    a batch later; None if it judged
    """

    every: Collection[str]
    expected: Collection[str]
    unreached: int = 0
    selection: Mapping[str, str] = field(default_factory=dict)
    is_ended_early: bool = False
    has_unread_files: bool = False
    earlier: Mapping[str, Any] | None = None
    exit_status: int = 0
    uncounted: Sequence[str] = ()
    damage: str | None = None
    overcounted: Sequence[str] = ()
    unjudged_because: str | None = None

    @property
    def is_interrupted(self) -> bool:
        """Return True if a signal, or an error of its own, ended the session."""
        return self.exit_status not in RUN_THROUGH
