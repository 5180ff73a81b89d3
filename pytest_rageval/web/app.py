"""The app: pages behind the guard, made from its settings; nothing happens at import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Depends, FastAPI

from pytest_rageval.web import asset_files
from pytest_rageval.web.error_pages import add_error_pages, refused
from pytest_rageval.web.forms.submitted import submitted
from pytest_rageval.web.index_of_site import open_run_index
from pytest_rageval.web.jobs.jobs import Jobs
from pytest_rageval.web.labelling.label_desk import LabelDesk
from pytest_rageval.web.opened_runs import OpenedRuns
from pytest_rageval.web.pages import (
    agents,
    case,
    compare,
    dashboard,
    dataset_cases,
    dataset_import,
    dataset_labelling,
    datasets,
    demo,
    draft_case,
    health,
    history,
    jobs,
    label,
    login,
    new_run,
    opinions,
    run,
    runs,
)
from pytest_rageval.web.security.guard import Guard
from pytest_rageval.web.security.seal import open_seal
from pytest_rageval.web.security.token_check import TokenCheck
from pytest_rageval.web.settings import WebSettings, check_reach
from pytest_rageval.web.site import Site

ROUTERS = (
    asset_files.router, login.router, dashboard.router, runs.router, run.router, case.router, compare.router,
    history.router, agents.router, dataset_import.router, datasets.router, dataset_cases.router, health.router,
    jobs.router, new_run.router, label.router, draft_case.router, dataset_labelling.router,
    demo.router,
    opinions.router,
)  # fmt: skip
"""A page module adds its router here; its link stands in the navigation from then on."""


_OFF = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
NO_TELEMETRY: Mapping[str, Any] = {"telemetry": _OFF}
"""Newer FastAPI would follow an environment that asks for spans; older ones take no notice of this."""


def create_web_app(settings: WebSettings) -> FastAPI:
    """The app over these folders; SettingsError where it must not be started so."""
    check_reach(settings)
    seal = open_seal(settings.data)
    app = FastAPI(
        title="rageval", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
        dependencies=[Depends(submitted)], **NO_TELEMETRY,
    )  # fmt: skip
    app.state.site = site = Site(settings, seal)
    app.state.run_index = index = open_run_index(site)
    app.state.opened_runs = OpenedRuns(site, index)
    app.state.jobs = Jobs(settings.data, settings.reports, settings.root, settings.env_file)
    app.state.label_desk = LabelDesk(settings.data, settings.env_file)
    app.state.tokens = tokens = TokenCheck(settings.token)
    app.state.addresses = {getattr(route, "path", "") for router in ROUTERS for route in router.routes}
    for router in ROUTERS:
        app.include_router(router)
    add_error_pages(app)
    app.add_middleware(Guard, settings=settings, seal=seal, tokens=tokens, refused=refused)
    return app
