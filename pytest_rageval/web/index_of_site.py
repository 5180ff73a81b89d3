"""The index of this app's runs, as its pages ask it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from pytest_rageval.web.index.run_index import RunIndex
from pytest_rageval.web.site import Site

FILE = "rageval.sqlite"


def open_run_index(site: Site) -> RunIndex:
    """The index beside the agents and datasets; made with the app, once."""
    return RunIndex(site.settings.data / FILE, site.runs, site.settings.data / "jobs")


def run_index_of(request: Request) -> RunIndex:
    index: RunIndex = request.app.state.run_index
    return index


TheIndex = Annotated[RunIndex, Depends(run_index_of)]
"""A parameter of a route: the index."""
