"""The files of one process of a run, written as things happen: observations, and on a worker its results as well.

A worker's results travel to the controller with its test reports. What was on its way when a process dies or the user
presses Ctrl-C is lost there, and found here: the controller folds these files in at the end, or the run that resumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pytest_rageval.config.settings import Settings
from pytest_rageval.engine import Observed, Unobserved
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.model import Problem, Trial
from pytest_rageval.runs.disk.folder import RunFolder
from pytest_rageval.runs.disk.resume import Unfinished
from pytest_rageval.runs.records import observation_record

RESULTS, OBSERVATIONS = "results.jsonl", "observations.jsonl"


class RunJournal:
    """The files of one process: without a worker's name those of the run itself; without a folder none."""

    def __init__(
        self, folder: RunFolder | None, settings: Settings, worker: str | None, unfinished: Unfinished | None
    ) -> None:
        self._folder, self._settings, self._worker, self._unfinished = folder, settings, worker, unfinished

    def find(self, trial: Trial) -> Observed | None:
        """What the run that is resumed has observed of this trial."""
        return self._unfinished.observation(trial.key, trial.number) if self._unfinished else None

    def keep(self, trials: Sequence[Trial], observed: Sequence[Observed]) -> list[Observed]:
        """Write observations down at once, unless texts are kept out; what has no form as JSON is an error."""
        if self._settings.redact or self._folder is None:
            return list(observed)
        kept, lines = list[Observed](), list[bytes]()
        for trial, each in zip(trials, observed, strict=True):
            try:
                lines.append(sealed_line(observation_record(trial, each, self._settings)))
                kept.append(each)
            except (ValueError, TypeError, RecursionError) as error:
                kept.append(Unobserved(Problem("record", f"what was observed cannot be written as JSON: {error}")))
        try:
            if lines:
                self._folder.append(_of(self._worker, OBSERVATIONS), b"\n".join(lines))
        except OSError as error:
            problem = Problem("record", f"what was observed cannot be written: {error.strerror}")
            return [Unobserved(problem)] * len(kept)
        return kept

    def results(self, payload: str) -> None:
        """Write the lines of a finished item down, on a worker; the controller takes them from the report."""
        if self._worker is not None and self._folder is not None:
            with suppress(OSError):  # a full disk is said where it counts: by the controller
                self._folder.append(_of(self._worker, RESULTS), payload)

    def close(self) -> None:
        """Give the files back. A worker's are closed with it."""
        if self._worker is not None and self._folder is not None:
            self._folder.close()


def _of(worker: str | None, name: str) -> str:
    stem, _, ending = name.partition(".")
    return name if worker is None else f"{stem}-{worker}.{ending}"
