"""The health page: is the project ready to run, what does the app serve, which keys are set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.web.forms.submitted import Submitted
from pytest_rageval.web.health import HealthLine, app_facts, health_lines, health_lines_with_target, key_states
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page
from pytest_rageval.web.site import Site, TheSite
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore

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
