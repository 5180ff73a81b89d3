"""One thing that a check of a project established, and how such checks are run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pytest_rageval.config.project import Project
from pytest_rageval.errors import RagevalError

Mark = Literal["ok", "warning", "problem"]
MARKS: dict[Mark, str] = {"ok": "✔", "warning": "!", "problem": "✘"}

ALL_CHECKS_S = 3.0
"""Seconds for all checks together, so that the command, which takes a second to start, ends within five."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was established, and what to do about it; `fix` is blank where nothing is to be done."""

    mark: Mark
    what: str
    fix: str = ""
    command: str = ""
    """One that helps and runs as it stands, where there is one."""


class Check(NamedTuple):
    """One subject and what looks at it: a function that costs nothing and asks no question of system or judge."""

    subject: str
    look: Callable[[Project], Iterable[Diagnosis]]


def diagnoses(
    checks: Iterable[Check], project: Project, seconds: float = ALL_CHECKS_S
) -> Iterator[tuple[str, Diagnosis]]:
    """Diagnoses by subject, in the order of the checks, which run at the same time.

    A check that is not done in time is a warning of its own, and is left behind.
    """
    deadline = time.monotonic() + seconds
    started = [(check.subject, _begun(check, project)) for check in checks]
    for subject, done in started:
        try:
            result = done.get(timeout=max(deadline - time.monotonic(), 0.01))
        except queue.Empty:
            result = [Diagnosis("warning", f"not done within {seconds:g} s", "look into it by itself")]
        yield from ((subject, finding) for finding in result)


def _begun(check: Check, project: Project) -> queue.SimpleQueue[list[Diagnosis]]:
    """Where the findings will be. The thread is one that the program does not wait for."""
    done: queue.SimpleQueue[list[Diagnosis]] = queue.SimpleQueue()

    def look() -> None:
        try:
            done.put(list(check.look(project)))
        except RagevalError as error:
            done.put([Diagnosis("problem", problem) for problem in error.problems])
        except Exception as error:  # noqa: BLE001  one check that breaks must not hide what the others found
            done.put([Diagnosis("problem", f"the check itself failed: {type(error).__name__}: {error}", "report it")])

    threading.Thread(target=look, name=f"doctor {check.subject}", daemon=True).start()
    return done
