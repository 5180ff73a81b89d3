"""The files of a job's folder, `data/jobs/ID/`: the order, the process, the end and the log.

The process of a job holds the lock of its folder from its start to its end, however it ends.
"""

from __future__ import annotations

import errno
import os
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import open_regular, read_json, readable_json

JOB, PROCESS, ENDED, CANCELLED, LOG = "job.json", "process.json", "ended.json", "cancelled", "log.txt"
CONFIGURATION = "rageval.toml"
Source = Literal["connector", "uploaded answers"]


def _time_with_zone(written: str) -> str:
    if datetime.fromisoformat(written).tzinfo is None:
        raise ValueError("is a time without its zone")
    return written


class Job(BaseModel):
    """A run started here. Its id is also the run's id.

    cases      number of cases to ask
    arguments  of `rageval run`, besides its folders and the configuration in the job's folder
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    agent: str
    agent_version: int
    dataset: str
    dataset_version: int
    source: Source
    description: str = ""
    created: Annotated[str, AfterValidator(_time_with_zone)]
    cases: int
    arguments: tuple[str, ...] = ()


def read_job(folder: Path) -> Job:
    """Return the job of a folder, or raise SettingsError if the folder holds none."""
    try:
        return Job.model_validate(read_json(folder / JOB, "job"))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"job: {folder / JOB}: {place}: {problem['msg']}") from None


def number_in(path: Path, name: str) -> int | None:
    """Return a number in a job's file, such as `exit_code`; None if it is not recorded."""
    value = readable_json(path).get(name)
    return value if isinstance(value, int) else None


LONGEST_LINE = 2000
SHOWN_LINES = 200


def log_tail(path: Path, number: int = SHOWN_LINES) -> list[str]:
    """Return the last lines of a log; none if there is no file."""
    try:
        data = tail(path, number * LONGEST_LINE)
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-number:]


def tail(path: Path, size: int) -> bytes:
    """Return the last bytes of a file; raise OSError for a link, which may lead anywhere."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(path))
    with open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)
