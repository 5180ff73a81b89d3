"""The end of a run's log, where it was started in the browser."""

from __future__ import annotations

from pytest_rageval.web.jobs.job_log import LOG, log_tail
from pytest_rageval.web.site import Site

JOBS = "jobs"


def log_of_run(site: Site, run_id: str) -> list[str]:
    """The last lines of what a run printed; none where nothing kept them. The job of a run has its id."""
    name = site.stored_run(run_id).run_id
    paths = (site.settings.data / JOBS / name / LOG, site.runs / name / LOG)
    return next((lines for path in paths if (lines := log_tail(path))), [])
