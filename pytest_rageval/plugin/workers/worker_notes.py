"""Notes of xdist's workers for the end of the run: handed to the controlling process with what xdist sends of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pytest_rageval.http.call_limit import BackOff
from pytest_rageval.plugin.session import EvalSession

_NOTES, _BACK_OFF = "rageval_notes", "rageval_back_off"
"""Names in xdist's `workeroutput`."""


def hand_over(session: EvalSession, back_off: BackOff | None) -> None:
    """On a worker, before xdist sends its output: what a person should know, and how far it held its questions back."""
    output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined] # because xdist puts it there
    output[_NOTES] = list(session.notes)
    if back_off is not None:
        output[_BACK_OFF] = asdict(back_off)


class WorkerNotes:
    """On the controlling process: takes over what workers handed it; one that died has said nothing."""

    def __init__(self, session: EvalSession) -> None:
        self._session = session
        self.back_off: BackOff | None = None
        """Of all workers together; None where there are none."""

    def take_over(self, node: Any) -> None:
        """What a worker that has ended wanted said, each note once."""
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        new_notes = [note for note in output.get(_NOTES, ()) if note not in self._session.notes]
        self._session.notes += new_notes
        if _BACK_OFF in output:
            self.back_off = (self.back_off or BackOff()) + BackOff(**output[_BACK_OFF])
