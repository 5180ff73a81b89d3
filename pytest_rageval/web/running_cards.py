"""Runs in progress as cards of the dashboard."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request

from pytest_rageval.web.index.run_queries import RunFilter, run_list
from pytest_rageval.web.index_of_site import run_index_of
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.run_lines import made_from

MOST_CARDS = 6


class RunningCard(NamedTuple):
    """A run in progress: what it is made from, where its page is, and how far it is.

    done, total  cases; None where nobody counts them, as of a run that pytest began
    notes        short facts, such as `2 errors` or `about 40 s left`
    """

    title: str
    source: str
    address: str
    done: int | None = None
    total: int | None = None
    notes: tuple[str, ...] = ()


def running_cards(request: Request) -> list[RunningCard]:
    """Whatever runs now, the newest first."""
    runs = run_index_of(request).read(
        lambda connection: run_list(connection, RunFilter(state="running"), size=MOST_CARDS)
    )
    return [RunningCard(made_from(run), run.source, path_to("runs", run.run_id)) for run in runs.runs]
