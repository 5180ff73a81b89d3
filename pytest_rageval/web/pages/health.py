"""The health page: is the project ready to run, what does the app serve, which keys are set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.errors import RagevalError
from pytest_rageval.io.environment_secrets import SENT_FROM_ENVIRONMENT, WEB_TOKEN
from pytest_rageval.tools.doctor import CHECKS, MARKS, Diagnosis, diagnoses
from pytest_rageval.web.forms.form_state import Submitted
from pytest_rageval.web.jobs.jobs import read_env_file
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page
from pytest_rageval.web.site import MEGABYTE, Site, TheSite, WebSettings
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore

TARGET = "target"
"""The one check that reaches out, or imports code of the project: it is made on request, in a process of its own."""
DOCTOR_S = 30
"""Seconds for that process."""


class HealthLine(NamedTuple):
    """A line of the doctor: `mark` is ok, warning or problem."""

    mark: str
    symbol: str
    subject: str
    what: str
    fix: str


class KeyState(NamedTuple):
    """A variable that holds a key, and where it is set; the value is nobody's business."""

    name: str
    where: str


def health_lines(site: Site) -> list[HealthLine]:
    """What a run needs, without a look at the system under test."""
    try:
        project = site.project()
    except RagevalError as error:
        return [_line("configuration", Diagnosis("problem", problem)) for problem in error.problems]
    checks = {subject: check for subject, check in CHECKS.items() if subject != TARGET}
    return [_line(subject, diagnosis) for subject, diagnosis in diagnoses(checks, project)]


def health_lines_with_target(site: Site) -> list[HealthLine]:
    """The same with the system: made, or reached, and asked no question.

    A process of its own: code of the project is imported anew, and what it does to its process is not done to this one.
    """
    command = [sys.executable, "-m", "pytest_rageval", "doctor", "--json"]
    root = site.settings.root
    try:
        done = subprocess.run(  # noqa: S603 because it is our own command
            command, cwd=root, env={name: value for name, value in os.environ.items() if name != WEB_TOKEN},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=DOCTOR_S, check=False,
        )  # fmt: skip
        findings = json.loads(done.stdout)["findings"]
    except subprocess.TimeoutExpired:
        late = Diagnosis("problem", f"rageval doctor did not end within {DOCTOR_S} s", "run it in a terminal")
        return [_line(TARGET, late)]
    except (ValueError, KeyError, TypeError):
        return [_line(TARGET, Diagnosis("problem", "rageval doctor told nothing", "run it in a terminal"))]
    return [_line(found["check"], Diagnosis(found["mark"], found["what"], found["fix"])) for found in findings]


def key_states(settings: WebSettings) -> tuple[list[KeyState], Sequence[str]]:
    """Which keys are set, and what is wrong with the `.env`."""
    problems: Sequence[str] = ()
    from_file: dict[str, str] = {}
    if settings.env_file is not None:
        try:
            from_file = read_env_file(settings.env_file)
        except RagevalError as error:
            problems = error.problems
    names = [*SENT_FROM_ENVIRONMENT, *sorted(set(from_file) - {*SENT_FROM_ENVIRONMENT})]
    return [KeyState(name, _where(name, from_file)) for name in names], problems


def app_facts(settings: WebSettings) -> Iterator[tuple[str, str]]:
    """The app itself: version, folders, who can reach it, how much it takes."""
    limits = settings.limits
    yield "version", version("pytest-rageval")
    yield "project", str(settings.root)
    yield "runs", str(settings.reports / "runs")
    yield "data", str(settings.data)
    yield "keys for runs", _keys_place(settings.env_file)
    reach = "this machine alone" if settings.is_loopback else f"whoever reaches {settings.host}"
    yield "reached by", f"{reach}, {'with the token' if settings.token else 'without a token'}"
    yield "an upload", f"{limits.upload_bytes // MEGABYTE} MB, {limits.upload_rows:,} rows"
    yield "a text of an upload", f"{limits.field_characters:,} characters"


def _keys_place(env_file: Path | None) -> str:
    if env_file is not None and env_file.is_file():
        return str(env_file)
    return "from the environment; there is no .env"


def _where(name: str, from_file: Mapping[str, str]) -> str:
    if os.environ.get(name):
        return "set in the environment"
    return "set in .env" if from_file.get(name) else "not set"


def _line(subject: str, diagnosis: Diagnosis) -> HealthLine:
    return HealthLine(diagnosis.mark, MARKS[diagnosis.mark], subject, diagnosis.what, diagnosis.fix)


router = APIRouter()


@router.get("/health")
def show_health(request: Request, site: TheSite, agents: Agents, datasets: Datasets) -> Response:
    """Everything but the system under test: nothing is asked, nothing costs."""
    return _health(request, site, _Versions(agents, datasets), health_lines(site), has_target=False)


@router.post("/health")
def check_target_too(
    request: Request, site: TheSite, agents: Agents, datasets: Datasets, _: Submitted
) -> Response:  # fmt: skip
    """The same with the system under test, which is asked no question."""
    return _health(request, site, _Versions(agents, datasets), health_lines_with_target(site), has_target=True)


class _Versions(NamedTuple):
    """Where runs from the browser take what they need."""

    agents: AgentStore
    datasets: DatasetStore


def _health(
    request: Request, site: Site, versions: _Versions, lines: Sequence[HealthLine], *, has_target: bool
) -> Response:  # fmt: skip
    keys, problems = key_states(site.settings)
    return page(
        request, "health.html", lines=lines, has_target=has_target, keys=keys, key_problems=problems,
        facts=list(app_facts(site.settings)), is_ready=all(line.mark != "problem" for line in lines),
        agents=len(versions.agents.files.slugs()), datasets=len(versions.datasets.files.slugs()),
    )  # fmt: skip
