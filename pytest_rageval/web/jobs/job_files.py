"""The files of a job's folder, `data/jobs/ID/`: what is to be run, by which processes it is, and how it ended."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.web.jobs.process_identity import ProcessIdentity

JOB, SUPERVISOR, RUN_PROCESS, ENDED, CANCELLED = (
    "job.json", "supervisor.json", "run_process.json", "ended.json", "cancelled",
)  # fmt: skip
CONFIGURATION = "rageval.toml"
Source = Literal["connector", "uploaded answers"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _time_with_zone(written: str) -> str:
    if datetime.fromisoformat(written).tzinfo is None:
        raise ValueError("is a time without its zone")
    return written


class Job(_Stored):
    """What was ordered. The id is that of the run, too.

    cases      how many there are to ask
    arguments  of `rageval run`, beside the configuration in the folder
    """

    id: str
    agent: str
    agent_version: int
    dataset: str
    dataset_version: int
    source: Source
    description: str = ""
    created: Annotated[str, AfterValidator(_time_with_zone)]
    cases: int
    warnings: tuple[str, ...] = ()
    arguments: tuple[str, ...]


class JobEnd(_Stored):
    """How the run ended: the exit code of its process, negative for a signal, None where it was never started."""

    exit_code: int | None
    ended: str
    is_cancelled: bool


def read_job(folder: Path) -> Job:
    """What was ordered; SettingsError where the folder is none of a job."""
    try:
        return Job.model_validate(read_json(folder / JOB, "job"))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"job: {folder / JOB}: {place}: {problem['msg']}") from None


def read_end(folder: Path) -> JobEnd | None:
    """How the run ended; None where that is not written down."""
    try:
        return JobEnd.model_validate(read_json(folder / ENDED, "job"))
    except (SettingsError, ValidationError):
        return None


def read_process(file: Path) -> ProcessIdentity | None:
    """A process that was written down; None where there is none."""
    try:
        return ProcessIdentity.model_validate(read_json(file, "job"))
    except (SettingsError, ValidationError):
        return None
