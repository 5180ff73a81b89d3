"""The FastAPI app: its routers, its guard and its error pages. Importing it has no side effects."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pytest_rageval.errors import RagevalError
from pytest_rageval.text import printable
from pytest_rageval.web.forms import submitted
from pytest_rageval.web.guard import Guard
from pytest_rageval.web.jobs.jobs import Jobs
from pytest_rageval.web.jobs.pairwise_jobs import PairwiseJobs
from pytest_rageval.web.label_desk import LabelDesk
from pytest_rageval.web.opened_runs import OpenedRuns
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages import (
    agents,
    api,
    case,
    compared_agents,
    dashboard,
    dataset_cases,
    dataset_import,
    datasets,
    health,
    label,
    new_run,
    pairwise,
    run,
    runs,
)
from pytest_rageval.web.rendering import page
from pytest_rageval.web.rendering import router as assets
from pytest_rageval.web.run_list import RunFolders
from pytest_rageval.web.run_shelf import RunShelf
from pytest_rageval.web.sessions import API, Sessions, TokenCheck, open_key
from pytest_rageval.web.site import Site, UnknownPageError, WebSettings, check_reach

# The order matters where two routes fit one address: `/datasets/new` comes before `/datasets/{slug}`.
ROUTERS = (
    assets,
    dashboard.router,
    runs.router,
    run.router,
    compared_agents.router,
    pairwise.router,
    case.router,
    agents.router,
    dataset_import.router,
    datasets.router,
    dataset_cases.router,
    health.router,
    new_run.router,
    label.router,
    api.router,
)
"""The routers of all page modules."""


_OFF = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
NO_TELEMETRY: Mapping[str, Any] = {"telemetry": _OFF}
"""Newer FastAPI sends spans if the environment requests them; older versions ignore this."""
LOG = logging.getLogger("rageval.web")
OWN_WORDS: Mapping[int, str] = {404: "There is no such page.", 405: "This page cannot be asked so."}


def create_web_app(settings: WebSettings) -> FastAPI:
    """Return the app over these folders, or raise SettingsError if the settings are unsafe."""
    check_reach(settings)
    key = open_key(settings.data)
    app = FastAPI(
        title="rageval",
        # The pages of Swagger and ReDoc load scripts from elsewhere, which the policy of the guard forbids.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # Of the whole app, so that no route that writes can forget the check of its form.
        dependencies=[Depends(submitted)],
        **NO_TELEMETRY,
    )
    site = Site(settings)
    folders = RunFolders(site)
    tokens = TokenCheck(settings.token, key)
    app.state.site = site
    app.state.run_folders = folders
    app.state.run_shelf = RunShelf(site)
    app.state.opened_runs = OpenedRuns(site, folders)
    app.state.jobs = Jobs(settings.data, settings.reports, settings.root, settings.env_file)
    app.state.pairwise_jobs = PairwiseJobs(settings)
    app.state.label_desk = LabelDesk(settings.data, settings.env_file, folders)
    app.state.tokens = tokens
    for router in ROUTERS:
        app.include_router(router, include_in_schema=router is api.router)
    for kind in (HTTPException, RequestValidationError, RagevalError, OSError, Exception):
        app.add_exception_handler(kind, error_page)
    # Added before the sessions, and so inside of them: the guard reads the login from the session.
    app.add_middleware(Guard, settings=settings, tokens=tokens, refusal_page=refusal_page)
    app.add_middleware(Sessions, key=key, data=settings.data)
    return app


@dataclass(frozen=True, kw_only=True)
class ErrorPage(PageContext):
    """What is wrong with a request."""

    template = "error.html"
    title: str
    """The name of the HTTP status."""
    code: int
    """The HTTP status."""
    problems: Sequence[str]
    """What is wrong, a sentence each."""


def refusal_page(request: Request, error: HTTPException) -> Response:
    """Return the page of a refused request."""
    problem = str(error.detail)
    if problem == HTTPStatus(error.status_code).phrase:  # raised by the framework, without details
        problem = OWN_WORDS.get(error.status_code, problem)
    return problem_page(request, error.status_code, [problem], error.headers)


def problem_page(
    request: Request, status: int, problems: Sequence[str], headers: Mapping[str, str] | None = None
) -> Response:
    if request.url.path.startswith(API):
        return JSONResponse({"problems": [*problems]}, status, dict(headers or {}))
    title = HTTPStatus(status).phrase
    response = page(request, ErrorPage(title=title, code=status, problems=problems), status=status)
    response.headers.update(headers or {})
    return response


def error_page(request: Request, error: Exception) -> Response:
    """Return the page of an exception of a route."""
    if isinstance(error, HTTPException):
        return refusal_page(request, error)
    if isinstance(error, RequestValidationError):  # an invalid path or query
        problems = [f"{'.'.join(map(str, flaw['loc'][1:]))}: {flaw['msg']}" for flaw in error.errors()]
        return problem_page(request, 400, problems)
    if isinstance(error, RagevalError):  # which the user can fix: a broken folder, a wrong setting
        status = 404 if isinstance(error, UnknownPageError) else 409
        return problem_page(request, status, error.problems)
    reason = ""  # the text of any other exception may hold what a person typed
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
    # The path alone: a query may hold a filter that somebody typed.
    LOG.error("%s %s: %s: %s", request.method, request.url.path, type(error).__name__, reason)
    if not isinstance(error, OSError):
        words = "Something went wrong here; what it was stands where rageval web was started."
        return problem_page(request, 500, [words])
    # A full disk, or a missing or foreign folder. Writes are atomic: nothing is half written.
    problem = f"{error.filename}: {reason}" if error.filename else reason
    problems = [printable(problem)]
    if request.method == "POST":
        problems.append(
            "Nothing of this was saved. Free some space, or mend the folder; then go back, and send it once more."
        )
    return problem_page(request, 507, problems)
