"""Rendering of pages: the templates of reports and of this app, one layout, every value escaped."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from jinja2 import ChoiceLoader, Environment, PackageLoader, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pytest_rageval.render.html.environment import asset, environment
from pytest_rageval.render.html.variables import variables
from pytest_rageval.text import counted, duration, printable
from pytest_rageval.web.forms import FORM_TOKEN
from pytest_rageval.web.guard import HEADERS, NO_CACHE
from pytest_rageval.web.jobs.job import Job
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.run_list import made_from
from pytest_rageval.web.run_rows import RunRow
from pytest_rageval.web.sessions import form_token
from pytest_rageval.web.versions.version_folder import Kind, is_slug, version_name

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
SHARED = ("tokens.css", "case_parts.js")
"""Assets shared with the HTML report."""
CACHE_FOREVER = "public, max-age=31536000, immutable"
NAVIGATION = (
    ("Runs", "/runs"),
    ("Compare", "/compare"),
    ("History", "/history"),
    ("Agents", "/agents"),
    ("Datasets", "/datasets"),
    ("Label", "/label"),
    ("Health", "/health"),
)
"""The links in the head of each page."""

router = APIRouter()


class AssetFile(NamedTuple):
    """An asset and its address, which changes with its content: `/assets/web.1a2b3c4d5e6f.css`."""

    address: str
    content: bytes
    type: str


@cache
def asset_files() -> dict[str, AssetFile]:
    """Return the assets by name."""
    folder = files("pytest_rageval.web").joinpath("assets")
    contents = {name: asset(name).encode() for name in SHARED}
    for entry in folder.iterdir():
        if entry.name.rpartition(".")[2] in TYPES:
            contents[entry.name] = entry.read_bytes()
    found = {}
    for name, content in contents.items():
        stem, _, suffix = name.rpartition(".")
        address = f"/assets/{stem}.{sha256(content).hexdigest()[:12]}.{suffix}"
        found[name] = AssetFile(address, content, TYPES[suffix])
    return found


def _asset_address(name: str) -> str:
    return asset_files()[name].address


@router.get("/assets/{name}")
def asset_file(request: Request) -> Response:
    """Return an asset by its address. The address is looked up, never opened as a path."""
    for file in asset_files().values():
        if file.address == request.url.path:
            return Response(file.content, media_type=file.type, headers={"Cache-Control": CACHE_FOREVER})
    raise HTTPException(404, "There is no such file.")


def page(request: Request, context: PageContext, *, status: int = 200) -> HTMLResponse:
    """Return a rendered page, with control and bidirectional characters made visible.

    Its template also gets the values of `_shared`.
    """
    template = web_environment().get_template(context.template)
    text = template.render(_shared(request) | variables(context))
    # Starlette's page of a bug is sent past the guard, which else adds the headers.
    return HTMLResponse(printable(text), status, headers=HEADERS | {"Cache-Control": NO_CACHE})


def redirect(address: str) -> RedirectResponse:
    """Return the redirect to the next page after an accepted form."""
    return RedirectResponse(address, 303)


def is_fragment_wanted(request: Request) -> bool:
    """Return True if a script requests a part of the page, without the layout: `{% extends base %}`."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-request-type") != "full"


def path_to(*steps: str, **query: object) -> str:
    """Return an address without None or blank parameters: `path_to("runs", run_id, "cases", key, q="x")`."""
    path = "/".join(quote(step, safe="") for step in steps)
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    return f"/{path}?{urlencode(asked, doseq=True)}" if asked else f"/{path}"


@cache
def web_environment() -> Environment:
    """Return the environment of reports with this app's templates first, and links to its pages."""
    reports = environment()
    assert reports.loader is not None
    loader = ChoiceLoader([PackageLoader("pytest_rageval.web"), reports.loader])
    # No bytecode cache: the app has other filters, so templates compiled for reports do not fit.
    pages = reports.overlay(loader=loader, bytecode_cache=None)
    pages.filters = reports.filters | {
        "field_value": field_value,
        "counted": counted,
        "duration": duration,
        "printable": printable,
        "key": _case_link,
        "cases": _list_link,
        "minute": lambda written: written[:16].replace("T", " "),
        "made_from": _made_from,
        "version_name": _version_name,
    }
    pages.tests = reports.tests | {"slug": is_slug}
    pages.globals = reports.globals | {"is_served": True, "path_to": path_to, "asset": _asset_address}
    return pages


def field_value(value: object) -> Markup:
    """Escape a value for a form field so that the form sends back the same characters."""
    return Markup(_NOT_PLAIN.sub(lambda match: f"&#{ord(match[0])};", escape(value)))  # noqa: S704 because it is escaped


@pass_context
def _case_link(context: Context, key: str) -> str:
    """Return the address of a case's page, for the templates of a report."""
    against = context.get("against")
    return path_to("runs", context["run_id"], "cases", printable(key), against=against)


@pass_context
def _made_from(context: Context, run: RunRow | Job) -> str:
    """Return the names of the versions that a run is made from."""
    return made_from(run, context["frame"]["data"])


@pass_context
def _version_name(context: Context, slug: str, kind: Kind) -> str:
    """Return the name of the agent or dataset with this slug."""
    return version_name(context["frame"]["data"], kind, slug)


@pass_context
def _list_link(context: Context, query: str) -> str:
    """Return the address of the cases that pass a filter, for the templates of a report."""
    run_id = context["run_id"]
    against = context.get("against")
    q = printable(query)
    address = path_to("compare", a=against, b=run_id, q=q) if against else path_to("runs", run_id, q=q)
    return f"{address}#cases"


# A line break at the start of a text area is dropped by browsers; `printable` would rewrite the others.
_NOT_PLAIN = re.compile("^\n|[\x01-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069:[]")


def _shared(request: Request) -> dict[str, Any]:
    """Return the values of `layout.html`; `data` is the folder with the names of agents and datasets."""
    settings = request.app.state.site.settings
    here = request.url.path
    token = escape(form_token(request))
    frame = {
        "links": [(title, address, f"{here}/".startswith(f"{address}/")) for title, address in NAVIGATION],
        "new_run": "/new-run",
        "reports": settings.reports.name,
        "is_logged_in": request.app.state.tokens.is_given(request.session),
        "data": settings.data,
    }
    return {
        "frame": frame,
        "form_token": Markup(f'<input type="hidden" name="{FORM_TOKEN}" value="{token}">'),  # noqa: S704 hexadecimal
        "base": "bare.html" if is_fragment_wanted(request) else "layout.html",
    }
