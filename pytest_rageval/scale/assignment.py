"""What a worker is told before its first case: the project, its settings, and its share of the limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.prepare import Prepared, run_configuration


class WorkerShare(NamedTuple):
    """The part that one of several workers has in what may be done at once, a minute, and for money.

    concurrency  cases in flight: those of all workers are the run's together
    max_cost     US dollars that it may still spend; None without a limit
    """

    number: int
    of: int
    concurrency: int
    max_cost: float | None


class Release(NamedTuple):
    """Versions that must be the same wherever cases of one run are evaluated."""

    rageval: str
    baseline: str | None
    """SHA-256 of the baseline's file: which failures are known decides how a case ends."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A worker's part in a run. `folder`: where the command was called. `configuration`: as config.json has it."""

    root: str
    folder: str
    settings: str
    configuration: Mapping[str, Any]
    release: Release
    share: WorkerShare

    @property
    def project(self) -> Project:
        """The project with the share of this worker in its settings."""
        # They were valid over there. Strictly read, a list of JSON is no tuple everywhere.
        settings = Settings.model_validate_json(self.settings, strict=False)
        cost = None if self.share.max_cost is None else self.share.max_cost * self.share.of
        own = {"concurrency": self.share.concurrency, "max_cost": cost, "resume": None}
        return Project(Path(self.root), settings.model_copy(update=own))

    def to_json(self) -> str:
        return _adapter().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Assignment:
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[Assignment]:
    # Made when it is needed: `rageval run` on this machine alone loads this module too.
    return TypeAdapter(Assignment)


def assignment(prepared: Prepared, share: WorkerShare) -> Assignment:
    """What a worker with this share is told of a run."""
    root, settings = prepared.project
    configuration = own_configuration(prepared)
    return Assignment(
        str(root.absolute()), str(Path.cwd()), settings.model_dump_json(), configuration,
        release(prepared, configuration), share,
    )  # fmt: skip


def shares(settings: Settings, workers: int) -> list[WorkerShare]:
    """What each of so many workers may do; together no more than the run may."""
    each, more = divmod(settings.concurrency, workers)
    cost = None if settings.max_cost is None else settings.max_cost / workers
    return [WorkerShare(number, workers, each + (number < more), cost) for number in range(workers)]


def own_configuration(prepared: Prepared) -> Mapping[str, Any]:
    """The configuration on this machine as config.json would have it, read back."""
    configuration: Mapping[str, Any] = json.loads(json.dumps(prepared.mask.value(run_configuration(prepared))))
    return configuration


def release(prepared: Prepared, configuration: Mapping[str, Any]) -> Release:
    """The versions on this machine, of which the configuration tells some."""
    file = prepared.project.baseline_file
    baseline = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    return Release(str(configuration["libraries"]["pytest-rageval"]), baseline)
