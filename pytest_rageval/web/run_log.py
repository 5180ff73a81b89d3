"""The job of a run that was started in the browser, and the end of a run's log."""

from __future__ import annotations

from pytest_rageval.web.jobs.job_files import JOB
from pytest_rageval.web.jobs.job_log import LOG, log_tail
from pytest_rageval.web.site import Site

JOBS = "jobs"


def has_job(site: Site, run_id: str) -> bool:
    """Whether the run was started in this browser's folder: the job of a run has its id."""
    return (site.settings.data / JOBS / site.stored_run(run_id).run_id / JOB).is_file()


def log_of_run(site: Site, run_id: str) -> list[str]:
    """The last lines of what a run printed; none where nothing kept them."""
    name = site.stored_run(run_id).run_id
    paths = (site.settings.data / JOBS / name / LOG, site.runs / name / LOG)
    return next((lines for path in paths if (lines := log_tail(path))), [])
