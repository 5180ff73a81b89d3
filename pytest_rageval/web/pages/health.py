"""The health page: the readiness of the project, the facts of the app, and the keys that are set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.check.diagnosis import MARKS, Diagnosis, Mark
from pytest_rageval.check.doctor import CHECKS, diagnoses
from pytest_rageval.errors import RagevalError
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.web.forms import Submitted
from pytest_rageval.web.keys import KeyState, key_states
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page
from pytest_rageval.web.site import MEGABYTE, Site, TheSite, WebSettings
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore

TARGET = "target"
"""The only check that uses the network or imports code: it runs on request."""
DOCTOR_S = 30
"""Timeout in seconds of that process."""


router = APIRouter()
Line = tuple[str, Diagnosis]
"""A subject of the doctor, and what it found."""


def health_lines(site: Site) -> list[Line]:
    """Check what a run needs, except for the system under test."""
    try:
        project = site.project()
    except RagevalError as error:
        return [("configuration", Diagnosis("problem", problem)) for problem in error.problems]
    free_checks = {subject: check for subject, check in CHECKS.items() if subject != TARGET}
    return list(diagnoses(free_checks, project))


def health_lines_with_target(root: Path) -> list[Line]:
    """Check the system under test too: load or reach it, and ask a server or code of the project one question.

    This runs in a process of its own: it imports the project's code afresh, and its side effects stay there.
    """
    # The project's code runs there, and has no use for the app's token.
    environment = {name: value for name, value in os.environ.items() if name != WEB_TOKEN}
    try:
        done = subprocess.run(
            # In a process of its own, which can be ended: code of the project may hang or exit.
            [sys.executable, "-m", "pytest_rageval", "doctor", "--json"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DOCTOR_S,
            check=False,
        )
        findings = json.loads(done.stdout)["findings"]
        return [(found["check"], Diagnosis(found["mark"], found["what"], found["fix"])) for found in findings]
    except subprocess.TimeoutExpired:
        problem = f"rageval doctor did not end within {DOCTOR_S} s"
    except (ValueError, KeyError, TypeError):
        problem = "rageval doctor told nothing"
    return [(TARGET, Diagnosis("problem", problem, "run it in a terminal"))]


def app_facts(settings: WebSettings) -> Iterator[tuple[str, str]]:
    """Yield the facts of the app: version, folders, who can reach it, its limits."""
    limits = settings.limits
    yield "version", version("pytest-rageval")
    yield "project", str(settings.root)
    yield "runs", str(settings.reports / "runs")
    yield "data", str(settings.data)
    has_file = settings.env_file is not None and settings.env_file.is_file()
    yield "keys for runs", str(settings.env_file) if has_file else "from the environment; there is no .env"
    reach = "this machine alone" if settings.is_loopback else f"whoever reaches {settings.host}"
    yield "reached by", f"{reach}, {'with the token' if settings.token else 'without a token'}"
    yield "an upload", f"{limits.upload_bytes // MEGABYTE} MB, {limits.upload_rows:,} rows"
    yield "a text of an upload", f"{limits.field_characters:,} characters"


@dataclass(frozen=True, kw_only=True)
class HealthPage(PageContext):
    """What runs need, and whether it is there."""

    template = "health.html"
    lines: Sequence[Line]
    """The checks, each under its subject."""
    marks: Mapping[Mark, str]
    """The signs of the marks of checks."""
    has_target: bool
    """The system under test was checked too."""
    keys: Sequence[KeyState]
    """Which keys are set."""
    key_problems: Sequence[str]
    """What is wrong with the file of keys."""
    facts: Iterable[tuple[str, str]]
    """Facts about this app, by name."""
    is_ready: bool
    """No check found a problem."""
    agents: int
    """The number of agents."""
    datasets: int
    """The number of datasets."""


@router.get("/health")
def show_health(request: Request, site: TheSite, agents: Agents, datasets: Datasets) -> Response:
    """Show all checks except that of the system under test. This queries nothing and is free."""
    return _health(request, site, agents, datasets, health_lines(site), has_target=False)


@router.post("/health")
def check_target_too(request: Request, site: TheSite, agents: Agents, datasets: Datasets, _: Submitted) -> Response:
    """Show all checks, including that of the system under test."""
    lines = health_lines_with_target(site.settings.root)
    return _health(request, site, agents, datasets, lines, has_target=True)


def _health(
    request: Request, site: Site, agents: AgentStore, datasets: DatasetStore, lines: Sequence[Line], *, has_target: bool
) -> Response:
    keys, problems = key_states(site.settings.env_file)
    context = HealthPage(
        lines=lines,
        marks=MARKS,
        has_target=has_target,
        keys=keys,
        key_problems=problems,
        facts=app_facts(site.settings),
        is_ready=all(line.mark != "problem" for _, line in lines),
        agents=len(agents.slugs()),
        datasets=len(datasets.slugs()),
    )
    return page(request, context)
