"""Assignments, which a worker gets before its first case: the project, its settings, and its share of the limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.run.prepare import Preparation, run_configuration
from pytest_rageval.targets.answer_records import CheckedAnswers


class WorkerShare(NamedTuple):
    """A worker's share of the limits on concurrency and cost.

    concurrency  cases in flight; those of all workers add up to the run's
    max_cost     US dollars left to spend; None without a limit
    """

    number: int
    of: int
    concurrency: int
    max_cost: float | None


class Assignment(BaseModel):
    """A worker's part in a run.

    folder         the command's working directory
    configuration  as in config.json
    baseline       SHA-256 of the baseline's file, which decides about known failures
    namesakes      paths of the run's golds with names that several files have
    added_metrics
                   the metrics that the cases add to the run
    answers        the answers file, if the command has checked it on the same machine: then portions come with its
                   records, and the worker does not read it as a whole
    """

    root: str
    folder: str
    settings: str
    configuration: Mapping[str, Any]
    baseline: str | None
    share: WorkerShare
    namesakes: list[str]
    added_metrics: list[str] = []
    answers: CheckedAnswers | None = None

    @property
    def project(self) -> Project:
        """Return the project with this worker's share in its settings."""
        # The sender has validated them. Not strict, since JSON has lists in place of tuples.
        settings = Settings.model_validate_json(self.settings, strict=False)
        # The whole of which this worker takes its part again: `prepare` divides by the workers.
        cost = None if self.share.max_cost is None else self.share.max_cost * self.share.of
        # Not resumed there: the command knows what is done, and hands out the rest.
        own = {"concurrency": self.share.concurrency, "max_cost": cost, "resume": None}
        # Workers know nothing of each other's requests; together they keep the limit.
        if settings.requests_per_minute is not None:
            own["requests_per_minute"] = settings.requests_per_minute / self.share.of
        return Project(Path(self.root), settings.model_copy(update=own))


def assignment(prepared: Preparation, share: WorkerShare, answers: CheckedAnswers | None = None) -> Assignment:
    """Return the assignment of a worker with this share."""
    root, settings = prepared.project
    return Assignment(
        root=str(root.absolute()),
        folder=str(Path.cwd()),
        settings=settings.model_dump_json(),
        configuration=own_configuration(prepared),
        baseline=baseline_hash(prepared),
        share=share,
        namesakes=prepared.plan.place_rules.golds.ambiguous,
        added_metrics=prepared.plan.added_metrics,
        answers=answers,
    )


def shares(settings: Settings, workers: int) -> list[WorkerShare]:
    """Divide the run's limits among so many workers."""
    each, more = divmod(settings.concurrency, workers)
    cost = None if settings.max_cost is None else settings.max_cost / workers
    divided: list[WorkerShare] = []
    for number in range(workers):
        # The first workers, as many as `more`, have one case more in flight.
        concurrency = each + 1 if number < more else each
        divided.append(WorkerShare(number, workers, concurrency, cost))
    return divided


def own_configuration(prepared: Preparation) -> Mapping[str, Any]:
    """Return the configuration on this machine in the form of config.json."""
    public = prepared.mask.value(run_configuration(prepared))
    # As JSON has it: lists in place of tuples, so that it equals one that was sent.
    configuration: Mapping[str, Any] = json.loads(json.dumps(public))
    return configuration


def baseline_hash(prepared: Preparation) -> str | None:
    file = prepared.project.baseline_file
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
