"""The health page: is the project ready to run, what does the app serve, which keys are set."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.web.forms.submitted import Submitted
from pytest_rageval.web.health import HealthLine, app_facts, health_lines, health_lines_with_target, key_states
from pytest_rageval.web.rendering import page
from pytest_rageval.web.site import Site, TheSite

router = APIRouter()


@router.get("/health")
def show_health(request: Request, site: TheSite) -> Response:
    """Everything but the system under test: nothing is asked, nothing costs."""
    return _health(request, site, health_lines(site), has_target=False)


@router.post("/health")
def check_target_too(request: Request, site: TheSite, _: Submitted) -> Response:
    """The same with the system under test, which is asked no question."""
    return _health(request, site, health_lines_with_target(site), has_target=True)


def _health(request: Request, site: Site, lines: Sequence[HealthLine], *, has_target: bool) -> Response:
    keys, problems = key_states(site.settings)
    return page(
        request, "health.html", lines=lines, has_target=has_target, keys=keys, key_problems=problems,
        facts=list(app_facts(site.settings)), is_ready=all(line.mark != "problem" for line in lines),
    )  # fmt: skip
