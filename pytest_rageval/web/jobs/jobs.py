"""All jobs of a data folder: made, started, watched, cancelled and resumed."""

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
NOT_HANDED_ON = (*ENVIRONMENT, WEB_TOKEN)
"""They would ask another system than the agent's, write elsewhere, or give the run the word for the server."""


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of the file, none where there is no file; SettingsError with every line that cannot be read.

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
    """Variables for a run of this project's code; what is set already counts more than the file.

    SettingsError where the file cannot be read.
    """
    own = os.environ if environment is None else environment
    variables = {**({} if env_file is None else read_env_file(env_file)), **own}
    for name in NOT_HANDED_ON:
        variables.pop(name, None)
    paths = [str(root), *filter(None, [variables.get("PYTHONPATH")])]
    return variables | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


MOST_AT_ONCE = 4
"""Jobs that may run at the same time."""
MOST_READERS = 500
"""Jobs whose progress is remembered, so that only what is new is read."""
SUPERVISED = "pytest_rageval.web.jobs.supervisor"


@dataclass(frozen=True, slots=True)
class Order:
    """What a person wants to be run, complete: nothing else is looked up when it is started.

    lay_out   writes the configuration, the cases, and what else these need into the job's folder
    cases     how many there are
    answers   path of the uploaded answers in that folder; None where a connector is asked
    baseline  run that it is compared with, if any
    warnings  what a person should know of this run, a line each
    left_out  metrics whose gates do not count in it
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
    """The folder `data/jobs`. One for a server; what it says of a job rests on files and processes alone."""

    def __init__(self, data: Path, reports: Path, root: Path, env_file: Path | None) -> None:
        self._folder, self._reports, self._root, self._env_file = data / "jobs", reports, root, env_file
        self._readers: OrderedDict[str, ProgressReader] = OrderedDict()
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        """Held until a job's processes are written down: until then nobody else can count it among those that run."""

    # ── what there is ─────────────────────────────────────────────────────────────────────────────────────────

    def going(self) -> Iterator[JobStatus]:
        """Yield the jobs that have not ended, the newest first; folders that hold none are passed over."""
        for name in sorted(self._names(), reverse=True):
            with suppress(SettingsError):
                if not (self._folder / name / ENDED).exists() and (job := self.status(name)).is_going:
                    yield job

    def last_whole(self, agent: str, versions: Collection[int], dataset: str, source: Source) -> str | None:
        """Return what the next run is compared with: the last whole one of these versions of an agent, and any of a
        dataset, with answers from the same source; None where there is none."""
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
        """A job as it is now; SettingsError where there is none of this id."""
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
        """The last lines that the run of a job printed; none where there is no such job."""
        return log_tail(self._place(job_id) / LOG) if job_id in self else []

    def _place(self, job_id: str) -> Path:
        """The folder of a job. The id is looked for among the names that are there: it is never a path."""
        if job_id not in self:
            raise SettingsError(f"there is no job {job_id!r}")
        return self._folder / job_id

    def _run_folder(self, job_id: str) -> Path:
        return self._reports / "runs" / job_id

    # ── what is done ──────────────────────────────────────────────────────────────────────────────────────────

    def start(self, order: Order) -> Job:
        """Run what is ordered; SettingsError where that cannot begin."""
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
        """SettingsError where it would run code or read files that the project does not list."""
        check_listed(load_settings(folder, environment={}), self._root, is_asked=job.source == "connector")

    def _check_room(self) -> None:
        """SettingsError where as many run as may."""
        if len(self.going_names()) >= MOST_AT_ONCE:
            raise SettingsError(f"{MOST_AT_ONCE} at most run at the same time; wait for one to end, or cancel one")

    def _job(self, job_id: str, order: Order) -> Job:
        return Job(
            id=job_id, agent=order.agent, agent_version=order.agent_version, dataset=order.dataset,
            dataset_version=order.dataset_version, source=order.source, description=order.description,
            created=datetime.now(UTC).isoformat(timespec="seconds"), cases=order.cases, warnings=order.warnings,
            arguments=self._arguments(job_id, order),
        )  # fmt: skip

    def going_names(self) -> list[str]:
        """Names of the jobs whose processes live."""
        return [
            name
            for name in self._names()
            if not (self._folder / name / ENDED).exists()
            and (process := read_process(self._folder / name / SUPERVISOR)) is not None
            and process.is_alive
        ]

    def resume(self, job_id: str) -> None:
        """Finish the run of a job that was stopped or killed; SettingsError where there is nothing to finish."""
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
        """End a run in order: it keeps what has ended. Nothing happens where it has ended already."""
        folder = self._place(job_id)
        supervisor, run = (read_process(folder / name) for name in (SUPERVISOR, RUN_PROCESS))
        if (folder / ENDED).exists() or not any(
            process is not None and process.is_alive for process in (supervisor, run)
        ):
            return
        with suppress(OSError):  # a full disk keeps no run alive
            (folder / CANCELLED).touch()
        if supervisor is None or not supervisor.send(SIGTERM):
            # Nobody looks after the run any more: it gets the signal from here.
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
                cwd=folder, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None
        try:
            if (identity := identify(process.pid)) is not None:
                write_json(folder / SUPERVISOR, identity.model_dump())
        except OSError:  # it waits for its input still: nothing has begun that nobody could find again
            process.kill()
            process.communicate()
            raise
        with suppress(BrokenPipeError), process.stdin as stream:  # one that died at once has nothing to mask
            stream.write(json.dumps(secrets).encode())
        # Waited for, so that its pid is given back; the thread ends with the process, or with the server.
        threading.Thread(target=process.wait, name=f"job {folder.name}", daemon=True).start()


def _with_origin(configuration: str, order: Order) -> str:
    """The configuration with the table that says which versions it is made of."""
    prefix = "tool.rageval." if "tool" in tomllib.loads(configuration) else ""
    values = {
        "agent": order.agent, "agent_version": order.agent_version, "dataset": order.dataset,
        "dataset_version": order.dataset_version, "source": order.source,
    }  # fmt: skip
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return f"{configuration.rstrip()}\n\n[{prefix}origin]\n" + "\n".join(lines) + "\n"
