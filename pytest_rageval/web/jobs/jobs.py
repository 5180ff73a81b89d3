"""The jobs of a data folder: start, watch, cancel and resume them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGINT, SIGTERM

from pytest_rageval.config.settings import ENVIRONMENT
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.atomic import write_json, write_text
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.runs.folder import check_reports
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.web.jobs.job_files import (
    CANCELLED,
    CONFIGURATION,
    ENDED,
    JOB,
    LOG,
    RUN_PROCESS,
    SUPERVISOR,
    Job,
    Source,
    identify,
    log_tail,
    read_job,
    read_process,
)
from pytest_rageval.web.jobs.job_status import JobStatus, ProgressReader, status
from pytest_rageval.web.security.code_border import check_listed

LARGEST = 64 * 1024
"""Bytes."""
_LINE = re.compile(r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<value>.*)")
_QUOTED = re.compile(r"""(?P<mark>['"])(?P<value>[^'"\\$]*)(?P=mark)(?:[ \t]+#.*)?""")
_PLAIN = re.compile(r"""[^\s'"\\$#`]*""")
NOT_INHERITED = (*ENVIRONMENT, WEB_TOKEN)
"""Variables that would query another system than the agent's, write elsewhere, or give the run the server's token."""


def read_env_file(path: Path) -> dict[str, str]:
    """Read the variables of the file, none if it is missing; raise SettingsError with every invalid line.

    A problem names the line and the variable, never a value.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise SettingsError(f"{path.name}: larger than {LARGEST:,} bytes; it should hold keys alone")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise SettingsError(f"{path.name}: not UTF-8; save it so") from None
    except OSError as error:
        raise SettingsError(f"{path.name}: cannot be read: {error.strerror}") from None
    variables: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        if (match := _LINE.fullmatch(written)) is None:
            problems.append(f"{path.name}:{number}: not NAME=value")
            continue
        name, value = match["name"], _value(match["value"])
        if value is None:
            problems.append(
                f"{path.name}:{number}: the value of {name} has spaces, quotation marks, $, \\ or # in it; write it "
                "between quotation marks, without such marks inside"
            )
        elif name in variables:
            problems.append(f"{path.name}:{number}: {name} stands there twice; keep one")
        else:
            variables[name] = value
    if problems:
        raise SettingsError(*problems)
    return variables


def _value(written: str) -> str | None:
    if (quoted := _QUOTED.fullmatch(written)) is not None:
        return quoted["value"]
    return written if _PLAIN.fullmatch(written) else None


def run_environment(root: Path, env_file: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a run of this project's code; the environment overrides the file.

    Raise SettingsError if the file is unreadable.
    """
    own = os.environ if environment is None else environment
    variables = {**({} if env_file is None else read_env_file(env_file)), **own}
    for name in NOT_INHERITED:
        variables.pop(name, None)
    paths = [str(root), *filter(None, [variables.get("PYTHONPATH")])]
    return variables | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


MOST_AT_ONCE = 4
"""Maximum number of concurrent jobs."""
MOST_READERS = 500
"""Jobs whose progress is cached, so that only new lines are read."""
SUPERVISED = "pytest_rageval.web.jobs.supervisor"


@dataclass(frozen=True, slots=True)
class Order:
    """The complete order for a run: starting it looks nothing else up.

    lay_out   writes the configuration, the cases and their other files into the job's folder
    cases     number of cases
    answers   path of the uploaded answers in that folder; None if a connector is queried
    baseline  run to compare with, if any
    warnings  one line each
    left_out  metrics whose gates are off
    """

    agent: str
    agent_version: int
    dataset: str
    dataset_version: int
    source: Source
    lay_out: Callable[[Path], object]
    cases: int
    answers: str | None = None
    description: str = ""
    baseline: str | None = None
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class Jobs:
    """The folder `data/jobs`, one per server. The status of a job depends on files and processes only."""

    def __init__(self, data: Path, reports: Path, root: Path, env_file: Path | None) -> None:
        self._folder, self._reports, self._root, self._env_file = data / "jobs", reports, root, env_file
        self._readers: OrderedDict[str, ProgressReader] = OrderedDict()
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        """Held until a job's process is recorded: only then do other threads count the job as running."""

    # ── what there is ─────────────────────────────────────────────────────────────────────────────────────────

    def going(self) -> Iterator[JobStatus]:
        """Yield the jobs that have not ended, the newest first. Skip folders without a job."""
        for name in sorted(self._names(), reverse=True):
            with suppress(SettingsError):
                if not (self._folder / name / ENDED).exists() and (job := self.status(name)).is_going:
                    yield job

    def last_whole(self, agent: str, versions: Collection[int], dataset: str, source: Source) -> str | None:
        """Return the baseline of the next run: the last complete run of these versions, or None."""
        for name in sorted(self._names(), reverse=True):
            with suppress(SettingsError):
                job = read_job(self._folder / name)
                is_alike = (job.agent, job.dataset, job.source) == (agent, dataset, source)
                if is_alike and job.agent_version in versions:
                    metrics = StoredRun(self._run_folder(name)).metrics
                    if metrics is not None and not metrics["partial"]:
                        return name
        return None

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self._folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []

    def status(self, job_id: str) -> JobStatus:
        """Return the current status of a job, or raise SettingsError if the id is unknown."""
        folder = self._place(job_id)
        job = read_job(folder)
        run_folder = self._run_folder(job_id)
        with self._lock:
            reader = self._readers.setdefault(job_id, ProgressReader(run_folder, job.cases))
            self._readers.move_to_end(job_id)
            while len(self._readers) > MOST_READERS:
                self._readers.popitem(last=False)
        return status(folder, job, run_folder, reader.read())

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._names()

    def log(self, job_id: str) -> list[str]:
        """Return the last lines that the run of a job printed; none if there is no such job."""
        return log_tail(self._place(job_id) / LOG) if job_id in self else []

    def _place(self, job_id: str) -> Path:
        """Return the folder of a job. Look the id up among the existing names: it never becomes a path."""
        if job_id not in self:
            raise SettingsError(f"there is no job {job_id!r}")
        return self._folder / job_id

    def _run_folder(self, job_id: str) -> Path:
        return self._reports / "runs" / job_id

    # ── what is done ──────────────────────────────────────────────────────────────────────────────────────────

    def start(self, order: Order) -> Job:
        """Start the ordered run, or raise SettingsError if it cannot begin."""
        check_reports(self._reports)
        environment = run_environment(self._root, self._env_file)
        with self._beginning:
            self._check_room()
            folder = self._new_folder()
            try:
                order.lay_out(folder)
                file = folder / CONFIGURATION
                write_text(file, _with_origin(file.read_text(encoding="utf-8"), order))
                job = self._job(folder.name, order)
                self._check_listed(folder, job)
                write_json(folder / JOB, job.model_dump())
                self._supervise(folder, environment)
            except (RagevalError, OSError):
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return job

    def _check_listed(self, folder: Path, job: Job) -> None:
        """Raise SettingsError if the job would run code or read files that the project does not list."""
        check_listed(load_settings(folder, environment={}), self._root, is_asked=job.source == "connector")

    def _check_room(self) -> None:
        """Raise SettingsError if the maximum number of jobs runs already."""
        if len(self.going_names()) >= MOST_AT_ONCE:
            raise SettingsError(f"{MOST_AT_ONCE} at most run at the same time; wait for one to end, or cancel one")

    def _job(self, job_id: str, order: Order) -> Job:
        return Job(
            id=job_id,
            agent=order.agent,
            agent_version=order.agent_version,
            dataset=order.dataset,
            dataset_version=order.dataset_version,
            source=order.source,
            description=order.description,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            cases=order.cases,
            warnings=order.warnings,
            arguments=self._arguments(job_id, order),
        )

    def going_names(self) -> list[str]:
        """Return the names of the jobs whose processes are alive."""
        return [
            name
            for name in self._names()
            if not (self._folder / name / ENDED).exists()
            and (process := read_process(self._folder / name / SUPERVISOR)) is not None
            and process.is_alive
        ]

    def resume(self, job_id: str) -> None:
        """Finish the run of a stopped or killed job, or raise SettingsError if nothing is left to do."""
        folder = self._place(job_id)
        environment = run_environment(self._root, self._env_file)
        with self._beginning:
            if job_id in self.going_names() or not self.status(job_id).can_resume:
                raise SettingsError(f"job {job_id} has nothing to resume")
            self._check_room()
            job = read_job(folder)
            self._check_listed(folder, job)
            kept = [word for word in job.arguments if word not in ("--run-id", "--resume", job_id)]
            write_json(folder / JOB, job.model_copy(update={"arguments": (*kept, "--resume", job_id)}).model_dump())
            for name in (ENDED, CANCELLED, RUN_PROCESS, SUPERVISOR):
                (folder / name).unlink(missing_ok=True)
            self._supervise(folder, environment)

    def cancel(self, job_id: str) -> None:
        """Stop a run gracefully and keep its ended cases. Do nothing if it has ended."""
        folder = self._place(job_id)
        supervisor, run = (read_process(folder / name) for name in (SUPERVISOR, RUN_PROCESS))
        if (folder / ENDED).exists() or not any(
            process is not None and process.is_alive for process in (supervisor, run)
        ):
            return
        with suppress(OSError):  # a full disk must not prevent the cancellation
            (folder / CANCELLED).touch()
        if supervisor is None or not supervisor.send(SIGTERM):
            # The supervisor is gone: signal the run directly.
            _ = run is not None and run.send(SIGINT)

    def _new_folder(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        begun = datetime.now(UTC).strftime("%Y%m%d_%H%M%S")
        for suffix in ("", *(f"_{number}" for number in range(2, 1000))):
            folder = self._folder / (begun + suffix)
            if self._run_folder(folder.name).exists():
                continue
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
        raise SettingsError(f"{self._folder}: too many jobs in one second")

    def _arguments(self, job_id: str, order: Order) -> tuple[str, ...]:
        arguments = ["--reports", str(self._reports.resolve()), "--run-id", job_id]
        if order.answers is not None:
            arguments += ["--target", f"answers:{order.answers}"]
        arguments += [f"--gate={metric} off" for metric in order.left_out]
        if order.description:
            arguments.append(f"--description={order.description}")
        if order.baseline is None:
            return (*arguments, "--baseline", "none")
        return (*arguments, "--baseline", f"run:{order.baseline}")

    def _supervise(self, folder: Path, environment: Mapping[str, str]) -> None:
        secrets = sorted(set(load_settings(folder, environment=environment).secrets(environment)))
        with (folder / LOG).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 because the arguments are ours and no shell reads them
                [sys.executable, "-m", SUPERVISED, str(folder.resolve())],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        assert process.stdin is not None
        try:
            if (identity := identify(process.pid)) is not None:
                write_json(folder / SUPERVISOR, identity.model_dump())
        except OSError:  # the supervisor still waits for its input: no unrecorded run has begun
            process.kill()
            process.communicate()
            raise
        with suppress(BrokenPipeError), process.stdin as stream:  # a supervisor that died at once masks nothing
            stream.write(json.dumps(secrets).encode())
        # Wait for it, so that its pid is released; the thread ends with the process or with the server.
        threading.Thread(target=process.wait, name=f"job {folder.name}", daemon=True).start()


def _with_origin(configuration: str, order: Order) -> str:
    """Return the configuration with a table that names the versions it is made from."""
    prefix = "tool.rageval." if "tool" in tomllib.loads(configuration) else ""
    values = {
        "agent": order.agent,
        "agent_version": order.agent_version,
        "dataset": order.dataset,
        "dataset_version": order.dataset_version,
        "source": order.source,
    }
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return f"{configuration.rstrip()}\n\n[{prefix}origin]\n" + "\n".join(lines) + "\n"
