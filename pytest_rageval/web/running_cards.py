"""Runs in progress as cards of the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from fastapi import Request

from pytest_rageval.text import counted
from pytest_rageval.web.index.run_queries import RunFilter, run_list
from pytest_rageval.web.index_of_site import run_index_of
from pytest_rageval.web.jobs.job_status import JobStatus
from pytest_rageval.web.pages.jobs import jobs_of
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.run_lines import made_from
from pytest_rageval.web.site import site_of
from pytest_rageval.web.versions.version_names import versions_title

MOST_CARDS = 6


class RunningCard(NamedTuple):
    """A run in progress: what it is made from, where its page is, and how far it is.

    done, total  cases; None where nobody counts them, as of a run that pytest began
    notes        short facts, such as `2 errors` or `about 40 s left`
    cancel       where a form that cancels it goes; None where this app cannot
    """

    title: str
    source: str
    address: str
    done: int | None = None
    total: int | None = None
    notes: tuple[str, ...] = ()
    cancel: str | None = None


def running_cards(request: Request) -> list[RunningCard]:
    """Whatever runs now: what was started here, and what others write, the newest first."""
    jobs, data = list(jobs_of(request).going()), site_of(request).settings.data
    started_here = {job.job.id for job in jobs}
    runs = run_index_of(request).read(
        lambda connection: run_list(connection, RunFilter(state="running"), size=MOST_CARDS)
    )
    others = (
        RunningCard(made_from(run, data), run.source, path_to("runs", run.run_id))
        for run in runs.runs
        if run.run_id not in started_here
    )
    return [*(_card(status, data) for status in jobs), *others]


def _card(status: JobStatus, data: Path) -> RunningCard:
    """A job with what its page says of it."""
    job, progress = status.job, status.progress
    facts = (
        None if status.state == "running" else status.state, counted(progress.errors, "error"),
        progress.rate_in_words, progress.time_left_in_words, progress.cost_in_words,
    )  # fmt: skip
    cancel = None if status.state == "stopping" else path_to("jobs", job.id, "cancel")
    notes = tuple(fact for fact in facts if fact)
    title = versions_title(data, (job.agent, job.agent_version), (job.dataset, job.dataset_version))
    return RunningCard(title, job.source, path_to("jobs", job.id), progress.done, progress.total, notes, cancel)
